"""Counts the AWS calls of a session's clients, whichever they are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import boto3

from mendq.aws.clients import LambdaSession

CASE_STORE_WRITES = frozenset(
    {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
)


class CountedCalls:
    """Has to be there before the session makes its first client."""

    def __init__(self, session: boto3.Session | LambdaSession) -> None:
        self.by_operation: Counter[tuple[str, str]] = Counter()
        inner = session.session if isinstance(session, LambdaSession) else session._session
        inner.get_component("event_emitter").register("before-call", self._count)

    def _count(self, model: Any, **_: Any) -> None:
        self.by_operation[model.service_model.service_name, model.name] += 1

    def of(self, service: str, operation: str) -> int:
        return self.by_operation[service, operation]

    @property
    def total(self) -> int:
        return self.by_operation.total()

    @property
    def case_store_writes(self) -> int:
        return sum(self.of("dynamodb", case_store_write) for case_store_write in CASE_STORE_WRITES)

    @property
    def queue_writes(self) -> int:
        """Whatever changes a queue: all that does not only look at it."""
        return sum(
            count
            for (service, operation), count in self.by_operation.items()
            if service == "sqs" and not operation.startswith(("Get", "List"))
        )
