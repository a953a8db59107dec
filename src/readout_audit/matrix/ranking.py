"""Does the readout change which of two models scores higher?"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

Ends = tuple[float | None, float | None]


def ranks(values: Sequence[Fraction | None]) -> list[Fraction | None]:
    """Return the rank of each value, 1 for the largest; equal values share the mean of their places.

    What is not defined has no rank and takes no place.
    """
    known = [value for value in values if value is not None]
    return [
        None
        if value is None
        else 1
        + sum(other > value for other in known)
        + Fraction(sum(other == value for other in known) - 1, 2)
        for value in values
    ]


class Order(NamedTuple):
    """Two models under every readout that scores both.

    Attributes:
        first, second: the models.
        first_ahead, second_ahead, level: the readouts under which the one, the other or neither is ahead.
        first_surely, second_surely: those of them whose interval of the difference leaves zero out.
    """

    first: str
    second: str
    first_ahead: tuple[str, ...]
    second_ahead: tuple[str, ...]
    level: tuple[str, ...]
    first_surely: tuple[str, ...] = ()
    second_surely: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether some readout puts the first model ahead and another the second."""
        return bool(self.first_ahead and self.second_ahead)

    @property
    def changes_surely(self) -> bool:
        """Whether both happen with intervals that leave zero out."""
        return bool(self.first_surely and self.second_surely)


def orders(
    f1: Mapping[str, Mapping[str, Fraction | None]],
    intervals: Mapping[tuple[str, str, str], Ends] | None = None,
) -> list[Order]:
    """Return the order of every pair of models, readout by readout.

    Args:
        f1: model -> readout -> F1, None where it is undefined; a readout that a model lacks is missing.
        intervals: (first, second, readout) -> ends of the interval of F1(first) − F1(second).
    """
    found = []
    for first, second in combinations(f1, 2):
        ahead: dict[int, list[str]] = {1: [], -1: [], 0: []}
        surely: dict[int, list[str]] = {1: [], -1: []}
        for readout, value in f1[first].items():
            other = f1[second].get(readout)
            if value is None or other is None:
                continue
            ahead[(value > other) - (value < other)].append(readout)
            low, high = (intervals or {}).get((first, second, readout), (None, None))
            if low is not None and low > 0:
                surely[1].append(readout)
            elif high is not None and high < 0:
                surely[-1].append(readout)
        groups = (ahead[1], ahead[-1], ahead[0], surely[1], surely[-1])
        found.append(Order(first, second, *(tuple(group) for group in groups)))
    return found
