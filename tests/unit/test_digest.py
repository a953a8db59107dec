"""A digest follows the meaning of the code that a stage can load, and nothing else."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from readout_audit import digest

STAGES = sorted(path.stem for path in (digest.SOURCE / "stages").glob("*.py") if path.stem != "__init__")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of this name in another place: stages/s.py -> helper.py -> deep.py, and a registry."""
    files = {
        "__init__.py": "",
        "stages/__init__.py": "",
        "stages/s.py": '"""Doc."""\nfrom readout_audit import helper\nfrom readout_audit.registry import get\n',
        "helper.py": "def f(x):\n    from . import deep\n    return deep.y + x\n",
        "deep.py": "y = 1\n",
        "registry.py": 'NAMES = {"a": "readout_audit.adapter_a:A"}\ndef get(n): ...\n',
        "adapter_a.py": "A = 1\n",
        "alone.py": "z = 1\n",
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(digest, "SOURCE", tmp_path)
    yield_cache_clear()
    yield tmp_path
    monkeypatch.undo()
    yield_cache_clear()


def yield_cache_clear() -> None:
    for function in (digest._parsed, digest.imports_of, digest.module_digest):
        function.cache_clear()


def after(package: Path, name: str, text: str, *also: str) -> str:
    (package / name).write_text(text, encoding="utf-8")
    yield_cache_clear()
    return digest.code_digest("s", *also)


def test_closure_follows_imports_inside_functions_and_leaves_registries_out(package: Path) -> None:
    assert digest.import_closure("readout_audit.stages.s") == {
        "readout_audit",
        "readout_audit.stages",
        "readout_audit.stages.s",
        "readout_audit.helper",
        "readout_audit.deep",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.py", "y = 1  # a comment\n"),
        ("deep.py", '"""A docstring."""\n\n\ny = 1\n"""What y is."""\n'),
        (
            "helper.py",
            'def f(x):\n    """Now with one."""\n    from . import deep\n\n    return (deep.y + x)\n',
        ),
        ("registry.py", 'NAMES = {"a": "readout_audit.adapter_a:A", "b": "readout_audit.b:B"}\n'),
        ("alone.py", "z = 2\n"),
        ("adapter_a.py", "A = 2\n"),
    ],
)
def test_what_does_not_change_a_digest(package: Path, name: str, text: str) -> None:
    before = digest.code_digest("s")
    assert after(package, name, text) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.py", "y = 2\n"),
        ("stages/s.py", "from readout_audit import helper\nprint(helper)\n"),
        ("__init__.py", "version = 1\n"),
    ],
)
def test_what_changes_a_digest(package: Path, name: str, text: str) -> None:
    before = digest.code_digest("s")
    assert after(package, name, text) != before


def test_a_chosen_adapter_is_part_of_the_digest(package: Path) -> None:
    before = digest.code_digest("s", "adapter_a")
    assert before != digest.code_digest("s")
    assert after(package, "adapter_a.py", "A = 2\n", "adapter_a") != before


def test_unknown_stage_is_refused() -> None:
    with pytest.raises(ValueError, match=r"readout_audit\.stages\.none is not a module"):
        digest.code_digest("none")


@pytest.mark.parametrize("stage", STAGES)
def test_closure_covers_what_importing_the_stage_loads(stage: str) -> None:
    """The closure is read off the text; this holds it against what Python really imports."""
    code = (
        f"import sys, readout_audit.stages.{stage};"
        "print(*sorted(m for m in sys.modules if m.partition('.')[0] == 'readout_audit'))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    registries = {name for name in loaded if name.rsplit(".", 1)[-1] in digest.UNSEEN}
    behind_registries = set().union(*(digest.import_closure(*imports(name)) for name in registries), set())
    assert set(loaded) - registries - behind_registries <= digest.import_closure(
        f"readout_audit.stages.{stage}"
    )


def imports(module: str) -> list[str]:
    """Return what a registry itself imports: helpers that no answer depends on."""
    tree = ast.parse(Path(digest.module_file(module)).read_text(encoding="utf-8"))
    return [
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("readout_audit")
    ]
