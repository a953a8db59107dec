"""Tables 2, 7 and 13 against the cells the paper prints, and where there is nothing to print."""

import dataclasses

import pytest

from readout_audit.errors import AuditError
from readout_audit.stages import make_tables
from readout_audit.tables import registry
from readout_audit.tables.inputs import SOURCES, CellKey, Sources

from .paper_run import (
    EIGHT,
    LLAVA,
    OPTIONS,
    SPLITS,
    TRANSITIONS,
    TWO,
    paper_scores,
    paper_transitions,
    run_of,
    score_row,
    transition_rows,
    write_gap,
    write_scores,
    write_transitions,
)

OTHER = CellKey("demo-pope", "tiny & co|<b>_%\nx", "fp32", "authors", "inference")


def cells(table, *, by):
    """Index a table's printed rows by the columns named in `by`, each a dictionary of the others."""
    names = [column.heading for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.texts()]
    return {tuple(row[name] for name in by): row for row in rows}


# The paper's Table 2: two-token P, R, F1, yes-rate, then eight-token, then the gap. The random gap is printed
# 0.0316 there, a difference of rounded values; 2382/2734 - 2882/3432 = 0.03153... prints 0.0315.
TABLE_2 = {
    "adversarial": "0.6307 0.9587 0.7608 0.760 0.8658 0.7827 0.8221 0.452 0.0613",
    "popular": "0.6797 0.9607 0.7961 0.707 0.9140 0.7940 0.8498 0.434 0.0537",
    "random": "0.7459 0.9607 0.8397 0.644 0.9652 0.7940 0.8713 0.411 0.0315",
}


def test_table_2_prints_the_papers_cells(tmp_path):
    table = registry.get("table_02_protocols")(run_of(scores=write_scores(tmp_path, paper_scores())))
    assert [row[6] for row in table.texts()] == list(SPLITS)
    for split, row in cells(table, by=["split"]).items():
        assert " ".join(list(row.values())[8:]) == TABLE_2[split[0]]
        assert row["n"] == "3000"
    assert table.n == "3,000 questions per split"


def test_table_2_says_why_a_number_is_missing(tmp_path):
    rows = [
        score_row(LLAVA, "pope", "adversarial", TWO, tp=0, fp=0, tn=2, fn=2),
        score_row(LLAVA, "pope", "adversarial", EIGHT, tp=None),
    ]
    table = registry.get("table_02_protocols")(run_of(scores=write_scores(tmp_path, rows)))
    ((_, row),) = cells(table, by=["split"]).items()
    assert (row[f"{TWO}: P"], row[f"{TWO}: R"], row[f"{TWO}: F1"]) == ("undefined", "0.0000", "0.0000")
    assert row[f"{EIGHT}: F1"] == row["gap"] == "not_available"
    assert sum(note.startswith(("undefined:", "not_available:")) for note in table.all_notes()) == 2


def test_table_2_counts_unparsed_and_invalid_in_its_notes(tmp_path):
    rows = [
        score_row(
            LLAVA, "pope", "adversarial", readout, tp=1, fp=0, tn=1, fn=0, unparsed_pos=1, invalid_neg=1
        )
        for readout in (TWO, EIGHT)
    ]
    table = registry.get("table_02_protocols")(run_of(scores=write_scores(tmp_path, rows)))
    row = cells(table, by=["split"])[("adversarial",)]
    # One of two positives found, the other unparsed: recall 1/2, F1 2/(2+1); 1 of 3 valid answers is yes.
    assert (row[f"{TWO}: R"], row[f"{TWO}: F1"], row[f"{TWO}: yes-rate"], row["n"]) == (
        "0.5000",
        "0.6667",
        "0.333",
        "4",
    )
    assert any("unparsed" in note for note in table.notes)
    assert any("invalid" in note for note in table.notes)


def test_blocks_follow_the_files_and_splits_the_options(tmp_path):
    rows = paper_scores(OTHER, ["random", "adversarial"]) + paper_scores()
    rows += [score_row(OTHER, "pope", "macro", TWO, tp=None), score_row(OTHER, "repope", "random", TWO, tp=1)]
    options = dataclasses.replace(OPTIONS, labels=("pope", "repope"), splits=("random", "adversarial"))
    table = registry.get("table_02_protocols")(run_of(options, scores=write_scores(tmp_path, rows)))
    assert [(row[1][:4], row[5], row[6]) for row in table.texts()] == [
        ("tiny", "pope", "random"),
        ("tiny", "pope", "adversarial"),
        ("tiny", "repope", "random"),
        ("llav", "pope", "random"),
        ("llav", "pope", "adversarial"),
    ]


def test_table_7_prints_the_papers_cells_and_rates(tmp_path):
    table = registry.get("table_07_transitions")(
        run_of(transitions=(paper_transitions(tmp_path),), scores=write_scores(tmp_path, paper_scores()))
    )
    found = cells(table, by=["split", "label"])
    for split, by_label in TRANSITIONS.items():
        for label, counts in by_label.items():
            row = found[split, label]
            shown = [row[move] for move in ("yes→yes", "yes→no", "no→yes", "no→no")]
            assert shown == [str(count) for count in counts]
            assert (row["n"], row["left out"]) == ("1500", "0")
    rates = {
        label: [found[split, label]["no→yes rate"] for split in SPLITS] for label in ("no", "yes", "both")
    }
    assert rates == {
        "no": ["0.501", "0.409", "0.307"],  # ρ_N: 660/1318, 567/1388, 448/1457
        "yes": ["0.810", "0.809", "0.809"],  # φ: 264/326, 250/309, 250/309
        "both": ["0.562", "0.481", "0.395"],  # pooled: 924/1644, 817/1697, 698/1766
    }
    assert [found[split, "both"]["agreement"] for split in SPLITS] == ["0.692", "0.728", "0.767"]
    assert {row["yes→no rate"] for row in found.values()} == {"0.000"}


def test_table_7_counts_what_is_neither_yes_nor_no(tmp_path):
    rows = transition_rows(LLAVA, "random", {"yes": (0, 0, 0, 0), "no": (1, 2, 3, 4)})
    scores = [score_row(LLAVA, "pope", "random", EIGHT, tp=0, fp=3, tn=7, fn=0, unparsed_neg=15)]
    run = run_of(transitions=(write_transitions(tmp_path, rows),), scores=write_scores(tmp_path, scores))
    found = cells(registry.get("table_07_transitions")(run), by=["label"])
    no = found[("no",)]
    assert (no["left out"], no["n"]) == ("15", "25")
    # 3 of the 7 no answers become yes, 2 of the 3 yes answers no; 1 + 4 of the 10 pairs are alike.
    assert (no["no→yes rate"], no["yes→no rate"], no["agreement"]) == ("0.429", "0.667", "0.500")
    assert found[("yes",)]["no→yes rate"] == found[("yes",)]["agreement"] == "undefined"


def test_table_7_reads_only_the_pair_asked_for(tmp_path):
    rows = transition_rows(LLAVA, "random", TRANSITIONS["random"])
    rows += [row | {"readout_to": "string_parse", "n": 7} for row in rows]
    run = run_of(
        transitions=(write_transitions(tmp_path, rows),), scores=write_scores(tmp_path, paper_scores())
    )
    found = cells(registry.get("table_07_transitions")(run), by=["label"])
    assert [row["no→yes"] for row in found.values()] == ["250", "448", "698"]


def test_unpaired_counts_stand_between_their_extremes(tmp_path):
    # Label yes: 3 and 3 yes of 4, so 2 or 3 shared; label no: 1 and 2 yes of 4, so 0 or 1 shared.
    scores = [
        score_row(LLAVA, "pope", "random", EIGHT, tp=3, fp=1, tn=3, fn=1),
        score_row(LLAVA, "pope", "random", TWO, tp=3, fp=2, tn=2, fn=1),
    ]
    run = run_of(scores=write_scores(tmp_path, scores))
    found = cells(registry.get("table_07_transitions")(run), by=["label"])
    yes, no, both = (found[label,] for label in ("yes", "no", "both"))
    assert (yes["yes→yes"], yes["no→yes"]) == (
        "2 to 3 (not_identifiable)",
        "0 to 1 (not_identifiable)",
    )
    assert (no["no→yes"], no["left out"], no["n"]) == ("1 to 2 (not_identifiable)", "0", "4")
    assert no["no→yes rate"] == "0.333 to 0.667 (not_identifiable)"
    # Sharing the most, all 4 positives and 3 negatives are alike (3 + 1, 1 + 2); the least, 2 and 1 (2 + 0, 0 + 1).
    assert both["agreement"] == "0.375 to 0.875 (not_identifiable)"
    symbols = cells(registry.get("table_06_notation")(run), by=["symbol"])
    values = {symbol: row["random"] for (symbol,), row in symbols.items()}
    assert (values["P"], values["T"], values["G"], values["FP₂"], values["TN₂"]) == ("4", "3", "3", "2", "2")
    assert values["φ"] == "0.000 to 1.000 (not_identifiable)"
    assert values["yes→no"] == "0 to 2 (not_identifiable)"


def test_unpaired_counts_with_answers_that_are_neither_have_no_bounds(tmp_path):
    scores = [
        score_row(LLAVA, "pope", "random", EIGHT, tp=1, fp=1, tn=1, fn=0, unparsed_pos=1),
        score_row(LLAVA, "pope", "random", TWO, tp=2, fp=1, tn=1, fn=0),
    ]
    run = run_of(scores=write_scores(tmp_path, scores))
    found = cells(registry.get("table_07_transitions")(run), by=["label"])
    assert {row["no→yes"] for row in found.values()} == {"not_identifiable"}
    assert [row["n"] for row in found.values()] == ["2", "2", "4"]
    notation = registry.get("table_06_notation")(run)
    assert {row["random"] for row in cells(notation, by=["symbol"]).values()} == {"not_identifiable"}


def test_an_interval_says_how_many_resamples_it_leaves_out(tmp_path):
    about = LLAVA._asdict() | {"labels": "pope", "split": "random", "readout_from": EIGHT, "readout_to": TWO}
    gap = [
        *(
            about | {"quantity": f"rho_n_ci_{end}", "value": value}
            for end, value in (("low", 0.25), ("high", 1))
        ),
        about | {"quantity": "rho_n_ci_undefined", "numerator": 37, "denominator": 1000},
        *(about | {"quantity": f"phi_ci_{end}"} for end in ("low", "high")),
        about | {"quantity": "phi_ci_undefined", "numerator": 1000, "denominator": 1000},
    ]
    run = run_of(
        transitions=(paper_transitions(tmp_path),),
        scores=write_scores(tmp_path, paper_scores()),
        gap=(write_gap(tmp_path, gap),),
    )
    table = registry.get("table_07_transitions")(run)
    found = cells(table, by=["split", "label"])
    assert found["random", "no"]["95% interval"] == "0.250 to 1.000 (undefined in 37 of 1,000 resamples)"
    assert found["random", "yes"]["95% interval"] == "undefined in all 1,000 resamples"
    assert found["random", "yes"]["no→yes rate"] == "0.809"
    assert any(note.startswith("undefined:") for note in table.all_notes())


def test_intervals_stand_beside_what_they_are_of(tmp_path):
    about = LLAVA._asdict() | {"labels": "pope", "split": "random", "readout_from": EIGHT, "readout_to": TWO}
    gap = [
        about | {"quantity": f"{name}_ci_{end}", "value": value}
        for name in ("delta_f1", "rho_n")
        for end, value in (("low", 0.015625), ("high", 0.5))
    ]
    run = run_of(
        transitions=(paper_transitions(tmp_path),),
        scores=write_scores(tmp_path, paper_scores()),
        gap=(write_gap(tmp_path, gap),),
    )
    protocols = cells(registry.get("table_02_protocols")(run), by=["split"])
    assert protocols[("random",)]["95% interval"] == "0.0156 to 0.5000"
    assert protocols[("popular",)]["95% interval"] == "not_available"
    moves = cells(registry.get("table_07_transitions")(run), by=["split", "label"])
    assert moves["random", "no"]["95% interval"] == "0.016 to 0.500"
    assert moves["random", "yes"]["95% interval"] == "not_available"


def test_table_6_has_the_papers_values(tmp_path):
    run = run_of(transitions=(paper_transitions(tmp_path),), scores=write_scores(tmp_path, paper_scores()))
    found = cells(registry.get("table_06_notation")(run), by=["symbol"])
    values = {symbol[0]: row["adversarial"] for symbol, row in found.items()}
    assert values == {
        "P": "1500",
        "N": "1500",
        "T": "1174",
        "G": "1318",
        "G_tot": "1644",
        "ρ_N": "0.501",
        "φ": "0.810",
        "TP₂": "1438",
        "FP₂": "842",
        "FN₂": "62",
        "TN₂": "658",
        "yes→no": "0",
    }


def test_table_13_prints_the_papers_cells(tmp_path):
    table = registry.get("table_13_confusion")(run_of(scores=write_scores(tmp_path, paper_scores())))
    found = cells(table, by=["split"])
    assert [[row[name] for name in ("TP", "FP", "TN", "FN", "n")] for row in found.values()] == [
        ["1174", "182", "1318", "326", "3000"],
        ["1191", "112", "1388", "309", "3000"],
        ["1191", "43", "1457", "309", "3000"],
    ]


def test_the_stage_writes_the_same_bytes_twice(tmp_path):
    sources = Sources(scores=write_scores(tmp_path, paper_scores(OTHER) + paper_scores()))
    written = []
    for attempt in ("a", "b"):
        outputs = {suffix: tmp_path / attempt / f"t.{suffix}" for suffix in ("csv", "md", "tex")}
        make_tables.run("table_02_protocols", sources, OPTIONS, outputs)
        written.append([path.read_bytes() for path in outputs.values()])
    assert written[0] == written[1]
    assert all(b"\r" not in text for text in written[0])


@pytest.mark.parametrize("name", sorted(registry.TABLES))
def test_every_table_is_registered_with_known_needs_and_renders_without_rows(name, tmp_path):
    assert set(registry.entry(name).needs) <= set(SOURCES)
    assert registry.entry(name).module.endswith(name)


def test_an_unknown_table_is_one_sentence(tmp_path):
    with pytest.raises(AuditError, match="no table 'table_99'"):
        make_tables.run("table_99", Sources(), OPTIONS, {})


def test_a_rate_of_zero_to_zero_has_no_interval_and_says_undefined(tmp_path):
    rows = transition_rows(LLAVA, "random", {"yes": (2, 0, 0, 0), "no": (1, 2, 3, 4)})
    about = LLAVA._asdict() | {"labels": "pope", "split": "random", "readout_from": EIGHT, "readout_to": TWO}
    gap = [
        about | {"quantity": f"rho_n_ci_{end}", "value": value}
        for end, value in (("low", 0.25), ("high", 0.5))
    ]
    scores = [score_row(LLAVA, "pope", "random", EIGHT, tp=2, fp=3, tn=7, fn=0)]
    run = run_of(
        transitions=(write_transitions(tmp_path, rows),),
        scores=write_scores(tmp_path, scores),
        gap=(write_gap(tmp_path, gap),),
    )
    table = registry.get("table_07_transitions")(run)
    found = cells(table, by=["label"])
    assert [found[label,]["95% interval"] for label in ("yes", "no", "both")] == [
        "undefined",
        "0.250 to 0.500",
        "not_available",
    ]
    assert any(note.startswith("undefined:") for note in table.all_notes())
