"""How fast the engine asks, side by side with the ways others ask; random weights, no download.

Run it by itself: `python benchmarks/inference.py`. The model has LLaVA-1.5's geometry (336-pixel CLIP tower,
576 image tokens, a vocabulary of 32,064) with widths scaled down until a CPU can run it, and POPE's question
structure: per image 3 positives in three splits and 3 negatives in each, 18 rows of which about 10.3 are
distinct. Every image is asked in each way before the next image comes, so that whatever else the machine does
falls on all of them alike:

    pope-audit   `pope_audit.ugaa_hook._get_yes_no_logits` of pope-audit 0.1.1, once per row (only where it can
                 be imported: `pip install --no-deps pope-audit==0.1.1`, or unpack it and name the folder in
                 PYTHONPATH); its prompt has no suffix, so the suffix is part of the question it is given
    generate     a plain `model.generate(max_new_tokens=1)` loop over the rows, eight at a time, left-padded
    sequential   this package's reference engine on the distinct questions
    shared       this package's shared-prefix engine on the distinct questions

All do the same work: raw logits of the first answer token. Continuations are timed apart. FLOPs are counted by
torch's counter (matrix products and attention, 2 per multiply-add, attention as full rectangles); the least
work is derived from the geometry: each image once through the vision layers that are used, each prefix once,
each suffix once, causal pairs only, one row of the output head per question. The bound is the FLOPs of
pope-audit (or, without it, of one plain forward pass per row) over the least work.

    --geometry llava-1.5-7b --device cuda --dtype bfloat16     the same at full size on a GPU
    --distinct 80                                              80 distinct questions per image, each asked once
    --scaling                                                  time and peak memory against the number of images
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

import readout_audit.models  # noqa: F401
from readout_audit.inference.base import ImageJob, Question
from readout_audit.inference.packing import common_prefix
from readout_audit.inference.sequential import Sequential
from readout_audit.inference.shared_prefix import SharedPrefix
from readout_audit.models.base import ModelSpec
from readout_audit.models.llava import Llava
from readout_audit.models.tiny import metaspace_tokenizer

SUFFIX = " Answer yes or no only."
PROMPT = "USER: <image>\n{question}\nASSISTANT:"
NOUNS = """person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant,
stop sign, parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack,
umbrella, handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, skateboard,
surfboard, tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange,
broccoli, carrot, pizza, donut, cake, chair, couch, potted plant, bed, dining table, toilet, tv, laptop, mouse,
remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors,
teddy bear, hair drier, toothbrush""".replace("\n", " ").split(", ")
FREQUENT = ["person", "chair", "car", "dining table", "cup", "bottle", "bowl", "handbag"]
"""Stands in for POPE's popular negatives: few nouns, asked about again and again."""

WORDS = {
    "USER",
    "ASS",
    "IST",
    "ANT",
    "Is",
    "there",
    "a",
    "in",
    "the",
    "image",
    "Answer",
    "yes",
    "or",
    "no",
    "only",
    "again",
}
"""Pieces of the prompt's frame, as LLaMA's vocabulary has them."""


@dataclass(frozen=True)
class Geometry:
    """Sizes of a LLaVA: vision width, layers; text width, layers, feed-forward width, heads."""

    vision_width: int
    vision_layers: int
    vision_heads: int
    width: int
    layers: int
    inner: int
    heads: int
    vocabulary: int = 32064
    pixels: int = 336
    patch: int = 14

    @property
    def patches(self) -> int:
        """Image tokens."""
        return (self.pixels // self.patch) ** 2


GEOMETRIES = {
    "small": Geometry(256, 6, 4, 512, 8, 1376, 8),
    "llava-1.5-7b": Geometry(1024, 24, 16, 4096, 32, 11008, 32),
}


def build(geometry: Geometry, device: torch.device, dtype: torch.dtype, tokenizer: Any) -> Llava:
    """Return a LLaVA with seeded random weights, made in place on the device; nothing goes to disk."""
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    vision = CLIPVisionConfig(
        hidden_size=geometry.vision_width,
        intermediate_size=4 * geometry.vision_width,
        num_hidden_layers=geometry.vision_layers,
        num_attention_heads=geometry.vision_heads,
        image_size=geometry.pixels,
        patch_size=geometry.patch,
    )
    text = LlamaConfig(
        hidden_size=geometry.width,
        intermediate_size=geometry.inner,
        num_hidden_layers=geometry.layers,
        num_attention_heads=geometry.heads,
        num_key_value_heads=geometry.heads,
        vocab_size=geometry.vocabulary,
        pad_token_id=tokenizer.pad_token_id,
    )
    image_token_id = tokenizer.get_vocab()["<image>"]
    config = LlavaConfig(
        vision_config=vision.to_dict(), text_config=text.to_dict(), image_token_id=image_token_id
    )
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    with device:
        network = LlavaForConditionalGeneration(config).eval()
    torch.set_default_dtype(before)
    edge = {"height": geometry.pixels, "width": geometry.pixels}
    model = object.__new__(Llava)
    precision = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
    model.spec = ModelSpec("benchmark", Path("benchmark"), precision, None, "as_is", "sdpa", device)
    model.tokenizer, model.network = tokenizer, network
    model.processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": geometry.pixels}, crop_size=edge),
        tokenizer=tokenizer,
        patch_size=geometry.patch,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    model.image_token_id, model.eos_ids = image_token_id, frozenset()
    return model


def rows_of(rng: np.random.Generator, distinct: int | None) -> list[str]:
    """Return one image's questions, repeats included, as POPE asks them (or `distinct` different ones)."""
    if distinct is not None:
        nouns = [f"{NOUNS[i % len(NOUNS)]}{'' if i < len(NOUNS) else ' again'}" for i in range(distinct)]
    else:
        shuffled = list(rng.permutation(NOUNS))
        present, absent = shuffled[:3], shuffled[3:]
        # Random negatives are any; popular ones the most frequent absent; adversarial ones mostly those too.
        popular = [noun for noun in FREQUENT if noun in absent][:3]
        # 1.46 of the three on average: 10.3 distinct questions per image, as in the release of October 2023.
        repeated = list(rng.choice(popular, rng.choice([1, 2], p=[0.54, 0.46]), replace=False))
        fresh = [noun for noun in absent if noun not in popular]
        adversarial = [*repeated, *rng.choice(fresh, 3 - len(repeated), replace=False)]
        splits = [list(rng.choice(absent, 3, replace=False)), popular, adversarial]
        nouns = [noun for negatives in splits for noun in (*present, *negatives)]
    return [f"Is there a {noun} in the image?" for noun in nouns]


def make_job(number: int, rows: list[str], pixels: Image.Image) -> ImageJob:
    """Return the distinct questions of one image for an engine."""
    distinct = list(dict.fromkeys(rows))
    asked = (
        Question(f"{number}:{i}", str(number), None, text, PROMPT.format(question=text + SUFFIX))
        for i, text in enumerate(distinct)
    )
    return ImageJob(pixels, tuple(asked))


def ask_pope_audit(model: Llava) -> Callable[[list[str], Image.Image], None] | None:
    """Return a function that asks an image's rows as pope-audit does, or None where it is not installed."""
    try:
        from pope_audit.ugaa_hook import _get_yes_no_logits
    except ImportError:
        return None
    device = model.spec.device

    def ask(rows: list[str], pixels: Image.Image) -> None:
        for row in rows:
            _get_yes_no_logits(model.network, model.processor, pixels, row + SUFFIX, device)

    return ask


def ask_generate(model: Llava, rows: list[str], pixels: Image.Image) -> None:
    """Ask an image's rows by `generate`, eight at a time."""
    model.tokenizer.padding_side = "left"
    for start in range(0, len(rows), 8):
        batch = [PROMPT.format(question=row + SUFFIX) for row in rows[start : start + 8]]
        inputs = model.processor(text=batch, images=[pixels] * len(batch), padding=True, return_tensors="pt")
        moved = model.to_device(dict(inputs))
        with torch.no_grad():
            out = model.network.generate(
                **moved, max_new_tokens=1, do_sample=False, return_dict_in_generate=True, output_logits=True
            )
        out.logits[0].float().cpu()


def timed(device: torch.device, work: Callable[[], Any]) -> tuple[float, float]:
    """Return wall and CPU seconds of `work`, the device's queue emptied before and after."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start, cpu = time.perf_counter(), time.process_time()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, time.process_time() - cpu


def counted(work: Callable[[], Any]) -> int:
    """Return the FLOPs of `work` by torch's counter, which has to be told of the CPU's attention kernel."""

    def attention(query: Any, key: Any, value: Any, *_: Any, out_val: Any = None, **__: Any) -> int:
        return int(sdpa_flop_count(query.shape, key.shape, value.shape))

    attention._get_raw = True  # type: ignore[attr-defined]
    mapping = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        work()
    return int(counter.get_total_flops())


def least_work(geometry: Geometry, model: Llava, job: ImageJob) -> int:
    """Return the FLOPs that no way of asking these questions can do without; see the module."""
    image = model.prepare_image(job.pixels)
    prompts = [model.encode(question.prompt, image).ids for question in job.questions]
    prefix = common_prefix(prompts)
    suffixes = [len(prompt) - prefix for prompt in prompts]
    positions = geometry.patches + 1
    vision_layers = geometry.vision_layers - 1  # LLaVA reads the layer before the last
    w = geometry.vision_width
    vision = vision_layers * (positions * 12 * w * w + 2 * positions * positions * w)
    vision += geometry.patches * 3 * geometry.patch**2 * w
    projector = geometry.patches * (w * geometry.width + geometry.width**2)
    tokens = prefix + sum(suffixes)
    pairs = prefix * (prefix + 1) // 2 + sum(n * prefix + n * (n + 1) // 2 for n in suffixes)
    weights = 4 * geometry.width**2 + 3 * geometry.width * geometry.inner
    decoder = geometry.layers * (tokens * weights + 2 * pairs * geometry.width)
    head = len(prompts) * geometry.width * geometry.vocabulary
    return 2 * (vision + projector + decoder + head)


@dataclass
class Side:
    """One way of asking.

    Attributes:
        name: of the way.
        unit: what it asks, rows or distinct questions.
        asked: how many of them, per image.
        seconds: per image.
        cpu_seconds: per image.
        flops: per image. A way that asks one by one is counted on the first; every question is the same work.
    """

    name: str
    unit: str
    asked: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)


class Ways:
    """The ways of asking, over one model."""

    def __init__(self, model: Llava, batch_size: int, ours_only: bool) -> None:
        """Prepare the engines."""
        self.model, self.ours_only = model, ours_only
        self.shared, self.longer = SharedPrefix(model, batch_size, 1), SharedPrefix(model, batch_size, 6)
        self.sequential = Sequential(model, 1, 1)
        self.pope_audit = None if ours_only else ask_pope_audit(model)

    def of(self, rows: list[str], job: ImageJob) -> dict[str, tuple[str, Callable[[], Any]]]:
        """Return each way's name, what it counts, and a call that asks one image."""
        distinct = "distinct questions"
        ways: dict[str, tuple[str, Callable[[], Any]]] = {
            "shared": (distinct, lambda: list(self.shared.answer([job]))),
            "shared, 6 tokens": (distinct, lambda: list(self.longer.answer([job]))),
        }
        if self.ours_only:
            return ways
        ways["sequential"] = (distinct, lambda: list(self.sequential.answer([job])))
        ways["generate"] = ("rows", lambda: ask_generate(self.model, rows, job.pixels))
        pope_audit = self.pope_audit
        if pope_audit is not None:
            ways["pope-audit"] = ("rows", lambda: pope_audit(rows, job.pixels))
        return ways


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask every image in every way and return what was measured."""
    geometry, device = GEOMETRIES[arguments.geometry], torch.device(arguments.device)
    model = build(geometry, device, getattr(torch, arguments.dtype), tokenizer_of(arguments))
    ways = Ways(model, arguments.batch_size, arguments.ours_only)
    rng = np.random.default_rng(0)
    sides: dict[str, Side] = {}
    least, counts = list[int](), [0, 0]
    for number in range(-1, arguments.images):  # the first image only warms up
        pixels = Image.fromarray(rng.integers(0, 256, (480, 640, 3), dtype=np.uint8))
        rows = rows_of(rng, arguments.distinct)
        job = make_job(number, rows, pixels)
        for name, (unit, work) in ways.of(rows, job).items():
            side = sides.setdefault(name, Side(name, unit))
            seconds, cpu = timed(device, work)
            if number >= 0:
                side.asked.append(len(rows) if unit == "rows" else len(job.questions))
                side.seconds.append(seconds)
                side.cpu_seconds.append(cpu)
                alike = number > 0 and not name.startswith("shared")
                side.flops.append(side.flops[0] * side.asked[-1] / side.asked[0] if alike else counted(work))
        if number >= 0:
            least.append(least_work(geometry, model, job))
            counts = [counts[0] + len(rows), counts[1] + len(job.questions)]
    return {"sides": sides, "least": least, "rows": counts[0], "distinct": counts[1]}


def tokenizer_of(arguments: argparse.Namespace) -> Any:
    """Return the tokenizer: a given folder's, or our small one with the prompt's words as whole pieces."""
    if arguments.tokenizer is not None:
        from readout_audit.tokens.loading import load_tokenizer

        return load_tokenizer(arguments.tokenizer)
    from tokenizers.models import Unigram

    words = {word for noun in NOUNS for word in noun.split()} | WORDS
    tokenizer = metaspace_tokenizer(tuple(sorted(words)))
    backend = tokenizer.backend_tokenizer
    pieces = sorted(backend.get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])
    # Merges of one word may cut another; by scores a word of the prompt is one piece, as in a real vocabulary.
    scores = [(piece, -1.0 if piece.lstrip("▁") in words else -10.0 * len(piece)) for piece, _ in pieces]
    backend.model = Unigram(scores, unk_id=0)
    return tokenizer


def report(arguments: argparse.Namespace, found: dict[str, Any]) -> dict[str, Any]:
    """Print the table and return it as data."""
    sides: dict[str, Side] = found["sides"]
    images = arguments.images
    repeats = found["rows"] / found["distinct"]
    print(
        f"{machine(arguments)}\n{images} images, {found['rows']} rows, {found['distinct']} distinct questions"
    )
    print(
        f"{'':18}{'s/image':>10}{'median':>10}{'CPU s':>10}{'rows/s':>10}{'GFLOP/image':>13}{'GFLOP/CPU s':>13}"
    )
    for side in sides.values():
        total = sum(side.seconds)
        flops, cpu = statistics.mean(side.flops) / 1e9, statistics.mean(side.cpu_seconds)
        print(
            f"{side.name:18}{total / images:10.3f}{statistics.median(side.seconds):10.3f}{cpu:10.3f}"
            f"{found['rows'] / total:10.2f}{flops:13.1f}{flops / cpu:13.1f}"
        )
    result: dict[str, Any] = {
        "machine": machine(arguments),
        "arguments": {key: str(value) for key, value in vars(arguments).items()},
        "images": images,
        "rows": found["rows"],
        "distinct": found["distinct"],
        "least_flops": found["least"],
        "sides": {
            side.name: {"seconds": side.seconds, "cpu_seconds": side.cpu_seconds, "flops": side.flops}
            for side in sides.values()
        },
        "peak_memory_bytes": peak_memory(),
    }
    print(
        f"least work {statistics.mean(found['least']) / 1e9:.1f} GFLOP/image; peak memory {peak_memory() / 2**30:.2f} GiB"
    )
    for name in ("pope-audit", "generate", "sequential"):
        if name not in sides:
            continue
        way, shared = sides[name], sides["shared"]
        ratios = np.divide(way.seconds, shared.seconds)
        cpu_ratios = np.divide(way.cpu_seconds, shared.cpu_seconds)
        bounds = np.divide(way.flops, found["least"])
        ratio, cpu, bound = (float(np.median(values)) for values in (ratios, cpu_ratios, bounds))
        reached, cpu_reached = (float(np.median(values / bounds)) for values in (ratios, cpu_ratios))
        once = repeats if way.unit == "rows" else 1.0
        low, high = np.quantile(ratios, [0.25, 0.75])
        print(
            f"shared against {name}: {ratio:.1f} times (quartiles {low:.1f} to {high:.1f}; {cpu:.1f} in CPU seconds)\n"
            f"    {once:.2f} from asking each distinct question once, {ratio / once:.1f} from the engine;"
            f" bound by FLOPs {bound:.1f}, reached {100 * reached:.0f}% ({100 * cpu_reached:.0f}% in CPU seconds)"
        )
        result["sides"][name] |= {
            "ratio": ratio,
            "cpu_ratio": cpu,
            "bound": bound,
            "once": once,
            "reached": reached,
            "cpu_reached": cpu_reached,
        }
    return result


def peak_memory() -> int:
    """Return the largest memory use so far in bytes, of the GPU where there is one."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def machine(arguments: argparse.Namespace) -> str:
    """Return what this was measured on."""
    where = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
        where = models[0].partition(":")[2].strip() if models else where
    if arguments.device == "cuda":
        where = torch.cuda.get_device_name()
    return (
        f"{arguments.geometry}, {arguments.dtype}, {where}, {torch.get_num_threads()} threads, "
        f"torch {torch.__version__}"
    )


def scaling(arguments: argparse.Namespace) -> None:
    """Print time and peak memory of the shared engine against the number of images, each in its own process."""
    print(f"{'images':>8}{'s/image':>10}{'peak MiB':>10}")
    for images in (5, 10, 20, 40):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            words = [
                "--ours-only",
                "--images",
                str(images),
                "--json",
                out.name,
                "--threads",
                str(arguments.threads),
            ]
            words += [
                "--geometry",
                arguments.geometry,
                "--device",
                arguments.device,
                "--dtype",
                arguments.dtype,
            ]
            subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.DEVNULL)
            found = json.loads(Path(out.name).read_text())
        seconds = found["sides"]["shared"]["seconds"]
        print(f"{images:8}{sum(seconds) / images:10.3f}{found['peak_memory_bytes'] / 2**20:10.0f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--geometry", choices=sorted(GEOMETRIES), default="small")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument(
        "--distinct", type=int, help="this many distinct questions per image, asked once each"
    )
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tokenizer", type=Path, help="folder of a real LLaVA tokenizer")
    parser.add_argument("--ours-only", action="store_true", help="measure the shared engine alone")
    parser.add_argument("--scaling", action="store_true", help="time and memory against the number of images")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.scaling:
        scaling(arguments)
        return
    result = report(arguments, measure(arguments))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
