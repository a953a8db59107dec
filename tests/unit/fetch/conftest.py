import socket

import pytest
from fetch_server import Server

from readout_audit.fetch.download import Patience


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


@pytest.fixture
def patience():
    """Four attempts that do not wait."""
    return Patience(attempts=4, wait=0.0, timeout=(2.0, 2.0))


@pytest.fixture
def no_sockets(monkeypatch):
    """Any attempt to open a socket fails the test."""

    def refuse(*_args, **_options):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
