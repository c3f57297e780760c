"""Mappings that Lambda refuses, near-misses first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from local_account.lambdas.mappings import QueueMapping, mapping_refusal

STANDARD = QueueMapping(
    is_fifo=False,
    batch_size=10,
    window_seconds=0,
    visibility_seconds=30,
    function_timeout_seconds=30,
)
FIFO = replace(STANDARD, is_fifo=True)


@pytest.mark.parametrize(
    "mapping",
    [
        STANDARD,
        FIFO,
        replace(STANDARD, batch_size=11, window_seconds=1),
        replace(STANDARD, batch_size=10_000, window_seconds=300),
        replace(STANDARD, batch_size=1),
    ],
)
def test_mappings_that_are_taken(mapping: QueueMapping) -> None:
    assert mapping_refusal(mapping) is None


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (replace(STANDARD, batch_size=11), "greater than 0"),
        (replace(STANDARD, batch_size=10_001, window_seconds=1), "between 1 and 10000"),
        (replace(STANDARD, batch_size=0), "between 1 and 10000"),
        (replace(FIFO, batch_size=11), "between 1 and 10 "),
        (replace(FIFO, window_seconds=1), "not supported for FIFO"),
        (
            replace(STANDARD, visibility_seconds=29),
            "Queue visibility timeout: 29 seconds is less than Function timeout: 30 seconds",
        ),
    ],
)
def test_mappings_that_are_refused(mapping: QueueMapping, said: str) -> None:
    refusal = mapping_refusal(mapping)
    assert refusal is not None
    assert said in refusal
