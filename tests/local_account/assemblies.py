"""A cloud assembly written by hand: the account must deploy what it holds, not what it knows."""

from __future__ import annotations

import shutil
from pathlib import Path

POLLING = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
TINY = Path(__file__).parent / "tiny_assembly"


def write_assembly(folder: Path, *, bucket_open_to_cloudtrail: bool = True) -> Path:
    """Write an assembly with one stack, one folder asset, and resources of every kind we handle."""
    shutil.copytree(TINY, folder)
    if not bucket_open_to_cloudtrail:
        template = folder / "Tiny.template.json"
        closed = template.read_text().replace("cloudtrail.amazonaws.com", "config.amazonaws.com")
        template.write_text(closed)
    return folder
