"""Test the memory of `mendq dlq` with as many large messages as it takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long
MOST_MEBIBYTES = 300


def test_sample_of_500_bodies_of_1_mib_with_new_keys_each_takes_at_most_300_mb() -> None:
    """The answers of SQS are not part of it: `mendq dlq` holds at most ten messages at a time."""
    command = [sys.executable, "-m", "tests.redrive.dlq_memory", "500"]
    answer = subprocess.run(command, capture_output=True, check=True, text=True)
    assert int(answer.stdout) <= MOST_MEBIBYTES
