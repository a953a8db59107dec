"""The manual's table is the registry."""

from readout_audit.corrections.registry import CORRECTIONS, correction


def test_every_correction_stands_in_the_manual_as_it_is(root):
    lines = (root / "docs" / "corrections.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    stated = {row[0].strip("`"): row[1:] for row in rows if len(row) == 5}
    assert list(stated) == list(CORRECTIONS)
    for name, (formula, family, strengths, ours) in stated.items():
        about = correction(name)
        assert (formula, family, ours) == (about.formula, about.family, about.ours or "nothing")
        expected = [float(one) for one in strengths.split(", ")] if strengths != "none" else []
        assert expected == (list(about.strengths) if about.swept else [])
