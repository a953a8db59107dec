"""What would have to be guessed is refused, in one sentence that names the file, the row and what to do."""

import json
import random

import openpyxl
import pytest
import typer
from answer_files import (
    FORMATS,
    IMAGES,
    RELEASE,
    SAID,
    SPLITS,
    authors_audits,
    llava,
    lmms_samples,
    own_csv,
    pope,
    said,
    vcd,
    vlmevalkit_rows,
    write_lines,
    write_release,
)
from typer.testing import CliRunner

from readout_audit.errors import AuditError
from readout_audit.score_file.cli import _score, score


def refusal(files, questions, **options):
    given = {"repope": None, "splits": [], "partial": False, "ids_of": None, "known": None} | options
    with pytest.raises(AuditError) as error:
        _score(files, questions if isinstance(questions, list) else [questions], **given)
    sentence = str(error.value)
    assert sentence.endswith(".") and "\n" not in sentence
    return sentence


@pytest.fixture
def toy(tmp_path):
    return write_release(tmp_path / "toy")


def edited(path, change):
    """Rewrite a JSON lines file with `change(list of rows)`."""
    return write_lines(path, change([json.loads(line) for line in path.read_text().splitlines()]))


def test_fewer_answers_than_questions(tmp_path, toy):
    path = edited(vcd(tmp_path)[2], lambda rows: rows[:-1])
    text = refusal([path], toy)
    assert text.endswith(
        "vcd_random.jsonl: answers 11 of the 12 questions of random of toy and leaves 1 out; add the missing "
        "answers, or say --partial to score what is there."
    )


def test_a_question_that_was_not_asked_about_this_picture(tmp_path, toy):
    """The question and the picture are known, together they are not: --partial would not help, so it is not named."""
    rows = [{"image": image, "question": question, "answer": "Yes"} for image, question in SAID]
    pictures, questions = {row["image"] for row in rows}, {row["question"] for row in rows}
    stray = next((i, q) for q in sorted(questions) for i in sorted(pictures) if (i, q) not in SAID)
    rows[0] |= dict(zip(("image", "question"), stray, strict=True))
    text = refusal([write_lines(tmp_path / "x.jsonl", rows)], toy)
    assert "x.jsonl, line 1: about no question of" in text and "--partial" not in text
    assert f"like 1 of the {len(rows)} rows" in text


def test_texts_alone_that_are_not_whole_and_in_order(tmp_path, toy):
    for change in (lambda rows: rows[:-1], lambda rows: rows[::-1]):
        path = edited(pope(tmp_path)[0], change)
        text = refusal([path], toy)
        assert (
            "name no image" in text
            and "whole and in order" in text
            and "add a column image with the picture's file name (and --partial for a part of a split)"
            in text
            and "adversarial of toy (12 rows)" in text
        )


def test_ids_that_mean_other_questions(tmp_path, toy):
    path = edited(llava(tmp_path)[0], lambda rows: rows[::-1])  # ids 0 to 35, no key file
    text = refusal([path], toy)
    assert "llava.jsonl, line 1: question_id 35 is not 'Is there a mouse in the image?'" in text
    assert "of 36 rows do not fit" in text


def test_other_spelling_is_another_release(tmp_path):
    old = {
        s: [
            r | {"text": r["text"].replace("image", "imange") if " an " in r["text"] else r["text"]}
            for r in RELEASE[s]
        ]
        for s in SPLITS
    }
    questions = write_release(tmp_path / "old", old)
    text = refusal(vcd(tmp_path)[:1], questions)
    assert "(1 of the 12 rows)" in text
    assert "spelling imange/image alone, so another release was asked" in text


def test_questions_that_were_never_asked(tmp_path, toy):
    rows = [{"image": IMAGES[0], "question": "Is the sky blue?", "answer": "yes"}]
    text = refusal([write_lines(tmp_path / "x.jsonl", rows)], toy)
    assert "x.jsonl, line 1: 'Is the sky blue?' is not a question of" in text and "1 of the 1 rows" in text
    assert "in other words, put theirs into the answer file: answers are paired by the exact text" in text


def test_images_that_were_never_asked(tmp_path, toy):
    path = edited(vcd(tmp_path)[0], lambda rows: [row | {"image": "other.jpg"} for row in rows])
    text = refusal([path], toy)
    assert "the image 'other.jpg' is in none of the question files" in text and "12 of the 12 rows" in text


def test_two_answers_to_one_question(tmp_path, toy):
    path = edited(vcd(tmp_path)[2], lambda rows: [*rows, rows[0] | {"text": "No"}])
    text = refusal([path], toy)
    assert (
        "line 1 and line 13: two answers to 'Is there a dog in the image?'" in text and "they differ" in text
    )
    path = edited(vcd(tmp_path)[2], lambda rows: [*rows, rows[0]])
    assert "two answers" in refusal([path], toy)


def test_a_question_answered_differently_without_a_split(tmp_path, toy):
    rows = [
        {"image": row["image"], "question": row["text"], "answer": said(row) if s != "random" else "Yes"}
        for s in SPLITS
        for row in RELEASE[s][::-1]
    ]
    text = refusal([write_lines(tmp_path / "x.jsonl", rows)], toy)
    assert "they differ" in text and "name the split of each" in text


def test_ids_alone_are_not_trusted(tmp_path, toy):
    paths = authors_audits(tmp_path)
    text = refusal(paths, toy)
    assert "neither questions nor images" in text and "--ids-of toy" in text
    assert "--ids-of nope must leave one split" in refusal(paths, toy, ids_of="nope")


def test_ids_alone_of_the_wrong_number_or_with_other_labels(tmp_path, toy):
    path = authors_audits(tmp_path)[0]
    document = json.loads(path.read_text())
    shorter = document | {"results": document["results"][:-1]}
    path.write_text(json.dumps(shorter))
    assert "11 rows with 11 different ids" in refusal([path], toy, ids_of="toy")
    document["results"][3]["label"] = "yes"
    path.write_text(json.dumps(document))
    text = refusal([path], toy, ids_of="toy")
    assert "element 4: its label is yes, and that of toy is no (1 of the 12 rows differ)" in text


def test_labels_of_another_set(tmp_path, toy):
    rows = lmms_samples()
    rows[1]["target"] = "yes"
    text = refusal([write_lines(tmp_path / "s.jsonl", rows)], toy)
    assert "line 2: its label is yes, and that of toy is no" in text


def test_lmms_samples_written_twice(tmp_path, toy):
    path = write_lines(tmp_path / "s.jsonl", [*lmms_samples(), lmms_samples()[0]])
    assert "doc_id 0 stands twice (line 1 and line 37)" in refusal([path], toy)


def test_splits_of_two_releases(tmp_path, toy):
    other = {"random": [r | {"image": "b" + r["image"]} for r in RELEASE["random"]]}
    write_release(tmp_path / "other", other)
    rows = [
        {"image": r["image"], "question": r["text"], "answer": "Yes"}
        for r in [*RELEASE["popular"], *other["random"]]
    ]
    text = refusal(
        [write_lines(tmp_path / "x.jsonl", rows)], [toy / "toy_pope_popular.json", tmp_path / "other"]
    )
    assert "popular of toy, random of other, which are not of one release" in text


def test_one_split_twice(tmp_path, toy):
    first = pope(tmp_path)[0]
    assert "different splits of one release" in refusal([first, first], toy)


def test_repope_of_other_images(tmp_path, toy):
    other = {"random": [r | {"image": "b" + r["image"]} for r in RELEASE["random"]]}
    repope = write_release(tmp_path / "re", other)
    assert "none of these labels is about an image and object" in refusal(
        own_csv(tmp_path), toy, repope=repope
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no answers"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "holds no answers"),
        (b"[1, 2]", "element 1: a JSON object is expected, not int"),
        (b'{"question": "a"', "not valid JSON"),
        (b'{"a": 1, "a": 2}', "a key stands twice"),
        (b'{"question_id": 1, "image": "a", "text": "b", "label": "yes"}', "this is a question file"),
        (
            b'{"image": "a", "question": "b", "answer": "c", "text": "d"}',
            "which column is the answer, answer or text",
        ),
        (b"x,y\n1,2\n", "format is not recognised by its keys (x, y)"),
        (b"image,question,answer\na,b\n", "line 2: 2 cells under a header of 3"),
        (b"image,image,answer\n", "a column name stands twice"),
        (b'{"question": "a", "answer": true}', "answer must be the text of an answer, not bool"),
        (b'{"question": "  ", "answer": "Yes"}', "question must be a text that is not blank"),
        (
            b'{"question": "a", "answer": "b"}\n{"question": "a"}',
            "line 2: the key answer is missing from a POPE row",
        ),
        (b'{"doc_id": "x", "target": "yes", "resps": []}', "doc_id must be a whole number"),
        (b'{"doc_id": 0, "target": "maybe", "resps": [["a"]]}', "must be yes or no, not 'maybe'"),
        (b'{"doc_id": 0, "target": "yes", "resps": [[3]]}', "the response must be a text, not int"),
        (b'{"question": "a", "answer": "\\ud83d"}', "half a surrogate pair"),
        (b"PAR1 but no Parquet", "not a readable Parquet file"),
        (b"PK\x03\x04 but no workbook", "not a readable XLSX workbook"),
    ],
)
def test_files_that_are_no_answers(content, words, tmp_path, toy):
    (tmp_path / "answers").write_bytes(content)
    assert words in refusal([tmp_path / "answers"], toy)


def test_question_files_that_are_not_there(tmp_path, toy):
    answers = own_csv(tmp_path)
    (tmp_path / "empty").mkdir()
    assert "holds no question file" in refusal(answers, tmp_path / "empty")
    # The folder above the releases' folders, as a mirror has it: the sentence names them.
    mirror = write_release(tmp_path / "mirror" / "toy").parent
    write_release(mirror / "other")
    (mirror / "empty").mkdir()
    text = refusal(answers, mirror)
    assert text.endswith("give the one of the release that was asked: other, toy.")
    assert "nowhere.json: no such file or folder" in refusal(answers, tmp_path / "nowhere.json")
    toy_answers = FORMATS["POPE"](tmp_path)
    assert "nowhere: no such file or folder" in refusal(toy_answers, toy, repope=tmp_path / "nowhere")
    assert "--split popularr: the question files are of adversarial, popular, random" in refusal(
        answers, toy, splits=["popularr"]
    )
    assert "cannot be read" in refusal([tmp_path / "nowhere.jsonl"], toy)


def test_a_whole_release_under_a_partial_flag_is_not_a_guess_either(tmp_path, toy):
    # Positives stand in all three splits: a file of them belongs to no single one.
    rows = [{"image": i, "question": q, "answer": "Yes"} for (i, q) in SAID if any(
        r["text"] == q and r["image"] == i and r["label"] == "yes" for r in RELEASE["random"])]  # fmt: skip
    path = write_lines(tmp_path / "x.jsonl", rows)
    text = refusal([path], toy, partial=True)
    assert "are all in adversarial of toy, popular of toy, random of toy" in text and "--split" in text
    _score([path], [toy], None, ["random"], True, None, None)


def test_a_row_without_its_answer_does_not_make_the_label_the_answer(tmp_path, toy):
    """VLMEvalKit's `answer` is the label: read as an answer, it would score 1.0000."""
    rows = [dict(row) for row in vlmevalkit_rows()]
    del rows[0]["prediction"]
    path = write_lines(tmp_path / "x.jsonl", rows)
    assert "x.jsonl, line 1: the key prediction is missing from a VLMEvalKit row" in refusal([path], toy)


def test_empty_cells_at_the_end_of_a_sheets_row_are_empty_answers(tmp_path, toy):
    book = openpyxl.Workbook()
    rows = vlmevalkit_rows()
    book.active.append(list(rows[0]))
    for number, row in enumerate(rows):
        book.active.append(list(row.values())[: 4 if number < 2 else None])
    path = tmp_path / "m_POPE.xlsx"
    book.save(path)
    audit = _score([path], [toy], None, [], False, None, None)
    assert audit.answers[0].format == "VLMEvalKit (XLSX)" and list(audit.answers[0].text[:2]) == [None, None]


def test_lmms_evals_null_is_no_answer(tmp_path, toy):
    samples = lmms_samples()
    samples[0]["filtered_resps"] = [None]
    audit = _score([write_lines(tmp_path / "x.jsonl", samples)], [toy], None, [], False, None, None)
    assert audit.answers[0].text[0] is None


@pytest.fixture
def command():
    app = typer.Typer()
    app.command()(score)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_command_prints_one_sentence_and_exits_1(command, tmp_path, toy):
    path = edited(vcd(tmp_path)[2], lambda rows: rows[:-1])
    result = command(path, "--questions", toy, "--output", tmp_path / "out")
    assert result.exit_code == 1 and result.output.startswith("error: ") and result.output.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_command_writes_three_files(command, tmp_path, toy):
    result = command(*FORMATS["POPE"](tmp_path), "--questions", toy, "--output", tmp_path / "out")
    assert result.exit_code == 0 and "the rule that reads them is the only difference" in result.output
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "report.html",
        "scores.csv",
        "scores.json",
    ]


def damaged(raw, rng):
    """Return a file's bytes with a few of them changed, cut out or put in."""
    some = bytearray(raw)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(some))
        way = rng.randrange(3)
        if way == 0:
            some[place] = rng.randrange(256)
        elif way == 1:
            del some[place : place + rng.randint(1, 50)]
        else:
            some[place:place] = rng.randbytes(3)
    return bytes(some)


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(name, tmp_path, toy):
    rng = random.Random(name)
    files = FORMATS[name](tmp_path)
    raw = files[0].read_bytes()
    refused = 0
    for _ in range(8):
        files[0].write_bytes(damaged(raw, rng))
        try:
            _score(files, [toy], None, [], False, "toy", None)
        except AuditError as error:
            refused += 1
            assert "\n" not in str(error) and str(error).endswith(".") and len(str(error)) < 700
    assert refused


def test_a_value_of_any_length_is_quoted_in_a_sentence(tmp_path, toy):
    rows = [{"image": "x" * 5000, "question": "y" * 5000, "answer": "Yes"}]
    assert len(refusal([write_lines(tmp_path / "x.jsonl", rows)], toy)) < 700


def test_question_files_that_a_shell_put_after_the_option(command, tmp_path, toy):
    """`--questions toy_*.json`: the option takes the first file, and the others come as answers."""
    first, *others = sorted(toy.iterdir())
    result = command(own_csv(tmp_path)[0], "--questions", first, *others, "--output", tmp_path / "out")
    assert result.exit_code == 1 and "toy_pope_popular.json: this is a question file" in result.output
    assert (
        f"put --questions before each question file, or name their folder once (--questions {toy}/)"
        in result.output
    )


def test_a_damaged_line_gets_a_remedy(tmp_path, toy):
    path = vcd(tmp_path)[2]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][:20], "", ""]))
    text = refusal([path], toy)
    assert (
        "line 12: not valid JSON" in text and "it is the last line, so the file may have been cut off" in text
    )
    assert "--partial, which needs an image column" in text
    path.write_text("\n".join([*lines[:3], lines[3][:20], *lines[4:]]))
    text = refusal([path], toy)
    assert "line 4: not valid JSON" in text and text.endswith("mend that line, or ask its question again.")


def test_questions_given_as_answers_and_an_annotation_given_as_questions(tmp_path, toy):
    own = tmp_path / "own.csv"
    own.write_text("image,question,label\na.jpg,Is there a dog in the image?,yes\n")
    assert "this is a question file, with labels and no answers" in refusal([own], toy)
    annotation = tmp_path / "instances.json"
    annotation.write_text(json.dumps({"images": [], "categories": []}, indent=1))
    assert "instances.json: one JSON object over several lines" in refusal(own_csv(tmp_path), annotation)


@pytest.mark.parametrize("more", [{}, {"image": "iVBORw0KGgo" * 200}, {"image_path": IMAGES[0]}])
def test_vlmevalkits_questions_are_no_answers(tmp_path, toy, more):
    """Its `answer` is the label: scored, the labels would be all right."""
    rows = [{**row, **more} for row in vlmevalkit_rows()]
    for row in rows:
        del row["prediction"]
    text = refusal([write_lines(tmp_path / "POPE.jsonl", rows)], toy)
    assert "are VLMEvalKit's questions, whose answer is the label; give its result file" in text
