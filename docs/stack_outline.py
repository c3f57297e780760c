"""The template that the documents are drawn from: with everything that may act acting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from infra.node import require_node
from infra.settings import read

REGION = "us-east-1"


@cache
def resources() -> Mapping[str, Mapping[str, Any]]:
    """Its resources, synthesized once for all pages."""
    require_node()
    from infra.outline import outline  # noqa: PLC0415 - the CDK: it starts Node

    found: Mapping[str, Mapping[str, Any]] = outline(read({"tagMayRaiseTo": "heal"}), REGION)[
        "Resources"
    ]
    return found
