"""Stages end with a sentence or a traceback, and both stand in the log."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from readout_audit.errors import AuditError
from readout_audit.logs import LOGGER, script_log, stage_main


def test_a_stage_gets_its_arguments_without_the_log(tmp_path: Path) -> None:
    seen: list[str] = []

    def main(argv: Sequence[str]) -> int:
        LOGGER.info("working")
        seen.extend(argv)
        return 0

    assert stage_main(main, ["--a", "1", "--log", str(tmp_path / "deep/log"), "--b"]) == 0
    assert seen == ["--a", "1", "--b"]
    assert "INFO readout_audit: working" in (tmp_path / "deep/log").read_text(encoding="utf-8")


def test_an_audit_error_is_a_sentence_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(argv: Sequence[str]) -> int:
        raise AuditError("x.json, row 3: label is 'maybe'; write yes or no.")

    assert stage_main(main, ["--log", str(tmp_path / "log")]) == 1
    assert capsys.readouterr().err == "error: x.json, row 3: label is 'maybe'; write yes or no.\n"
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert "row 3: label is 'maybe'" in log and "Traceback" not in log


def test_a_fault_keeps_its_traceback(tmp_path: Path) -> None:
    def main(argv: Sequence[str]) -> int:
        raise ZeroDivisionError("ours")

    with pytest.raises(ZeroDivisionError):
        stage_main(main, ["--log", str(tmp_path / "log")])
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert "Traceback" in log and "ZeroDivisionError: ours" in log


def test_a_script_ends_with_the_sentence(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="error: no such file"), script_log([str(tmp_path / "log")]):
        raise AuditError("no such file")
    assert "no such file" in (tmp_path / "log").read_text(encoding="utf-8")


def test_handlers_are_taken_down_again(tmp_path: Path) -> None:
    before = list(LOGGER.handlers)
    with script_log([]):
        assert len(LOGGER.handlers) == len(before) + 1
    assert LOGGER.handlers == before
