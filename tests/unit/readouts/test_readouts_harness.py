"""The rules of scoring scripts: the matrix of known answers, second implementations, and their own figures."""

import re
from fractions import Fraction

import numpy as np
import pytest
from readout_tables import metadata, records

from readout_audit.readouts.registry import get
from readout_audit.scores.confusion import Confusion

# Answer: POPE / LLaVA, lmms-eval, VLMEvalKit, RePOPE; no match, Unknown and dropped are all unparsed.
MATRIX = [
    ("Yes", "yes", "yes", "yes", "yes"),
    ("Yes.", "yes", "unparsed", "yes", "yes"),
    ("NO", "yes", "no", "no", "no"),
    ("No!", "yes", "unparsed", "no", "no"),
    ("No\nThe image shows a cat", "yes", "unparsed", "no", "no"),
    ("**No**", "yes", "unparsed", "unparsed", "no"),
    ("1. No", "yes", "unparsed", "no", "no"),
    ("", "yes", "unparsed", "unparsed", "unparsed"),
    ("There isn't a dog in the image.", "yes", "unparsed", "unparsed", "unparsed"),
    ("I cannot determine that from the image.", "yes", "unparsed", "unparsed", "no"),
    ("I'm not sure", "no", "unparsed", "unparsed", "no"),
    ("The image does not show a dog", "no", "unparsed", "unparsed", "no"),
    ("Nope", "yes", "unparsed", "unparsed", "no"),
]
RULES = ("pope_official", "lmms_eval", "vlmevalkit", "repope")


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: repr(row[0]))
def test_matrix_of_known_answers(row):
    table = records(new_text=[row[0]])
    read = tuple(get(name).decide(table, metadata([])).decision.to_pylist()[0] for name in RULES)
    assert read == row[1:]


def test_default_to_yes_is_counted():
    answers = ["", "NO", "There isn't a dog", "I cannot answer that", "Yes", "no", "1. Yes"]
    decided = get("pope_official").decide(records(new_text=answers), metadata([]))
    assert decided.decision.to_pylist() == ["yes", "yes", "yes", "yes", "yes", "no", "yes"]
    assert decided.flags["default_yes"].to_pylist() == [True, True, True, True, False, False, False]


def test_exact_match_keeps_only_the_bare_word():
    decided = get("lmms_eval").decide(records(new_text=["Yes", "Yes.", "no,", '"No"', " NO\n"]), metadata([]))
    assert decided.decision.to_pylist() == ["yes", "unparsed", "unparsed", "unparsed", "no"]


def test_vcd_reads_the_label_first():
    answers = ["Yes, not no", "Yes, not no", "maybe", "maybe", "snow", "snow", "Yes", "Yes"]
    labels = records(uid=["yes", "no"] * 4)["uid"].combine_chunks()
    decided = get("vcd").decide(records(new_text=answers), metadata([]), labels)
    assert decided.decision.to_pylist() == ["yes", "no", "no", "yes", "no", "no", "yes", "yes"]
    assert decided.flags["label_decides"].to_pylist() == [True] * 4 + [False] * 4


def test_repope_flags_words_inside_words():
    answers = ["cannot", "no", "Yesterday", "It is not", "maybe"]
    decided = get("repope").decide(records(new_text=answers), metadata([]))
    assert decided.decision.to_pylist() == ["no", "no", "yes", "no", "unparsed"]
    assert decided.flags["inside_word"].to_pylist() == [True, False, True, True, False]


def test_missing_text_is_empty_text_and_invalid_rows_stay_invalid():
    table = records([[], None], new_text=[None, "No"])
    decided = get("pope_official").decide(table, metadata([]))
    assert decided.decision.to_pylist() == ["yes", "invalid"]
    assert decided.flags["default_yes"].to_pylist() == [True, None]


# Second implementations, written from the descriptions and in another style: characters and loops, no regex.


def second_pope(text, _label):
    sentence = ""
    for character in text:
        if character == ".":
            break
        if character != ",":
            sentence += character
    word, words = "", []
    for character in [*sentence, " "]:
        if character == " ":
            words.append(word)
            word = ""
        else:
            word += character
    return "no" if {"No", "no", "not"} & set(words) else "yes"


def second_lmms(text, _label):
    bare = text.strip().lower()
    return {"yes": "yes", "no": "no"}.get(bare, "unparsed")


def second_vlmevalkit(text, _label):
    low = text.lower()
    signs = [
        ";",
        "/",
        "[",
        "]",
        '"',
        "{",
        "}",
        "(",
        ")",
        "=",
        "+",
        "\\",
        "_",
        "-",
        ">",
        "<",
        "@",
        "`",
        ",",
        "?",
        "!",
    ]
    number_comma = any(
        low[i] == "," and low[i - 1].isdecimal() and low[i + 1].isdecimal() for i in range(1, len(low) - 1)
    )
    beside_space = {
        c for c in signs for i in range(len(low)) if low[i] == c and " " in low[max(i - 1, 0) : i + 2]
    }
    out, periods = [], 0
    mapped = [
        "" if c in signs and (number_comma or c in beside_space) else " " if c in signs else c for c in low
    ]
    flat = "".join(mapped)
    for i, c in enumerate(flat):
        if c == "." and not (i + 1 < len(flat) and flat[i + 1].isdecimal()) and periods < 32:
            periods += 1
            continue
        out.append(c)
    words = "".join(out).split()
    found = [w for w in ("yes", "no") if w in words]
    return found[0] if len(found) == 1 else "unparsed"


def second_vcd(text, label):
    found = label in text.lower()
    return label if found else ("no" if label == "yes" else "yes")


def second_repope(text, _label):
    low = text.lower()
    if low.find("yes") >= 0:
        return "yes"
    return "no" if low.find("no") >= 0 or low.find("not") >= 0 else "unparsed"


SECOND = {
    "pope_official": second_pope,
    "lmms_eval": second_lmms,
    "vlmevalkit": second_vlmevalkit,
    "vcd": second_vcd,
    "repope": second_repope,
}
PIECES = [
    "yes", "Yes", "YES", "no", "No", "NO", "not", "Not", "nope", "cannot", "isn't", "there is", "a dog", "snowboard",
    "yesterday", " ", " ", " ", "  ", "\n", "\t", ".", ". ", "...", ",", ", ", "!", "?", "-", " - ", '"', "**", "'",
    "(", ")", "_", "/", ":", ";", "1", "1,000", "3.5", "1. ", "<s>", "`", "@", "é", "İ", "ſ", "٣,٣", "\u00a0", "." * 33,
]  # fmt: skip


@pytest.fixture(scope="module")
def generated():
    rng = np.random.default_rng(20261129)
    texts = ["".join(rng.choice(PIECES, size=rng.integers(0, 9))) for _ in range(10_000)]
    return texts, ["yes" if bit else "no" for bit in rng.integers(0, 2, size=len(texts))]


@pytest.mark.parametrize("name", SECOND)
def test_ten_thousand_generated_answers_equal_a_second_implementation(name, generated):
    texts, labels = generated
    column = records(uid=labels)["uid"].combine_chunks()
    decided = get(name).decide(records(new_text=texts), metadata([]), column).decision.to_pylist()
    expected = [SECOND[name](text, label) for text, label in zip(texts, labels, strict=True)]
    assert decided == expected
    assert {"yes", "no"} <= set(expected)  # the generator meets every branch
    assert ("unparsed" in expected) == (name in ("lmms_eval", "vlmevalkit", "repope"))


def test_only_32_periods_are_dropped():
    assert get("vlmevalkit").read("." * 32 + "yes", None).decision == "yes"
    assert get("vlmevalkit").read("." * 33 + "yes", None).decision == "unparsed"
    assert re.UNICODE == 32  # what stands in the place of the number


# tp=2 fp=1 tn=1 fn=0, one unparsed positive and one unparsed negative.
COUNTS = Confusion(tp=2, fp=1, tn=1, fn=0, unparsed_pos=1, unparsed_neg=1)


def test_the_scripts_own_figures():
    third, half = Fraction(1, 3), Fraction(1, 2)
    assert get("lmms_eval").figures(COUNTS) == {
        "accuracy": half,  # 3 of 6
        "precision": 2 * third,
        "recall": Fraction(1),  # 2 of 2: the unmatched positive is left out
        "f1": Fraction(4, 5),
        "yes_ratio": half,  # 3 of 6 labels
    }
    assert get("vlmevalkit").figures(COUNTS) == {
        "accuracy": half,
        "precision": 2 * third,
        "recall": 2 * third,  # the unknown positive is a no
        "f1": 2 * third,
        "yes_ratio": None,
    }
    assert get("repope").figures(COUNTS) == {
        "accuracy": Fraction(3, 4),  # of the four rows with a reading
        "precision": 2 * third,
        "recall": Fraction(1),
        "f1": Fraction(4, 5),
        "yes_ratio": Fraction(3, 4),
    }
    whole = Confusion(tp=2, fp=1, tn=1, fn=2)
    for name in ("pope_official", "vcd"):
        assert get(name).figures(whole) == {
            "accuracy": half,
            "precision": 2 * third,
            "recall": half,
            "f1": Fraction(4, 7),
            "yes_ratio": half,
        }


def test_six_long_sentences_under_exact_match():
    # Every answer is a sentence: nothing matches, every score is 0, and the yes-ratio is that of the labels.
    figures = get("lmms_eval").figures(Confusion(0, 0, 0, 0, unparsed_pos=3, unparsed_neg=3))
    assert figures == {"accuracy": 0, "precision": 0, "recall": 0, "f1": 0, "yes_ratio": Fraction(1, 2)}


def test_scripts_without_a_guard_print_nothing_when_nothing_is_called_yes():
    for name in ("pope_official", "vcd", "repope"):
        assert set(get(name).figures(Confusion(tp=0, fp=0, tn=3, fn=3)).values()) == {None}
