"""A prompt with `<|image|>` to token ids (docs/mplug-owl2.md §6.1)."""

from typing import Protocol

from readout_audit.models.mplug_owl2.splicing import IMAGE_TOKEN_ID

IMAGE_PLACEHOLDER = "<|image|>"


class Tokenizer(Protocol):
    """The part of a tokenizer of transformers that is needed here."""

    bos_token_id: int

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the ids of `text`."""
        ...


def encode_prompt(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """Return the ids of a prompt, -200 at each placeholder.

    Each piece between placeholders is tokenised on its own, so the first word after an image carries the word-start
    mark, and the space of `USER: ` is a token (29871 in Llama's vocabulary). One start token stands at the front,
    unless the prompt begins with an image: then every piece keeps its own, as in the original (§6.1, quirk).
    """
    pieces = [
        tokenizer.encode(piece, add_special_tokens=False) if piece else None
        for piece in prompt.split(IMAGE_PLACEHOLDER)
    ]
    start = [tokenizer.bos_token_id]
    leading, each = (start, []) if pieces[0] is not None else ([], start)
    ids = list(leading)
    for index, piece in enumerate(pieces):
        if index:
            ids.append(IMAGE_TOKEN_ID)
        ids += each + piece if piece is not None else []
    return ids
