"""The gap between two readouts in exact arithmetic.

Notation of the paper (arXiv 2610.25964, Table 6), for a step from one readout to another: P, N are the
questions with label yes, no; T the positives that `from` answers yes; G the negatives that it answers no.
Four rates say what `to` makes of these answers:

    phi              of the P - T positives answered no, the share that `to` reads as yes
    rho_n            of the G negatives answered no, the share that `to` reads as yes
    yes_to_no_pos    of the T positives answered yes, the share that `to` reads as no
    yes_to_no_neg    of the N - G negatives answered yes, the share that `to` reads as no

    TP' = (1 - yes_to_no_pos) T + phi (P - T)        FP' = (1 - yes_to_no_neg) (N - G) + rho_n G
    F1' = 2 TP' / (TP' + FP' + P)

With both yes-to-no rates zero this is the paper's identity of Section 3.4.
"""

from fractions import Fraction
from itertools import combinations
from math import factorial
from typing import NamedTuple

from readout_audit.gap.transitions import Paired
from readout_audit.scores.confusion import Confusion


class Ratio(NamedTuple):
    """A ratio as counted, not reduced: 660 of 1318 stays so."""

    numerator: int
    denominator: int

    @property
    def value(self) -> Fraction | None:
        """The exact value; None for 0/0."""
        return Fraction(self.numerator, self.denominator) if self.denominator else None


class Base(NamedTuple):
    """The four counts of the readout gone from: P, N, T, G of the paper."""

    P: int
    N: int
    T: int
    G: int


class FlipRates(NamedTuple):
    """The four rates of a step between readouts; None where no answer was there to flip."""

    rho_n: Fraction | None
    phi: Fraction | None
    yes_to_no_pos: Fraction | None
    yes_to_no_neg: Fraction | None


RATES = FlipRates._fields
NO_FLIPS = FlipRates(Fraction(0), Fraction(0), Fraction(0), Fraction(0))


def base(confusion: Confusion) -> Base:
    """Return P, N, T, G of a matrix without unparsed or invalid rows."""
    return Base(
        P=confusion.tp + confusion.fn,
        N=confusion.fp + confusion.tn,
        T=confusion.tp,
        G=confusion.tn,
    )


def flip_counts(paired: Paired) -> dict[str, Ratio]:
    """Return each rate as counted: rows that flip, of rows that could."""
    return {
        "rho_n": Ratio(paired.neg_ny, paired.neg_ny + paired.neg_nn),
        "phi": Ratio(paired.pos_ny, paired.pos_ny + paired.pos_nn),
        "yes_to_no_pos": Ratio(paired.pos_yn, paired.pos_yy + paired.pos_yn),
        "yes_to_no_neg": Ratio(paired.neg_yn, paired.neg_yy + paired.neg_yn),
    }


def flip_rates(paired: Paired) -> FlipRates:
    """Return the four exact rates of a step."""
    counts = flip_counts(paired)
    return FlipRates._make(counts[name].value for name in RATES)


def pooled_flip_rate(paired: Paired) -> Ratio:
    """Return the share of all no answers of `from` that `to` reads as yes, labels together."""
    flipped = paired.pos_ny + paired.neg_ny
    return Ratio(flipped, flipped + paired.pos_nn + paired.neg_nn)


def agreement(paired: Paired) -> Ratio:
    """Return the share of paired rows on which both readouts say the same."""
    return Ratio(paired.pos_yy + paired.pos_nn + paired.neg_yy + paired.neg_nn, paired.n)


def rebuild(start: Base, rates: FlipRates) -> tuple[Fraction, Fraction] | None:
    """Return (TP', FP') of the readout gone to, from the base counts and the rates.

    None where a rate is missing that has answers here to act on (rates may come from another split).
    """
    acts_on = {
        "rho_n": start.G,
        "phi": start.P - start.T,
        "yes_to_no_pos": start.T,
        "yes_to_no_neg": start.N - start.G,
    }
    flips = dict.fromkeys(RATES, Fraction(0))
    for name, answers in acts_on.items():
        rate = getattr(rates, name)
        if rate is None and answers:
            return None
        if answers:
            flips[name] = rate * answers
    true_positives = start.T - flips["yes_to_no_pos"] + flips["phi"]
    false_positives = start.N - start.G - flips["yes_to_no_neg"] + flips["rho_n"]
    return true_positives, false_positives


def rebuilt_f1(start: Base, rates: FlipRates) -> Ratio | None:
    """Return F1 of the readout gone to, from base counts and rates.

    Where TP' and FP' are whole numbers the ratio is 2TP' / (TP' + FP' + P) as counted, else in lowest terms.
    None where a needed rate is missing; 0/0 where F1 is not defined.
    """
    rebuilt = rebuild(start, rates)
    if rebuilt is None:
        return None
    numerator, denominator = 2 * rebuilt[0], sum(rebuilt, Fraction(start.P))
    if numerator.denominator == 1 and denominator.denominator == 1:
        return Ratio(numerator.numerator, denominator.numerator)
    # A fraction among them means that the denominator is positive: it is at least the part that is not whole.
    return Ratio(*(numerator / denominator).as_integer_ratio())


def decompose(start: Base, rates: FlipRates) -> dict[str, Fraction] | None:
    """Split F1(from) - F1(to) into one part per rate; the parts sum to it exactly.

    Shapley's rule: a rate's part is the change of F1 when it is switched on, averaged over all 24 orders in
    which the four may be switched on one after the other. No order is preferred, and a rate that is zero has
    part zero. A positive part lowers F1. None where F1 is undefined under some subset of the rates.
    """
    values: dict[frozenset[str], Fraction] = {}
    for size in range(len(RATES) + 1):
        for active in combinations(RATES, size):
            f1 = rebuilt_f1(start, only(rates, active))
            if f1 is None or f1.value is None:
                return None
            values[frozenset(active)] = f1.value
    return {
        name: sum(
            (
                _orders(len(active)) * (values[active] - values[active | {name}])
                for active in values
                if name not in active
            ),
            Fraction(0),
        )
        for name in RATES
    }


def only(rates: FlipRates, active: tuple[str, ...]) -> FlipRates:
    """Return the rates with all but the named ones set to zero."""
    return NO_FLIPS._replace(**{name: getattr(rates, name) for name in active})


def _orders(before: int) -> Fraction:
    """Return the share of the orders of the rates in which a given set of `before` of them comes first."""
    return Fraction(factorial(before) * factorial(len(RATES) - before - 1), factorial(len(RATES)))


class Bounds(NamedTuple):
    """The smallest and the largest value that two marginal matrices leave open."""

    low: Ratio
    high: Ratio


def joint_bounds(before: Confusion, after: Confusion) -> dict[str, Bounds]:
    """Return the Fréchet bounds of the joint quantities that two separate matrices do not fix.

    Of P positives `from` calls T yes and `to` calls T' yes; how many of them are the same can be anything
    from max(0, T + T' - P) to min(T, T'), and both ends occur. Negatives alike, and independently. The
    bounds of agreement and of the pooled rate are reached too, since the labels are free of each other.

    Args:
        before: matrix of the readout gone from, parsed rows only.
        after: matrix of the readout gone to, on the same rows.

    Raises:
        ValueError: the matrices disagree on the number of positives or negatives.
    """
    # More shared yes answers mean fewer flips of each kind and more agreement.
    fewest, most = extreme_pairings(before, after)
    bounds = {name: Bounds(flip_counts(fewest)[name], flip_counts(most)[name]) for name in RATES}
    bounds["pooled_flip_rate"] = Bounds(pooled_flip_rate(fewest), pooled_flip_rate(most))
    bounds["agreement"] = Bounds(agreement(most), agreement(fewest))
    return bounds


def extreme_pairings(before: Confusion, after: Confusion) -> tuple[Paired, Paired]:
    """Return the paired counts with the fewest and with the most flips that two separate matrices allow.

    They are the same where the matrices leave nothing open: where one of them answers all questions of each
    label alike.

    Raises:
        ValueError: the matrices disagree on the number of positives or negatives.
    """
    start, end = base(before), base(after)
    if (start.P, start.N) != (end.P, end.N):
        raise ValueError(f"matrices of different questions: {before} and {after}")
    return _extreme(before, after, overlap=True), _extreme(before, after, overlap=False)


def _extreme(before: Confusion, after: Confusion, *, overlap: bool) -> Paired:
    """Return the paired counts in which the yes answers of two matrices overlap the most, or the least."""

    def cell(n: int, first: int, second: int) -> tuple[int, int, int, int]:
        both = min(first, second) if overlap else max(0, first + second - n)
        return both, first - both, second - both, n - first - second + both

    positives = cell(before.tp + before.fn, before.tp, after.tp)
    negatives = cell(before.fp + before.tn, before.fp, after.fp)
    return Paired(*positives, *negatives)
