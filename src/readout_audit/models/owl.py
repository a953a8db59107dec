"""mPLUG-Owl2, through our own implementation of it (`mplug_owl2/`), behind the common interface."""

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

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
from readout_audit.models.checkpoint import check_folder, reading
from readout_audit.models.huggingface import HuggingFaceModel, ending_ids
from readout_audit.models.mplug_owl2.checkpoint import load_model
from readout_audit.models.mplug_owl2.preprocessing import load_image_processor, preprocess_images
from readout_audit.models.mplug_owl2.prompts import IMAGE_PLACEHOLDER, encode_prompt
from readout_audit.models.mplug_owl2.splicing import IMAGE_TOKEN_ID, expand_ids
from readout_audit.models.mplug_owl2.tokenizer import load_tokenizer


class Owl(HuggingFaceModel):
    """A vision encoder, an abstractor, and a decoder with its own weights for image positions.

    The image's id, -200, is in no vocabulary and never reaches the embedding table.
    """

    def __init__(self, spec: ModelSpec) -> None:
        """Load the model; see `VisionLanguageModel`."""
        VisionLanguageModel.__init__(self, spec)
        check_folder(spec.folder)
        self.tokenizer = load_tokenizer(spec.folder)
        dtype = precision.compute_dtype(spec.precision, spec.compute_dtype)
        precision.check_device(spec.precision, dtype, spec.device)
        loading = precision.load_arguments(spec.precision, dtype, spec.device)
        attention: Any = spec.attention
        with reading(f"{spec.name}: {spec.folder} cannot be loaded in {spec.precision}"):
            network = load_model(spec.folder, attn_implementation=attention, **loading)
        precision.check_loaded(network, spec.precision, dtype, spec.device, spec.name)
        precision.honour_compute_dtype(network, dtype)
        self.network = network
        with reading(f"{spec.folder}: the processor cannot be loaded"):
            self.processor = load_image_processor(spec.folder, network.config.vision.image_size)
        self.image_token_id = IMAGE_TOKEN_ID
        self.eos_ids = ending_ids(network, self.tokenizer)

    @property
    def placeholder(self) -> str:
        """The text that stands for one image in a prompt."""
        return IMAGE_PLACEHOLDER

    def prepare_image(self, image: Image.Image) -> ImageInputs:
        """Squeeze to a square and process; see `VisionLanguageModel`."""
        network: Any = self.network
        tensors = {"pixel_values": preprocess_images([image], self.processor)}
        return ImageInputs(self.to_device(tensors), int(network.config.vectors_per_image))

    def encode(self, prompt: str, image: ImageInputs) -> Encoded:
        """Tokenize around the placeholder, as the original does, and expand it."""
        if prompt.count(IMAGE_PLACEHOLDER) != 1:
            raise UnanswerableError(
                f"the prompt holds {prompt.count(IMAGE_PLACEHOLDER)} image placeholders, not 1"
            )
        ids = expand_ids(encode_prompt(self.tokenizer, prompt), image.n_tokens)
        return Encoded(prompt, torch.tensor(ids, dtype=torch.int64), image)

    def forward_arguments(self, encoded: Encoded) -> dict[str, torch.Tensor]:
        """Splice the image's vectors in; see `HuggingFaceModel`."""
        network: Any = self.network
        images = network.encode_images(encoded.image.tensors["pixel_values"])
        vectors, modality = network.splice(encoded.ids[None].to(self.device), images)
        return {"inputs_embeds": vectors, "modality_indicators": modality}

    @torch.inference_mode()
    def see(self, images: Sequence[ImageInputs]) -> list[torch.Tensor]:
        """Run encoder and abstractor on all images together; see `VisionLanguageModel`."""
        network: Any = self.network
        return list(network.encode_images(torch.cat([image.tensors["pixel_values"] for image in images])))

    @torch.inference_mode()
    def decode_step(self, step: DecoderStep, cache: Any) -> torch.Tensor:
        """Run the decoder, image positions through their own weights; see `VisionLanguageModel`."""
        network: Any = self.network
        hidden: torch.Tensor = network.model(
            inputs_embeds=step.vectors,
            modality_indicators=step.is_image.to(torch.int64) if bool(step.is_image.any()) else None,
            position_ids=step.positions[0],
            attention_mask=self.attention_mask(step),
            cache=cache,
        ).last_hidden_state
        return hidden

    def next_arguments(self, state: Decoding) -> dict[str, Any]:
        """Say where the next token stands."""
        return {"position_ids": torch.tensor([[state.length]], device=self.device)}

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        """Return the text of `ids`, the image as its placeholder; see `VisionLanguageModel`."""
        pieces: list[list[int]] = [[]]
        for token_id in ids:
            if token_id == IMAGE_TOKEN_ID:
                pieces.append([])
            else:
                pieces[-1].append(token_id)
        return IMAGE_PLACEHOLDER.join(super(Owl, self).decode(piece, skip_special_tokens) for piece in pieces)

    def visual_features(self, image: ImageInputs) -> int:
        """Return how many vectors the abstractor makes."""
        return len(self.see([image])[0])

    def describe_processing(self) -> dict[str, Any]:
        """Return the image processor's parameters and the squeeze before it; see `VisionLanguageModel`."""
        described = self.processor.to_dict()
        described |= {
            "class": type(self.processor).__name__,
            "before": "resize to a square of the longer side",
        }
        return dict(sorted(described.items()))
