"""What the adapters for transformers' own model classes share."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
import transformers
from PIL import Image
from torch import nn

from readout_audit.errors import AuditError
from readout_audit.models import precision
from readout_audit.models.base import (
    DecoderStep,
    Decoding,
    Encoded,
    ImageInputs,
    ModelSpec,
    UnanswerableError,
    VisionLanguageModel,
)
from readout_audit.models.checkpoint import check_folder, model_type, reading
from readout_audit.tokens.loading import load_tokenizer

_RECOMPUTED = re.compile(r"(rotary_emb\.inv_freq|\.position_ids|\.masked_bias)$")
"""Buffers that older checkpoints hold and that are computed anew: rotary frequencies, fixed position tables."""


class HuggingFaceModel(VisionLanguageModel):
    """A model class of transformers, loaded from a local folder of safetensors, without remote code.

    A subclass names its classes and, where it differs from the common pattern, overrides a method.
    """

    network_class: str
    processor_class: str

    def __init__(self, spec: ModelSpec) -> None:
        """Load processor and weights; see `VisionLanguageModel`."""
        super().__init__(spec)
        check_folder(spec.folder)
        self.tokenizer = load_tokenizer(spec.folder)
        with reading(f"{spec.folder}: the processor cannot be loaded"):
            self.processor = self.load_processor()
        self.network = load_network(getattr(transformers, self.network_class), spec)
        config: Any = self.network.config
        self.window = window_of(config)
        self.image_token_id = int(config.image_token_id)
        self.eos_ids = ending_ids(self.network, self.tokenizer)

    def load_processor(self) -> Any:
        """Return the checkpoint's processor, its images handled by Pillow.

        Pillow, and not torchvision, whatever is installed: the two differ by about one grey level.
        """
        processor = getattr(transformers, self.processor_class)
        return processor.from_pretrained(
            str(self.spec.folder), local_files_only=True, trust_remote_code=False, backend="pil"
        )

    @property
    def device(self) -> torch.device:
        """Where the model's inputs go."""
        return self.spec.device

    @cached_property
    def dtype(self) -> torch.dtype:
        """The dtype of arithmetic, into which pixels are cast."""
        return precision.compute_dtype(self.spec.precision, self.spec.compute_dtype)

    @property
    def placeholder(self) -> str:
        """The text that stands for one image in a prompt."""
        return str(self.processor.image_token)

    def prepare_image(self, image: Image.Image) -> ImageInputs:
        """Run the image processor once; see `VisionLanguageModel`."""
        try:
            tensors = dict(self.processor.image_processor(images=[image], return_tensors="pt"))
        except ValueError as error:
            width, height = image.size
            raise UnanswerableError(
                f"the image processor refuses {width}x{height} pixels ({error})"
            ) from error
        return ImageInputs(self.to_device(tensors), self.placeholders_for(tensors))

    def placeholders_for(self, tensors: dict[str, torch.Tensor]) -> int:
        """Return how many placeholder tokens the processor writes for one image's tensors."""
        return str(self.processor.replace_image_token(tensors, 0)).count(self.placeholder)

    def to_device(self, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Move tensors to the model's device, floating-point ones into its dtype."""
        return {
            name: tensor.to(self.device, self.dtype if tensor.is_floating_point() else tensor.dtype)
            for name, tensor in tensors.items()
        }

    def encode(self, prompt: str, image: ImageInputs) -> Encoded:
        """Tokenize, then repeat the placeholder's id, which spares tokenizing hundreds of them per question."""
        count = prompt.count(self.placeholder)
        if count != 1:
            raise UnanswerableError(f"the prompt holds {count} image placeholders, not 1")
        ids = self.token_ids(prompt)
        places = torch.nonzero(ids == self.image_token_id).flatten().tolist()
        if len(places) != 1:
            raise UnanswerableError(f"{self.placeholder} is not the piece of id {self.image_token_id}")
        image_ids = ids.new_full((image.n_tokens,), self.image_token_id)
        return Encoded(prompt, torch.cat([ids[: places[0]], image_ids, ids[places[0] + 1 :]]), image)

    def token_ids(self, text: str) -> torch.Tensor:
        """Return the ids of a text, (n,) int64; one that opens with the start token gets no second."""
        start = self.tokenizer.bos_token
        add = not (start and text.startswith(start))
        return torch.tensor(self.tokenizer.encode(text, add_special_tokens=add), dtype=torch.int64)

    def forward_arguments(self, encoded: Encoded) -> dict[str, torch.Tensor]:
        """Return the keyword arguments of one plain forward pass over the prompt and its image."""
        ids = encoded.ids[None].to(self.device)
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            **encoded.image.tensors,
            **encoded.extra,
        }

    @torch.inference_mode()
    def first_logits(self, encoded: Encoded) -> tuple[torch.Tensor, Decoding]:
        """One plain forward pass; see `VisionLanguageModel`."""
        output = self.network(**self.forward_arguments(encoded), use_cache=True, logits_to_keep=1)
        return output.logits[0, -1].float(), Decoding(output.cache, len(encoded.ids))

    @torch.inference_mode()
    def next_logits(self, state: Decoding, token_id: int) -> torch.Tensor:
        """One token more on the cache; see `VisionLanguageModel`."""
        ids = torch.tensor([[token_id]], device=self.device)
        mask = torch.ones((1, state.length + 1), dtype=torch.int64, device=self.device)
        further = self.next_arguments(state)
        output = self.continuing(
            input_ids=ids, attention_mask=mask, cache=state.cache, use_cache=True, **further
        )
        state.length += 1
        logits: torch.Tensor = output.logits[0, -1].float()
        return logits

    @property
    def continuing(self) -> Any:
        """What continues from a cache: the network itself."""
        return self.network

    def next_arguments(self, state: Decoding) -> dict[str, Any]:
        """Return further keyword arguments for one token more; the position follows from the cache."""
        return {}

    shares_prefix = True

    @torch.inference_mode()
    def see(self, images: Sequence[ImageInputs]) -> list[torch.Tensor]:
        """Run the vision part on all images together; see `VisionLanguageModel`."""
        network: Any = self.network
        joined = {name: torch.cat([image.tensors[name] for image in images]) for name in images[0].tensors}
        return list(network.get_image_features(**joined, return_dict=True).pooler_output)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Look ids up in the embedding table; see `VisionLanguageModel`."""
        network: Any = self.network
        vectors: torch.Tensor = network.get_input_embeddings()(ids.to(self.device))
        return vectors

    def new_cache(self) -> Any:
        """Return an empty cache; see `VisionLanguageModel`."""
        # Made without the config, every layer of it keeps all positions.
        return transformers.DynamicCache()

    @property
    def decoder(self) -> Any:
        """The decoder without its head."""
        network: Any = self.network
        return network.model.language_model

    @torch.inference_mode()
    def decode_step(self, step: DecoderStep, cache: Any) -> torch.Tensor:
        """Run the decoder; see `VisionLanguageModel`."""
        hidden: torch.Tensor = self.decoder(
            inputs_embeds=step.vectors,
            position_ids=step.positions[0] if len(step.positions) == 1 else step.positions,
            attention_mask=self.attention_mask(step),
            cache=cache,
            use_cache=True,
        ).last_hidden_state
        return hidden

    def attention_mask(self, step: DecoderStep) -> torch.Tensor | None:
        """Return what is added to the step's attention scores, (batch, 1, n, cached + n)."""
        if step.allowed is None:
            return None
        # As numbers, once: booleans would be turned into numbers again in every layer.
        blocked = torch.finfo(step.vectors.dtype).min
        mask = torch.zeros_like(step.allowed, dtype=step.vectors.dtype)
        return mask.masked_fill_(~step.allowed, blocked)[:, None]

    @torch.inference_mode()
    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Apply the output head; see `VisionLanguageModel`."""
        network: Any = self.network
        head = network.get_output_embeddings()
        plain = type(head) is nn.Linear and head.bias is None
        if plain and hidden.device.type == "cpu" and hidden.dtype is torch.float32:
            # A dozen rows against a vocabulary: with the large matrix on the left, CPUs take half the time.
            transposed: torch.Tensor = head.weight @ hidden.T
            return transposed.T.contiguous()
        logits: torch.Tensor = head(hidden)
        return logits.float()

    def visual_features(self, image: ImageInputs) -> int | None:
        """Run the vision part; see `VisionLanguageModel`."""
        return len(self.see([image])[0])

    def describe_processing(self) -> dict[str, Any]:
        """Return the image processor's class and parameters; see `VisionLanguageModel`."""
        described = self.processor.image_processor.to_dict()
        described["class"] = type(self.processor.image_processor).__name__
        described["image_mode"] = self.spec.image_mode
        return dict(sorted(described.items()))


def load_network(network_class: Any, spec: ModelSpec) -> nn.Module:
    """Load the weights, every one of them and no other, in the precision that was asked for.

    Raises:
        AuditError: a weight is missing or unexpected, a dtype is not as asked, or something was offloaded.
    """
    dtype = precision.compute_dtype(spec.precision, spec.compute_dtype)
    precision.check_device(spec.precision, dtype, spec.device)
    transformers.utils.logging.disable_progress_bar()
    check_model_type(network_class, spec)
    with reading(f"{spec.name}: {spec.folder} cannot be loaded in {spec.precision}"):
        network, report = network_class.from_pretrained(
            str(spec.folder),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            attn_implementation=spec.attention,
            output_loading_info=True,
            # A weight of another shape is then in the report, by name, and refused below.
            ignore_mismatched_sizes=True,
            **precision.load_arguments(spec.precision, dtype, spec.device),
        )
    check_report(report, f"{spec.name} ({spec.folder})")
    precision.check_loaded(network, spec.precision, dtype, spec.device, spec.name)
    precision.honour_compute_dtype(network, dtype)
    network.eval()
    module: nn.Module = network
    return module


def window_of(config: Any) -> int | None:
    """Return the decoder's sliding window in tokens, None where every token sees all before it."""
    window = getattr(config.get_text_config(), "sliding_window", None)
    return None if window is None else int(window)


def check_model_type(network_class: Any, spec: ModelSpec) -> None:
    """Refuse a checkpoint of another family than the adapter's."""
    wanted = getattr(getattr(network_class, "config_class", None), "model_type", None)
    found = model_type(spec.folder)
    if wanted is not None and found != wanted:
        raise AuditError(
            f"{spec.name}: {spec.folder} holds a {found or 'nameless'} model, not a {wanted} one; "
            f"name the adapter that fits it."
        )


def check_report(report: dict[str, Any], what: str) -> None:
    """Refuse a load that left a weight at random values or had weights to spare."""
    for kind, words in (
        ("missing_keys", "has no weight"),
        ("mismatched_keys", "has another shape for weight"),
        ("unexpected_keys", "has an unexpected weight"),
    ):
        # A weight of another shape is listed with both shapes.
        found = (one[0] if isinstance(one, tuple) else one for one in report.get(kind) or ())
        names = sorted(str(name) for name in found if not _RECOMPUTED.search(str(name)))
        if names:
            rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise AuditError(f"{what}: the checkpoint {words} {names[0]}{rest}.")


def ending_ids(network: nn.Module, tokenizer: Any) -> frozenset[int]:
    """Return the ids at which an answer ends: the checkpoint's generation config's and the tokenizer's."""
    declared = getattr(getattr(network, "generation_config", None), "eos_token_id", None)
    ids = declared if isinstance(declared, list) else [declared]
    return frozenset(int(item) for item in [*ids, tokenizer.eos_token_id] if item is not None)
