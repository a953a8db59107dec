"""InstructBLIP: a Q-Former reads the question before the language model does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from readout_audit.errors import AuditError
from readout_audit.models.base import Decoding, Encoded, ImageInputs, ModelSpec, UnanswerableError
from readout_audit.models.huggingface import HuggingFaceModel


@dataclass(frozen=True)
class _Processor:
    """The image processor, the Q-Former's tokenizer, and how many query tokens the prompt gets."""

    image_processor: Any
    qformer_tokenizer: Any
    image_token: str


class InstructBlip(HuggingFaceModel):
    """A vision encoder, a Q-Former whose queries see the question too, a causal language model.

    The processor puts the query tokens in front of everything, the start token included; the prompt holds
    no placeholder. The Q-Former is given the same text. Because its output depends on the question, only
    the vision encoder can be shared between the questions about an image.
    """

    network_class = "InstructBlipForConditionalGeneration"
    processor_class = "InstructBlipProcessor"
    prefix_depends_on_question = True

    def __init__(self, spec: ModelSpec) -> None:
        """Load the model; one with an encoder-decoder language model (FLAN-T5) is refused."""
        super().__init__(spec)
        network: Any = self.network
        if not network.config.use_decoder_only_language_model:
            raise AuditError(
                f"{spec.name}: InstructBLIP with an encoder-decoder language model is not supported; "
                f"use a Vicuna checkpoint."
            )

    def load_processor(self) -> Any:
        """Return the image processor and the Q-Former's tokenizer; see `HuggingFaceModel`."""
        from transformers import AutoImageProcessor, AutoTokenizer

        folder = self.spec.folder / "qformer_tokenizer"
        if not (folder / "tokenizer_config.json").is_file():
            raise AuditError(f"{folder}: the Q-Former's tokenizer is missing; fetch the model again.")
        kept = {"local_files_only": True, "trust_remote_code": False}
        return _Processor(
            image_processor=AutoImageProcessor.from_pretrained(str(self.spec.folder), backend="pil", **kept),
            qformer_tokenizer=AutoTokenizer.from_pretrained(str(folder), **kept),
            image_token=getattr(self.tokenizer, "image_token", None) or "<image>",
        )

    def placeholders_for(self, tensors: dict[str, torch.Tensor]) -> int:
        """Return the number of query tokens, whatever the picture."""
        network: Any = self.network
        return int(network.config.num_query_tokens)

    def encode(self, prompt: str, image: ImageInputs) -> Encoded:
        """Put the query tokens in front of the prompt's ids, and tokenize it for the Q-Former too."""
        if self.placeholder in prompt:
            raise UnanswerableError(f"the prompt holds {self.placeholder}, which the processor adds itself")
        queries = torch.full((image.n_tokens,), self.image_token_id, dtype=torch.int64)
        question = torch.tensor(self.processor.qformer_tokenizer.encode(prompt), dtype=torch.int64)
        ids = torch.cat([queries, self.token_ids(prompt)])
        return Encoded(prompt, ids, image, {"qformer_input_ids": question[None].to(self.device)})

    @property
    def decoder(self) -> Any:
        """The language model without its head."""
        network: Any = self.network
        return network.language_model.model

    @torch.inference_mode()
    def first_logits(self, encoded: Encoded) -> tuple[torch.Tensor, Decoding]:
        """One plain forward pass; see `VisionLanguageModel`."""
        output = self.network(**self.forward_arguments(encoded), use_cache=True, logits_to_keep=1)
        return output.logits[0, -1].float(), Decoding(output.language_model_outputs.cache, len(encoded.ids))

    @property
    def continuing(self) -> Any:
        """What continues from a cache: the language model."""
        network: Any = self.network
        return network.language_model

    @torch.inference_mode()
    def see(self, images: Sequence[ImageInputs]) -> list[torch.Tensor]:
        """Run the vision encoder; see `VisionLanguageModel`."""
        network: Any = self.network
        pixels = torch.cat([image.tensors["pixel_values"] for image in images])
        return list(network.vision_model(pixel_values=pixels).last_hidden_state)

    @torch.inference_mode()
    def condition(self, encoded: Sequence[Encoded], seen: torch.Tensor) -> list[torch.Tensor]:
        """Let the Q-Former read all questions about one image side by side; see `VisionLanguageModel`."""
        network: Any = self.network
        texts = [item.extra["qformer_input_ids"][0] for item in encoded]
        ids = pad_sequence(texts, batch_first=True)
        real = pad_sequence([torch.ones_like(text) for text in texts], batch_first=True)
        queries = network.query_tokens.expand(len(texts), -1, -1)
        output = network.qformer(
            input_ids=ids,
            attention_mask=torch.cat([real.new_ones(queries.shape[:2]), real], dim=1),
            query_embeds=queries,
            encoder_hidden_states=seen.expand(len(texts), -1, -1),
            encoder_attention_mask=real.new_ones((len(texts), seen.shape[0])),
        ).last_hidden_state
        return list(network.language_projection(output[:, : queries.shape[1]]))

    def visual_features(self, image: ImageInputs) -> int:
        """Return the number of queries the network has."""
        network: Any = self.network
        return int(network.query_tokens.shape[1])
