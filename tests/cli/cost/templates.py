"""Templates of a few resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.cost.deployed import Deployed

CLOUDWATCH = "AWS::CloudWatch::"


def stack(*resources: Mapping[str, Any]) -> Deployed:
    return Deployed({"Resources": {f"R{n}": each for n, each in enumerate(resources)}})


def alarm(**properties: Any) -> Mapping[str, Any]:
    return {"Type": f"{CLOUDWATCH}Alarm", "Properties": properties}
