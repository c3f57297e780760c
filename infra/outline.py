"""The template as it would be deployed, but for the code: in seconds, for whoever reads it only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aws_cdk as cdk

from infra.packaging.emr import EmrPackage
from infra.settings.deployment import DeploymentSettings
from infra.stack import Code, MendqStack
from infra.synthesis import STACK_NAME, new_app


def outline(settings: DeploymentSettings, region: str) -> Mapping[str, Any]:
    """The stack's template with empty zips. Raises RuntimeError where CDK's validation fails."""
    with TemporaryDirectory(prefix="mendq-") as folder:
        app = new_app(Path(folder) / "cdk.out")
        MendqStack(
            app,
            STACK_NAME,
            stack_name=STACK_NAME,
            env=cdk.Environment(region=region),
            analytics_reporting=False,
            settings=settings,
            code=_empty(Path(folder) / "code"),
        )
        template: Mapping[str, Any] = app.synth().get_stack_by_name(STACK_NAME).template
        return template


def _empty(folder: Path) -> Code:
    folder.mkdir()
    # An asset may not be empty, and no two of them the same file.
    files = [folder / name for name in ("index.py", "job.py", "job.zip", "compiled.tgz")]
    for each in files:
        each.write_text(each.name)
    return Code(folder, folder, EmrPackage(files[2], files[1], files[3]))
