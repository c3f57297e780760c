"""The stack is synthesized without the CLI, for one region."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infra.pinned_cli import installed


@pytest.fixture(autouse=True)
def _no_cli(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CDK_DEFAULT_REGION", "CDK_DEFAULT_ACCOUNT", "CDK_CONTEXT_JSON", "CDK_OUTDIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def cli() -> Path:
    """The pinned CDK CLI."""
    return installed()
