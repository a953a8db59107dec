"""The importable readout: real tokenizer traps, on stand-in tokenizers and on a real one."""

import subprocess
import sys

import numpy as np
import pytest

from readout_audit.errors import AuditError
from readout_audit.readouts.listing1 import readout


class Tokenizer:
    """Encodes each form to the given ids; special tokens are added unless asked not to."""

    unk_token_id = 0

    def __init__(self, forms, pieces=None):
        self.forms, self.pieces = forms, pieces or {}

    def encode(self, form, add_special_tokens=True):
        return ([1] if add_special_tokens else []) + self.forms.get(form, [8, 9])

    def convert_ids_to_tokens(self, token):
        return self.pieces.get(token)


PIECES = {3: "▁Yes", 4: "▁yes", 5: "▁No", 6: "▁no", 7: "Yes"}
LLAMA_LIKE = Tokenizer(
    {
        "Yes": [3],
        "yes": [4],
        " Yes": [2, 3],
        " yes": [2, 4],
        "No": [5],
        "no": [6],
        " No": [2, 5],
        " no": [2, 6],
    },
    PIECES,
)


def vector(**by_id):
    values = np.full(12, -5.0)
    for token, value in by_id.items():
        values[int(token[1:])] = value
    return values


def test_reads_the_largest_form_and_names_what_it_read():
    read = readout(LLAMA_LIKE, vector(i3=2.0, i4=-1.0, i5=1.5))
    assert (read.answer, read.margin, read.tie) == ("yes", 0.5, False)
    assert read.emitted == (3, "▁Yes") and read.covered
    assert read.yes == {3: "▁Yes", 4: "▁yes"} and read.no == {5: "▁No", 6: "▁no"}


def test_a_tie_is_a_no():
    read = readout(LLAMA_LIKE, vector(i3=2.0, i5=2.0))
    assert (read.answer, read.tie, read.emitted) == ("no", True, (3, "▁Yes"))


def test_an_emitted_token_outside_the_sets_is_reported():
    read = readout(LLAMA_LIKE, vector(i7=9.0, i3=1.0, i5=2.0))
    assert read.answer == "no" and not read.covered and read.emitted == (7, "Yes")


def test_ids_that_come_twice_are_one_set():
    twice = Tokenizer(
        {form: [3] for form in ("yes", "Yes", " yes", " Yes")} | {"no": [5], " no": [5]}, PIECES
    )
    assert readout(twice, vector(i3=1.0)).yes == {3: "▁Yes"}


def test_unknown_tokens_are_no_form():
    unknown = Tokenizer({"yes": [0], "Yes": [3], "no": [0], "No": [5]}, PIECES)
    read = readout(unknown, vector(i0=9.0, i3=1.0))
    assert set(read.yes) == {3} and set(read.no) == {5}


@pytest.mark.parametrize(
    ("tokenizer", "logits", "message"),
    [
        (Tokenizer({"yes": [3]}), vector(), "no one-token forms"),
        (Tokenizer({"yes": [3], "no": [3]}), vector(), "no one-token forms that tell yes from no"),
        (LLAMA_LIKE, np.zeros((1, 12)), r"shape \(1, 12\)"),
        (LLAMA_LIKE, [0.0] * 4, "4 logits do not cover"),
        (LLAMA_LIKE, [-np.inf] * 12, "not all finite"),
        (LLAMA_LIKE, [np.nan] + [0.0] * 11, "not all finite"),
    ],
)
def test_what_cannot_be_read_is_refused(tokenizer, logits, message):
    with pytest.raises(AuditError, match=message):
        readout(tokenizer, logits)


def test_a_tensor_of_any_dtype_is_read_and_torch_is_not_imported():
    class Tensor:  # bfloat16 has no numpy form, so the readout must go through float()
        def __init__(self, values):
            self.values = values

        def detach(self):
            return self

        float = cpu = detach

        def numpy(self):
            return self.values

    assert readout(LLAMA_LIKE, Tensor(vector(i3=1.0))).answer == "yes"
    code = "import sys, readout_audit.readouts.listing1; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_real_tokenizers_give_the_published_sets(shared):
    transformers = pytest.importorskip("transformers")
    expected = {
        "llava-1.5-7b-hf": ({3869, 4874}, {694, 1939}),
        "llava-v1.6-mistral-7b-hf": ({5081, 5592}, {708, 1770}),
        "qwen2-vl-7b-instruct": ({7414, 9454, 9693, 9834}, {902, 2152, 2308, 2753}),
    }
    for name, (yes, no) in expected.items():
        tokenizer = transformers.AutoTokenizer.from_pretrained(shared / "mirror/tokenizers" / name)
        logits = np.zeros(152064)
        logits[max(yes)] = 1.0
        read = readout(tokenizer, logits)
        assert (set(read.yes), set(read.no), read.answer) == (yes, no, "yes")
