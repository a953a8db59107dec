"""How decisions that were made elsewhere describe the readouts behind them."""

from typing import Any

LEGACY_PIECES = {
    "yes": {3582: "yes", 8241: "Yes", 4874: "▁yes", 3869: "▁Yes"},
    "no": {1217: "no", 3782: "No", 694: "▁no", 1939: "▁No"},
}
"""The eight ids of the paper's Table 5 and their pieces in the LLaMA-2 vocabulary."""

_TWO = {"yes": (3582,), "no": (1217,)}
_KINDS = {"legacy_2tok": "logit", "legacy_8tok": "logit", "dynamic_single": "logit", "string_parse": "string"}


_LLAMA_VOCABULARY = frozenset({"llava-1.5-7b", "instructblip-vicuna-7b", "mplug-owl2-llama2-7b"})


def describe_readout(name: str, source: str, model: str) -> dict[str, Any]:
    """Describe a readout that someone else applied, as the metadata of a decision table has it.

    The ids of the two legacy readouts are the paper's, copied to every model; their pieces are given where
    the model has the vocabulary they come from. The ids of another readout are not known from here.
    """
    ids: dict[str, list[int]] = {"yes": [], "no": []}
    pieces: dict[str, str] = {}
    if name in ("legacy_2tok", "legacy_8tok"):
        for answer, table in LEGACY_PIECES.items():
            ids[answer] = sorted(_TWO[answer] if name == "legacy_2tok" else table)
            if model in _LLAMA_VOCABULARY:
                pieces |= {str(token): table[token] for token in ids[answer]}
    return {
        "available": True,
        "why_not": None,
        "ids": ids,
        "pieces": pieces,
        "source": source,
        "kind": _KINDS.get(name, "string"),
    }
