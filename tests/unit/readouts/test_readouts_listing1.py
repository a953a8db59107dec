"""The importable readout: real tokenizer traps, on stand-in tokenizers and on a real one."""

import subprocess
import sys
from types import SimpleNamespace

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
        (Tokenizer({"yes": [3]}), vector(), r"no form of no \('no', 'No', ' no', ' No'\) that is one token"),
        (Tokenizer({"yes": [3], "no": [3]}), vector(), r"gives yes and no the same token ids \[3\]"),
        (LLAMA_LIKE, np.zeros((1, 12)), r"not shape \(1, 12\): call it once for each row of a batch"),
        (LLAMA_LIKE, np.zeros((2, 5, 12)), r"such as logits\[0, -1\]"),
        (LLAMA_LIKE, [0.0] * 4, "4 logits do not reach the token id 6"),
        (LLAMA_LIKE, [], "0 logits do not reach the token id 6"),
        (LLAMA_LIKE, np.full(12, 1 / 12), "these are probabilities, which add up to 1; give the raw logits"),
        (LLAMA_LIKE, np.zeros(12) > 0, "the logits must be numbers, .* not ndarray"),
        (LLAMA_LIKE, np.zeros(12) + 1j, "the logits must be numbers"),
        (LLAMA_LIKE, [[0.0], [0.0, 1.0]], "the logits must be numbers, .* not list"),
        (LLAMA_LIKE, "yes", "the logits must be numbers, .* not str"),
        (LLAMA_LIKE, None, "the logits must be numbers, .* not NoneType"),
        (LLAMA_LIKE, {"logits": vector()}, "the logits must be numbers, .* not dict"),
        (None, vector(), "the first argument must be the model's tokenizer, .* not NoneType"),
        (vector(), LLAMA_LIKE, "the first argument must be the model's tokenizer, .* not ndarray"),
        ("llava", vector(), "the first argument must be the model's tokenizer, .* not str"),
        (SimpleNamespace(tokenizer=LLAMA_LIKE), vector(), "take its .tokenizer"),
        (LLAMA_LIKE, [-np.inf] * 12, "not all finite"),
        (LLAMA_LIKE, [np.nan] + [0.0] * 11, "not all finite"),
    ],
)
def test_what_cannot_be_read_is_refused(tokenizer, logits, message):
    with pytest.raises(AuditError, match=message) as caught:
        readout(tokenizer, logits)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_log_probabilities_give_the_same_answer_and_margin():
    logits = vector(i3=2.0, i5=1.5)
    read = readout(LLAMA_LIKE, logits - np.log(np.exp(logits).sum()))
    assert (read.answer, read.covered) == ("yes", True) and read.margin == pytest.approx(0.5)


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
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    expected = {
        "llava-1.5-7b-hf": ({3869, 4874}, {694, 1939}),
        "llava-v1.6-mistral-7b-hf": ({5081, 5592}, {708, 1770}),
        "qwen2-vl-7b-instruct": ({7414, 9454, 9693, 9834}, {902, 2152, 2308, 2753}),
        "instructblip-vicuna-7b": ({3869, 4874}, {694, 1939}),
        "flan-t5-xl": ({2163, 4273}, {150, 465}),
        "clip-vit-base-patch32": ({1958}, {871}),
    }
    for name, (yes, no) in expected.items():
        tokenizer = transformers.AutoTokenizer.from_pretrained(shared / "mirror/tokenizers" / name)
        logits = np.zeros(152064)
        logits[max(yes)] = 2.0
        for given in (logits, logits.tolist(), torch.tensor(logits).bfloat16()):
            read = readout(tokenizer, given)
            assert (set(read.yes), set(read.no), read.answer, read.margin) == (yes, no, "yes", 2.0)
