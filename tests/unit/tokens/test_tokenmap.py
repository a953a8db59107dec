"""Token maps of the real tokenizers (values from FACTS.md beside them) and of a tiny one."""

from pathlib import Path
from typing import Any

import pytest

from readout_audit.errors import AuditError
from readout_audit.models import tiny
from readout_audit.models.templates import Template
from readout_audit.tokens import tokenmap

LLAVA = Template("authors", "USER: <image>\n{question} Answer yes or no only.\nASSISTANT:")
MISTRAL = Template("native_chat", "[INST] <image>\n{question} [/INST]")
BLIP = Template("authors", "Question: {question} Answer yes or no only. Answer:")
QWEN_CHAT = Template("native_chat", chat=True)
QWEN_LITERAL = Template(
    "llava_literal", "USER: <|vision_start|><|image_pad|><|vision_end|>\n{question}\nASSISTANT:"
)
MME = Template(
    "mme",
    "USER: <|image|>{question}\nAnswer the question using a single word or phrase. ASSISTANT: ",
    answer_boundary="merges",
)

EIGHT = {"yes": [3582, 3869, 4874, 8241], "no": [694, 1217, 1939, 3782]}
SCAN_LLAMA = {"yes": [3582, 3869, 4874, 8241, 21143, 22483], "no": [694, 1217, 1939, 3782, 6632, 11698]}


@pytest.fixture(scope="module")
def mirror(shared: Path) -> Path:
    folder = shared / "mirror" / "tokenizers"
    if not folder.is_dir():
        pytest.skip("the mirrored tokenizers are not there")
    return folder


def of(mirror: Path, name: str, *templates: Template) -> dict[str, Any]:
    return tokenmap.build(name, mirror / name, {template.name: template for template in templates})


def test_llava(mirror: Path) -> None:
    found = of(mirror, "llava-1.5-7b-hf", LLAVA, MME)
    assert found["vocabulary"] == {
        "yes": {"yes": 3582, "Yes": 8241, " yes": 4874, " Yes": 3869},
        "no": {"no": 1217, "No": 3782, " no": 694, " No": 1939},
    }
    assert found["encode"]["Yes"] == [3869] and found["encode"][" Yes"] == [29871, 3869]
    assert found["encode"]["YES"] == [22483] and found["encode"][" NO"] == [29871, 11698]
    assert found["single"] == {"yes": [3869, 4874], "no": [694, 1939]}
    assert found["scan"] == SCAN_LLAMA
    assert found["in_context"]["authors"] == EIGHT
    # The prompt ends in a lone space piece, which only bare pieces continue: the same ids, another reason.
    assert found["in_context"]["mme"] == {"yes": [3582, 8241], "no": [1217, 3782]}
    assert found["pieces"]["3869"] == "▁Yes" and found["pieces"]["8241"] == "Yes"
    assert found["vocabulary_size"] == 32002


def test_mistral(mirror: Path) -> None:
    found = of(mirror, "llava-v1.6-mistral-7b-hf", MISTRAL)
    assert found["single"] == {"yes": [5081, 5592], "no": [708, 1770]}
    assert found["scan"] == {"yes": [5081, 5592, 5613, 9780], "no": [708, 1510, 1770, 2501, 4032, 7929]}
    assert found["in_context"]["native_chat"] == {
        "yes": [5081, 5592, 5613, 9780],
        "no": [708, 1510, 1770, 2501],
    }
    # `YES` is two tokens here: looking it up with convert_tokens_to_ids would have given <unk>, id 0.
    assert found["encode"]["YES"] == [627, 2255]
    assert 0 not in found["scan"]["yes"]


def test_instructblip(mirror: Path) -> None:
    found = of(mirror, "instructblip-vicuna-7b", BLIP)
    assert found["single"] == {"yes": [3869, 4874], "no": [694, 1939]}
    assert found["scan"] == SCAN_LLAMA
    assert found["in_context"]["authors"] == EIGHT


def test_qwen(mirror: Path) -> None:
    found = of(mirror, "qwen2-vl-7b-instruct", QWEN_CHAT, QWEN_LITERAL)
    four = {"yes": [7414, 9454, 9693, 9834], "no": [902, 2152, 2308, 2753]}
    assert found["single"] == four
    assert found["in_context"]["native_chat"] == four
    # `:no` is a piece, so that "no" glued to the colon swallows it; its bare piece stands for it.
    assert found["in_context"]["llava_literal"] == four
    assert (len(found["scan"]["yes"]), len(found["scan"]["no"])) == (16, 26)
    assert found["scan"]["yes"] == [
        *(
            7414,
            9454,
            9693,
            9834,
            14004,
            14080,
            19566,
            40798,
            57741,
            59565,
            59744,
            76730,
            84402,
            85408,
            94834,
            97071,
        )
    ]
    assert found["scan"]["no"][:4] == [902, 2152, 2308, 2753] and found["scan"]["no"][-1] == 97976


def test_t5(mirror: Path) -> None:
    found = of(mirror, "flan-t5-xl")
    assert found["single"] == {"yes": [2163, 4273], "no": [150, 465]}
    assert found["scan"] == {"yes": [2163, 4273, 10070, 19739], "no": [150, 465, 4168, 5693, 7400]}
    assert found["vocabulary"]["no"] == {"no": None, "No": 4168, " no": 150, " No": 465}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("tiny")
    tiny.build("llava", where)
    return where


def test_map_is_sets_and_hashes(folder: Path) -> None:
    found = tokenmap.build("tiny", folder, {"authors": LLAVA})
    assert found["single"] == {
        "yes": sorted(set(found["single"]["yes"])),
        "no": sorted(set(found["single"]["no"])),
    }
    assert set(found["tokenizer_sha256"]) >= {"config.json", "tokenizer.json", "tokenizer_config.json"}
    assert set(found["pieces"]) == {str(token_id) for token_id in tokenmap.mentioned_ids(found)}


@pytest.mark.parametrize(
    ("text", "boundary", "message"),
    [
        ("{question} A: ", "merges", None),
        ("{question} A:", "clean", None),
        ("{question} A: ", "clean", "declare merges or end the prompt without a space"),
        ("{question} A:", "merges", "declare clean"),
    ],
)
def test_answer_boundary_is_checked(folder: Path, text: str, boundary: str, message: str | None) -> None:
    template = Template("t", text, answer_boundary=boundary)
    if message is None:
        assert tokenmap.build("tiny", folder, {"t": template})["in_context"]["t"]["yes"]
    else:
        with pytest.raises(AuditError, match=message):
            tokenmap.build("tiny", folder, {"t": template})


def test_sets_that_share_an_id_are_refused() -> None:
    with pytest.raises(AuditError, match=r"the same ids \[4\]"):
        tokenmap.check_disjoint({"yes": [3, 4], "no": [4, 5]}, "the rule")
    with pytest.raises(AuditError, match="finds no token for no"):
        tokenmap.check_disjoint({"yes": [3], "no": []}, "the rule")


def test_a_folder_without_config_is_refused(folder: Path, tmp_path: Path) -> None:
    """Without config.json transformers 5 chooses another class, and the same text gets other ids."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(AuditError, match=r"config\.json is missing"):
        tokenmap.build("tiny", tmp_path, {})
