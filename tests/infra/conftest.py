"""The stack is synthesized without the CLI, for one region."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_cli(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CDK_DEFAULT_REGION", "CDK_DEFAULT_ACCOUNT", "CDK_CONTEXT_JSON", "CDK_OUTDIR"):
        monkeypatch.delenv(name, raising=False)
