"""The page: what was made of a run's files, put into one HTML text that needs nothing else.

Everything that comes from a file is data. Jinja escapes it, `visible` writes out what could not be seen, and the
page forbids itself scripts and anything from elsewhere (its Content-Security-Policy), should an escape ever fail.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from readout_audit import __version__
from readout_audit.fileio import sha256_text
from readout_audit.report import unanswered
from readout_audit.report.claims import read_claims
from readout_audit.report.coverage import warnings
from readout_audit.report.findings.topics import topics
from readout_audit.report.inputs import RunData
from readout_audit.report.manifests import (
    asked,
    manifests,
    readouts_table,
    records_by_settings,
    scores_table,
    settings_tables,
)
from readout_audit.report.markdown_tables import read_markdown_table
from readout_audit.report.pictures import read_picture
from readout_audit.report.statement import statements
from readout_audit.report.summary import demo_models, headlines, not_asked_notice, notices, overview
from readout_audit.report.text import code, listed, minus, visible
from readout_audit.report.verified import verified
from readout_audit.report.words import in_words

TEMPLATES = Path(__file__).resolve().parent / "templates"
PAGE = "page.html"


def build_page(run: str, data: RunData) -> str:
    """Return the page of one run. The same files give the same text: no time, host or path is written.

    Raises:
        AuditError: a file cannot be read.
    """
    files = data.files
    tables = sorted(map(read_markdown_table, files.tables), key=lambda one: one.place)
    return render(
        run=run,
        version=__version__,
        pair_words=listed([in_words(name) for name in data.pair]),
        demo=bool(demo_models(data)),
        notices=notices(data),
        not_asked=not_asked_notice(data),
        warnings=[*unanswered.warnings(data), *warnings(data)],
        overview=overview(data),
        headlines=headlines(data),
        claims=read_claims(files.claims, data.cells) if files.claims is not None else None,
        topics=topics(data),
        tables=tables,
        pictures=[read_picture(path) for path in sorted(files.figures, key=lambda path: path.name)],
        scores=scores_table(data),
        settings=settings_tables(data),
        readouts=readouts_table(data),
        verified=verified(data),
        manifests=manifests(data),
        statements=_statements(data),
    )


def _statements(data: RunData) -> list[str]:
    """Return the readout statement of every cell and readout whose decisions were given."""
    records = records_by_settings(data)
    described: Iterable[Any] = (asked(data, cell, records) for cell in data.cells)
    return [line for one in described if one is not None for line in statements(one).values()]


def render(**values: Any) -> str:
    """Fill the page's template; a value that the template names and does not get is an error."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"minus": minus, "code": code}
    return environment.get_template(PAGE).render(**values)


def _seen(value: Any) -> Any:
    """Write out what could not be seen in a text; markup that the template itself made stays as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def template_digest() -> str:
    """Return a hash of the templates: the digest of a stage's code does not see them."""
    return sha256_text(
        "\n".join(path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.glob("*.html")))
    )[:16]
