"""One hash of the code that can change a stage's output, so that a comment or a docstring reruns nothing.

Snakemake sees edits of script files, not of the package, and reads times, not meaning. So each rule
carries `code_digest(stage, *also)` as a parameter: the hash of the syntax trees, without docstrings,
of the stage's module and of everything in this package that it imports, at any depth and also inside
functions. Modules called `registry` are left out: they only list names, and adding a model must not
ask the others again; the entry that a rule uses is named in `also`.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = "readout_audit"
SOURCE = Path(__file__).resolve().parent
UNSEEN = frozenset({"registry"})
"""Module names that are never part of a digest."""


def module_file(module: str) -> Path | None:
    """Return the source file of a dotted module of this package, None where it is not a module."""
    base = SOURCE.joinpath(*module.split(".")[1:])
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file() and base != SOURCE:
            return candidate
    return SOURCE / "__init__.py" if module == PACKAGE else None


@cache
def _parsed(module: str) -> ast.Module:
    """Return the syntax tree of a module of this package."""
    path = module_file(module)
    if path is None:
        raise ValueError(f"{module} is not a module of {PACKAGE}")
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return the modules of this package that `module` imports anywhere in its text, parents included."""
    found: set[str] = set()
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(_targets(module, node))
    ours = {name for name in found if name == PACKAGE or name.startswith(f"{PACKAGE}.")}
    return frozenset(name for ours_name in ours for name in _with_parents(ours_name) if module_file(name))


def _targets(module: str, node: ast.ImportFrom) -> set[str]:
    """Return the dotted names that a `from … import …` may load: the module and each name as a submodule."""
    base = node.module or ""
    if node.level:
        path = module_file(module)
        is_package = path is not None and path.name == "__init__.py"
        parents = module.split(".")
        anchor = parents[: len(parents) - node.level + (1 if is_package else 0)]
        base = ".".join([*anchor, *([node.module] if node.module else [])])
    return {base, *(f"{base}.{alias.name}" for alias in node.names)}


def _with_parents(module: str) -> list[str]:
    """Return a dotted name and the packages it lies in: importing a module runs their __init__ too."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def import_closure(*entries: str) -> frozenset[str]:
    """Return every module of this package that importing `entries` can load, registries left out."""
    seen: set[str] = set()
    waiting = [name for entry in entries for name in _with_parents(entry)]
    while waiting:
        module = waiting.pop()
        if module in seen or module.rsplit(".", 1)[-1] in UNSEEN:
            continue
        seen.add(module)
        waiting.extend(imports_of(module))
    return frozenset(seen)


class _WithoutDocstrings(ast.NodeTransformer):
    """Drop texts that stand alone: docstrings of modules, classes, functions and names. Comments are not in the tree."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)


@cache
def module_digest(module: str) -> str:
    """Return the hash of one module's meaning: its tree without docstrings and positions."""
    path = module_file(module)
    if path is None:
        raise ValueError(f"{module} is not a module of {PACKAGE}")
    # A tree of its own: the transformer edits in place, and `_parsed` is shared.
    tree = _WithoutDocstrings().visit(ast.parse(path.read_text(encoding="utf-8")))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def code_digest(stage: str, *also: str) -> str:
    """Return the 16-hex digest of a stage's code.

    Args:
        stage: a module below `readout_audit.stages`, such as `ask_model`.
        also: further modules, dotted below `readout_audit`, that the stage loads by name from a
            registry, such as `models.llava`.
    """
    entries = [f"{PACKAGE}.stages.{stage}", *(f"{PACKAGE}.{name}" for name in also)]
    lines = [f"{module} {module_digest(module)}" for module in sorted(import_closure(*entries))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
