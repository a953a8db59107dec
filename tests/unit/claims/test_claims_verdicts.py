from dataclasses import replace
from fractions import Fraction

import pyarrow.parquet as pq
import pytest
from claim_runs import adversarial, write_run
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.claims.evidence import CellKey, Evidence, Files
from readout_audit.claims.finding import Finding, Missing, NearTies, agrees, as_printed, overlaps
from readout_audit.claims.noise import metric_range, near_tie_limit
from readout_audit.claims.numbers import Number, read_numbers
from readout_audit.claims.statements import cohens_d, pooled_sd, together
from readout_audit.claims.table import build_claims, find, judge
from readout_audit.errors import AuditError
from readout_audit.exact import printed
from readout_audit.fileio import table_metadata
from readout_audit.scores.confusion import Confusion

NUMBER = Number("x", "Table 0", "a claim", "0.8221", 4, "paper", "m", "s", "r", "", "score", "f1", "")


def text(printed_text, decimals):
    return replace(NUMBER, printed=printed_text, decimals=decimals)


@pytest.mark.parametrize(
    ("value", "number", "holds"),
    [
        (Fraction(2348, 2856), NUMBER, True),
        (Fraction(82205, 100_000), NUMBER, True),  # 0.82205 rounds half up to 0.8221
        (Fraction(82215, 100_000), NUMBER, False),  # 0.82215 to 0.8222
        (Fraction(924, 1644), text("56%", 0), True),
        (Fraction(565, 1000), text("56%", 0), False),
        (Fraction(182, 1500), text("12.1%", 1), True),
        (Fraction(182, 43), text("4.2", 1), True),
        (Fraction(-46, 100), text("-0.46", 2), True),
        (Fraction("1.4523e-24"), text("1.45e-24", None), True),
        (Fraction("1.4553e-24"), text("1.45e-24", None), False),
        (Fraction("1.45e-23"), text("1.45e-24", None), False),
        (None, text("0.0000", 4), True),
        (None, NUMBER, False),
        ("5 of 6", text("5 of 6", None), True),
        ("4 of 6", text("5 of 6", None), False),
    ],
)
def test_agreement_is_half_up_rounding_of_exact_values(value, number, holds):
    assert agrees(value, number) is holds


@given(st.integers(0, 3000), st.integers(1, 3000), st.integers(0, 5))
def test_a_value_agrees_with_its_own_print(numerator, denominator, decimals):
    value = Fraction(numerator, denominator)
    assert agrees(value, text(printed(value, decimals), decimals))


@pytest.mark.parametrize(
    ("value", "number", "shown"),
    [
        (Fraction(1, 2), NUMBER, "0.5000"),
        (Fraction(924, 1644), text("56%", 0), "56%"),
        (Fraction("1.4523e-24"), text("1.45e-24", None), "1.45e-24"),
        (None, NUMBER, "undefined (0/0)"),
        ("a text", NUMBER, "a text"),
        (Fraction(1, 3), text("a third", None), "1/3"),
    ],
)
def test_values_are_shown_as_published(value, number, shown):
    assert as_printed(value, number) == shown


@pytest.mark.parametrize(
    ("low", "high", "does"),
    [
        ("0.82205", "0.9", True),
        ("0.822", "0.82205", True),  # the lower end prints 0.8221
        ("0.82215", "0.9", False),  # the upper end does not
        ("0.7", "0.82204", False),
    ],
)
def test_overlap_respects_the_open_end(low, high, does):
    assert overlaps(Fraction(low), Fraction(high), NUMBER) is does


OTHER = Fraction(8, 10)


@pytest.mark.parametrize(
    ("found", "conflict", "status"),
    [
        (Finding(Fraction(2348, 2856), "s"), None, "reproduced"),
        (Finding(OTHER, "s"), None, "differs"),
        (Finding(OTHER, "s", near_ties=NearTies(OTHER, Fraction(83, 100), 4)), None, "within_noise"),
        (Finding(OTHER, "s", near_ties=NearTies(OTHER, Fraction(81, 100), 4)), None, "differs"),
        (Finding(OTHER, "s", near_ties=NearTies(OTHER, OTHER, 0)), None, "differs"),
        (Finding(Fraction(2348, 2856), "s", derived=True), None, "derived"),
        (Finding(OTHER, "s", derived=True), None, "inconsistent_in_paper"),
        (Finding(OTHER, "s", derived=True, bounds=(OTHER, Fraction(9, 10))), None, "derived"),
        (Finding(OTHER, "s", derived=True, bounds=(OTHER, OTHER)), None, "inconsistent_in_paper"),
        (Finding(Fraction(2348, 2856), "s"), "No.", "inconsistent_in_paper"),
        (Missing("not_run", "because."), None, "not_run"),
        (Missing("not_identifiable", "because."), None, "not_identifiable"),
        (Missing("not_run", "because."), "No.", "inconsistent_in_paper"),
    ],
)
def test_status(found, conflict, status):
    assert judge(NUMBER, found, conflict).status == status


def test_range_is_shown_where_rounded_sources_leave_one():
    found = Finding(OTHER, "s", derived=True, bounds=(Fraction(8, 10), Fraction(9, 10)))
    assert judge(NUMBER, found, None).reproduced == "0.8000 to 0.9000"


def test_unknown_kind_is_refused():
    with pytest.raises(AuditError, match="kind 'magic' is not known"):
        find(replace(NUMBER, kind="magic"), Evidence(Files(), []))


def test_near_ties_give_the_corners_of_the_metric():
    matrix, near = Confusion(tp=10, fp=5, tn=15, fn=10), Confusion(tp=2, fp=1, tn=3, fn=4)
    found = metric_range(matrix, near, lambda m: m.f1)
    # lowest: tp 8, fp 8 -> 16/(16+8+12); highest: tp 14, fp 4 -> 28/(28+4+6)
    assert found == NearTies(Fraction(16, 36), Fraction(28, 38), 10)


@given(
    st.tuples(*[st.integers(0, 30)] * 4),
    st.data(),
)
def test_no_flip_of_near_ties_leaves_the_range(cells, data):
    tp, fp, tn, fn = cells
    near = Confusion(*(data.draw(st.integers(0, count)) for count in cells))
    found = metric_range(Confusion(tp, fp, tn, fn), near, lambda m: m.f1)
    lost, won = data.draw(st.integers(0, near.tp)), data.draw(st.integers(0, near.fn))
    fewer, more = data.draw(st.integers(0, near.fp)), data.draw(st.integers(0, near.tn))
    flipped = Confusion(tp - lost + won, fp - fewer + more, tn + fewer - more, fn + lost - won).f1
    if found is None or flipped is None:
        return
    assert found.low <= flipped <= found.high


@pytest.fixture(scope="module")
def numbers(root):
    return read_numbers(root / "resources/paper/numbers.csv")


def judged(folder, numbers, rows, **cell):
    files = write_run(folder, rows, **cell)
    return {claim.id: claim for claim in build_claims(Evidence(Files(**files), numbers))}


def test_our_run_with_the_papers_counts_reproduces(tmp_path, numbers):
    claims = judged(tmp_path, numbers, adversarial(1174, 182))
    assert claims["t13.adversarial.tp"].status == "reproduced"
    assert claims["t2.adversarial.legacy_8tok.f1"].status == "reproduced"
    assert claims["t1.adversarial.3869"].reproduced == "1356"
    assert claims["t13.adversarial.tp"].source == "inference: coco-2023-10/llava-1.5-7b/nf4/authors"
    # Both readouts decided alike here, which contradicts the paper's transitions.
    assert claims["t7.adversarial.yes.no_to_yes"].status == "differs"


def test_difference_that_near_ties_explain_is_noise_and_counted(tmp_path, numbers):
    claims = judged(tmp_path, numbers, adversarial(1176, 182, near=2))
    noisy = claims["t13.adversarial.tp"]
    assert (noisy.status, noisy.reproduced) == ("within_noise", "1176")
    assert noisy.note == "2 near-tied decisions allow 1174 to 1176."
    assert claims["t2.adversarial.legacy_8tok.f1"].status == "within_noise"


def test_near_ties_allow_shares_and_differences_too(tmp_path, numbers):
    # Both readouts decide alike: no eight-token no is read as yes, while the paper has 264 of 326 positives.
    # With 300 near-tied positives that share, its numerator and the gap become possible; the negatives do not.
    claims = judged(tmp_path, numbers, adversarial(1174, 182, near=300))
    assert claims["s3.4.phi.adversarial.numerator"].status == "within_noise"
    assert claims["s3.4.phi.adversarial"].note == "300 near-tied decisions allow 0.000 to 1.000."
    assert claims["s3.4.rho_n.adversarial"].status == "differs"
    gap = claims["t2.adversarial.gap"]
    assert (gap.status, gap.reproduced) == ("within_noise", "0.0000")
    assert "600 near-tied decisions" in gap.note


@pytest.mark.parametrize("near", [0, 1])
def test_difference_that_near_ties_do_not_explain_differs(tmp_path, numbers, near):
    claims = judged(tmp_path, numbers, adversarial(1176, 182, near=near))
    assert claims["t13.adversarial.tp"].status == "differs"


@pytest.mark.parametrize(
    ("compute_dtype", "status"),
    [("float16", "within_noise"), ("bfloat16", "within_noise"), ("float32", "differs"), (None, "differs")],
)
@pytest.mark.parametrize("precision", ["nf4", "fp32"])
def test_steps_are_those_of_the_recorded_arithmetic(tmp_path, numbers, compute_dtype, status, precision):
    """A margin of 0.0156 is one step of float16 near 24 and far from a tie in float32, whatever the weights are."""
    claims = judged(
        tmp_path, numbers, adversarial(1176, 182, near=2), precision=precision, compute_dtype=compute_dtype
    )
    assert claims["t13.adversarial.tp"].status == status


def test_spacing_between_16_and_32(tmp_path, numbers):
    """float16 has 11 significant bits: 2^(4-10); bfloat16 8: 2^(4-7); float32 24: 2^(4-23)."""
    found = []
    for number, name in enumerate(("float16", "bfloat16", "float32", None)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (file,) = write_run(folder, adversarial(1, 1), compute_dtype=name)["decisions"]
        found.append(near_tie_limit(table_metadata(pq.read_table(file))))
    assert found == [2 * 2**-6, 2 * 2**-3, 2 * 2**-19, None]


def test_papers_precision_is_preferred_among_cells(tmp_path, numbers):
    keys = [CellKey("coco-2023-10", "m", p, "authors", "inference") for p in ("bf16", "fp16", "nf4")]
    evidence = Evidence(Files(), numbers)
    evidence.__dict__["cells"] = keys
    assert evidence.cell(replace(NUMBER, model="m")).precision == "nf4"
    evidence.__dict__["cells"] = keys[:2]
    assert evidence.cell(replace(NUMBER, model="m")).precision == "bf16"
    assert evidence.cell(replace(NUMBER, model="m", template="paper")) is None


def test_effect_sizes_by_hand():
    # (2, 0, 1) and (2, 2, 1): pooled SD 1, d = -2; together 0, 0, 2, 2 shifted by the within-group spread:
    first, second = (2, 0.0, 1.0), (2, 2.0, 1.0)
    assert pooled_sd(first, second) == 1.0
    assert cohens_d(first, second) == -2.0
    # squares: 1 + 1 + (2*2/4)*4 = 6 over 3 degrees of freedom
    n, mean, sd = together(first, second)
    assert (n, mean) == (4, 1.0)
    assert sd == pytest.approx(2**0.5, abs=1e-12)
