"""`make help` prints the list at the top of the Makefile, and nothing below it."""

import re
import subprocess
from pathlib import Path


def test_make_help_names_every_target(root: Path) -> None:
    # Under `make test` this is a make within a make, which would add two lines on folders.
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    text = (root / "Makefile").read_text(encoding="utf-8")
    [targets] = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    for target in targets.split():
        assert f"make {target}" in done.stdout
    assert len(done.stdout.splitlines()) == 10
