"""Names that the page puts into words: readouts, label sets, where answers come from."""

from readout_audit.scores.labels import OWN

SOURCES = {
    "inference": "asked by this run",
    "files": "asked elsewhere, read from its records",
    "published": "asked by the paper's authors, who published each decision",
    "counts": "asked by the paper's authors, who print counts",
}
"""Where answers come from, in words."""

NOT_ASKED = {
    "published": (
        "The scores are counted anew from the decisions that the paper's authors published. A printed number that is "
        "reproduced here follows from those decisions."
    ),
    "counts": (
        "The scores are rebuilt from the integers and scores that the paper prints. A printed number that is reproduced "
        "here shows that the paper agrees with itself, and not that a model gives these answers."
    ),
}
"""What a match is worth where the paper itself is the source of the answers."""

READOUT_WORDS = {"legacy_8tok": "eight-token", "legacy_2tok": "two-token"}
"""The paper's words for its two rules."""

LABEL_WORDS = {"repope": "the corrected labels of RePOPE"}
"""Label sets beside the release's own, in words."""

OWN_LABELS = "own"
"""How the page names the labels that came with the questions, which need not be POPE's."""

OWN_MEANS = "Labels own: those that came with the questions."


def in_words(readout: str) -> str:
    """Return a readout's name with the paper's words for it, where the paper has some."""
    return f"the {READOUT_WORDS[readout]} rule ({readout})" if readout in READOUT_WORDS else readout


def label_words(labels: str) -> str:
    """Return a label set in words."""
    return LABEL_WORDS.get(labels, f"the labels of {labels}")


def label_name(labels: str) -> str:
    """Return the name of a label set as the page's tables have it."""
    return OWN_LABELS if labels == OWN else labels
