"""Templates and cloud assemblies for the tests of `mendq lint`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.source_files import ROOT

LINT_PAGE = ROOT / "docs" / "lint.md"
UNKNOWN_ENVIRONMENT = "aws://unknown-account/unknown-region"

_PAGE_BLOCKS = re.findall(
    r"^```(?:yaml|text)\n(.*?)^```", LINT_PAGE.read_text(), re.MULTILINE | re.DOTALL
)
# The example on the page: a finding, an ignored finding, and a place that Mendq cannot judge.
FAULTY_TEMPLATE = _PAGE_BLOCKS[0]
# What the page prints for this example.
FAULTY_OUTPUT = _PAGE_BLOCKS[1]
SOUND_TEMPLATE = FAULTY_TEMPLATE.replace("Default: 20", "Default: 180")

# Resolving this name would take far more memory than `mendq lint` allows itself.
_LONG_NAME = {"Fn::Join": ["x" * 10_000, ["y"] * 5_000]}
_LONG_NAMED_QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": _LONG_NAME}}
TOO_COSTLY_TEMPLATE = json.dumps({"Resources": {"Q": _LONG_NAMED_QUEUE}})


def make_stack_artifact(file: object, environment: object = UNKNOWN_ENVIRONMENT) -> Any:
    """Return the entry by which a cloud assembly's manifest names a stack's template."""
    return {
        "type": "aws:cloudformation:stack",
        "environment": environment,
        "properties": {"templateFile": file},
    }


def make_nested_assembly_artifact(folder: object) -> Any:
    """Return the entry by which a manifest names the assembly of a stage."""
    return {"type": "cdk:cloud-assembly", "properties": {"directoryName": folder}}


def write_cloud_assembly(folder: Path, artifacts: object) -> Path:
    """Write a manifest with these artifacts into `folder`, as `cdk synth` does."""
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder
