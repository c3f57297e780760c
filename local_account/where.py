"""Who and where the local account is: the facts that every part of it shares."""

from __future__ import annotations

from pathlib import Path

HOST = "127.0.0.1"
ACCOUNT = "000000000000"
REGION = "us-east-1"
ACCESS_KEY = "test"
SECRET_KEY = "test"  # noqa: S105  the contract's credentials of an account that is not one
REPOSITORY = Path(__file__).resolve().parent.parent
CACHE = REPOSITORY / "build" / "account"  # synthesized assemblies


def endpoint_url(port: int) -> str:
    """The address that clients use."""
    return f"http://{HOST}:{port}"
