"""What SQS remembers here beside its queues."""

from __future__ import annotations

from dataclasses import dataclass, field

from local_account.sqs.error_switch import ErrorSwitch
from local_account.sqs.queue_metrics import QueueMetrics
from local_account.sqs.queue_names import DeletedNames


@dataclass(frozen=True)
class SqsMemory:
    """Of one account, from its start on."""

    deleted_names: DeletedNames = field(default_factory=DeletedNames)
    errors: ErrorSwitch = field(default_factory=ErrorSwitch)
    metrics: QueueMetrics = field(default_factory=QueueMetrics)
