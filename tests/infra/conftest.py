"""The tests of infra see no variables of the CDK CLI."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infra.pinned_cli import install_cli


@pytest.fixture(autouse=True)
def _unset_cdk_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CDK_DEFAULT_REGION", "CDK_DEFAULT_ACCOUNT", "CDK_CONTEXT_JSON", "CDK_OUTDIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def cli() -> Path:
    """The pinned CDK CLI."""
    return install_cli()
