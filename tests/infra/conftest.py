"""The stack is synthesized without the CLI, for one region."""

from __future__ import annotations

from pathlib import Path

import pytest

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
