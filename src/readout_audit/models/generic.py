"""Any other vision-language model of transformers, by its own processor, one question at a time."""

from dataclasses import dataclass
from typing import Any

import torch
import transformers
from PIL import Image

from readout_audit.models.base import Encoded, ImageInputs, ModelSpec, UnanswerableError, VisionLanguageModel
from readout_audit.models.checkpoint import check_folder, reading
from readout_audit.models.huggingface import HuggingFaceModel, ending_ids, load_network
from readout_audit.tokens.loading import load_tokenizer


@dataclass(frozen=True)
class _RawImage(ImageInputs):
    """An image that the processor sees only together with its prompt."""

    pixels: Image.Image


class Generic(HuggingFaceModel):
    """A model that `AutoModelForImageTextToText` knows.

    Nothing is assumed about how its processor writes placeholders or its decoder takes positions, so
    image and prompt always go through the processor together and no work is shared between questions.
    """

    shares_prefix = False

    def __init__(self, spec: ModelSpec) -> None:
        """Load the model; see `VisionLanguageModel`."""
        VisionLanguageModel.__init__(self, spec)
        check_folder(spec.folder)
        self.tokenizer = load_tokenizer(spec.folder)
        with reading(f"{spec.folder}: the processor cannot be loaded"):
            self.processor = self.load_processor()
        self.network = load_network(transformers.AutoModelForImageTextToText, spec)
        config: Any = self.network.config
        found = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        self.image_token_id = -1 if found is None else int(found)
        self.eos_ids = ending_ids(self.network, self.tokenizer)

    def load_processor(self) -> Any:
        """Return the checkpoint's processor; see `HuggingFaceModel`."""
        return transformers.AutoProcessor.from_pretrained(
            str(self.spec.folder), local_files_only=True, trust_remote_code=False, backend="pil"
        )

    def prepare_image(self, image: Image.Image) -> ImageInputs:
        """Keep the image until its prompt comes."""
        return _RawImage({}, 0, image)

    def encode(self, prompt: str, image: ImageInputs) -> Encoded:
        """Run the processor on image and prompt together; see `VisionLanguageModel`."""
        if not isinstance(image, _RawImage):
            raise TypeError("this adapter encodes only images it prepared")
        start = self.tokenizer.bos_token
        add = not (start and prompt.startswith(start))
        try:
            inputs = self.processor(
                images=[image.pixels], text=[prompt], add_special_tokens=add, return_tensors="pt"
            )
        except ValueError as error:
            raise UnanswerableError(f"the processor refuses image and prompt ({error})") from error
        tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
        ids = tensors.pop("input_ids")[0]
        tensors.pop("attention_mask", None)
        n_tokens = int((ids == self.image_token_id).sum())
        return Encoded(prompt, ids, ImageInputs(self.to_device(tensors), n_tokens))

    def visual_features(self, image: ImageInputs) -> int | None:
        """Return None: the model itself compares placeholders and features in every forward pass."""
        return None
