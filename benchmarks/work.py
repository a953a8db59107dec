"""What asking the paper's five models takes, counted from their sizes: FLOPs, and from those an estimate of time.

Nothing is run. FLOPs are 2 per multiply-add of matrix products and attention (causal pairs only), embeddings and
norms left out. The scale from FLOPs to seconds is the paper's: LLaVA-1.5 in nf4 took 0.508 s a question on an
RTX 3070 Ti. So times are estimates for that card, and only as good as the assumption that the same share of its
speed is reached; unpacking 4-bit weights once per forward pass, loading, and continuations are not counted.

    python benchmarks/work.py
"""

from dataclasses import dataclass

SECONDS = 0.508
"""The paper's time per question of LLaVA-1.5, nf4, RTX 3070 Ti, one question after another."""

IMAGES, QUESTIONS = 500, 5170
"""Of POPE's release of October 2023: distinct questions."""

SUFFIX = 17
"""Tokens after the shared prefix, on average (LLaVA's tokenizer, the authors' template; 16 to 20)."""

NF4 = 0.5 + 4 / 64
"""Bytes of a weight in nf4: half a byte, and a float32 scale per block of 64."""


@dataclass(frozen=True)
class Model:
    """Sizes of a model.

    Attributes:
        layers, width, inner: of the decoder.
        keys: width of its keys, and of its values.
        vocabulary: rows of the output head.
        prefix: tokens that an image's questions share, of a 640x480 picture, the picture's included.
        vision: multiply-adds per picture.
        vision_weights: weights of everything before the decoder.
        shares: whether the decoder's prefix is the same for all questions about a picture.
        per_question: multiply-adds before the decoder that depend on the question.
        more: further weights of the decoder per layer that a text token does not pass.
        stored: bytes per weight as published.
    """

    layers: int
    width: int
    inner: int
    keys: int
    vocabulary: int
    prefix: int
    vision: int
    vision_weights: int
    shares: bool = True
    per_question: int = 0
    more: int = 0
    stored: int = 2

    @property
    def layer(self) -> int:
        """Weights of one decoder layer: queries and output, keys and values, gate, up and down."""
        return 2 * self.width**2 + 2 * self.width * self.keys + 3 * self.width * self.inner

    def decoder(self, prefix: int, suffixes: list[int]) -> int:
        """Return multiply-adds of one prefix with suffixes behind it, each suffix apart from the others."""
        tokens = prefix + sum(suffixes)
        pairs = prefix * (prefix + 1) // 2 + sum(n * prefix + n * (n + 1) // 2 for n in suffixes)
        return self.layers * (tokens * self.layer + 2 * pairs * self.width)

    @property
    def alone(self) -> int:
        """FLOPs of one question asked by itself."""
        head = self.width * self.vocabulary
        return 2 * (self.vision + self.per_question + self.decoder(0, [self.prefix + SUFFIX]) + head)

    @property
    def together(self) -> float:
        """FLOPs of all distinct questions with each picture seen, and each prefix read, once."""
        if not self.shares:
            return 2 * IMAGES * self.vision + QUESTIONS * (self.alone - 2 * self.vision)
        per_image = self.vision + self.decoder(self.prefix, [])
        per_question = self.decoder(self.prefix, [SUFFIX]) - self.decoder(self.prefix, [])
        return 2.0 * (IMAGES * per_image + QUESTIONS * (per_question + self.width * self.vocabulary))

    @property
    def nf4_bytes(self) -> float:
        """Weights in nf4; embedding table and output head stay in 16 bits."""
        matrices = self.layers * (self.layer + self.more) + self.vision_weights
        return matrices * NF4 + 2 * 2 * self.width * self.vocabulary

    @property
    def stored_bytes(self) -> int:
        """Weights as published."""
        matrices = self.layers * (self.layer + self.more) + self.vision_weights
        return self.stored * (matrices + 2 * self.width * self.vocabulary)


def transformer(layers: int, width: int, inner: int, positions: int) -> int:
    """Return multiply-adds of a vision transformer over so many positions."""
    weights = 4 * width**2 + 2 * width * inner
    return layers * (positions * weights + 2 * positions**2 * width)


# LLaVA reads CLIP's last layer but one: 23 of 24 run. LLaVA-1.6 cuts 640x480 into four tiles beside the whole.
CLIP, PROJECTOR = transformer(23, 1024, 4096, 577), 576 * (1024 * 4096 + 4096**2)
CLIP_WEIGHTS = 24 * 12 * 1024**2 + 1024 * 4096 + 4096**2
# Queries and question through twelve layers, to the picture in every second one.
Q_FORMER = 12 * (54 * 12 * 768**2 + 2 * 54**2 * 768) + 6 * (
    2 * 257 * 1408 * 768 + 2 * 32 * (768**2 + 257 * 768)
)
ABSTRACTOR = 6 * (64 * (2 * 1024**2 + 2 * 1024 * 2816) + 2 * 1089 * 1024**2 + 2 * 64 * 1089 * 1024)
MODELS = {
    "llava-1.5-7b": Model(32, 4096, 11008, 4096, 32064, 586, CLIP + PROJECTOR, CLIP_WEIGHTS),
    "llava-1.6-mistral-7b": Model(32, 4096, 14336, 1024, 32064, 2349, 5 * (CLIP + PROJECTOR), CLIP_WEIGHTS),
    "instructblip-vicuna-7b": Model(
        *(32, 4096, 11008, 4096, 32001, 37, transformer(39, 1408, 6144, 257)),
        vision_weights=39 * (4 * 1408**2 + 2 * 1408 * 6144) + 186_000_000,
        shares=False,
        per_question=Q_FORMER,
        stored=4,
    ),
    "mplug-owl2-llama2-7b": Model(
        *(32, 4096, 11008, 4096, 32000, 74, transformer(24, 1024, 4096, 1025) + ABSTRACTOR),
        vision_weights=24 * 12 * 1024**2 + 6 * (4 * 1024**2 + 3 * 1024 * 2816),
        more=2 * 4096**2,
    ),
    # 640x480 becomes 46 x 34 patches and 391 tokens; 20 more of the chat template stand before the question.
    "qwen2-vl-7b-instruct": Model(
        *(28, 3584, 18944, 512, 152064, 411, transformer(32, 1280, 5120, 1564)),
        vision_weights=32 * 12 * 1280**2 + 45_000_000,
    ),
}


def main() -> None:
    """Print one row per model."""
    rate = MODELS["llava-1.5-7b"].alone / SECONDS
    print(
        f"{IMAGES} pictures, {QUESTIONS} distinct questions; {rate / 1e12:.1f} TFLOP/s, as the paper's card did"
    )
    print(
        f"{'':24}{'TFLOP':>8}{'s':>7}{'minutes one by one':>20}{'shared':>8}{'ratio':>7}{'nf4 GB':>8}{'disk GB':>9}"
    )
    for name, model in MODELS.items():
        alone, together = QUESTIONS * model.alone / rate / 60, model.together / rate / 60
        print(
            f"{name:24}{model.alone / 1e12:8.2f}{model.alone / rate:7.2f}{alone:20.1f}{together:8.1f}"
            f"{alone / together:7.1f}{model.nf4_bytes / 1e9:8.1f}{model.stored_bytes / 1e9:9.1f}"
        )


if __name__ == "__main__":
    main()
