"""Label sets: other people's answers to a release's questions, such as RePOPE's.

A label file is a question file, so a label set is a question table of its own. It joins a release on (image
namespace, image, object) and on nothing else: ids and spellings change between releases.
"""

import pyarrow as pa

from readout_audit.errors import AuditError

ObjectKey = tuple[str, str, str]
"""Image namespace, image, object."""


def label_lookup(labels: pa.Table) -> dict[ObjectKey, str]:
    """Return the label of each (image namespace, image, object) of a label set, all its splits together.

    Raises:
        AuditError: a question's object is not known, or one object of one image has both labels.
    """
    found: dict[ObjectKey, str] = {}
    columns = ("dataset", "split", "question_id", "image_namespace", "image", "object", "label")
    for row in labels.select(columns).to_pylist():
        where = f"label set {row['dataset']}, split {row['split']}, question_id {row['question_id']}"
        if row["object"] is None:
            raise AuditError(f"{where}: the question's object cannot be told, so its label cannot be joined.")
        key = (row["image_namespace"], row["image"], row["object"])
        if found.setdefault(key, row["label"]) != row["label"]:
            raise AuditError(
                f"{where}: {row['object']} in {row['image']} has the other label elsewhere in the set."
            )
    return found


def labels_for(questions: pa.Table, labels: pa.Table) -> list[str | None]:
    """Return, for each row of a question table, its label in a label set; None where the set has none.

    Raises:
        AuditError: as `label_lookup`, or the two share no image namespace.
    """
    lookup = label_lookup(labels)
    namespaces = {namespace for namespace, _, _ in lookup}
    asked = set(questions["image_namespace"].to_pylist())
    if not asked & namespaces:
        raise AuditError(
            f"the label set is about images of {', '.join(sorted(namespaces))}, the questions about "
            f"those of {', '.join(sorted(asked))}; choose a label set of the same images."
        )
    columns = ("image_namespace", "image", "object")
    return [
        lookup.get((row["image_namespace"], row["image"], row["object"]))
        for row in questions.select(columns).to_pylist()
    ]
