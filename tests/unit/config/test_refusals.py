"""Every bad configuration is refused in one sentence that names the key and the remedy."""

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from readout_audit.config.load import check_files, load_plan
from readout_audit.config.preparation import known_names
from readout_audit.errors import AuditError

Config = dict[str, Any]
FILES = ("models", "templates", "datasets", "config")


def merged(root: Path, run: str | None) -> Config:
    """The configuration as Snakemake merges it: lists replaced, dictionaries merged."""
    return copy.deepcopy(_merged(root, run))


@cache
def _merged(root: Path, run: str | None) -> Config:
    config: Config = {}
    for name in [*FILES, *([run] if run else [])]:
        merge(config, yaml.safe_load((root / "config" / f"{name}.yaml").read_text(encoding="utf-8")))
    return config


def merge(config: Config, update: Config) -> None:
    for key, value in update.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            merge(config[key], value)
        else:
            config[key] = copy.deepcopy(value)


@pytest.fixture
def in_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checks look for folders from where Snakemake runs."""
    monkeypatch.chdir(root)
    return root


def refusal(config: Config, root: Path) -> str:
    with pytest.raises(AuditError) as caught:
        load_plan(config, root / "workflow/schemas", known_names(config))
    return str(caught.value)


def put(path: str, value: Any) -> Callable[[Config], None]:
    """Return a mutation that sets a dotted key."""

    def mutate(config: Config) -> None:
        *parents, last = path.split("/")
        for parent in parents:
            config = config[parent]
        config[last] = value

    return mutate


def drop(path: str) -> Callable[[Config], None]:
    def mutate(config: Config) -> None:
        *parents, last = path.split("/")
        for parent in parents:
            config = config[parent]
        del config[last]

    return mutate


MODEL = "known_models/tiny-llava/"
PROMPT = "known_templates/tiny-llava/authors/"
SPLIT = "known_datasets/demo-pope/splits/random/"

BAD: dict[str, tuple[Callable[[Config], None], str]] = {
    # what the schema says
    "unknown key": (
        put("modells", ["tiny-llava"]),
        "unknown key 'modells' at the top level (did you mean 'models'?)",
    ),
    "unknown nested key": (
        put("inference/engin", "x"),
        "unknown key 'engin' at inference (did you mean 'engine'?)",
    ),
    "missing key": (drop("models"), "models is missing"),
    "missing nested key": (drop("inference/shards"), "inference.shards is missing"),
    "list expected": (put("models", "tiny-llava"), "models is 'tiny-llava', but must be a list"),
    "number expected": (
        put("inference/shards", "two"),
        "inference.shards is 'two', but must be a whole number",
    ),
    "no shards": (put("inference/shards", 0), "inference.shards is 0, but must be at least 1"),
    "negative resamples": (
        put("bootstrap/resamples", -1),
        "bootstrap.resamples is -1, but must be at least 0",
    ),
    "empty list": (put("models", []), "models is [], but must be a list with at least one entry"),
    "split twice": (put("splits", ["random", "random"]), "but must be a list that names nothing twice"),
    "model twice": (put("models", ["tiny-llava", "tiny-llava"]), "names nothing twice"),
    "no such source": (
        put("records_from", "cache"),
        "records_from is 'cache', but must be one of inference, files",
    ),
    "no such precision": (put("precisions", ["fp8"]), "precisions.entry 1 is 'fp8', but must be one of fp32"),
    "no such device": (
        put("inference/device", "tpu"),
        "inference.device is 'tpu', but must be one of auto, cuda, cpu",
    ),
    "run is a path": (put("run", "../demo"), "run is '../demo', but must be a text of the form"),
    "one readout for a gap": (
        put("gap_pair", ["legacy_2tok"]),
        "gap_pair is ['legacy_2tok'], but must be a list of 2",
    ),
    "no such labels": (
        put("labels", ["popeye"]),
        "labels.entry 1 is 'popeye', but must be one of pope, repope",
    ),
    "remote code": (
        put(MODEL + "trust_remote_code", True),
        "unknown key 'trust_remote_code' at known_models.tiny-llava",
    ),
    "a branch for a revision": (
        put("known_models/llava-1.5-7b/revision", "main"),
        "known_models.llava-1.5-7b.revision is 'main', but must be a text of the form",
    ),
    "boundary misspelt": (
        put(PROMPT + "answer_boundary", "clear"),
        "is 'clear', but must be one of clean, merges",
    ),
    "bad hash": (
        put(SPLIT + "sha256", "abc"),
        "splits.random.sha256 is 'abc', but must be a text of the form",
    ),
    "dataset without namespace": (
        drop("known_datasets/demo-pope/image_namespace"),
        "image_namespace is missing",
    ),
    # what the checks say
    "unknown model": (
        put("models", ["tiny-lava"]),
        "models names 'tiny-lava', which models.yaml does not have (did you mean",
    ),
    "unknown dataset": (
        put("datasets", ["demo"]),
        "datasets names 'demo', which datasets.yaml does not have",
    ),
    "unknown template": (
        put("templates", ["author"]),
        "templates names 'author', which model tiny-llava does not have",
    ),
    "model without template": (
        drop("known_templates/tiny-llava"),
        "model tiny-llava has no template in templates.yaml",
    ),
    "unknown split": (put("splits", ["rand"]), "splits names 'rand', which dataset demo-pope does not have"),
    "unknown readout": (
        put("readouts", ["legacy_3tok"]),
        "readouts names 'legacy_3tok', which the readout registry",
    ),
    "unknown table": (
        put("tables", ["table_99"]),
        "tables names 'table_99', which the table registry does not have",
    ),
    "unknown figure": (
        put("figures", ["figure_99"]),
        "figures names 'figure_99', which the figure registry does not",
    ),
    "unknown engine": (
        put("inference/engine", "fast"),
        "inference.engine names 'fast', which the engine registry",
    ),
    "unknown adapter": (
        put(MODEL + "adapter", "lava"),
        "known_models.tiny-llava.adapter names 'lava', which the model",
    ),
    "gap of readouts not read": (
        put("readouts", ["legacy_8tok"]),
        "gap_pair names 'legacy_2tok', which this run's readouts",
    ),
    "unknown reference": (
        put("reference_model", "llama"),
        "reference_model names 'llama', which models.yaml does not",
    ),
    "reference not asked": (
        put("reference_model", "llava-1.5-7b"),
        "which this run does not ask; add it to models",
    ),
    "cell malformed": (put("extra_cells", ["tiny-llava/fp32"]), "must read model/precision/template"),
    "cell of no model": (
        put("extra_cells", ["tiny/fp32/authors"]),
        "extra_cells names 'tiny', which models.yaml",
    ),
    "cell of no precision": (
        put("extra_cells", ["tiny-llava/fp8/authors"]),
        "'fp8' is no precision; choose one of fp32",
    ),
    "cell twice": (
        put("extra_cells", ["tiny-llava/fp32/authors"]),
        "precisions and templates already give; remove it",
    ),
    "prompt without question": (
        put(PROMPT + "text", "USER: <image>"),
        "authors.text must hold {question} exactly once",
    ),
    "prompt twice over": (
        put(PROMPT + "chat", True),
        "must have either a text or chat: true, not both and not neither",
    ),
    "prompt of nothing": (
        put(PROMPT + "text", None),
        "must have either a text or chat: true, not both and not neither",
    ),
    "suffix of a text": (
        put(PROMPT + "suffix", " Yes?"),
        "suffix belongs to chat templates; write it into the text",
    ),
    "weights from nowhere": (put(MODEL + "folder", None), "must have one of a repository, a folder or random"),
    "weights from two places": (
        put(MODEL + "repository", "a/b"),
        "must have one of a repository, a folder or random",
    ),
    "revision of a folder": (
        put(MODEL + "revision", "0" * 40),
        "a folder is identified by its content, so remove it",
    ),
    "folder without checkpoint": (
        put(MODEL + "folder", "docs"),
        "folder is 'docs', where there is no config.json",
    ),
    "mirror not there": (
        put("mirror", "no/such/folder"),
        "mirror is 'no/such/folder', which is not a folder",
    ),
    "mirror is a file": (put("mirror", "README.md"), "mirror is 'README.md', which is not a folder"),
    "images not there": (put("coco_val2014", "no/such"), "coco_val2014 is 'no/such', which is not a folder"),
    "files without folder": (
        put("records_from", "files"),
        "records_from is 'files', but records_folder is null",
    ),
    "folder without files": (
        put("records_folder", "docs"),
        "records_folder is set, but records_from is 'inference'",
    ),
    "signals of no model": (
        put("signals/models", ["tiny-lava"]),
        "signals.models names 'tiny-lava', which models.yaml",
    ),
    "signals of a model not asked": (
        put("signals/models", ["tiny-qwen"]),
        "signals.models names 'tiny-qwen', which this run",
    ),
    "unknown CLIP": (
        put("signals/clip_b32", "clip"),
        "signals.clip_b32 names 'clip', which models.yaml does not have",
    ),
    "CLIP prompt without noun": (
        put("signals/text_prompt", "a dog"),
        "signals.text_prompt must hold {noun} exactly once",
    ),
    "negative noise step": (
        put("signals/vcd_noise_step", -1),
        "signals.vcd_noise_step is -1, but must be at least 0",
    ),
    "probe without signals": (
        put("signals/compute", False),
        "which needs signals, and this run measures none",
    ),
    "RePOPE of other images": (
        put("labels", ["pope", "repope"]),
        "re-annotates COCO images only, not those of demo-pope",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_config_is_refused_in_one_sentence(name: str, in_root: Path) -> None:
    mutate, expected = BAD[name]
    config = merged(in_root, "demo")
    config["models"] = ["tiny-llava"]  # so that "tiny-qwen" is a known model that is not asked
    mutate(config)
    sentence = refusal(config, in_root)
    assert expected in sentence
    assert sentence.startswith("config: ") and sentence.endswith(".")
    assert "\n" not in sentence


def test_files_run_names_the_first_missing_record(in_root: Path, tmp_path: Path) -> None:
    config = merged(in_root, "demo") | {"records_from": "files", "records_folder": str(tmp_path)}
    sentence = refusal(config, in_root)
    assert "lacks records/demo-pope/tiny-llava/fp32/authors.parquet" in sentence


@pytest.mark.parametrize(
    ("run", "key", "value", "expected"),
    [
        ("paper-counts", "datasets", ["coco-2023-11"], "holds answers to coco-2023-10 only"),
        (
            "paper-counts",
            "models",
            ["tiny-llava"],
            "models names 'tiny-llava', which records_from 'counts' does not have",
        ),
        (
            "paper-counts",
            "figures",
            ["figure_03_running_adversarial"],
            "which needs the order of the questions",
        ),
        ("paper-published", "datasets", ["coco-2023-11"], "holds answers to coco-2023-10 only"),
    ],
)
def test_printed_answers_are_few(run: str, key: str, value: list[str], expected: str, in_root: Path) -> None:
    config = merged(in_root, run) | {key: value}
    if key == "models":
        config["templates"] = ["authors"]
    assert expected in refusal(config, in_root)


def test_unreadable_mirror(in_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permissions do not bind the super-user, so the answer of the system call is what is changed.
    monkeypatch.setattr("readout_audit.config.checks.os.access", lambda *_: False)
    config = merged(in_root, "demo") | {"mirror": str(tmp_path)}
    assert "which you may not read; change its permissions" in refusal(config, in_root)


@pytest.mark.parametrize("run", [None, "demo", "paper-counts", "paper-published"])
def test_shipped_configs_are_accepted(run: str | None, in_root: Path) -> None:
    config = merged(in_root, run)
    assert load_plan(config, in_root / "workflow/schemas", known_names(config)).cells


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run: a\nrun: b\n", "line 2: key 'run' stands twice; keep one"),
        ("run: [", "is not valid YAML"),
        ("- a\n", "holds no keys"),
        ("", "holds no keys"),
    ],
)
def test_config_file_itself(text: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(AuditError, match=expected):
        check_files([file])


def test_config_file_missing(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="cannot be read"):
        check_files([tmp_path / "none.yaml"])


def test_every_schema_key_is_described_and_closed(root: Path) -> None:
    """A schema that forgets either lets a typing error through or explains nothing."""

    def walk(schema: dict[str, Any], where: str) -> None:
        if "properties" in schema:
            assert schema.get("additionalProperties") is False, f"{where} admits unknown keys"
            for key, child in schema["properties"].items():
                assert child.get("description"), f"{where}.{key} has no description"
                walk(child, f"{where}.{key}")
        for child in (schema.get("additionalProperties"), schema.get("items")):
            if isinstance(child, dict):
                walk(child, where)

    for file in sorted((root / "workflow/schemas").glob("*.yaml")):
        walk(yaml.safe_load(file.read_text(encoding="utf-8")), file.stem)
