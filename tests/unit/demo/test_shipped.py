"""The shipped checkpoints are what the code describes and what their cards say."""

import json

import pytest
import torch
from safetensors import safe_open

from readout_audit.demo.acceptance import check, load
from readout_audit.demo.architecture import RECIPES, build_processor
from readout_audit.demo.build import write_world
from readout_audit.demo.evaluate import in_context_pieces
from readout_audit.demo.scenes import draw_scene
from readout_audit.exact import printed


@pytest.fixture(scope="module")
def models(root):
    return root / "resources" / "demo" / "models"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    return write_world(folder), folder / "images"


def test_all_checkpoints_together_stay_small(models):
    assert sum(path.stat().st_size for path in models.rglob("*.safetensors")) < 8_000_000


@pytest.mark.parametrize("name", RECIPES)
def test_weights_are_half_precision_and_small(models, name):
    path = models / name / "model.safetensors"
    assert path.stat().st_size < 1_800_000
    with safe_open(path, framework="pt") as weights:
        dtypes = {weights.get_tensor(key).dtype for key in weights.keys()}  # noqa: SIM118 (no mapping)
    assert dtypes == {torch.float16}
    config = json.loads((models / name / "config.json").read_text())
    assert {config["dtype"], config["text_config"]["dtype"], config["vision_config"]["dtype"]} == {"float16"}


@pytest.mark.parametrize("name", RECIPES)
def test_shipped_tokenizer_is_the_one_the_code_builds(models, name, tmp_path):
    processor = build_processor(RECIPES[name])
    processor.save_pretrained(tmp_path)
    for file in ("tokenizer.json", "processor_config.json", "chat_template.jinja"):
        assert (models / name / file).read_bytes() == (tmp_path / file).read_bytes(), file


@pytest.mark.parametrize("name", RECIPES)
def test_log_holds_every_stage(models, name):
    entries = [json.loads(line) for line in (models / name / "training_log.jsonl").read_text().splitlines()]
    last = {entry["stage"]: entry.get("step") for entry in entries}
    assert (last["S1"], last["S2"], last["S3"]) == (748, 1100, 150)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_shipped_model_is_accepted_and_scores_what_its_card_says(models, name, world):
    questions, images = world
    model, processor = load(models / name)
    evaluation, found = check(model, processor, RECIPES[name], questions, images)
    assert found == []
    card = (models / name / "README.md").read_text()
    for split, scores in evaluation.scores.items():
        two, eight = scores["two_token"], scores["eight_token"]
        rates = (two.f1, eight.f1, two.yes_rate, eight.yes_rate)
        assert f"| {split} | {' | '.join(printed(rate, 4) for rate in rates)} |" in card


@pytest.mark.parametrize("name", RECIPES)
def test_the_answer_is_one_piece_and_then_the_end(models, name):
    model, processor = load(models / name)
    text = RECIPES[name].prompt.format(question="Is there a person in the image?")
    for index in range(4):
        inputs = processor(images=draw_scene("validation", index).pixels, text=text, return_tensors="pt")
        with torch.inference_mode():
            whole = model.generate(**inputs, do_sample=False, max_new_tokens=6)
        answer, *rest = whole[0, inputs["input_ids"].shape[1] :].tolist()
        piece = processor.tokenizer.convert_ids_to_tokens(answer)
        assert piece in in_context_pieces(RECIPES[name], processor)
        assert rest == [processor.tokenizer.eos_token_id]
