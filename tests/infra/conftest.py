"""The stack is synthesized without the CLI, for one region."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra import synthesis
from infra.emr_package import EmrPackage
from infra.stack import Code
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


@pytest.fixture
def light_code(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack without its 100 MB of code, for tests that look at something else of it."""
    folder = tmp_path_factory.mktemp("light-code")
    files = [folder / name for name in ("index.py", "job.py", "job.zip")]
    for each in files:
        each.write_bytes(each.name.encode())
    code = Code(folder, folder, EmrPackage(modules=files[2], entry_point=files[1]))
    monkeypatch.setattr(synthesis, "_staged", lambda *_: code)
