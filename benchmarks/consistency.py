"""How long the consistency search takes, and how many matrices it finds, on one core.

Run it by itself: `python benchmarks/consistency.py`. Each line is the best of three calls in one process.
"""

import time
from collections.abc import Callable
from functools import partial

from readout_audit.consistency.search import Consistency, fitting_matrices
from readout_audit.exact import read_printed

SIZES = (3_000, 400_000, 4_000_000)
ROWS = {
    "precision, recall": {"precision": "0.8963", "recall": "0.7460"},
    "precision, recall, F1": {"precision": "0.8658", "recall": "0.7827", "f1": "0.8221"},
    "F1 alone": {"f1": "0.8221"},
    "accuracy alone": {"accuracy": "0.8307"},
    "F1, yes-rate": {"f1": "0.8221", "yes_rate": "0.452"},
    "all five, inconsistent": {
        "precision": "0.8963",
        "recall": "0.7460",
        "f1": "0.8221",
        "accuracy": "0.7000",
        "yes_rate": "0.2000",
    },
}


def best_of(repeats: int, call: Callable[[], Consistency]) -> tuple[float, Consistency]:
    """Return the shortest time in seconds and the result."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def main() -> None:
    """Print a table of times and counts."""
    print(f"{'questions':>10}  {'printed':<24}{'seconds':>9}  matrices")
    for size in SIZES:
        for name, texts in ROWS.items():
            values = {metric: read_printed(text, metric) for metric, text in texts.items()}
            seconds, result = best_of(3, partial(fitting_matrices, size // 2, size // 2, values))
            print(f"{size:>10,}  {name:<24}{seconds:>9.3f}  {result.count:,}")


if __name__ == "__main__":
    main()
