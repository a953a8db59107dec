"""The fixed lists: ids of a reference model's vocabulary, whatever the model that is read.

On LLaVA-1.5 they are 3582 `yes` against 1217 `no`, and the eight of Table 5. Under another vocabulary the
same numbers are other pieces (3582 is `▁estab` in Mistral's); nothing fails, which is why the pieces that
were read stand in the output.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from readout_audit.readouts.base import (
    AUTHORS,
    PAPER,
    Decided,
    Kind,
    Metadata,
    NotAvailableError,
    TokenSets,
    max_against_max,
    token_sets,
)


@dataclass(frozen=True)
class LegacyReadout:
    """Largest logit of the reference model's yes forms against its no forms, strictly."""

    name: str
    yes_forms: tuple[str, ...]
    no_forms: tuple[str, ...]
    rule: str
    source: str = f"{PAPER}, Table 5; {AUTHORS}, src/run_multi_model_audit.py"
    kind: Kind = "logit"
    needs_labels: bool = False
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def ids(self, meta: Metadata) -> TokenSets:
        """Return the reference model's ids of the forms; a form that is no piece of it has none."""
        legacy = meta.get("token_sets", {}).get("legacy")
        if legacy is None:
            raise NotAvailableError(f"{self.name}: the records name no reference model's token ids.")
        yes = [legacy["yes"].get(form) for form in self.yes_forms]
        no = [legacy["no"].get(form) for form in self.no_forms]
        return token_sets(
            [token for token in yes if token is not None],
            [token for token in no if token is not None],
            self.name,
            {"model": f"the reference model {legacy.get('model', '')}".rstrip()},
        )

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide every row by max over the yes ids > max over the no ids."""
        return max_against_max(records, meta, self.ids(meta), self.name)


LEGACY_2TOK = LegacyReadout(
    name="legacy_2tok",
    yes_forms=("yes",),
    no_forms=("no",),
    rule="logit of the reference model's `yes` > logit of its `no`",
)
LEGACY_8TOK = LegacyReadout(
    name="legacy_8tok",
    yes_forms=("yes", "Yes", " yes", " Yes"),
    no_forms=("no", "No", " no", " No"),
    rule="largest logit of the reference model's four yes pieces > largest of its four no pieces",
)
