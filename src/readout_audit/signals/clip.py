"""How much a noun's text embedding looks like an image, as CLIP sees them: cosine similarities, no decision.

Patch features are the last layer's states put through CLIP's visual projection. The code behind the paper
leaves out CLIP's final layer norm there, which the model itself applies before it projects its CLS token;
`patch_norm` puts it in.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image

import readout_audit.models  # noqa: F401  (switches the hub off before transformers is imported)
from readout_audit.errors import AuditError
from readout_audit.models.checkpoint import check_folder
from readout_audit.tokens.loading import load_tokenizer

GRID = 4
"""The published code cuts a picture into GRID × GRID crops."""


@dataclass(frozen=True)
class ClipImage:
    """Unit vectors of one picture.

    Attributes:
        whole: (d,) the image embedding, the projected CLS token.
        patches: (n, d) the projected patch features.
    """

    whole: torch.Tensor
    patches: torch.Tensor


class Clip:
    """A CLIP model in float32, asked for similarities."""

    def __init__(self, folder: Path, text_prompt: str, patch_norm: bool, device: torch.device) -> None:
        """Load a checkpoint folder.

        Args:
            folder: of a `CLIPModel`, with tokenizer and image processor.
            text_prompt: the text around {noun}.
            patch_norm: whether patches pass the final layer norm.
            device: where to run.

        Raises:
            AuditError: the folder is incomplete or holds another kind of model.
        """
        from transformers import AutoImageProcessor

        check_folder(folder)
        self.text_prompt, self.patch_norm, self.device = text_prompt, patch_norm, device
        self.tokenizer = load_tokenizer(folder)
        # Pillow, whatever else is installed: the same pixels everywhere.
        self.processor = AutoImageProcessor.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, backend="pil"
        )
        self.network = _load(folder, device)
        self._texts: dict[str, torch.Tensor] = {}

    @torch.inference_mode()
    def text(self, noun: str) -> torch.Tensor:
        """Return the unit vector (d,) of a noun under the text prompt."""
        if noun not in self._texts:
            prompt = self.text_prompt.replace("{noun}", noun)
            inputs = self.tokenizer([prompt], truncation=True, max_length=self._context, return_tensors="pt")
            features = self.network.get_text_features(
                input_ids=inputs["input_ids"].to(self.device),
                attention_mask=inputs["attention_mask"].to(self.device),
            ).pooler_output
            self._texts[noun] = _unit(features)[0]
        return self._texts[noun]

    @property
    def _context(self) -> int:
        return int(self.network.config.text_config.max_position_embeddings)

    @torch.inference_mode()
    def images(self, pictures: list[Image.Image]) -> list[ClipImage]:
        """Return the features of RGB pictures, seen together."""
        pixels = self.processor(images=pictures, return_tensors="pt")["pixel_values"].to(self.device)
        output = self.network.get_image_features(pixel_values=pixels)
        patches = output.last_hidden_state[:, 1:]
        if self.patch_norm:
            patches = self.network.vision_model.post_layernorm(patches)
        projected = self.network.visual_projection(patches)
        return [
            ClipImage(whole, rest)
            for whole, rest in zip(_unit(output.pooler_output), _unit(projected), strict=True)
        ]


def largest(features: torch.Tensor, text: torch.Tensor) -> float:
    """Return the largest cosine of (n, d) or (d,) unit vectors with the unit vector `text`."""
    return float((features @ text).max())


def crops(picture: Image.Image) -> list[Image.Image]:
    """Return the published code's crops: a GRID × GRID raster of whole pixels, then the whole picture.

    The raster's cells are the sides divided by GRID and rounded down, so up to GRID − 1 pixels on the right
    and at the bottom are in no crop. Cells that would be empty (a side below GRID pixels) are left out.
    """
    width, height = picture.size
    across, down = max(width // GRID, 1), max(height // GRID, 1)
    cells = [
        picture.crop((column * across, row * down, (column + 1) * across, (row + 1) * down))
        for row in range(GRID)
        for column in range(GRID)
        if column * across < width and row * down < height
    ]
    return [*cells, picture]


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    unit: torch.Tensor = vectors / vectors.norm(dim=-1, keepdim=True)
    return unit


def _load(folder: Path, device: torch.device) -> Any:
    """Load a CLIP model, every weight of it.

    Raises:
        AuditError: a weight is missing, or the folder is of another model.
    """
    import transformers

    transformers.utils.logging.disable_progress_bar()

    network, report = transformers.CLIPModel.from_pretrained(
        str(folder),
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        dtype=torch.float32,
        output_loading_info=True,
    )
    missing = sorted(str(name) for kind in ("missing_keys", "mismatched_keys") for name in report[kind])
    if missing:
        raise AuditError(f"{folder}: this is no complete CLIP model (there is no weight {missing[0]}).")
    return network.to(device).eval()
