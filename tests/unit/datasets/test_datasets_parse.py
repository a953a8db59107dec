import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.datasets.parse import QuestionRow, check_image_name, parse_questions, read_questions
from readout_audit.errors import AuditError

ROW = {"question_id": 1, "image": "a.jpg", "text": "Is there a dog in the image?", "label": "yes"}
OTHER = {"question_id": 2, "image": "a.jpg", "text": "Is there an oven in the imange?", "label": "no"}


def lines(*rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def refusal(raw, **options):
    with pytest.raises(AuditError) as caught:
        parse_questions(raw, "q.json", **options)
    return str(caught.value)


EXPECTED = (
    QuestionRow("1", "a.jpg", "Is there a dog in the image?", "yes", "dog"),
    QuestionRow("2", "a.jpg", "Is there an oven in the imange?", "no", "oven"),
)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (lines(ROW, OTHER), "json_lines"),
        (lines(ROW, OTHER).replace(b"\n", b"\r\n"), "json_lines"),
        (b"\xef\xbb\xbf" + lines(ROW, OTHER), "json_lines"),
        (lines(ROW) + b"\n  \n" + lines(OTHER).rstrip(b"\n"), "json_lines"),
        (json.dumps([ROW, OTHER], indent=4).encode(), "json_array"),
        (b"\xef\xbb\xbf\n" + json.dumps([ROW, OTHER]).encode(), "json_array"),
    ],
)
def test_same_questions_in_every_json_form(raw, kind):
    parsed = parse_questions(raw, "q.json")
    assert (parsed.rows, parsed.format, parsed.ignored_keys) == (EXPECTED, kind, ())


def test_csv_parted_by_semicolons():
    raw = b"image;question;label\r\na.jpg;Is it red, or blue?;yes\r\n"
    (row,) = parse_questions(raw, "q.csv", is_csv=True).rows
    assert (row.image, row.question, row.label) == ("a.jpg", "Is it red, or blue?", "yes")


def test_csv_with_question_and_quoting():
    raw = '\ufeffimage,question,label,note\r\na.jpg,"Is there a dog, or so",YES,x\r\nb.jpg,Q,No,\r\n'.encode()
    parsed = parse_questions(raw, "q.csv", is_csv=True)
    assert parsed.rows == (
        QuestionRow("1", "a.jpg", "Is there a dog, or so", "yes", None),
        QuestionRow("2", "b.jpg", "Q", "no", None),
    )
    assert (parsed.format, parsed.ignored_keys) == ("csv", ("note",))


def test_own_json_lines_are_numbered_and_may_name_the_object():
    rows = [
        {"image": "a.jpg", "question": "Dog?", "label": "Yes", "object": "dog"},
        {**ROW, "question_id": "x"},
    ]
    assert parse_questions(lines(rows[0]), "q.jsonl").rows == (
        QuestionRow("1", "a.jpg", "Dog?", "yes", "dog"),
    )
    assert "line 1: question_id is missing though other rows have one" in refusal(lines(*rows))


def test_line_separator_inside_a_text_ends_no_row():
    row = {**ROW, "text": "Is there a dog\u2028in the image?"}
    raw = (json.dumps(row, ensure_ascii=False) + "\n").encode()
    assert parse_questions(raw, "q.json").rows[0].question == row["text"]


def test_unused_keys_are_reported():
    assert parse_questions(lines({**ROW, "image_id": 3}), "q.json").ignored_keys == ("image_id",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": "maybe"}, "line 2: label must be yes or no, not 'maybe'"),
        ({"label": True}, "line 2: label must be a text"),
        ({"label": None}, "line 2: label must be a text"),
        ({"image": "../a.jpg"}, "line 2: image must be a plain file name"),
        ({"image": "dir/a.jpg"}, "line 2: image must be a plain file name"),
        ({"image": "dir\\a.jpg"}, "line 2: image must be a plain file name"),
        ({"image": ".."}, "line 2: image must be a plain file name"),
        ({"image": "a\x00.jpg"}, "line 2: image must be a plain file name"),
        ({"image": " a.jpg"}, "line 2: image must be a plain file name"),
        ({"image": "a" * 252 + ".jpg"}, "line 2: image must be a plain file name"),
        ({"image": ""}, "line 2: image must be a text that is not blank"),
        ({"image": 7}, "line 2: image must be a text that is not blank, not 7"),
        ({"text": "   "}, "line 2: text must be a text that is not blank"),
        ({"text": "\ud800"}, "line 2: text holds half a surrogate pair"),
        ({"question": "also"}, "line 2: exactly one of the keys text and question is needed"),
        ({"question_id": 1}, "question_id 1 stands twice (line 1 and line 2)"),
        ({"question_id": "1"}, "question_id 1 stands twice (line 1 and line 2)"),
        ({"question_id": 1.0}, "line 2: question_id must be a whole number or a text"),
        ({"question_id": True}, "line 2: question_id must be a whole number or a text"),
        ({"question_id": None}, "line 2: question_id must be a whole number or a text"),
    ],
)
def test_bad_row_is_named(change, said):
    message = refusal(lines(ROW, {**OTHER, **change}))
    assert said in message
    assert message.startswith("q.json")


@pytest.mark.parametrize("key", ["image", "label"])
def test_missing_key_is_named(key):
    row = {name: value for name, value in OTHER.items() if name != key}
    assert f"q.json, line 2: the key {key} is missing" in refusal(lines(ROW, row))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "holds no questions"),
        (b"\xef\xbb\xbf \n", "holds no questions"),
        (b"[]", "holds no questions"),
        (b"\xff\xfe{", "not UTF-8 text (byte 0)"),
        (lines(ROW) + b'{"question_id": 2', "line 2: not valid JSON"),
        (b'{"label": "yes", "label": "no"}', "line 1: not valid JSON (the key label stands twice)"),
        (b"3\n", "line 1: a JSON object is expected, not int"),
        (b'[["a"]]', "element 1: a JSON object is expected, not list"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_file_is_refused_in_one_sentence(raw, said):
    assert said in refusal(raw)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"image,question,label\n", "holds no questions"),
        (b"image,question,label\na.jpg,Q\n", "line 2: the number of cells is not that of the header (3)"),
        (
            b"image,question,label\na.jpg,Q,yes,more\n",
            "line 2: the number of cells is not that of the header (3)",
        ),
        (b"image,image,label\na,b,yes\n", "a column name stands twice"),
        (b'image,question,label\na.jpg,"Q\n', "not valid CSV"),
    ],
)
def test_bad_csv_is_refused(raw, said):
    assert said in refusal(raw, is_csv=True)


def test_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(AuditError, match=r"none\.json: the question file cannot be read"):
        read_questions(tmp_path / "none.json")


@given(st.text(max_size=40))
def test_accepted_image_name_never_leaves_its_folder(name):
    folder = Path("folder")
    try:
        check_image_name(name, "here")
    except AuditError:
        return
    joined = folder / name
    assert joined.parent == folder
    assert joined.name == name


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)


@given(st.lists(st.tuples(TEXT, st.sampled_from(["yes", "No", "YES"])), min_size=1, max_size=6))
def test_json_lines_and_array_agree_on_any_text(pairs):
    rows = [
        {"question_id": n, "image": f"{n}.jpg", "text": text, "label": label}
        for n, (text, label) in enumerate(pairs)
    ]
    as_lines = parse_questions("\n".join(json.dumps(r, ensure_ascii=False) for r in rows).encode(), "l").rows
    as_array = parse_questions(json.dumps(rows).encode(), "a").rows
    assert as_lines == as_array
    assert [row.question for row in as_lines] == [text for text, _ in pairs]
    assert [row.label for row in as_lines] == [label.lower() for _, label in pairs]
