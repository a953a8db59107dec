"""A small release in three splits, and the same answers to it as each tool would write them."""

import csv
import json
from pathlib import Path

import openpyxl
import pyarrow as pa

from readout_audit.contracts import RECORDS
from readout_audit.fileio import write_table

SPLITS = ("adversarial", "popular", "random")
IMAGES = ("COCO_val2014_000000000001.jpg", "COCO_val2014_000000000002.jpg")
PRESENT = (("dog", "cat", "person"), ("umbrella", "chair", "car"))
ABSENT = {
    "adversarial": (("fork", "bench", "tie"), ("knife", "dog", "bed")),
    "popular": (("chair", "car", "tie"), ("person", "dog", "clock")),
    "random": (("kite", "skis", "apple"), ("zebra", "toaster", "mouse")),
}
SUFFIX = "\nAnswer the question using a single word or phrase."


def article(noun):
    return "an" if noun[0] in "aeiou" else "a"


def ask(noun):
    return f"Is there {article(noun)} {noun} in the image?"


def release():
    """Return split -> rows in POPE's form: three positives and three negatives per image, in turn."""
    rows = {split: [] for split in SPLITS}
    for split in SPLITS:
        for image, present, absent in zip(IMAGES, PRESENT, ABSENT[split], strict=True):
            for yes, no in zip(present, absent, strict=True):
                for noun, label in ((yes, "yes"), (no, "no")):
                    number = len(rows[split]) + 1
                    rows[split].append(
                        {"question_id": number, "image": image, "text": ask(noun), "label": label}
                    )
    return rows


RELEASE = release()

# What the model said: one answer per distinct question. The dog is missed, the fork is imagined.
SAID = {
    (row["image"], row["text"]): {"yes": "Yes.", "no": "no"}[row["label"]]
    for s in SPLITS
    for row in RELEASE[s]
}
SAID[IMAGES[0], ask("dog")] = "There isn't"
SAID[IMAGES[0], ask("fork")] = "Yes"
SAID[IMAGES[1], ask("dog")] = "I cannot see one"


def said(row):
    return SAID[row["image"], row["text"]]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_release(folder: Path, rows=None):
    folder.mkdir(parents=True, exist_ok=True)
    for split, questions in (rows or RELEASE).items():
        write_lines(folder / f"toy_pope_{split}.json", questions)
    return folder


def all_rows():
    return [(split, row) for split in SPLITS for row in RELEASE[split]]


def distinct_rows():
    seen = {}
    for split, row in all_rows():
        seen.setdefault((row["image"], row["text"]), (row, []))[1].append(split)
    return list(seen.values())


def pope(folder):
    return [
        write_lines(
            folder / f"pope_{s}.jsonl", [{"question": r["text"], "answer": said(r)} for r in RELEASE[s]]
        )
        for s in SPLITS
    ]


def llava(folder, **extra):
    rows = [
        {
            "question_id": n,
            "prompt": row["text"] + SUFFIX,
            "text": said(row),
            "answer_id": "a",
            "model_id": "m",
            "metadata": {},
        }
        | {key: make(split, row) for key, make in extra.items()}
        for n, (split, row) in enumerate(all_rows())
    ]
    return [write_lines(folder / "llava.jsonl", rows)]


def vcd(folder):
    return [write_lines(p, rows) for p, rows in [
        (folder / f"vcd_{s}.jsonl", [
            {"question_id": r["question_id"], "prompt": r["text"], "text": said(r), "model_id": "m", "image": r["image"]}
            for r in RELEASE[s]
        ]) for s in SPLITS
    ]]  # fmt: skip


def lmms_samples():
    return [
        {
            "doc_id": n,
            "target": row["label"],
            "filtered_resps": [said(row)],
            "doc_hash": "h",
            "pope_accuracy": {
                "question_id": str(row["question_id"]),
                "score": 0.0,
                "prediction": "",
                "ground_truth": row["label"],
            },
            "input": row["text"] + SUFFIX,
        }
        for n, (_, row) in enumerate(all_rows())
    ]


def lmms(folder):
    rows = lmms_samples()
    return [write_lines(folder / "samples_pope.jsonl", rows[::2] + rows[1::2])]  # two processes wrote it


def lmms_old(folder):
    logs = [
        {
            "doc_id": n,
            "doc": {
                "question_id": str(row["question_id"]),
                "question": row["text"],
                "answer": row["label"],
                "category": split,
            },
            "target": row["label"],
            "arguments": [[row["text"] + SUFFIX, "gen"]],
            "resps": [[said(row)]],
            "filtered_resps": [said(row)],
        }
        for n, (split, row) in enumerate(all_rows())
    ]
    path = folder / "pope.json"
    path.write_text(json.dumps({"args": {"model": "llava"}, "logs": logs}))
    return [path]


def vlmevalkit_rows():
    return [
        {
            "index": n,
            "question": row["text"] + " Please answer yes or no.",
            "answer": row["label"].capitalize(),
            "category": ",".join(splits),
            "prediction": said(row),
        }
        for n, (row, splits) in enumerate(distinct_rows())
    ]


def vlmevalkit_tsv(folder):
    path = folder / "m_POPE.tsv"
    rows = vlmevalkit_rows()
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter="\t", quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    return [path]


def vlmevalkit_xlsx(folder):
    path = folder / "m_POPE.xlsx"
    book = openpyxl.Workbook()
    rows = vlmevalkit_rows()
    book.active.append(list(rows[0]))
    for row in rows:
        book.active.append(list(row.values()))
    book.save(path)
    return [path]


def authors_predictions(folder):
    paths = []
    for s in SPLITS:
        rows = [
            {
                "question_id": str(r["question_id"]),
                "question": r["text"],
                "label": r["label"],
                "prediction": said(r),
            }
            for r in RELEASE[s]
        ]
        paths.append(folder / f"predictions_{s}.json")
        paths[-1].write_text(json.dumps(rows, indent=2))
    return paths


def authors_audits(folder):
    paths = []
    for s in SPLITS:
        results = [
            {
                "question_id": str(r["question_id"]),
                "label": r["label"],
                "top_token_id": 3,
                "top_token_str": "Yes",
                "pred_legacy_2tok": "yes",
                "pred_legacy_8tok": "no",
                "pred_dynamic_single": r["label"],
                "pred_string_parse": "unknown",
                "decoded_response": said(r),
            }
            for r in RELEASE[s]
        ]
        paths.append(folder / f"audit_{s}.json")
        paths[-1].write_text(
            json.dumps({"summary": {"split": s, "model_path": "m", "quantize": "4bit"}, "results": results})
        )
    return paths


def own_csv(folder, delimiter=","):
    path = folder / "mine.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(["image", "question", "answer"])
        writer.writerows([row["image"], row["text"], said(row)] for row, _ in reversed(distinct_rows()))
    return [path]


def own_jsonl(folder):
    rows = [
        {"image": "val2014/" + row["image"], "split": split, "question": row["text"], "response": said(row)}
        for split, row in reversed(all_rows())
    ]
    return [write_lines(folder / "mine.jsonl", rows)]


def records(folder, meta=None):
    """Our own record file with logits 1 > 0 where the answer starts with Yes."""
    rows = [row for row, _ in distinct_rows()]
    columns = {f.name: pa.nulls(len(rows), f.type) for f in RECORDS}
    yes = [said(row).startswith("Yes") for row in rows]
    columns |= {
        "uid": pa.array([f"u{n}" for n in range(len(rows))]),
        "image": pa.array([row["image"] for row in rows]),
        "question": pa.array([row["text"] for row in rows]),
        "prompt": pa.array([row["text"] for row in rows]),
        "argmax_id": pa.array([1 if y else 2 for y in yes], pa.int32()),
        "argmax_text": pa.array(["▁Yes" if y else "▁No" for y in yes]),
        "log_z": pa.array([1.0] * len(rows), pa.float32()),
        "candidate_logits": pa.array([[1.0, 0.0] if y else [0.0, 1.0] for y in yes], pa.list_(pa.float32())),
        "new_text": pa.array([said(row) for row in rows]),
        "status": pa.array(["ok"] * len(rows)),
    }
    meta = meta or {
        "model": "toy",
        "candidate_ids": [1, 2],
        "token_sets": {"single": {"yes": [1], "no": [2]}},
    }
    path = folder / "records.parquet"
    write_table(path, pa.table(columns, schema=RECORDS), RECORDS, meta)
    return [path]


def own_parquet(folder):
    import pyarrow.parquet as pq

    rows = [
        {"image": row["image"][:-4], "question": row["text"], "prediction": said(row)}
        for row, _ in distinct_rows()
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "mine.parquet")
    return [folder / "mine.parquet"]


FORMATS = {
    "POPE": pope,
    "LLaVA": llava,
    "VCD": vcd,
    "lmms-eval": lmms,
    "lmms-eval, older": lmms_old,
    "VLMEvalKit TSV": vlmevalkit_tsv,
    "VLMEvalKit XLSX": vlmevalkit_xlsx,
    "authors' predictions": authors_predictions,
    "authors' audits": authors_audits,
    "CSV": own_csv,
    "CSV with semicolons": lambda folder: own_csv(folder, ";"),
    "JSON lines": own_jsonl,
    "records": records,
    "Parquet": own_parquet,
}
