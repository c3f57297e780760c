"""The previous version's template as a cloud assembly that the local account can deploy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from local_account.process import STACK_NAME
from tests.infra import previous_version

BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-us-east-1"
STUB = "def handler(event, context):\n    return {}\n"


def write(folder: Path) -> Path:
    """Write it below `folder`, with a stub for every file of code that the template names."""
    template = previous_version.template()
    code = folder / "asset.stub" / "functions"
    code.mkdir(parents=True)
    for handler in set(re.findall(r"functions\.(\w+)\.handler", json.dumps(template))):
        (code / f"{handler}.py").write_text(STUB)
    files = {key: _file(key) for key in sorted(_keys(template))}
    artifacts = {
        "Mendq.assets": {"type": "cdk:asset-manifest", "properties": {"file": "assets.json"}},
        "Mendq": {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": "template.json", "stackName": STACK_NAME},
        },
    }
    for name, content in (
        ("assets.json", {"files": files}),
        ("template.json", template),
        ("manifest.json", {"version": "38.0.0", "artifacts": artifacts}),
    ):
        (folder / name).write_text(json.dumps(content))
    return folder


def _keys(template: dict[str, Any]) -> set[str]:
    return {
        each["Properties"]["Code"]["S3Key"]
        for each in template["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function"
    }


def _file(key: str) -> dict[str, Any]:
    return {
        "source": {"path": "asset.stub", "packaging": "zip"},
        "destinations": {"here": {"bucketName": BUCKET, "objectKey": key}},
    }
