"""How far the asking is: a bar in a terminal, plain lines in a log, and neither spoils the other."""

import logging
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from readout_audit.inference import progress
from readout_audit.inference.progress import AskingProgress

SCRIPT = """
import logging, sys
from pathlib import Path
from readout_audit.inference import progress
from readout_audit.logs import logging_to
progress._LOG_SECONDS = 0.0
with logging_to(Path(sys.argv[1])), progress.AskingProgress(4, "tiny nf4 authors") as bar:
    for done in range(4):
        bar.advance(1)
        if done == 1:
            logging.getLogger("readout_audit.x").warning("a.png carries an EXIF orientation")
"""


def in_terminal(log: Path) -> str:
    """Run the script in a terminal of its own and return what it shows."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(log)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "140", "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while select.select([mine], [], [], 60)[0]:
        try:
            shown += os.read(mine, 65536)
        except OSError:  # the other side is closed
            break
    os.close(mine)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_terminal_shows_a_bar_and_the_log_plain_lines(tmp_path: Path) -> None:
    shown, log = in_terminal(tmp_path / "log.txt"), None
    log = (tmp_path / "log.txt").read_text()
    last = [line for line in re.split(r"[\r\n]", shown) if "4/4" in line][-1]
    assert re.search(r"tiny nf4 authors ━+ 4/4 [\d.]+ questions/s \d:\d\d:\d\d [\d.]+ GiB", last)
    # A warning stands on a line of its own, above the bar.
    warnings = [line for line in re.split(r"[\r\n]", shown) if "EXIF" in line]
    assert (
        len(warnings) == 1
        and warnings[0].endswith("a.png carries an EXIF orientation")
        and "━" not in warnings[0]
    )
    assert "1 of 4 questions" not in shown
    assert re.search(
        r"tiny nf4 authors: 1 of 4 questions, [\d.]+/s, about \d+ s left, peak [\d.]+ GiB\n", log
    )
    assert re.search(r"tiny nf4 authors: 4 of 4 questions, [\d.]+/s, peak [\d.]+ GiB\n", log)
    assert "━" not in log and "\x1b" not in log


def test_without_a_terminal_there_are_lines_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "peak_memory", lambda: 2**31)
    caplog.set_level(logging.INFO)
    with AskingProgress(100, "cell") as bar:
        for _ in range(70):
            now[0] += 1.0
            bar.advance(1)
    assert [record.message for record in caplog.records] == [
        "cell: 30 of 100 questions, 1.00/s, about 70 s left, peak 2.0 GiB",
        "cell: 60 of 100 questions, 1.00/s, about 40 s left, peak 2.0 GiB",
        "cell: 70 of 100 questions, 1.00/s, about 30 s left, peak 2.0 GiB",
    ]
