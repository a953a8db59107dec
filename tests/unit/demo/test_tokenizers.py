"""Facts of the three vocabularies that the readouts stand on."""

import pytest
from transformers import AutoProcessor

from readout_audit.datasets.sampling import question_text
from readout_audit.demo.architecture import RECIPES, answer_id, build_config, build_processor
from readout_audit.demo.scenes import draw_scene
from readout_audit.demo.tokenizers import ANSWERS, COCO_NAMES, SPACE, learn_merges

SPACES = {"tiny-llava": SPACE, "tiny-mistral": SPACE, "tiny-qwen": "Ġ"}


@pytest.fixture(scope="module")
def tokenizers():
    return {name: build_processor(recipe).tokenizer for name, recipe in RECIPES.items()}


def eight(tokenizer, space):
    return [tokenizer.get_vocab()[prefix + word] for word in ANSWERS for prefix in ("", space)]


def test_merges_by_hand():
    """ab occurs 3 times, bc 2; then (ab)c and bc are equal, and "ab" comes before "b"."""
    words = {("a", "b"): 1, ("a", "b", "c"): 2, ("d", "b", "c"): 2}
    assert learn_merges(words, 3) == [("b", "c"), ("a", "bc"), ("d", "bc")]
    assert learn_merges({("a", "a", "a"): 1, ("b", "a"): 2}, 2) == [("a", "a"), ("b", "a")]


@pytest.mark.parametrize("name", RECIPES)
def test_the_eight_answers_are_single_pieces(tokenizers, name):
    ids = eight(tokenizers[name], SPACES[name])
    assert len(set(ids)) == 8


@pytest.mark.parametrize("name", ["tiny-llava", "tiny-mistral"])
def test_metaspace_encodes_as_the_llava_files_do(tokenizers, name):
    """A bare word gets the space piece; a word with a space becomes two ids (column P for LLaVA-1.5)."""
    tokenizer = tokenizers[name]
    vocabulary = tokenizer.get_vocab()
    for word in ANSWERS:
        assert tokenizer.encode(word, add_special_tokens=False) == [vocabulary[SPACE + word]]
        assert tokenizer.encode(" " + word, add_special_tokens=False) == [
            vocabulary[SPACE],
            vocabulary[SPACE + word],
        ]


def test_byte_level_encodes_each_form_by_itself(tokenizers):
    tokenizer = tokenizers["tiny-qwen"]
    for word in ANSWERS:
        assert tokenizer.encode(word) == [tokenizer.get_vocab()[word]]
        assert tokenizer.encode(" " + word) == [tokenizer.get_vocab()["Ġ" + word]]


def test_beginning_of_sequence_comes_from_the_post_processor(tokenizers):
    for name in ("tiny-llava", "tiny-mistral"):
        tokenizer = tokenizers[name]
        assert tokenizer("a dog")["input_ids"][0] == tokenizer.bos_token_id == 1
        assert 1 not in tokenizer("a dog", add_special_tokens=False)["input_ids"]
    assert tokenizers["tiny-qwen"].bos_token_id is None


@pytest.mark.parametrize("name", RECIPES)
def test_the_answer_is_one_piece_after_the_prompt(tokenizers, name):
    recipe, tokenizer = RECIPES[name], tokenizers[name]
    prefix = SPACES[name] if recipe.answer_prefix else ""
    for word in ("Yes", "No"):
        assert (
            answer_id(recipe, tokenizer, recipe.answer_prefix + word) == tokenizer.get_vocab()[prefix + word]
        )
    for word in ("yes", "no"):
        assert answer_id(recipe, tokenizer, word) == tokenizer.get_vocab()[word]
    with pytest.raises(ValueError, match="not one token"):
        answer_id(recipe, tokenizer, " elephant zoo")


@pytest.mark.parametrize("other", ["tiny-mistral", "tiny-qwen"])
def test_ids_copied_from_tiny_llava_read_other_pieces_there(tokenizers, other):
    copied = eight(tokenizers["tiny-llava"], SPACE)
    pieces = tokenizers[other].convert_ids_to_tokens(copied)
    assert all(piece is not None and piece.strip("▁Ġ").lower() not in ("yes", "no") for piece in pieces)


def test_tiny_mistral_has_the_pieces_of_tiny_llava(tokenizers):
    llava, mistral = tokenizers["tiny-llava"].get_vocab(), tokenizers["tiny-mistral"].get_vocab()
    assert set(llava) == set(mistral) and len(llava) == 400
    assert [mistral[piece] for piece in ("<unk>", "<s>", "</s>")] == [0, 1, 2]
    assert llava != mistral


@pytest.mark.parametrize("name", RECIPES)
def test_every_coco_question_survives_encoding(tokenizers, name):
    tokenizer = tokenizers[name]
    for noun in COCO_NAMES:
        text = question_text(noun)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer.unk_token_id not in ids
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("name", RECIPES)
def test_saved_processor_reads_back_and_counts_36_image_tokens(tmp_path, name):
    recipe = RECIPES[name]
    processor = build_processor(recipe)
    processor.save_pretrained(tmp_path)
    build_config(recipe, processor.tokenizer).save_pretrained(tmp_path)
    again = AutoProcessor.from_pretrained(tmp_path, local_files_only=True)
    text = recipe.prompt.format(question="Is there an oven in the image?")
    assert again.tokenizer(text)["input_ids"] == processor.tokenizer(text)["input_ids"]
    picture = draw_scene("validation", 0).pixels
    inputs = again(images=picture, text=text, return_tensors="pt")
    assert int((inputs["input_ids"] == again.image_token_id).sum()) == 36
    assert inputs["pixel_values"].shape == (1, 3, 84, 84)


def test_chat_template_of_tiny_qwen_gives_the_prompt_it_is_trained_on():
    recipe = RECIPES["tiny-qwen"]
    question = "Is there an oven in the image? Answer yes or no only."
    content = [{"type": "image"}, {"type": "text", "text": question}]
    rendered = build_processor(recipe).apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True
    )
    assert rendered == recipe.prompt.format(question="Is there an oven in the image?")
    assert rendered.endswith("<|im_start|>assistant\n")
