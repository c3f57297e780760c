from __future__ import annotations

import pytest

from mendq.model.settings import WORKER, executors_within, workers_within

# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html
MEMORY_OF_TWO_VCPU = range(4, 17)


def test_a_worker_is_one_of_emrs_sizes() -> None:
    assert WORKER.vcpu == 2
    assert WORKER.memory_gb in MEMORY_OF_TWO_VCPU
    assert WORKER.heap_gb * (1 + WORKER.overhead_factor) == pytest.approx(WORKER.memory_gb)
    assert 20 <= WORKER.disk_gb <= 200


@pytest.mark.parametrize(
    ("vcpu", "memory_gb", "workers"),
    [
        (16, 64, 8),
        (4, 16, 2),
        (4, 3_000, 2),
        (400, 16, 2),
        (5, 21, 2),
        (16, 48, 6),
        (400, 3_000, 200),
    ],
)
def test_what_ends_first_bounds_them(vcpu: int, memory_gb: int, workers: int) -> None:
    assert workers_within(vcpu, memory_gb) == workers
    assert executors_within(vcpu, memory_gb) == workers - 1
    assert workers * WORKER.vcpu <= vcpu
    assert workers * WORKER.memory_gb <= memory_gb
