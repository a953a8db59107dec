import hashlib
import json

import pytest
from fetch_server import answer
from huggingface_hub import constants

from readout_audit.errors import AuditError
from readout_audit.fetch.model import (
    RemoteFile,
    check_revision,
    fetch_from_hub,
    fetch_from_mirror,
    wanted_files,
)
from readout_audit.fileio import read_json
from readout_audit.stages import fetch_model

COMMIT, NEWER = "a" * 40, "b" * 40
WEIGHTS = b"weights" * 1000
FILES = {
    "config.json": b'{"auto_map": {"AutoModel": "modeling.Evil"}}',
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"{{ x }}",
    "model.safetensors": WEIGHTS,
    "modeling.py": b"raise SystemExit('code from a hub was run')",
    "pytorch_model.bin": b"pickled",
    "onnx/model.safetensors": b"other form",
    "README.md": b"# model",
}


def names(files, *, pickled=False):
    return [
        file.name for file in wanted_files([RemoteFile(name, 1, None) for name in files], pickled=pickled)
    ]


def test_only_data_of_the_top_folder_is_wanted():
    assert names(FILES) == ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]


def test_safetensors_win_even_where_pickled_weights_are_allowed():
    assert names(FILES, pickled=True) == names(FILES)


def test_pickled_weights_only_with_leave():
    files = [
        "config.json",
        "pytorch_model-00001-of-00002.bin",
        "pytorch_model.bin.index.json",
        "optimizer.bin",
        "x.py",
    ]
    assert names(files, pickled=True) == [
        "config.json",
        "pytorch_model-00001-of-00002.bin",
        "pytorch_model.bin.index.json",
    ]
    with pytest.raises(AuditError, match="set `pickled: true`"):
        names(files)
    with pytest.raises(AuditError, match="no safetensors weights and no pickled ones"):
        names(["config.json"], pickled=True)


@pytest.mark.parametrize("revision", ["main", "v1.0", "abc1234", "A" * 40, "a" * 41, ""])
@pytest.mark.usefixtures("no_sockets")
def test_revision_that_can_move_is_refused_before_anything_is_asked(tmp_path, revision):
    with pytest.raises(AuditError, match="give a full 40-digit commit"):
        check_revision("m", revision)
    with pytest.raises(AuditError, match="give a full 40-digit commit"):
        fetch_from_hub("m", "o/m", revision, tmp_path, tmp_path / "lock.json", pickled=False)


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror/models/m"
    (folder / "onnx").mkdir(parents=True)
    for name, body in FILES.items():
        (folder / name).write_bytes(body)
    return tmp_path / "mirror"


@pytest.mark.usefixtures("no_sockets")
def test_checkpoint_of_a_mirror_is_linked_and_locked(tmp_path, mirror):
    folder, lock, output = tmp_path / "fetched/m", tmp_path / "lock.json", tmp_path / "m.json"
    arguments = ["--model", "m", "--repository", "o/m", "--mirror", str(mirror), "--lock", str(lock)]
    arguments += ["--folder", str(folder), "--output", str(output)]
    assert fetch_model.main(arguments) == 0
    made = read_json(output, "manifest")
    assert sorted(path.name for path in folder.iterdir()) == sorted(made["files"])
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert made["files"]["model.safetensors"] == hashlib.sha256(WEIGHTS).hexdigest()
    assert (made["source"], made["revision"]) == ("mirror", None)
    assert fetch_model.main(arguments) == 0
    (mirror / "models/m/model.safetensors").write_bytes(b"other weights")
    with pytest.raises(AuditError, match="models/m: files was"):
        fetch_model.main(arguments)


@pytest.mark.usefixtures("no_sockets")
def test_mirror_without_the_model_is_one_sentence(tmp_path, mirror):
    with pytest.raises(AuditError, match=r"models/other: not in the mirror"):
        fetch_from_mirror("other", mirror, tmp_path / "f", tmp_path / "lock.json", pickled=False)
    for path in (mirror / "models/m").glob("*.safetensors"):
        path.unlink()
    with pytest.raises(AuditError, match=r"models/m: the repository has pickled weights only"):
        fetch_from_mirror("m", mirror, tmp_path / "f", tmp_path / "lock.json", pickled=False)


class Hub:
    """The four answers of the hub that its client needs, over the scripted server."""

    def __init__(self, server):
        self.server = server
        self.head = COMMIT
        self.files = dict(FILES)
        self.stated = {"model.safetensors": hashlib.sha256(WEIGHTS).hexdigest()}
        self.asked = []
        server._http.RequestHandlerClass.do_GET = lambda handler: self.reply(handler)
        server._http.RequestHandlerClass.do_HEAD = lambda handler: self.reply(handler, body=False)

    def reply(self, handler, *, body=True):
        path = handler.path.split("?")[0]
        self.asked.append(path)
        if path.startswith("/api/models/o/m"):
            revision = path.rpartition("/revision/")[2] if "/revision/" in path else self.head
            siblings = [self.sibling(name) for name in self.files]
            answer(handler, 200, json.dumps({"id": "o/m", "sha": revision, "siblings": siblings}).encode())
            return
        commit, _, name = path.removeprefix("/o/m/resolve/").partition("/")
        if name not in self.files:
            answer(handler, 404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content = self.files[name]
        etag = hashlib.sha256(content).hexdigest()
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}
        if body:
            answer(handler, 200, content, headers)
        else:
            handler.send_response(200)
            for key, value in {**headers, "Content-Length": str(len(content))}.items():
                handler.send_header(key, value)
            handler.end_headers()

    def sibling(self, name):
        entry = {"rfilename": name, "size": len(self.files[name]), "blobId": "c" * 40}
        if name in self.stated:
            entry["lfs"] = {"size": len(self.files[name]), "sha256": self.stated[name], "pointerSize": 130}
        return entry


@pytest.fixture
def hub(server):
    return Hub(server)


def fetch(hub, tmp_path, revision=None):
    return fetch_from_hub(
        "m", "o/m", revision, tmp_path / "m", tmp_path / "lock.json", pickled=False, endpoint=hub.server.url
    )


def test_null_revision_is_resolved_once_and_then_kept(hub, tmp_path):
    made = fetch(hub, tmp_path)
    assert (made["repository"], made["revision"], made["source"]) == ("o/m", COMMIT, "hub")
    assert made["files"]["model.safetensors"] == hashlib.sha256(WEIGHTS).hexdigest()
    hub.head = NEWER
    hub.asked.clear()
    assert fetch(hub, tmp_path)["revision"] == COMMIT
    assert hub.asked[0] == f"/api/models/o/m/revision/{COMMIT}"
    with pytest.raises(AuditError, match=r"models/m: revision was a+ when first fetched and is b+ now"):
        fetch(hub, tmp_path, NEWER)


def test_a_process_that_loads_models_can_fetch_but_a_user_who_is_offline_stays_so(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("READOUT_AUDIT_SWITCHED_HUB_OFF", "1")
    assert fetch(hub, tmp_path)["revision"] == COMMIT
    assert constants.HF_HUB_OFFLINE  # on for the fetch only
    monkeypatch.delenv("READOUT_AUDIT_SWITCHED_HUB_OFF")
    with pytest.raises(AuditError, match="offline mode is enabled"):
        fetch(hub, tmp_path / "other")


def test_no_code_and_no_second_form_of_the_weights_arrives(hub, tmp_path):
    fetch(hub, tmp_path, COMMIT)
    fetched = {
        path.name for path in (tmp_path / "m").rglob("*") if path.is_file() and ".cache" not in path.parts
    }
    assert fetched == {"chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"}
    assert not any(".py" in path or ".bin" in path or "onnx" in path for path in hub.asked)


def test_weights_other_than_the_hub_states_are_removed(hub, tmp_path):
    hub.stated["model.safetensors"] = "0" * 64
    with pytest.raises(AuditError, match=r"model\.safetensors has sha256 .*, the hub says 0+"):
        fetch(hub, tmp_path)
    assert not (tmp_path / "m/model.safetensors").exists()


def test_other_repository_under_a_locked_name_is_refused(hub, tmp_path):
    fetch(hub, tmp_path)
    with pytest.raises(AuditError, match="o/m was fetched first and o/other is asked for now"):
        fetch_from_hub(
            "m",
            "o/other",
            None,
            tmp_path / "m",
            tmp_path / "lock.json",
            pickled=False,
            endpoint=hub.server.url,
        )


def test_hub_that_cannot_be_reached_is_one_sentence(hub, tmp_path):
    hub.server.close()
    with pytest.raises(AuditError, match="o/m: cannot be fetched from the hub"):
        fetch(hub, tmp_path)


@pytest.mark.slow
def test_pickled_weights_are_converted_and_both_forms_locked(tmp_path):
    torch = pytest.importorskip("torch")
    folder = tmp_path / "mirror/models/m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    torch.save({"w": torch.arange(4.0)}, folder / "pytorch_model.bin")
    made = fetch_from_mirror("m", tmp_path / "mirror", tmp_path / "m", tmp_path / "lock.json", pickled=True)
    assert set(made["files"]) == {"config.json", "pytorch_model.bin"}
    assert set(made["converted"]) == {"model.safetensors"}
    assert not (tmp_path / "m/pytorch_model.bin").exists()
    from safetensors.torch import load_file

    assert torch.equal(load_file(tmp_path / "m/model.safetensors")["w"], torch.arange(4.0))
