"""Every row of the paper's tables that has enough printed values, and what the search finds by itself.

Origin: arXiv 2610.25964 (Tables 2, 7, 11, 13) and the authors' public repository ugaa-research at 08a10ab
(Tables 4 and 8: precision, recall, yes-rate). 1,500 positives and 1,500 negatives but for Table 11 (250 each).
"""

import pytest
from consistency_oracle import typed

from readout_audit.consistency.search import fitting_matrices

HALF = 1500


def cells(result):
    return [(matrix.tp, matrix.fp) for matrix in result.matrices]


# (f1, precision, recall, yes_rate), (tp, fp) from Table 7's transitions; the eight-token cells are Table 13's
TABLE_2 = [
    ("adversarial two-token", ("0.7608", "0.6307", "0.9587", "0.760"), (1174 + 264, 182 + 660)),
    ("adversarial eight-token", ("0.8221", "0.8658", "0.7827", "0.452"), (1174, 182)),
    ("popular two-token", ("0.7961", "0.6797", "0.9607", "0.707"), (1191 + 250, 112 + 567)),
    ("popular eight-token", ("0.8498", "0.9140", "0.7940", "0.434"), (1191, 112)),
    ("random two-token", ("0.8397", "0.7459", "0.9607", "0.644"), (1191 + 250, 43 + 448)),
    ("random eight-token", ("0.8713", "0.9652", "0.7940", "0.411"), (1191, 43)),
]

# F1 from Table 4 (paper); precision, recall, yes-rate from the repository
TABLE_4 = [
    ("llava-1.6 adversarial dynamic", ("0.8521", "0.8179", "0.8893", "0.5437"), (1334, 297)),
    ("llava-1.6 popular dynamic", ("0.8953", "0.9041", "0.8867", "0.4903"), (1330, 141)),
    ("llava-1.6 random dynamic", ("0.9163", "0.9480", "0.8867", "0.4677"), (1330, 73)),
    ("instructblip adversarial two-token", ("0.7074", "0.5512", "0.9873", "0.8957"), (1481, 1206)),
    ("instructblip popular two-token", ("0.7277", "0.5775", "0.9833", "0.8513"), (1475, 1079)),
    ("instructblip random two-token", ("0.7613", "0.6211", "0.9833", "0.7917"), (1475, 900)),
    ("instructblip adversarial dynamic", ("0.8183", "0.7878", "0.8513", "0.5403"), (1277, 344)),
    ("instructblip popular dynamic", ("0.8553", "0.8655", "0.8453", "0.4883"), (1268, 197)),
    ("instructblip random dynamic", ("0.8815", "0.9208", "0.8453", "0.4590"), (1268, 109)),
    ("mplug-owl2 adversarial two-token", ("0.7754", "0.6564", "0.9473", "0.7217"), (1421, 744)),
    ("mplug-owl2 popular two-token", ("0.8060", "0.7014", "0.9473", "0.6753"), (1421, 605)),
    ("mplug-owl2 random two-token", ("0.8466", "0.7652", "0.9473", "0.6190"), (1421, 436)),
    ("mplug-owl2 adversarial eight-token", ("0.8001", "0.7232", "0.8953", "0.6190"), (1343, 514)),
    ("mplug-owl2 popular eight-token", ("0.8312", "0.7751", "0.8960", "0.5780"), (1344, 390)),
    ("mplug-owl2 random eight-token", ("0.8707", "0.8469", "0.8960", "0.5290"), (1344, 243)),
    ("qwen2-vl adversarial two-token", ("0.6674", "0.5020", "0.9953", "0.9913"), (1493, 1481)),
    ("qwen2-vl popular two-token", ("0.6671", "0.5005", "1.0000", "0.9990"), (1500, 1497)),
    ("qwen2-vl random two-token", ("0.6667", "0.5000", "1.0000", "1.0000"), (1500, 1500)),
    ("qwen2-vl adversarial dynamic", ("0.8457", "0.9160", "0.7853", "0.4287"), (1178, 108)),
    ("qwen2-vl popular dynamic", ("0.8578", "0.9619", "0.7740", "0.4023"), (1161, 46)),
    ("qwen2-vl random dynamic", ("0.8671", "0.9856", "0.7740", "0.3927"), (1161, 17)),
    ("every question yes", ("0.6667", "0.5000", "1.0000", "1.0000"), (1500, 1500)),
    ("llava-1.6 eight-token: no question yes", ("0.0000", "0.0000", "0.0000", "0.0000"), (0, 0)),
    ("qwen2-vl adversarial eight-token: one yes", ("0.0000", "0.0000", "0.0000", "0.0003"), (0, 1)),
]


@pytest.mark.parametrize(("name", "row", "expected"), TABLE_2 + TABLE_4)
def test_tables_2_4_7_and_13_fix_one_matrix_per_row(name, row, expected):
    values = typed(**dict(zip(("f1", "precision", "recall", "yes_rate"), row, strict=True)))
    assert cells(fitting_matrices(HALF, HALF, values)) == [expected]


def test_f1_alone_does_not_fix_a_matrix():
    # LLaVA-1.6 adversarial of Table 4; its precision, recall and yes-rate leave one matrix (above).
    result = fitting_matrices(HALF, HALF, typed(f1="0.8521"), limit=10_000)
    assert result.count == len(result.matrices) > 100
    assert (1334, 297) in cells(result)


# (f1, precision, recall, yes_rate) on the first 500 adversarial questions, (tp, fp)
TABLE_11 = [
    ("paper template, two-token", ("0.6667", "0.5000", "1.0000", "1.000"), (250, 250)),
    ("paper template, dynamic", ("0.8719", "0.8352", "0.9120", "0.546"), (228, 45)),
    ("native chat, two-token", ("0.6925", "0.5297", "1.0000", "0.944"), (250, 222)),
    ("native chat, dynamic", ("0.8621", "0.9517", "0.7880", "0.414"), (197, 10)),
    ("eight-token", ("0.0000", "0.0000", "0.0000", "0.000"), (0, 0)),
]


@pytest.mark.parametrize(("name", "row", "expected"), TABLE_11)
def test_table_11_fixes_one_matrix_per_row(name, row, expected):
    values = typed(**dict(zip(("f1", "precision", "recall", "yes_rate"), row, strict=True)))
    assert cells(fitting_matrices(250, 250, values)) == [expected]


# (f1, precision, recall) of Table 8, (tp, fp) or None where no matrix exists
TABLE_8 = [
    ("baseline", ("0.8221", "0.8658", "0.7827"), (1174, 182)),
    ("clip_b32_certainty_beta_1.0", ("0.8171", "0.9072", "0.7433"), (1115, 114)),
    ("clip_b32_certainty_beta_1.5", ("0.8104", "0.9278", "0.7193"), (1079, 84)),
    ("entropy", ("0.8164", "0.9023", "0.7453"), (1118, 121)),
    ("clip_l14_336_certainty", ("0.8159", "0.9031", "0.7453"), None),
    ("magnitude", ("0.8148", "0.8981", "0.7467"), None),
    ("cls_similarity", ("0.8153", "0.8963", "0.7460"), None),
    ("object_noun_clip", ("0.8166", "0.9017", "0.7453"), None),
    ("uniform", ("0.8110", "0.9221", "0.7247"), None),
    ("vcd_noise", ("0.8169", "0.9009", "0.7440"), None),
]


@pytest.mark.parametrize("rounding", ["half_up", "half_even", "either"])
@pytest.mark.parametrize(("name", "row", "expected"), TABLE_8)
def test_table_8_has_four_rows_with_a_matrix_and_six_without(name, row, expected, rounding):
    values = typed(**dict(zip(("f1", "precision", "recall"), row, strict=True)))
    result = fitting_matrices(HALF, HALF, values, rounding=rounding)
    assert cells(result) == ([] if expected is None else [expected])


@pytest.mark.parametrize("name", ["magnitude", "cls_similarity", "object_noun_clip", "uniform", "vcd_noise"])
def test_of_five_rows_precision_and_recall_alone_cannot_hold_together(name):
    _, precision, recall = next(row for row_name, row, _ in TABLE_8 if row_name == name)
    result = fitting_matrices(HALF, HALF, typed(precision=precision, recall=recall))
    assert result.conflicts == (("precision", "recall"),)
    assert result.blame == f"precision {precision} and recall {recall} have no common matrix"


def test_clip_l_has_a_matrix_for_precision_and_recall_with_another_f1():
    alone = fitting_matrices(HALF, HALF, typed(precision="0.9031", recall="0.7453"))
    assert cells(alone) == [(1118, 120)]
    with_its_f1 = fitting_matrices(HALF, HALF, typed(precision="0.9031", recall="0.7453", f1="0.8167"))
    assert cells(with_its_f1) == [(1118, 120)]  # 2236/2738 = 0.81665...
    printed = fitting_matrices(HALF, HALF, typed(precision="0.9031", recall="0.7453", f1="0.8159"))
    assert ("precision", "recall") not in printed.conflicts
    assert printed.conflicts == (("precision", "f1"), ("recall", "f1"))
