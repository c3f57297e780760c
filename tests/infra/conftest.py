"""The stack is synthesized without the CLI, for one region."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra import synthesis
from tests.infra import synthesized
from tests.infra.pinned_cli import installed
from tests.infra.zips import link_runtime


@pytest.fixture(autouse=True)
def _no_cli(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CDK_DEFAULT_REGION", "CDK_DEFAULT_ACCOUNT", "CDK_CONTEXT_JSON", "CDK_OUTDIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Lambda's Python brings along, and nothing else."""
    folder = tmp_path_factory.mktemp("runtime")
    link_runtime(folder)
    return folder


@pytest.fixture(scope="session")
def cli() -> Path:
    """The pinned CDK CLI."""
    return installed()


@pytest.fixture
def light_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack without its 100 MB of code, for tests that look at something else of it."""
    monkeypatch.setattr(synthesis, "_staged", lambda *_: synthesized.light_code())
