"""Who and where the local account is: the facts that every part of it shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3

HOST = "127.0.0.1"
ACCOUNT = "000000000000"
REGION = "us-east-1"
ACCESS_KEY = "test"
SECRET_KEY = "test"  # noqa: S105  the contract's credentials of an account that is not one
REPOSITORY = Path(__file__).resolve().parent.parent
CACHE = REPOSITORY / "build" / "account"  # synthesized assemblies


WRONG_USE, FAILED = 2, 1


class CannotStart(Exception):
    """The account cannot start; the text is one line that names the cause and the remedy."""

    def __init__(self, line: str, exit_code: int = WRONG_USE) -> None:
        super().__init__(" ".join(line.split()))
        self.exit_code = exit_code


def endpoint_url(port: int) -> str:
    """The address that clients use."""
    return f"http://{HOST}:{port}"


def operator(url: str) -> dict[str, str]:
    """The variables of a shell in which somebody works with the account at `url`."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
    }


def client(service_name: str, url: str, **more: Any) -> Any:
    """A boto3 client of the account at `url`; test/test unless `more` says who calls."""
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
    return boto3.client(service_name, endpoint_url=url, **{"region_name": REGION, **keys, **more})
