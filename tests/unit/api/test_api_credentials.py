"""The key of a server."""

import pytest
import requests
from api_server import completion, good, serving

from readout_audit.api.client import Client, Patience
from readout_audit.api.credentials import ApiKey
from readout_audit.api.pace import Pace
from readout_audit.errors import AuditError

KEY = "sk-proj-4f.9_A~b+c/d="


def test_a_key_is_sent_as_a_bearer_token_and_does_not_show_itself(monkeypatch):
    monkeypatch.setenv("SOME_KEY", f" {KEY}\n")
    key = ApiKey("SOME_KEY")
    request = key.sign(requests.Request("POST", "http://127.0.0.1/").prepare())
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(key) + str(key)
    assert key.hide(f"Incorrect API key provided: {KEY}.") == "Incorrect API key provided: [key]."


@pytest.mark.parametrize("value", ["", "  ", None])
def test_a_variable_that_is_not_set_is_named(value, monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(AuditError, match="variable SOME_KEY is not set"):
        ApiKey("SOME_KEY")


@pytest.mark.parametrize(
    "value", ["'sk-1234567890'", "sk-12 34567890", "sk-1234\n567890", "schlüssel-123456", "short"]
)
def test_what_is_no_key_is_refused_and_not_printed(value, monkeypatch):
    # requests would print it: "Invalid ... character(s) in header value: 'Bearer ...'".
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(AuditError, match="SOME_KEY holds no key") as caught:
        ApiKey("SOME_KEY")
    assert value.split()[0].strip("'") not in str(caught.value)


@pytest.mark.parametrize("variable", [None, "SOME_KEY"])
def test_no_other_key_is_looked_for(variable, monkeypatch, tmp_path):
    # requests takes ~/.netrc over a header of ours, and where there is none.
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password of-another-server\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("SOME_KEY", KEY)
    with serving(lambda number, body: good(completion([("Yes", -0.1)]))) as server:
        Client(server.url, ApiKey(variable), Pace(None), Patience()).ask({"messages": []})
    expected = f"Bearer {KEY}" if variable else None
    assert server.headers[0].get("Authorization") == expected
