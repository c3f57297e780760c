"""Compare a golden file with what the code produces, and say how to accept the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.differences import describe_differences
from tests.golden.files import GoldenFile, find_golden_file
from tests.source_files import ROOT

ACCEPT_COMMAND = ".venv/bin/python -m tests.golden accept"


def describe_golden_difference(path: str, recorded: Any, present: Any) -> str:
    """Return the difference and the command that accepts the file; empty if there is none."""
    if recorded == present:
        return ""
    lines = [f"{path} differs from what the code produces now:"]
    lines += describe_differences(recorded, present)
    lines += [
        "  If the new content is what you mean, accept this file:",
        f"  {ACCEPT_COMMAND} {path}",
    ]
    return "\n".join(lines)


def describe_stale_file(golden_file: GoldenFile, root: Path = ROOT) -> str:
    """Return how the file differs from its present content, and the command; empty if current."""
    recorded = golden_file.parse(golden_file.read_text(root))
    present = golden_file.parse(golden_file.compute_text())
    return describe_golden_difference(golden_file.path, recorded, present)


def fail_if_different(path: str, recorded: Any, present: Any) -> None:
    """Fail the test with a readable difference if a part of a golden file is not current.

    Args:
        path: The golden file, relative to the repository.
        recorded: What the file holds about the tested thing.
        present: What the code produces for it.
    """
    find_golden_file(path)
    difference = describe_golden_difference(path, recorded, present)
    if difference:
        pytest.fail(difference, pytrace=False)


def fail_if_stale(path: str) -> None:
    """Fail the test with a readable difference if the golden file at `path` is not current."""
    difference = describe_stale_file(find_golden_file(path))
    if difference:
        pytest.fail(difference, pytrace=False)
