"""Qwen2-VL: pictures at their own resolution, position ids with a time, a row and a column."""

from dataclasses import dataclass
from typing import Any

import torch

from readout_audit.models.base import Decoding, Encoded
from readout_audit.models.huggingface import HuggingFaceModel


@dataclass(frozen=True)
class _ImageOnly:
    """The parts of Qwen2-VL's processor that pictures need; the whole one also wants a video processor."""

    image_processor: Any
    image_token: str


class Qwen2VL(HuggingFaceModel):
    """A vision transformer of variable size and a language model with three-axis rotary positions.

    Position ids are passed explicitly in every forward pass: the network would otherwise keep an offset
    from the last prompt as its own state, which another prompt's continuation could pick up.
    """

    network_class = "Qwen2VLForConditionalGeneration"
    processor_class = "Qwen2VLProcessor"

    def load_processor(self) -> Any:
        """Return the image processor with the placeholder's text; see `HuggingFaceModel`."""
        from transformers import AutoImageProcessor

        images = AutoImageProcessor.from_pretrained(
            str(self.spec.folder), local_files_only=True, trust_remote_code=False, backend="pil"
        )
        return _ImageOnly(images, getattr(self.tokenizer, "image_token", None) or "<|image_pad|>")

    def placeholders_for(self, tensors: dict[str, torch.Tensor]) -> int:
        """Return the patches after merging; see `HuggingFaceModel`."""
        return int(tensors["image_grid_thw"].prod()) // int(self.processor.image_processor.merge_size) ** 2

    def positions(self, encoded: Encoded) -> torch.Tensor:
        """Return (3, n) position ids: time, row, column; text counts on all three alike."""
        network: Any = self.network
        ids = encoded.ids[None]
        kinds = (ids == self.image_token_id).to(torch.int64)
        grid = encoded.image.tensors["image_grid_thw"].cpu()
        positions, _ = network.model.get_rope_index(ids, mm_token_type_ids=kinds, image_grid_thw=grid)
        found: torch.Tensor = positions[:, 0]
        return found

    def forward_arguments(self, encoded: Encoded) -> dict[str, torch.Tensor]:
        """Add the position ids; see `HuggingFaceModel`."""
        positions = self.positions(encoded)[:, None].to(self.device)
        return {**super().forward_arguments(encoded), "position_ids": positions}

    @torch.inference_mode()
    def first_logits(self, encoded: Encoded) -> tuple[torch.Tensor, Decoding]:
        """One plain forward pass; the state remembers where text goes on."""
        logits, state = super().first_logits(encoded)
        state.extra["next_position"] = int(self.positions(encoded).max()) + 1
        return logits, state

    def next_arguments(self, state: Decoding) -> dict[str, Any]:
        """Add the next position on all three axes."""
        place = state.extra["next_position"]
        state.extra["next_position"] = place + 1
        return {"position_ids": torch.full((3, 1, 1), place, device=self.device)}
