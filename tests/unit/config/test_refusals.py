"""Every bad configuration is refused in one sentence that names the key and the remedy."""

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from readout_audit.config.load import check_files, load_plan
from readout_audit.config.plan import prediction_files
from readout_audit.config.preparation import known_names
from readout_audit.config.wiring import Wiring
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
        load_plan(config, root / "workflow/schemas", known_names())
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
READ = ["legacy_8tok", "legacy_2tok"]

SERVER = {"url": "http://127.0.0.1:9/v1", "served_model": "org/m"}


def serve(
    changes: dict[str, Any] | None = None, prompt: dict[str, Any] | None = None, **more: Any
) -> Callable[[Config], None]:
    """Return a mutation that has a server answer for a new model; `more` are keys of its entry."""

    def mutate(config: Config) -> None:
        entry = {"adapter": "openai", "repository": None, "revision": None, "folder": None, "pickled": False}
        server = {**SERVER, **(changes or {})}
        config["known_models"]["far"] = {**entry, "server": server, **more}
        chat = {"text": None, "chat": True, "suffix": " Yes or no?", "answer_boundary": "clean"}
        config["known_templates"]["far"] = {"authors": prompt or chat}
        config["models"] = ["tiny-llava", "far"]

    return mutate


def both(*mutations: Callable[[Config], None]) -> Callable[[Config], None]:
    def mutate(config: Config) -> None:
        for one in mutations:
            one(config)

    return mutate


def own(**changes: Any) -> Callable[[Config], None]:
    """Return a mutation that asks about questions and pictures of one's own."""

    def mutate(config: Config) -> None:
        entry = dict(config["known_datasets"]["demo-pope"]) | {"images": "mine"}
        entry["splits"] = {"main": {"file": "README.md", "path": "README.md", "sha256": None}}
        config["known_images"]["mine"] = {"description": "", "licence": None, "path": "docs"}
        config["known_datasets"]["mine"] = {**entry, **changes}
        config.update(datasets=["mine"], splits=list(config["known_datasets"]["mine"]["splits"]))

    return mutate


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
    "no such precision": (
        put("precisions", ["fp8"]),
        "entry 1 of precisions is 'fp8', but must be one of fp32",
    ),
    "no such device": (
        put("inference/device", "tpu"),
        "inference.device is 'tpu', but must be one of auto, cuda, cpu",
    ),
    "run is a path": (put("run", "../demo"), "run is '../demo', but must be a name of letters, digits,"),
    "one readout for a gap": (
        put("gap_pair", ["legacy_2tok"]),
        "gap_pair is ['legacy_2tok'], but must be a list of 2",
    ),
    "no such labels": (
        put("labels", ["popeye"]),
        "entry 1 of labels is 'popeye', but must be one of pope, repope",
    ),
    "remote code": (
        put(MODEL + "trust_remote_code", True),
        "unknown key 'trust_remote_code' at known_models.tiny-llava",
    ),
    "a branch for a revision": (
        put("known_models/llava-1.5-7b/revision", "main"),
        "known_models.llava-1.5-7b.revision is 'main', but must be a commit of 40 hexadecimal digits",
    ),
    "boundary misspelt": (
        put(PROMPT + "answer_boundary", "clear"),
        "is 'clear', but must be one of clean, merges",
    ),
    "bad hash": (
        put(SPLIT + "sha256", "abc"),
        "splits.random.sha256 is 'abc', but must be a hash of 64 hexadecimal digits",
    ),
    "dataset without namespace": (
        drop("known_datasets/demo-pope/image_namespace"),
        "image_namespace is missing",
    ),
    "name with a line break": (
        put("run", "demo\n"),
        "run is 'demo\\n', but must be a name of letters, digits,",
    ),
    "name too long": (put("run", "d" * 101), "but must be a text of at most 100 characters"),
    "half a shard": (put("inference/shards", 2.0), "shards is 2.0, but must be a whole number"),
    "true shards": (put("inference/shards", True), "shards is true, but must be a whole number"),
    "batch too large": (put("inference/batch_size", 10**30), "but must be at most 65536"),
    "seed too large": (put("bootstrap/seed", 2**32), "but must be at most 4294967295"),
    "null for a list": (put("tables", None), "tables is null, but must be a list"),
    "empty mirror": (put("mirror", ""), "mirror is '', but must be a text that is not empty"),
    "gap with itself": (put("gap_pair", ["legacy_2tok"] * 2), "gap_pair is ['legacy_2tok', 'legacy_2tok']"),
    "name that is a number": (
        lambda config: config["known_models"].update({7: config["known_models"]["tiny-llava"]}),
        "7 at known_models must be a text; choose another name",
    ),
    "path for a name": (
        lambda config: config["known_templates"].update({"../x": {}}),
        "'../x' at known_templates must be a name of letters, digits,",
    ),
    "repository outside": (
        put("known_models/llava-1.5-7b/repository", "../x"),
        "repository is '../x', but must be an owner and a name",
    ),
    "mirror path outside": (
        put("known_labels/repope/splits/random/mirror", "repope/../../x.json"),
        "splits.random.mirror is 'repope/../../x.json', but must be a path such as",
    ),
    "made outside": (
        put(SPLIT + "path", "/tmp/x.json"),
        "which is not a file; correct the path",
    ),
    "no address": (
        put("known_labels/repope/splits/random/url", None),
        "random.url is null, but must be a text",
    ),
    "label set without splits": (drop("known_labels/repope/splits"), "known_labels.repope.splits is missing"),
    "no models known": (drop("known_models"), "known_models is missing"),
    "no templates known": (drop("known_templates"), "known_templates is missing"),
    "no datasets known": (drop("known_datasets"), "known_datasets is missing"),
    "prediction of an unknown correction": (
        put("known_predictions/entropy-1.0/correction", "entropie"),
        "known_predictions.entropy-1.0.correction names 'entropie', which is not a correction",
    ),
    "prediction without a split": (
        put("known_predictions/baseline/split", None),
        "known_predictions.baseline.split must name a split where questions were asked",
    ),
    "prediction holds something": (
        put("known_predictions/baseline/holds", "logits"),
        "known_predictions.baseline.holds is 'logits', but must be one of answers, tokenizer",
    ),
    "prediction's file is elsewhere": (
        put("known_predictions/baseline/file/mirror", "pope/x.json"),
        "known_predictions.baseline.file.mirror is 'pope/x.json', but must be a path such as published/",
    ),
    "published is a number": (put("known_published", 1), "known_published is 1, but must be a dictionary"),
    "published without precision": (
        drop("known_published/llava-1.5-7b/precision"),
        "known_published.llava-1.5-7b.precision is missing",
    ),
    "published under no prompt": (
        put("known_published/llava-1.5-7b/template", "a\nb"),
        "known_published.llava-1.5-7b.template is 'a\\nb', but must be a name of letters, digits,",
    ),
    "pictures of no folder key": (
        put("known_images/gqa/folder_key", "gqa"),
        "folder_key is 'gqa', but must be one of coco_val2014, null",
    ),
    "address of no picture": (
        put("known_images/coco-val2014/url", "http://images.cocodataset.org/val2014/"),
        "url is 'http://images.cocodataset.org/val2014/', but must be an address with {image} once",
    ),
    # what the checks say
    "run takes a folder": (put("run", "benchmarks"), "run is 'benchmarks', a name that results/ uses"),
    "unknown labels": (
        lambda config: config.update(labels=["repope"], known_labels={}),
        "labels names 'repope', which config/datasets.yaml does not define; there is none to choose from",
    ),
    "file from nowhere": (
        drop(SPLIT + "path"),
        "known_datasets.demo-pope.splits.random says neither where its file is fetched nor where it is made",
    ),
    "pictures not defined": (
        put("known_datasets/demo-pope/images", "demo"),
        "known_datasets.demo-pope.images names 'demo', which known_images does not define",
    ),
    "pictures drawn, but how many": (
        drop("known_images/demo-world/pictures"),
        "known_images.demo-world must have pictures, and a path with {run}, or neither",
    ),
    "pictures drawn, but where": (
        put("known_images/coco-val2014/pictures", 10),
        "known_images.coco-val2014 must have pictures, and a path with {run}, or neither",
    ),
    "pictures from nowhere": (
        drop("known_images/demo-world/path"),
        "known_images.demo-world must have url, mirror, folder_key and fetched, or path",
    ),
    "pictures without address or mirror": (
        put("datasets", ["gqa-seem"]),
        "mirror is null, but the pictures of dataset gqa-seem cannot be downloaded one by one",
    ),
    "subset larger than any split": (
        lambda config: config.update(datasets=["coco-2023-05"], subsets=[3001]),
        "subsets has 3001, but the largest split has 3000 questions",
    ),
    "cell of no template": (
        put("extra_cells", ["tiny-llava/fp32/chat"]),
        "extra_cells names 'chat', which model tiny-llava does not have",
    ),
    "stray placeholder": (
        put(PROMPT + "text", "USER: {image}\n{question}"),
        "authors holds {image}, which the model would read as it stands; remove it",
    ),
    "question in a suffix": (
        put("known_templates/tiny-qwen/authors/suffix", " {question}"),
        "known_templates.tiny-qwen.authors holds {question}, which the model would read",
    ),
    "CLIP from nowhere": (
        put("known_clips/tiny-clip-b/folder", None),
        "known_clips.tiny-clip-b must have exactly one of repository and folder",
    ),
    "CLIP folder without checkpoint": (
        put("known_clips/tiny-clip-b/folder", "docs"),
        "known_clips.tiny-clip-b.folder is 'docs', where there is no config.json",
    ),
    "mirror at home": (put("mirror", "~/no/such"), "(~ is not replaced by your home folder here)"),
    "span that ends before it starts": (
        put("signals/authors_window", [37, 1]),
        "signals.authors_window is [37, 1], but must end after it starts",
    ),
    "no layers": (put("signals/entropy_layers", [2, 2]), "signals.entropy_layers is [2, 2], but must end"),
    "unknown model": (
        put("models", ["tiny-lava"]),
        "models names 'tiny-lava', which config/models.yaml does not define (did you mean",
    ),
    "unknown dataset": (
        put("datasets", ["demo"]),
        "datasets names 'demo', which config/datasets.yaml does not define",
    ),
    "unknown template": (
        put("templates", ["author"]),
        "templates names 'author', which model tiny-llava does not have",
    ),
    "model without template": (
        drop("known_templates/tiny-llava"),
        "model tiny-llava has no template in config/templates.yaml",
    ),
    "unknown split": (put("splits", ["rand"]), "splits names 'rand', which dataset demo-pope does not have"),
    "unknown readout": (
        put("readouts", ["legacy_3tok"]),
        "readouts names 'legacy_3tok', which is not a readout (did you mean",
    ),
    "unknown table": (
        put("tables", ["table_99"]),
        "tables names 'table_99', which is not one of the tables",
    ),
    "unknown figure": (
        put("figures", ["figure_99"]),
        "figures names 'figure_99', which is not one of the figures",
    ),
    "unknown engine": (
        put("inference/engine", "fast"),
        "inference.engine names 'fast', which is not an engine; choose from sequential",
    ),
    "unknown adapter": (
        put(MODEL + "adapter", "lava"),
        "known_models.tiny-llava.adapter names 'lava', which is not an adapter",
    ),
    "gap of readouts not read": (
        put("readouts", ["legacy_8tok"]),
        "gap_pair names 'legacy_2tok', which readouts does not list",
    ),
    "unknown reference": (
        put("reference_model", "llama"),
        "reference_model names 'llama', which config/models.yaml does not",
    ),
    "reference not asked": (
        put("reference_model", "llava-1.5-7b"),
        "which this run does not ask; add it to models",
    ),
    "cell malformed": (put("extra_cells", ["tiny-llava/fp32"]), "must have model/precision/template"),
    "cell of no model": (
        put("extra_cells", ["tiny/fp32/authors"]),
        "extra_cells names 'tiny', which config/models.yaml",
    ),
    "cell of no precision": (
        put("extra_cells", ["tiny-llava/fp8/authors"]),
        "'fp8' is no precision; choose from fp32",
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
        "must have either a text and chat: false, or chat: true and text: null",
    ),
    "prompt of nothing": (
        put(PROMPT + "text", None),
        "must have either a text and chat: false, or chat: true and text: null",
    ),
    "suffix of a text": (
        put(PROMPT + "suffix", " Yes?"),
        "suffix belongs to chat templates; write it into the text",
    ),
    "weights from nowhere": (
        put(MODEL + "folder", None),
        "must have exactly one of repository, folder, random and server",
    ),
    "weights from two places": (
        put(MODEL + "repository", "a/b"),
        "must have exactly one of repository, folder, random and server",
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
        "signals.models names 'tiny-lava', which config/models.yaml",
    ),
    "signals of a model not asked": (
        put("signals/models", ["tiny-qwen"]),
        "signals.models names 'tiny-qwen', which this run does not ask; choose from tiny-llava",
    ),
    "unknown CLIP": (
        put("signals/clip_b32", "clip"),
        "signals.clip_b32 names 'clip', which config/models.yaml does not define",
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
        "which needs signals (a second pass over the models); set signals.compute: true",
    ),
    "a diagnostic file without published answers": (
        put("diagnostic", True),
        "diagnostic is true, but records_from is 'inference'; set diagnostic to false",
    ),
    "diagnostic of no split": (
        drop("known_published/llava-1.5-7b/diagnostic/split"),
        "known_published.llava-1.5-7b.diagnostic.split is missing",
    ),
    "server without a scheme": (
        serve({"url": "localhost:8000/v1"}),
        "known_models.far: settings: server is 'localhost:8000/v1', not an address such as",
    ),
    "server with no such port": (serve({"url": "http://h:99999/v1"}), "'http://h:99999/v1', not an address"),
    "password in an address": (
        serve({"url": "http://me:hunter2@h/v1"}),
        "settings: server holds a user name, password or query",
    ),
    "server and folder": (serve(folder="docs"), "exactly one of repository, folder, random and server"),
    "server of a family": (
        serve(adapter="llava"),
        "known_models.far.adapter names 'llava', which is not an adapter; choose from openai",
    ),
    "family without server": (
        put(MODEL + "adapter", "openai"),
        "known_models.tiny-llava.adapter names 'openai', which is not an adapter",
    ),
    "revision beside a server": (serve(revision="0" * 40), "a served model's own stands under server"),
    "audit's own request field": (
        serve({"extra": {"temperature": 1}}),
        "extra must not set temperature; the audit sets those itself",
    ),
    "picture placed for a server": (
        serve(prompt={"text": "<image> {question}", "chat": False, "suffix": "", "answer_boundary": "clean"}),
        "its text holds <image>, but a server places the picture itself",
    ),
    "server as reference": (
        both(serve(), put("reference_model", "far")),
        "reference_model is 'far', whose token ids a server does not tell; choose from tiny-llava",
    ),
    "signals of a server": (
        both(serve(), put("signals/models", ["far"])),
        "signals.models names 'far', whose inside a server does not show; remove it",
    ),
    "served cell of a local model": (
        put("extra_cells", ["tiny-llava/served/paper"]),
        "'served' is no precision; choose from fp32, bf16, fp16, int8, nf4",
    ),
    "precision of a served model": (
        both(serve(), put("extra_cells", ["far/nf4/authors"])),
        "'nf4' is no precision; choose from served",
    ),
    "served cell twice": (
        both(serve(), put("extra_cells", ["far/served/authors"])),
        "which models, precisions and templates already give; remove it",
    ),
    "own question file": (
        own(splits={"main": {"file": "q.csv", "path": "no/q.csv", "sha256": None}}),
        "known_datasets.mine.splits.main.path is 'no/q.csv', which is not a file; correct the path",
    ),
    "own pictures": (
        both(own(), put("known_images/mine/path", "no/pictures")),
        "known_images.mine.path is 'no/pictures', which is not a folder; correct the path",
    ),
    "own annotation": (
        own(
            sampled={"annotations": "no.json", "images": 2},
            splits={
                "random": {"file": "r", "path": "results/{run}/sampled/mine/random.json", "sha256": None}
            },
        ),
        "known_datasets.mine.sampled.annotations is 'no.json', which is not a file",
    ),
    "sampled elsewhere": (
        own(
            sampled={"annotations": "README.md", "images": 2},
            splits={"random": {"file": "r", "path": "results/{run}/mine/random.json", "sha256": None}},
        ),
        "but what is sampled lies at results/{run}/sampled/mine/random.json; write that",
    ),
    "sampled split": (
        own(
            sampled={"annotations": "README.md", "images": 2},
            splits={"main": {"file": "r", "path": "results/{run}/sampled/mine/main.json", "sha256": None}},
        ),
        "splits names 'main', but what is sampled has random, popular, adversarial",
    ),
    "RePOPE of other images": (
        put("labels", ["pope", "repope"]),
        "has labels for POPE's own COCO questions and none for demo-pope",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_config_is_refused_in_one_sentence(name: str, in_root: Path) -> None:
    mutate, expected = BAD[name]
    config = merged(in_root, "demo")
    config |= {
        "models": ["tiny-llava"],
        "extra_cells": [],
    }  # so that "tiny-qwen" is a known model that is not asked
    mutate(config)
    sentence = refusal(config, in_root)
    assert expected in sentence
    assert sentence.startswith("config: ") and sentence.endswith(".")
    assert "\n" not in sentence


def test_files_run_names_the_first_missing_record(in_root: Path, tmp_path: Path) -> None:
    config = merged(in_root, "demo") | {"records_from": "files", "records_folder": str(tmp_path)}
    sentence = refusal(config, in_root)
    assert "where records/demo-pope/tiny-llava/fp32/authors.parquet is missing" in sentence


@pytest.mark.parametrize(
    ("run", "key", "value", "expected"),
    [
        ("paper-counts", "datasets", ["coco-2023-11"], "has answers to coco-2023-10 only"),
        (
            "paper-counts",
            "models",
            ["tiny-llava"],
            "models names 'tiny-llava', which records_from: counts has no answers of",
        ),
        (
            "paper-counts",
            "figures",
            ["figure_03_running_adversarial"],
            "which needs the order of the questions",
        ),
        ("paper-counts", "labels", ["pope", "repope"], "which records_from: counts cannot use"),
        (
            "paper-counts",
            "readouts",
            [*READ, "first_token"],
            "readouts names 'first_token', which records_from",
        ),
        (
            "paper-published",
            "readouts",
            [*READ, "vcd"],
            "'vcd', which records_from: published",
        ),
        ("paper-published", "precisions", ["fp16"], "published has llava-1.5-7b/nf4/authors only"),
        ("paper-counts", "templates", ["authors", "paper"], "or extra_cells ask for llava-1.5-7b/nf4/paper"),
        ("paper-published", "extra_cells", ["llava-1.5-7b/nf4/paper"], "llava-1.5-7b/nf4/authors only"),
        (
            "paper-published",
            "tables",
            ["table_08_corrections", "table_correctness"],
            "tables names 'table_correctness', which needs signals (a second pass over the models); records_from: "
            "published has none, so remove it",
        ),
        (
            "paper-published",
            "predictions",
            ["baseline", "clip-b32"],
            "predictions names 'clip-b32', which config/datasets.yaml does not define",
        ),
        (
            "paper-counts",
            "predictions",
            ["baseline"],
            "predictions names 'baseline', but records_from is 'counts'; set predictions: [] or use",
        ),
        (
            "paper-published",
            "splits",
            ["random", "popular"],
            "which is about llava-1.5-7b/nf4/authors on adversarial; ask for that cell and split, or remove",
        ),
        ("paper-published", "datasets", ["coco-2023-11"], "has answers to coco-2023-10 only"),
        ("paper-published", "tables", ["table_09_group_means"], "published has none, so remove it"),
        ("paper-diagnostic", "tables", ["table_08_corrections"], "published has none, so remove it."),
        ("paper-diagnostic", "figures", ["figure_layer_windows"], "published has none, so remove it"),
        ("paper-diagnostic", "models", ["llava-1.6-mistral-7b"], "or add one of llava-1.5-7b to models"),
        (
            "paper-diagnostic",
            "splits",
            ["random"],
            "splits lacks adversarial, which the diagnostic file of llava-1.5-7b",
        ),
        ("paper-diagnostic", "readouts", ["legacy_2tok"], "gap_pair names 'legacy_8tok'"),
    ],
)
def test_printed_answers_are_few(run: str, key: str, value: list[str], expected: str, in_root: Path) -> None:
    config = merged(in_root, run) | {key: value}
    if key == "models":
        config["templates"] = ["authors"]
    assert expected in refusal(config, in_root)


def test_unreadable_mirror(in_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permissions do not bind the super-user, so the answer of the system call is what is changed.
    monkeypatch.setattr("readout_audit.config.checks.sources.os.access", lambda *_: False)
    config = merged(in_root, "demo") | {"mirror": str(tmp_path)}
    assert "which you may not read; change its permissions" in refusal(config, in_root)


@pytest.mark.parametrize(
    "run", [None, "demo", "demo-grid", "demo-releases", "paper-counts", "paper-published", "paper-diagnostic"]
)
def test_shipped_configs_are_accepted(run: str | None, in_root: Path) -> None:
    config = merged(in_root, run)
    assert load_plan(config, in_root / "workflow/schemas", known_names()).cells


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run: a\nrun: b\n", "line 2: key 'run' stands twice; keep one of them"),
        ("run: [", "is not valid YAML"),
        ("- a\n", "must hold keys with values"),
        ("", "must hold keys with values"),
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


def with_mirror(root: Path, folder: Path, *names: str) -> Wiring:
    """The published run with a mirror that holds the files of some further predictions."""
    config = merged(root, "paper-published") | {"mirror": str(folder)}
    for name in names:
        for file in prediction_files(config["known_predictions"][name]):
            path = folder / file["mirror"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("[]", encoding="utf-8")
    return Wiring(load_plan(config, root / "workflow/schemas", known_names()).config)


def test_a_mirror_that_lacks_a_file_leaves_it_out(in_root: Path, tmp_path: Path) -> None:
    plan = with_mirror(in_root, tmp_path, "entropy-1.0", "mistral-tokenizer")
    assert list(plan.predictions) == ["entropy-1.0", "mistral-tokenizer"]
    assert set(plan.left_out) == {"baseline", "clip-b32-1.0", "clip-b32-1.5", "magnitude-100"}
    cell = "coco-2023-10/llava-1.5-7b/nf4/authors"
    assert plan.measured_files("corrections") == [f"results/paper-published/corrections/{cell}.parquet"]
    assert plan.measured_files("probe") == plan.measured_files("sweeps") == []
    assert list(plan.dryruns) == ["llava-1.6-mistral-7b"]
    assert [source["name"] for source in json.loads(plan.answer_sources(plan.cells[0]))] == ["entropy-1.0"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert not with_mirror(in_root, empty).predictions


def test_what_the_mirror_lacks_cannot_be_drawn(in_root: Path, tmp_path: Path) -> None:
    config = merged(in_root, "paper-published") | {"figures": ["figure_07_corrections"]}
    load_plan(config, in_root / "workflow/schemas", known_names())
    said = refusal(config | {"mirror": str(tmp_path)}, in_root)
    assert "names 'figure_07_corrections', which needs signals" in said
    assert said.endswith("has none, so remove it (the mirror lacks files that predictions names).")


def test_the_native_templates_500_answers_are_a_cell_of_their_own(in_root: Path) -> None:
    config = merged(in_root, "paper-published")
    config["extra_cells"] = ["llava-1.6-mistral-7b/nf4/native_chat_suffix"]
    plan = Wiring(load_plan(config, in_root / "workflow/schemas", known_names()).config)
    cell = plan.cells[1]
    assert plan.published_splits(cell) == ["adversarial"]
    (file,) = plan.published_files(cell)
    assert file.endswith("_pope_adversarial_500q_native_chat_template_token_audit.json")
    config["extra_cells"] = ["llava-1.6-mistral-7b/nf4/paper"]
    assert (
        "has llava-1.6-mistral-7b/nf4/authors and llava-1.6-mistral-7b/nf4/native_chat_suffix only; "
        "ask for those alone"
    ) in refusal(config, in_root)


def test_figure_6_takes_the_papers_questions_and_shows_only_pictures_of_ones_own(
    in_root: Path, tmp_path: Path
) -> None:
    def wired(run: str, **values: Any) -> Wiring:
        config = merged(in_root, run) | values
        return Wiring(load_plan(config, in_root / "workflow/schemas", known_names()).config)

    def images(plan: Wiring) -> list[str]:
        return plan._sources(["images"]).get("images", [])

    published = wired("paper-published")
    asked = json.loads(published.table_options(None))["samples"]
    assert asked == ["1", "7", "26", "72", "14", "20", "35", "39"]
    assert images(published) == []
    assert images(wired("paper-published", coco_val2014=str(tmp_path))) == [str(tmp_path)]
    demo = wired("demo")
    assert json.loads(demo.table_options(None))["samples"] == []
    assert images(demo) == ["results/demo/world/images"]


def test_releases_are_compared_where_they_ask_about_the_same_pictures(in_root: Path) -> None:
    config = merged(in_root, None) | {"models": ["llava-1.5-7b"], "extra_cells": [], "mirror": str(in_root)}

    def pairs(*datasets: str) -> list[tuple[str, str]]:
        plan = Wiring(
            load_plan(
                config | {"datasets": list(datasets)}, in_root / "workflow/schemas", known_names()
            ).config
        )
        return [(first.dataset, second.dataset) for first, second in plan.release_pairs]

    assert pairs("coco-2023-10") == []
    assert pairs("coco-2023-11", "coco-2023-10") == [("coco-2023-11", "coco-2023-10")]
    # A-OKVQA asks about COCO files under labels of its own, so it shares no question with POPE's own release.
    assert pairs("coco-2023-10", "aokvqa-seem") == []
    assert len(pairs("coco-2023-10", "aokvqa-seem", "coco-2023-11", "coco-2023-08")) == 3
    alone = config | {"tables": ["table_releases"]}
    assert "tables names 'table_releases', which compares two releases of the same questions" in refusal(
        alone, in_root
    )


OF_THE_PAPER = ["table_03_survey", "table_08_published", "table_09_published", "table_12_survey_readouts"]


@pytest.mark.parametrize(("claims", "left_out"), [(True, []), (False, OF_THE_PAPER)])
def test_tables_of_published_rows_belong_to_a_run_that_is_held_against_the_paper(
    in_root: Path, claims: bool, left_out: list[str]
) -> None:
    config = merged(in_root, None) | {"claims": claims}
    plan = Wiring(load_plan(config, in_root / "workflow/schemas", known_names()).config)
    assert plan.paper_only_tables == left_out
    assert plan.tables == [name for name in config["tables"] if name not in left_out]
    assert len(plan.report_sources(None)["tables"]) == len(plan.tables)


@pytest.mark.parametrize(
    ("values", "strange"),
    [
        ({}, False),
        ({"claims": False, "datasets": ["demo-pope"]}, False),
        ({"datasets": ["demo-pope"]}, True),
        ({"models": ["tiny-llava"], "precisions": ["fp32"], "extra_cells": []}, True),
    ],
)
def test_a_run_held_against_the_paper_without_anything_of_it(
    in_root: Path, values: Config, strange: bool
) -> None:
    assert Wiring(merged(in_root, None) | values).is_strange_to_paper is strange
