"""How long scoring takes under every readout, how much memory it needs, and how both grow; on one core.

Run it by itself: `python benchmarks/scoring.py`. Each size is measured in a process of its own that is bound
to one core: made-up records (18 questions per image in three splits, all distinct) are written to a
file, then the three stages right of inference are timed from file to file in CPU seconds, start-up left out:

    decide   every registered readout on every record
    score    counts, rates and intervals of every readout, split and aggregate, 10,000 resamples of images
    gap      transitions, rates, intervals and the permutation test of the paper's pair

`points` is the score stage without resamples. Where the package pope-audit can be imported, the time of its
`compute_f1` on the same decisions stands beside it: three splits under every readout, point scores only, the
lists already in memory (`pip install --no-deps pope-audit`, or unpack it and name the folder in PYTHONPATH).
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SIZES = (9_000, 36_000, 100_000, 400_000)
RESAMPLES = 10_000
SPLITS = ("adversarial", "popular", "random")
PER_IMAGE = 18
PAIR = ("legacy_8tok", "legacy_2tok")
SEED = 42


def main() -> None:
    """Measure each size in a fresh process and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="numbers of records")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        measure(arguments.sizes[0])
        return
    names = ("decide", "points", "score", "gap", "total", "pope-audit")
    print(f"{'records':>9}{'images':>8}" + "".join(f"{name:>12}" for name in names) + f"{'peak MB':>10}")
    for size in arguments.sizes:
        subprocess.run([sys.executable, __file__, "--child", str(size)], check=True, env=one_thread())


def one_thread() -> dict[str, str]:
    """Return the environment with every thread pool set to one thread."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS")
    return os.environ | dict.fromkeys(names, "1")


def measure(size: int) -> None:
    """Time the stages on `size` records and print the line."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from readout_audit.readouts.registry import READOUTS, get
    from readout_audit.stages import decide, measure_gap, score

    for name in READOUTS:
        get(name)  # importing is no part of the work
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = write_inputs(folder, size)
        cell = {
            "dataset": "made-up",
            "model": "m",
            "precision": "fp32",
            "template": "t",
            "source": "inference",
        }
        decisions = folder / "decisions.parquet"
        seconds = {
            "decide": timed(
                lambda: decide.run(
                    folder / "records.parquet", folder / "questions.parquet", decisions, list(READOUTS), cell
                )
            ),
            "points": timed(lambda: score.run(decisions, folder / "points.parquet")),
            "score": timed(
                lambda: score.run(decisions, folder / "scores.parquet", resamples=RESAMPLES, seed=SEED)
            ),
            "gap": timed(
                lambda: measure_gap.run(
                    decisions,
                    folder / "transitions.parquet",
                    folder / "gap.parquet",
                    [PAIR],
                    resamples=RESAMPLES,
                    seed=SEED,
                )
            ),
        }
        seconds["total"] = seconds["decide"] + seconds["score"] + seconds["gap"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        other = pope_audit_seconds(decisions, list(READOUTS))
    times = "".join(f"{value:>11.2f}s" for value in seconds.values())
    other_time = f"{other:>11.2f}s" if other is not None else f"{'not there':>12}"
    print(f"{size:>9,}{images:>8,}{times}{other_time}{peak:>10,.0f}", flush=True)


def timed(call: Callable[[], None]) -> float:
    """Return how many seconds of the one core a call took, whatever else the machine does meanwhile."""
    start = time.process_time()
    call()
    return time.process_time() - start


def write_inputs(folder: Path, size: int) -> int:
    """Write records and questions of `size` made-up answers; return the number of images."""
    import numpy as np
    import pyarrow as pa

    from readout_audit.contracts import QUESTIONS, RECORDS
    from readout_audit.fileio import write_table

    rng = np.random.default_rng(SEED)
    yes_forms = {"yes": 3582, "Yes": 8241, " yes": 4874, " Yes": 3869}
    no_forms = {"no": 1217, "No": 3782, " no": 694, " No": 1939}
    ids = sorted([*yes_forms.values(), *no_forms.values()])
    # Steps of 1/64, as in 16-bit logits near 24: ties occur.
    logits = (np.round(rng.normal(20, 2, (size, len(ids))) * 64) / 64).astype(np.float32)
    logits[:, [ids.index(3869), ids.index(1939)]] += 4
    best = logits.argmax(axis=1)
    texts = np.where(np.isin(np.array(ids)[best], list(yes_forms.values())), "Yes", "No")
    texts[rng.random(size) < 0.02] = "I see"
    number = np.arange(size)
    shared = {
        "uid": pa.array([f"{n:032x}" for n in number]),
        "image": pa.array([f"{n // PER_IMAGE:012d}.jpg" for n in number]),
        "object": pa.array(["thing"] * size),
        "question": pa.array(["Is there a thing in the image?"] * size),
    }
    offsets = pa.array(np.arange(size + 1, dtype=np.int32) * len(ids))
    recorded = shared | {
        "prompt": shared["question"],
        "argmax_id": pa.array(np.array(ids, dtype=np.int32)[best]),
        "argmax_text": pa.array([f"▁{text}" for text in texts]),
        "argmax_logit": pa.array(logits.max(axis=1)),
        "candidate_logits": pa.ListArray.from_arrays(offsets, pa.array(logits.ravel())),
        "new_text": pa.array(texts),
        "full_text": pa.array([f"USER: Is there a thing? ASSISTANT: {text}" for text in texts]),
        "status": pa.array(["ok"] * size),
    }
    sets = {
        "legacy": {"model": "m", "yes": yes_forms, "no": no_forms},
        **{
            kind: {"yes": [*yes_forms.values()], "no": [*no_forms.values()]}
            for kind in ("single", "scan", "in_context")
        },
    }
    metadata = {
        "schema": 1,
        "model": "m",
        "candidate_ids": ids,
        "token_sets": sets,
        "token_map": {"pieces": {}},
    }
    columns = {field.name: recorded.get(field.name, pa.nulls(size)) for field in RECORDS}
    write_table(folder / "records.parquet", pa.table(columns).cast(RECORDS), RECORDS, metadata)
    asked = shared | {
        "dataset": pa.array(["made-up"] * size),
        "split": pa.array([SPLITS[n % len(SPLITS)] for n in number]),
        "question_id": pa.array([str(n + 1) for n in number]),
        "image_namespace": pa.array(["made-up"] * size),
        "label": pa.array(np.where(rng.random(size) < 0.5, "yes", "no")),
    }
    columns = {field.name: asked[field.name] for field in QUESTIONS}
    write_table(folder / "questions.parquet", pa.table(columns).cast(QUESTIONS), QUESTIONS)
    return (size + PER_IMAGE - 1) // PER_IMAGE


def pope_audit_seconds(decisions: Path, readouts: list[str]) -> float | None:
    """Return pope-audit's time for the point scores alone; None where it cannot be imported."""
    try:
        from pope_audit.evaluate import compute_f1
    except ImportError:
        return None
    import pyarrow.parquet as pq

    table = pq.read_table(decisions)
    inputs = []
    for split in SPLITS:
        rows = table.filter(table["split"].to_numpy() == split)
        inputs += [(rows[name].to_pylist(), rows["label"].to_pylist()) for name in readouts]
    return timed(lambda: [compute_f1(*lists) for lists in inputs] and None)


if __name__ == "__main__":
    main()
