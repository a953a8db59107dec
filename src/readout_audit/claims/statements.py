"""Numbers that follow from other published numbers: ranges, spreads, counts of methods, effect sizes.

They are `derived`: nothing is measured, the paper is held against itself. What does not follow is
`inconsistent_in_paper`.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product
from math import sqrt

from readout_audit.claims.evidence import ALL, Evidence
from readout_audit.claims.finding import Finding, Missing, printed_interval
from readout_audit.claims.measured import cell_of
from readout_audit.claims.numbers import Number

PAPER = "the paper's own numbers"
Ends = tuple[Fraction, Fraction]


def statement(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return what the other published numbers say about a statement."""
    return STATEMENTS[number.quantity](evidence)


def description(number: Number, evidence: Evidence) -> Finding | Missing:
    """Say that a description of methods is no number; its group may still contradict itself."""
    return Missing("not_run", "a description of methods; there is nothing to compute.")


QUESTIONS = 3000
"""Of a split."""

IMAGE_POSITIONS = 576
"""Positions that LLaVA-1.5's image takes."""


def probe(number: Number, evidence: Evidence) -> Finding | Missing:
    """Say that the run has no probe; of a mean attention also what its size tells.

    One row of attention sums to at most 1, so a mean over 576 positions is at most 1/576: a printed mean above that
    is of sums over the positions.
    """
    note = "this run has no probe records (attention, similarity and logits by question)."
    if number.quantity.startswith("attention.") and number.quantity.endswith(".mean"):
        total = IMAGE_POSITIONS * Fraction(number.printed)
        if total > 1:
            note += (
                f" As a mean over {IMAGE_POSITIONS} positions it would sum to {float(total):.1f}, and attention sums to "
                "at most 1: it is a sum over the positions."
            )
    return Missing("not_run", note)


def survey(number: Number, evidence: Evidence) -> Finding | Missing:
    """Say that another paper's own number is not measured here."""
    return Missing("not_run", "as that paper reports it; nothing here runs its method.")


def survey_gain(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return result minus baseline of one surveyed paper."""
    result, baseline = (_value(evidence, f"{number.group}.{part}") for part in ("result", "baseline"))
    return Finding(result - baseline, PAPER, derived=True)


def fact(number: Number, evidence: Evidence) -> Finding | Missing:
    """Say why a fact about hardware, reading or a second run is not checked."""
    return Missing("not_run", _FACTS[number.quantity])


_FACTS = {
    "hardware": "time on the authors' machines; a run here states its own in its manifests.",
    "reading": "found by reading six papers; no computation shows it.",
    "second_run": "a second run by the authors; no record of it is published.",
}


def expression(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return a false-positive rate, or the ratio of two of them, from a run's counts."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    rates = {}
    for split in ("adversarial", "random"):
        matrix = evidence.scores.get((cell, split, ALL, number.readout))
        if matrix is None or not matrix.fp + matrix.tn:
            return Missing("not_run", f"this run has no {number.readout} counts of the {split} split.")
        rates[split] = Fraction(matrix.fp, matrix.fp + matrix.tn)
    if number.split:
        return Finding(rates[number.split], cell.text)
    if not rates["random"]:
        return Finding(None, cell.text)
    return Finding(rates["adversarial"] / rates["random"], cell.text)


def _value(evidence: Evidence, identity: str) -> Fraction:
    """Return a published number as printed."""
    return Fraction(evidence.by_id[identity].printed)


def _ends(evidence: Evidence, identity: str) -> Ends:
    """Return the smallest and largest value that print as a published number."""
    interval = printed_interval(evidence.by_id[identity])
    assert interval is not None
    return interval.lo, interval.hi


def _derived(value: Fraction | str, note: str = "", bounds: Ends | None = None) -> Finding:
    """Return a finding that follows from published numbers."""
    return Finding(value, PAPER, note, derived=True, bounds=bounds)


# Readouts (Table 4)


def _qwen_yes_answers(evidence: Evidence) -> Finding:
    """Count the yes answers that the printed yes-rate of Qwen2-VL's eight-token readout stands for."""
    low, high = _ends(evidence, "t4.qwen2-vl-7b-instruct.adversarial.legacy_8tok.yes_rate")
    counts = [n for n in range(QUESTIONS + 1) if low <= Fraction(n, QUESTIONS) <= high]
    note = (
        f"The printed yes-rate of 0.0003 is that of {' or '.join(map(str, counts))} in {QUESTIONS:,} answers."
    )
    return _derived(Fraction(counts[0]), note)


# Corrections (Table 8)


def _table_8(evidence: Evidence, metric: str) -> dict[str, Fraction]:
    """Return a metric by row of Table 8, the baseline left out."""
    rows = (number for number in evidence.numbers if number.kind == "correction")
    named = (number for number in rows if number.quantity.endswith(f":{metric}"))
    return {number.quantity.partition(":")[0]: Fraction(number.printed) for number in named}


def _beating(evidence: Evidence) -> Finding:
    """Count the corrections whose printed F1 is above the baseline's."""
    baseline = _value(evidence, "t8.baseline.f1")
    return _derived(Fraction(sum(f1 > baseline for f1 in _table_8(evidence, "f1").values())))


def _closest(evidence: Evidence) -> Finding:
    """Name the correction with the largest printed F1."""
    scores = _table_8(evidence, "f1")
    return _derived(max(scores, key=lambda name: scores[name]))


def _corrections_with_a_row(evidence: Evidence) -> Finding:
    """Count the corrections that have a row in Table 8, each once however many strengths it stands there with."""
    rows = _table_8(evidence, "f1")
    distinct = {name.partition("_beta_")[0] for name in rows}
    note = (
        f"Table 8 has {len(rows)} rows of {len(distinct)} corrections: CLIP-B/32 certainty stands there with two strengths, "
        "and the generation midpoint, which the appendix lists, has no row."
    )
    return _derived(Fraction(len(distinct)), note)


def _closest_gap(evidence: Evidence) -> Finding:
    """Return the distance of the largest printed F1 from the baseline's."""
    return _derived(_value(evidence, "t8.baseline.f1") - max(_table_8(evidence, "f1").values()))


def _points(
    metric: str, sign: int, pick: Callable[[Iterable[Fraction]], Fraction]
) -> Callable[[Evidence], Finding]:
    """Return the smallest or largest change of a metric over Table 8, in points."""

    def change(evidence: Evidence) -> Finding:
        baseline = _value(evidence, f"t8.baseline.{metric}")
        changes = [100 * sign * (value - baseline) for value in _table_8(evidence, metric).values()]
        ends = " to ".join(f"{float(end):.2f}" for end in (min(changes), max(changes)))
        return _derived(pick(changes), f"over the {len(changes)} rows of Table 8 as printed: {ends} points.")

    return change


# Survey (Tables 3 and 12)


def _surveyed(evidence: Evidence, part: str) -> list[Fraction]:
    """Return baseline, result or gain of the six papers on the adversarial split."""
    kinds = ("survey", "survey_gain")
    rows = (
        n for n in evidence.numbers if n.kind in kinds and n.quantity == part and n.split == "adversarial"
    )
    return [Fraction(number.printed) for number in rows]


def _gains_below(evidence: Evidence) -> Finding:
    """Count the gains that are smaller than the adversarial gap."""
    gains, gap = _surveyed(evidence, "gain"), 100 * _value(evidence, "t2.adversarial.gap")
    return _derived(f"{sum(gain < gap for gain in gains)} of {len(gains)}")


_ABSTRACT = ("chen", "seo", "tang")
"""The papers whose baselines the abstract names: 81.00, 79.30, 73.54."""


def _abstract_baselines(evidence: Evidence) -> list[Fraction]:
    """Return the three baselines of the abstract."""
    return [_value(evidence, f"t12.{paper}.adversarial.baseline") for paper in _ABSTRACT]


def _ours(pick: Callable[[Iterable[Fraction]], Fraction]) -> Callable[[Evidence], Finding]:
    """Return the smallest or largest distance of the eight-token F1 above the abstract's baselines."""

    def above(evidence: Evidence) -> Finding:
        ours = 100 * _value(evidence, "t2.adversarial.legacy_8tok.f1")
        every = [ours - baseline for baseline in _surveyed(evidence, "baseline")]
        note = (
            f"over the three baselines of the abstract; over all {len(every)} surveyed papers the range is "
            f"{float(min(every)):.2f} to {float(max(every)):.2f}."
        )
        return _derived(pick(ours - baseline for baseline in _abstract_baselines(evidence)), note)

    return above


def _of_survey(part: str, pick: Callable[[list[Fraction]], Fraction]) -> Callable[[Evidence], Finding]:
    """Return one number picked from the six papers."""
    return lambda evidence: _derived(pick(_surveyed(evidence, part)))


def _spread(values: Iterable[Fraction]) -> Fraction:
    """Return largest minus smallest."""
    ordered = sorted(values)
    return ordered[-1] - ordered[0]


# Readouts (Table 4)


def _dynamic(pick: Callable[[Iterable[Fraction]], Fraction]) -> Callable[[Evidence], Finding]:
    """Return the smallest or largest F1 of the dynamic readout in Table 4."""

    def picked(evidence: Evidence) -> Finding:
        rows = (n for n in evidence.numbers if n.id.startswith("t4.") and n.readout == "dynamic_single")
        return _derived(pick(Fraction(number.printed) for number in rows if number.quantity == "f1"))

    return picked


def _second_run(evidence: Evidence) -> Finding:
    """Return the largest F1 difference between both runs of InstructBLIP, as printed."""
    first, second = "t4.instructblip-vicuna-7b.adversarial.{}.f1", "secondary.instructblip.{}"
    return _derived(
        max(
            abs(_value(evidence, second.format(readout)) - _value(evidence, first.format(readout)))
            for readout in ("legacy_2tok", "dynamic_single")
        )
    )


# Probe (Appendix F.3)


def _probe(name: str) -> str:
    """Return the id of a cell of the probe run's matrix."""
    return f"probe.confusion.{name}"


def _sum_of(*names: str) -> Callable[[Evidence], Finding]:
    """Return the sum of cells of the probe run's matrix."""
    return lambda evidence: _derived(sum((_value(evidence, _probe(name)) for name in names), Fraction(0)))


def _tests(evidence: Evidence) -> Finding:
    """Count the p values printed for the probe."""
    ps = sum(number.id.startswith("probe.") and number.id.endswith(".p") for number in evidence.numbers)
    return _derived(Fraction(ps), f"{ps} p values are printed.")


def _abstract_p(evidence: Evidence) -> Finding:
    """Return the p of the attention test as the appendix prints it."""
    low, high = _ends(evidence, "probe.attention.p")
    return _derived((low + high) / 2, "as Appendix F.3 prints it, with one digit more.", (low, high))


def _seconds(evidence: Evidence) -> Finding:
    """Return minutes over 9,000 questions, in seconds per question."""
    low, high = (60 * end / 9000 for end in _ends(evidence, "setup.wall_minutes"))
    return _derived((low + high) / 2, "from the printed minutes.", (low, high))


def _group(evidence: Evidence, what: str, name: str) -> tuple[float, list[Ends]]:
    """Return n of a group and the ends of its mean and SD."""
    prefix = f"probe.{what}.{name}"
    return float(_value(evidence, f"{prefix}.n")), [
        _ends(evidence, f"{prefix}.{part}") for part in ("mean", "sd")
    ]


Moments = tuple[float, float, float]
"""Size, mean and sample SD of a group."""


def pooled_sd(first: Moments, second: Moments) -> float:
    """Return the pooled SD of two groups: each variance weighted by its degrees of freedom."""
    (n1, _, s1), (n2, _, s2) = first, second
    return sqrt(((n1 - 1) * s1**2 + (n2 - 1) * s2**2) / (n1 + n2 - 2))


def cohens_d(first: Moments, second: Moments) -> float:
    """Return Cohen's d of two groups with the pooled SD."""
    return (first[1] - second[1]) / pooled_sd(first, second)


def together(first: Moments, second: Moments) -> Moments:
    """Return size, mean and sample SD of two groups put together."""
    (n1, m1, s1), (n2, m2, s2) = first, second
    n = n1 + n2
    squares = (n1 - 1) * s1**2 + (n2 - 1) * s2**2 + n1 * n2 / n * (m1 - m2) ** 2
    return n, (n1 * m1 + n2 * m2) / n, sqrt(squares / (n - 1))


def _effect(what: str, names: tuple[str, ...], effect: Callable[..., float]) -> Callable[[Evidence], Finding]:
    """Return an effect of printed groups, with the range that the rounding of their moments leaves.

    The effects are monotone in every moment over ranges this small, so the ends lie at the corners.
    """

    def of_groups(evidence: Evidence) -> Finding:
        groups = [_group(evidence, what, name) for name in names]
        corners = product(*[product(*ends) for _, ends in groups])
        values = [
            effect(*((n, float(mean), float(sd)) for (n, _), (mean, sd) in zip(groups, corner, strict=True)))
            for corner in corners
        ]
        low, high = Fraction(min(values)), Fraction(max(values))
        return _derived((low + high) / 2, "from the printed means and SDs.", (low, high))

    return of_groups


def _correct_vs_wrong(effect: Callable[[Moments, Moments], float]) -> Callable[..., float]:
    """Return an effect of correct (tp, tn) against wrong (fp, fn) answers."""
    return lambda tp, tn, fp, fn: effect(together(tp, tn), together(fp, fn))


_FOUR = ("tp", "tn", "fp", "fn")

STATEMENTS: dict[str, Callable[[Evidence], Finding]] = {
    "all_yes_f1": lambda _: _derived(
        Fraction(2 * 1500, 2 * 1500 + 1500), "1,500 positives and 1,500 negatives."
    ),
    "all_no_f1": lambda _: _derived(Fraction(0, 1500), "1,500 positives and 1,500 negatives."),
    "dynamic_min": _dynamic(min),
    "dynamic_max": _dynamic(max),
    "secondary_instructblip": _second_run,
    "qwen_yes_answers": _qwen_yes_answers,
    "t8_corrections": _corrections_with_a_row,
    "t8_beating": _beating,
    "t8_closest": _closest,
    "t8_closest_gap": _closest_gap,
    "t8_precision_gain_min": _points("precision", 1, min),
    "t8_precision_gain_max": _points("precision", 1, max),
    "t8_recall_cost_min": _points("recall", -1, min),
    "t8_recall_cost_max": _points("recall", -1, max),
    "survey_gain_min": _of_survey("gain", min),
    "survey_gain_max": _of_survey("gain", max),
    "survey_gains_below": _gains_below,
    "survey_baseline_min": _of_survey("baseline", min),
    "survey_baseline_max": _of_survey("baseline", max),
    "survey_spread": _of_survey("baseline", _spread),
    "survey_spread_three": lambda evidence: _derived(_spread(_abstract_baselines(evidence))),
    "survey_ours_min": _ours(min),
    "survey_ours_max": _ours(max),
    "probe_correct": _sum_of("tp", "tn"),
    "probe_wrong": _sum_of("fp", "fn"),
    **{f"probe_n_{name}": _sum_of(name) for name in _FOUR},
    "probe_agree": lambda evidence: _derived(3000 - _value(evidence, "probe.differs.count")),
    "probe_clip_gap": lambda evidence: _derived(
        _value(evidence, "probe.clip.tp.mean") - _value(evidence, "probe.clip.fp.mean")
    ),
    "tests_counted": _tests,
    "attention_p_abstract": _abstract_p,
    "attention_pooled_sd": _effect("attention", ("correct", "wrong"), pooled_sd),
    "attention_d": _effect("attention", ("correct", "wrong"), cohens_d),
    "logit_pooled_sd": _effect("logit_gap", _FOUR, _correct_vs_wrong(pooled_sd)),
    "logit_d_correct_vs_wrong": _effect("logit_gap", _FOUR, _correct_vs_wrong(cohens_d)),
    "logit_d_tp_vs_fn": _effect("logit_gap", ("tp", "fn"), cohens_d),
    "logit_d_tn_vs_fp": _effect("logit_gap", ("tn", "fp"), cohens_d),
    "seconds_per_question": _seconds,
}
"""Quantity of a statement -> what the other published numbers say about it."""
