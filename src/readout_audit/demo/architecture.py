"""The three demo models: what each is made of, and the processor that prepares its inputs.

All are `LlavaForConditionalGeneration` with a CLIP tower of 36 patches and a three-layer decoder of 128
channels; every linear dimension is a multiple of 64, so that they can be quantised like real ones.
"""

from collections.abc import Callable
from typing import NamedTuple

from transformers import (
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaProcessor,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from readout_audit.datasets.sampling import question_text
from readout_audit.demo.scenes import SIDE
from readout_audit.demo.tokenizers import byte_level_tokenizer, metaspace_tokenizer
from readout_audit.demo.world import CATEGORIES
from readout_audit.errors import AuditError

PATCH = 14
VISION_WIDTH, TEXT_WIDTH = 64, 128
VISION_LAYERS, TEXT_LAYERS, HEADS = 3, 3, 4
ALIGNMENT = 64
"""The vocabulary is padded to a multiple of this; ids beyond the tokenizer's last are never trained."""

MAX_POSITIONS = 512
INITIAL_STD = 0.05
"""Of the decoder's weights; the usual 0.02 is meant for far wider ones."""

_LLAVA_CHAT = (
    "{% for message in messages %}{{ message['role'].upper() }}: "
    "{% for item in message['content'] %}{% if item['type'] == 'image' %}<image>\n{% endif %}{% endfor %}"
    "{% for item in message['content'] %}{% if item['type'] == 'text' %}{{ item['text'] }} {% endif %}{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
_MISTRAL_CHAT = (
    "{% for message in messages %}{% if message['role'] == 'user' %}[INST] "
    "{% for item in message['content'] %}{% if item['type'] == 'image' %}<image>\n{% endif %}{% endfor %}"
    "{% for item in message['content'] %}{% if item['type'] == 'text' %}{{ item['text'] }}{% endif %}{% endfor %}"
    " [/INST]{% else %} {{ message['content'][0]['text'] }}</s>{% endif %}{% endfor %}"
)
_QWEN_CHAT = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for item in message['content'] %}"
    "{% if item['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif item['type'] == 'text' %}{{ item['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Recipe(NamedTuple):
    """What makes one demo model.

    `prompt` is the template it is trained on (the `authors` form of its kind) and `answer_prefix` what
    stands between the prompt and the answer: a space where the piece with a space is meant. The careless
    annotator of the last stage always writes the bare lower-case word; `careless_rate` is that stage's
    learning rate. It decides how far the bare form gets between leaning to yes whatever is asked and seeing
    as well as the answer does, and was chosen for each model so that the two readouts part.
    """

    name: str
    seed: int
    tokenizer: Callable[[], PreTrainedTokenizerFast]
    text_config: type[LlamaConfig] | type[MistralConfig] | type[Qwen2Config]
    chat_template: str
    prompt: str
    answer_prefix: str
    careless_rate: float


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="tiny-llava",
            seed=1,
            tokenizer=metaspace_tokenizer,
            text_config=LlamaConfig,
            chat_template=_LLAVA_CHAT,
            prompt="USER: <image>\n{question} Answer yes or no only.\nASSISTANT:",
            answer_prefix=" ",
            careless_rate=3.5e-4,
        ),
        Recipe(
            name="tiny-mistral",
            seed=2,
            tokenizer=lambda: metaspace_tokenizer(order_seed=3),
            text_config=MistralConfig,
            chat_template=_MISTRAL_CHAT,
            prompt="[INST] <image>\n{question} Answer yes or no only. [/INST]",
            answer_prefix=" ",
            careless_rate=2.7e-4,
        ),
        Recipe(
            name="tiny-qwen",
            seed=3,
            tokenizer=byte_level_tokenizer,
            text_config=Qwen2Config,
            chat_template=_QWEN_CHAT,
            prompt=(
                "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
                "<|vision_start|><|image_pad|><|vision_end|>{question} Answer yes or no only.<|im_end|>\n"
                "<|im_start|>assistant\n"
            ),
            answer_prefix="",
            careless_rate=2.6e-4,
        ),
    )
}


def get_recipe(name: str) -> Recipe:
    """Return the recipe of a demo model.

    Raises:
        AuditError: there is none of that name.
    """
    if name not in RECIPES:
        raise AuditError(f"{name!r} is not a demo model; there are {', '.join(RECIPES)}.")
    return RECIPES[name]


def answer_id(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, answer: str) -> int:
    """Return the one id that `answer` adds when it is written right after the prompt."""
    prompt = recipe.prompt.format(question=question_text(CATEGORIES[0].name))
    before, after = (tokenizer(text)["input_ids"] for text in (prompt, prompt + answer))
    if after[:-1] != before:
        raise ValueError(f"{answer!r} is not one token after the prompt of {recipe.name}")
    return int(after[-1])


def build_processor(recipe: Recipe) -> LlavaProcessor:
    """Build the processor: Pillow-backed CLIP preprocessing at 84 px, and 36 image tokens per image."""
    images = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    return LlavaProcessor(
        image_processor=images,
        tokenizer=recipe.tokenizer(),
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=recipe.chat_template,
    )


def build_config(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlavaConfig:
    """Build the model's configuration around its vocabulary."""
    vocabulary = -(-len(tokenizer) // ALIGNMENT) * ALIGNMENT
    text = recipe.text_config(
        vocab_size=vocabulary,
        hidden_size=TEXT_WIDTH,
        intermediate_size=2 * TEXT_WIDTH,
        num_hidden_layers=TEXT_LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=MAX_POSITIONS,
        initializer_range=INITIAL_STD,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **({"sliding_window": None} if recipe.text_config is MistralConfig else {}),
    )
    vision = CLIPVisionConfig(
        hidden_size=VISION_WIDTH,
        intermediate_size=4 * VISION_WIDTH,
        projection_dim=VISION_WIDTH,
        num_hidden_layers=VISION_LAYERS,
        num_attention_heads=HEADS,
        image_size=SIDE,
        patch_size=PATCH,
    )
    return LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tokenizer.convert_tokens_to_ids(tokenizer.image_token),
        image_seq_length=(SIDE // PATCH) ** 2,
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
    )
