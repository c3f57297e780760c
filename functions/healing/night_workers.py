"""The workers of a run on EMR Serverless: a driver, and executors up to the application's bounds.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Worker:
    """One size for driver and executors; the disk is what comes without a charge."""

    vcpu: int = 2
    heap_gb: int = 5
    # Beside the heap: Python reads the files, as many at once as there are processors.
    overhead_factor: float = 0.4
    disk_gb: int = 20

    @property
    def memory_gb(self) -> int:
        """What EMR allots and bills: heap and overhead, in whole GB."""
        return -int(-self.heap_gb * (1 + self.overhead_factor) // 1)


WORKER = Worker()


def workers_within(maximum_vcpu: int, maximum_memory_gb: int) -> int:
    """How many there may be at once: what comes to its end first decides."""
    return min(maximum_vcpu // WORKER.vcpu, maximum_memory_gb // WORKER.memory_gb)


def executors_within(maximum_vcpu: int, maximum_memory_gb: int) -> int:
    """One worker is the driver; without an executor beside it, nothing would be read."""
    return max(1, workers_within(maximum_vcpu, maximum_memory_gb) - 1)
