"""Training: what the model is shown, and the acceptance that follows. The smoke training runs every line."""

import json
from collections import Counter

import numpy as np
import pytest
import torch

from readout_audit.demo.acceptance import BANDS, shortcomings
from readout_audit.demo.architecture import RECIPES, answer_id, build_processor
from readout_audit.demo.evaluate import Evaluation, answer_ids, in_context_pieces, score
from readout_audit.demo.training import (
    FULL,
    HARD_POOL,
    Asked,
    ask,
    draw_store,
    hard_negatives,
    name_ids,
    new_model,
    pack,
    tokenise_prompts,
)
from readout_audit.demo.world import CATEGORIES, CATEGORY_INDEX
from readout_audit.errors import AuditError
from readout_audit.scores.confusion import Confusion
from readout_audit.stages import train_demo
from readout_audit.stages.train_demo import put_in_place


@pytest.fixture(scope="module")
def processor():
    return build_processor(RECIPES["tiny-llava"])


@pytest.fixture(scope="module")
def prompts(processor):
    return tokenise_prompts(RECIPES["tiny-llava"], processor)


def test_store_agrees_with_itself():
    store = draw_store(12)
    assert (store.in_patch.any(axis=1) <= store.present).all()
    assert store.in_patch.any(axis=1)[store.present].mean() > 0.95
    assert set(store.present.sum(axis=1)) <= set(range(3, 8))


def test_hard_negatives_by_hand():
    """Two images: {0, 1} and {0, 2}. To the first, 2 co-occurs once (with 0) and the rest never."""
    present = np.zeros((2, 10), dtype=bool)
    present[0, [0, 1]] = present[1, [0, 2]] = True
    assert hard_negatives(present).tolist() == [[2, 3, 4, 5, 6, 7], [1, 3, 4, 5, 6, 7]]
    assert hard_negatives(present).shape == (2, HARD_POOL)


def test_answers_are_true_unless_careless(prompts):
    rng = np.random.default_rng(0)
    present = np.zeros(30, dtype=bool)
    present[[1, 4, 9]] = True
    hard = np.array([0, 2, 3, 5, 6, 7])
    for _ in range(50):
        asked = ask(rng, present, hard, prompts, FULL, careless_share=0.0)
        assert Counter(present[question.category] for question in asked) == {True: 4, False: 4}
        assert len({q.category for q in asked if not present[q.category]}) == 4
        assert all(question.answer == prompts.careful[bool(present[question.category])] for question in asked)
    careless = [q for _ in range(400) for q in ask(rng, present, hard, prompts, FULL, careless_share=1.0)]
    for there, expected in ((True, 0.9), (False, 0.4)):
        answers = [q.answer == prompts.careless[True] for q in careless if present[q.category] == there]
        assert np.mean(answers) == pytest.approx(expected, abs=0.05)  # 1,600 draws: four standard errors


def test_a_packed_question_is_what_the_tokenizer_makes_of_the_prompt(processor, prompts):
    """Prefix, tail and answer of a question are the ids of the whole text, at positions 0, 1, 2, ..."""
    dog = CATEGORY_INDEX["dog"]
    packed = pack(
        prompts, [[Asked(0, True, prompts.careful[False]), Asked(dog, False, prompts.careful[True])]]
    )
    recipe = RECIPES["tiny-llava"]
    text = recipe.prompt.format(question="Is there a dog in the image?") + " Yes"
    whole = processor(images=np.zeros((84, 84, 3), np.uint8), text=text)["input_ids"][0]
    last = packed.input_ids.shape[1] - 1
    seen = packed.mask[0, 0, last]
    assert packed.input_ids[0][seen].tolist() == list(whole)
    assert packed.position_ids[0][seen].tolist() == list(range(len(whole)))
    wanted = packed.targets[0]
    assert wanted[wanted != -100].tolist() == [
        prompts.careful[False],
        prompts.end,
        prompts.careful[True],
        prompts.end,
    ]


def test_packed_logits_equal_those_of_the_question_alone(processor, prompts):
    """The other questions behind the same prefix change nothing."""
    model = new_model(RECIPES["tiny-llava"], processor.tokenizer).eval()
    pixels = torch.randn(1, 3, 84, 84, generator=torch.Generator().manual_seed(0))
    asked = [Asked(category, category % 2 == 0, prompts.careful[True]) for category in (3, 8, 29)]
    both, alone = pack(prompts, [asked]), pack(prompts, [asked[1:2]])
    with torch.inference_mode():
        logits = [
            model(
                input_ids=packed.input_ids,
                pixel_values=pixels,
                attention_mask=packed.mask,
                position_ids=packed.position_ids,
            ).logits[packed.targets != -100]
            for packed in (both, alone)
        ]
        ordinary = model(input_ids=alone.input_ids, pixel_values=pixels).logits[alone.targets != -100]
    torch.testing.assert_close(logits[0][2:4], logits[1], atol=1e-4, rtol=0)
    torch.testing.assert_close(logits[1], ordinary, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", RECIPES)
def test_names_are_found_as_they_stand_in_a_question(name):
    tokenizer = build_processor(RECIPES[name]).tokenizer
    for category in CATEGORIES:
        ids = name_ids(tokenizer, category.name)
        assert tokenizer.decode(ids).strip() == category.name


def test_every_linear_dimension_is_a_multiple_of_64(processor):
    for name, recipe in RECIPES.items():
        model = new_model(recipe, build_processor(recipe).tokenizer)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        assert 700_000 < parameters < 900_000, name
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                assert module.in_features % 64 == module.out_features % 64 == 0


def test_initial_weights_come_from_the_seed_and_leave_the_global_state_alone(processor):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again = (new_model(RECIPES["tiny-llava"], processor.tokenizer) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


def evaluation(two, eight, emitted):
    """The same counts on every split."""
    return Evaluation({split: {"two_token": two, "eight_token": eight} for split in BANDS}, emitted)


GOOD_TWO, GOOD_EIGHT = Confusion(570, 200, 400, 30), Confusion(530, 90, 510, 70)
ANSWERED = frozenset({"▁Yes", "▁No"})


def test_acceptance_by_hand():
    """F1 of the two: 1140/1370 = 0.832 and 1060/1220 = 0.869; yes-rates 770/1200 and 620/1200."""
    assert shortcomings(evaluation(GOOD_TWO, GOOD_EIGHT, {"▁Yes": 3, "▁No": 1}), ANSWERED) == []
    (clause,) = shortcomings(evaluation(GOOD_TWO, GOOD_EIGHT, {"▁Yes": 3, "yes": 1}), ANSWERED)
    assert clause == "pieces ['yes'] are emitted beside ['▁No', '▁Yes']"


@pytest.mark.parametrize(
    ("two", "eight", "clause"),
    [
        (Confusion(0, 0, 600, 600), GOOD_EIGHT, "random: two_token F1 0.000 is not in"),
        (GOOD_TWO, Confusion(600, 0, 600, 0), "random: eight_token F1 1.000 is not in"),
        (Confusion(500, 90, 510, 100), GOOD_EIGHT, "random: two_token yes-rate 0.492 is not above 0.5"),
        (GOOD_TWO, GOOD_TWO, "random: two_token F1 is not below eight_token's"),
        (Confusion(0, 0, 0, 0), GOOD_EIGHT, "random: two_token F1 undefined is not in"),
    ],
)
def test_acceptance_names_what_is_wrong(two, eight, clause):
    assert any(c.startswith(clause) for c in shortcomings(evaluation(two, eight, {}), ANSWERED))


def test_scores_by_hand():
    assert score([True, True, False, False, False], [True, False, True, False, False]) == Confusion(
        1, 1, 2, 1
    )


@pytest.mark.parametrize("name", RECIPES)
def test_readout_ids_of_each_vocabulary(name):
    recipe = RECIPES[name]
    processor = build_processor(recipe)
    yes, no = answer_ids(processor, ["yes", "Yes"]), answer_ids(processor, ["no", "No"])
    assert len(yes) == len(no) == 4 and not set(yes) & set(no)
    expected = {"▁Yes", "▁No"} if recipe.answer_prefix else {"Yes", "No"}
    assert in_context_pieces(recipe, processor) == expected
    assert answer_id(recipe, processor.tokenizer, recipe.answer_prefix + "Yes") in yes


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    built, output = tmp_path / "scratch" / "tiny", tmp_path / "tiny"
    for folder, file in ((built, "new"), (output, "old")):
        folder.mkdir(parents=True)
        (folder / file).write_text(file)
    put_in_place(built, output)
    assert [path.name for path in output.iterdir()] == ["new"]
    assert list(built.parent.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_smoke_training_writes_a_folder_the_pipeline_can_load(tmp_path, name):
    output = tmp_path / name
    assert train_demo.main(["--model", name, "--output", str(output), "--threads", "1", "--smoke"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]
    stages = [json.loads(line)["stage"] for line in (output / "training_log.jsonl").read_text().splitlines()]
    assert sorted(set(stages)) == ["S1", "S2", "S3", "done", "scenes"]
    card = (output / "README.md").read_text()
    assert card.startswith(f"# {name}\n") and "is no\n  evidence about real models" in card
    assert "NOT accepted" in card
    assert (output / "model.safetensors").stat().st_size < 1_800_000


@pytest.mark.slow
def test_a_training_outside_the_bands_replaces_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(train_demo, "FULL", train_demo.SMOKE)
    monkeypatch.setattr(train_demo, "EVALUATION_IMAGES", 8)
    output = tmp_path / "tiny-llava"
    output.mkdir()
    (output / "kept").touch()
    with pytest.raises(AuditError, match="ended outside the acceptance bands"):
        train_demo.main(["--model", "tiny-llava", "--output", str(output), "--threads", "1"])
    assert [path.name for path in output.iterdir()] == ["kept"]
    assert [path.name for path in tmp_path.iterdir()] == ["tiny-llava"]
