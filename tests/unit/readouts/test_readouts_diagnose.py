"""Algorithm 1 on record files: what is emitted, who misses it, what to read instead."""

import json

import numpy as np
import pytest
import typer
from readout_tables import NO_FORMS, YES_FORMS, metadata, records, sets
from typer.testing import CliRunner

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import write_table
from readout_audit.readouts.diagnose import as_lines, diagnose
from readout_audit.readouts.diagnose_cli import diagnose as command
from readout_audit.readouts.registry import get

IDS = sorted([*YES_FORMS.values(), *NO_FORMS.values()])
LEGACY = {"model": "llava-1.5-7b", "yes": YES_FORMS, "no": NO_FORMS}
PIECES = {
    "3582": "yes", "8241": "Yes", "4874": "▁yes", "3869": "▁Yes", "1217": "no", "3782": "No", "694": "▁no", "1939": "▁No"
}  # fmt: skip


def llava(counts, **extra):
    """Records whose first tokens are `counts`: (id, piece) -> how often."""
    emitted = [token for token, n in counts.items() for _ in range(n)]
    table = records(
        [[float(i == token) for i in IDS] for token, _ in emitted],
        argmax_id=[token for token, _ in emitted],
        argmax_text=[piece for _, piece in emitted],
        log_z=[2.0] * len(emitted),
    )
    token_sets = {
        "legacy": LEGACY,
        "single": sets([3869, 4874], [694, 1939]),
        "scan": sets(YES_FORMS.values(), NO_FORMS.values()),
    } | extra
    return table, metadata(IDS, **token_sets) | {
        "token_map": {"pieces": PIECES},
        "settings": {"template": {"name": "paper"}},
    }


def test_the_two_token_rule_misses_what_llava_writes():
    table, meta = llava({(3869, "▁Yes"): 3, (1939, "▁No"): 5, (450, "▁The"): 2})
    found = diagnose(table, meta, [get("legacy_2tok"), get("legacy_8tok"), get("dynamic_single")])
    assert [(t.id, t.count, t.says) for t in found.top_tokens_generated] == [
        (1939, 5, "no"), (3869, 3, "yes"), (450, 2, "unparsed"),
    ]  # fmt: skip
    two, eight, single = found.coverage
    assert [t.id for t in two.excluded] == [1939, 3869] and two.unread == 10
    assert eight.excluded == () and eight.unread == 2
    assert single.excluded == () and single.ids["yes"] == {3869: "▁Yes", 4874: "▁yes"}
    assert found.excluding == ["legacy_2tok"]
    assert found.template == "paper" and found.rows == 10


def test_mass_by_hand():
    # One logit 1 and seven 0 under log Z = 2: (e + 7) / e^2. A row emitting something else has eight 0: 8 / e^2.
    table, meta = llava({(3869, "▁Yes"): 2, (450, "▁The"): 1})
    mass = diagnose(table, meta, []).mass
    e = np.e
    assert mass == pytest.approx({"min": 8 / e**2, "median": (e + 7) / e**2, "max": (e + 7) / e**2})


def test_legacy_ids_under_another_vocabulary_are_foreign():
    table, meta = llava({(5592, "▁Yes"): 4, (1770, "▁No"): 4})
    meta["token_map"] = {"pieces": {"3582": "▁estab", "1217": "▁fil"}}
    found = diagnose(table, meta, [get("legacy_2tok")])
    assert found.coverage[0].foreign == {3582: "▁estab", 1217: "▁fil"}
    assert found.use_instead["yes"] == {3869: None, 4874: None, 5592: "▁Yes"}
    text = "\n".join(as_lines(found))
    assert "EXCLUDES 1770 '▁No' (4 times), 5592 '▁Yes' (4 times); it reads" in text and "use instead" in text


def test_pieces_at_copied_ids_come_from_what_the_run_recorded_of_this_vocabulary():
    table, meta = llava({(5592, "▁Yes"): 4})
    meta["token_map"] = {
        "pieces": {"5592": "▁Yes"}
    }  # a model's own map does not name a reference model's ids
    meta["candidate_pieces"] = {"3582": "▁estab", "1217": "▁fil", "8241": None}
    assert diagnose(table, meta, [get("legacy_2tok")]).coverage[0].foreign == {3582: "▁estab", 1217: "▁fil"}
    assert 8241 in diagnose(table, meta, [get("legacy_8tok")]).coverage[0].foreign


def test_a_token_on_the_wrong_side_is_excluded():
    table, meta = llava({(3869, "▁Yes"): 1}, single=sets([4874], [694, 3869]))
    assert [t.id for t in diagnose(table, meta, [get("dynamic_single")]).coverage[0].excluded] == [3869]


def test_a_seeded_draw_and_invalid_rows():
    table, meta = llava({(3869, "▁Yes"): 60, (1939, "▁No"): 60})
    first = diagnose(table, meta, [], questions=100, seed=42)
    assert first.rows == 100 and first == diagnose(table, meta, [], questions=100, seed=42)
    assert any(first != diagnose(table, meta, [], questions=100, seed=seed) for seed in range(43, 48))
    with pytest.raises(AuditError, match="121 questions were asked for; the file has 120"):
        diagnose(table, meta, [], questions=121)
    with pytest.raises(AuditError, match="none of the 2 rows has logits"):
        diagnose(records([None, None]), meta, [])


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    app.command()(command)

    def call(table, meta, *arguments):
        write_table(tmp_path / "r.parquet", table, RECORDS, meta)
        return CliRunner().invoke(app, [str(tmp_path / "r.parquet"), *arguments])

    return call


def test_the_command_exits_1_when_candidates_are_excluded(run, tmp_path):
    table, meta = llava({(3869, "▁Yes"): 3, (1939, "▁No"): 5})
    out = tmp_path / "d.json"
    assert run(table, meta, "--readout", "dynamic_single").exit_code == 0
    result = run(table, meta, "--output", str(out))
    assert result.exit_code == 1 and "legacy_2tok: EXCLUDES" in result.output
    assert "in_context: not available" in result.output
    written = json.loads(out.read_text())
    assert written["reads_excluded_candidates"] == ["legacy_2tok"]
    assert written["top_tokens_generated"][0] == {"id": 1939, "piece": "▁No", "count": 5, "says": "no"}


def test_bad_input_is_one_sentence_and_exit_2(run):
    table, meta = llava({(3869, "▁Yes"): 3})
    for arguments, words in (
        (["--readout", "nope"], "no readout 'nope'"),
        (["--readout", "string_parse"], "reads text"),
    ):
        result = run(table, meta, *arguments)
        assert result.exit_code == 2 and words in result.output and "Traceback" not in result.output
