"""Answers of a service that the command asks through a session of its own."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber


def stubbed(monkeypatch: pytest.MonkeyPatch, service: str) -> Stubber:
    """Return the stub that answers for the service in every session."""
    client, plain = boto3.client(service), boto3.Session.client

    def made(session: boto3.Session, asked: str, *rest: Any, **named: Any) -> Any:
        return client if asked == service else plain(session, asked, *rest, **named)

    monkeypatch.setattr(boto3.Session, "client", made)
    stub = Stubber(client)
    stub.activate()
    return stub
