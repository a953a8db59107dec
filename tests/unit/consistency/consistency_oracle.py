"""Brute force over every (tp, fp), written from the definitions alone: the oracle of the fast search."""

from fractions import Fraction
from itertools import combinations

from readout_audit.exact import read_printed


def ratio(above, below):
    return Fraction(above, below) if below else None


def metrics(positives, negatives, tp, fp):
    fn, tn = positives - tp, negatives - fp
    return {
        "precision": ratio(tp, tp + fp),
        "recall": ratio(tp, tp + fn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
        "accuracy": ratio(tp + tn, positives + negatives),
        "yes_rate": ratio(tp + fp, positives + negatives),
    }


def prints_so(value, text, rounding):
    """Whether an exact value prints as `text`; 0/0 prints as 0."""
    shown, decimals = Fraction(text), len(text.partition(".")[2])
    value = value if value is not None else Fraction(0)
    unit = Fraction(1, 10**decimals)
    if rounding == "half_even":
        return round(value, decimals) == shown  # exact for Fractions
    if rounding == "half_up":
        return (value / unit + Fraction(1, 2)) // 1 * unit == shown  # values are not negative
    return abs(value - shown) <= unit / 2


def fitting(positives, negatives, texts, rounding):
    """Every (tp, fp) that prints as given, in order."""

    def fits(tp, fp):
        values = metrics(positives, negatives, tp, fp)
        return all(prints_so(values[name], text, rounding) for name, text in texts.items())

    return [(tp, fp) for tp in range(positives + 1) for fp in range(negatives + 1) if fits(tp, fp)]


def conflicts(positives, negatives, texts, rounding):
    """The inclusion-minimal sets of metrics that no (tp, fp) satisfies together."""
    impossible = {
        frozenset(names)
        for size in range(1, len(texts) + 1)
        for names in combinations(texts, size)
        if not fitting(positives, negatives, {name: texts[name] for name in names}, rounding)
    }
    return {group for group in impossible if not any(other < group for other in impossible)}


def nearest(positives, negatives, texts):
    """(smallest largest difference in units of the last digit, every (tp, fp) at it)."""
    distances = {}
    for tp in range(positives + 1):
        for fp in range(negatives + 1):
            values = metrics(positives, negatives, tp, fp)
            distances[tp, fp] = max(
                abs((values[name] or Fraction(0)) - Fraction(text)) * 10 ** len(text.partition(".")[2])
                for name, text in texts.items()
            )
    least = min(distances.values())
    return least, [cell for cell, distance in distances.items() if distance == least]


def typed(**texts):
    """Printed values from texts."""
    return {name: read_printed(text, name) for name, text in texts.items()}
