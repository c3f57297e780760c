"""What was asked of the account: the stack, its trails, its queues; what may not be is said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from mendq.cli.account import Account
from mendq.cli.cost import bill
from mendq.cli.cost.bill import Deployed, Line, NotPriced
from mendq.cli.cost.calls import EVERY_CALL, METRICS, Calls, counted
from mendq.cli.doctor.check import Check, Status, guarded
from mendq.cli.doctor.trails import Trails
from mendq.cli.queues import managed_queues
from mendq.model.prices import METRIC_ASKED
from mendq.model.queue import arn_of_url, parts_of
from mendq.probe.probe import QUEUE_NAME as PROBE_QUEUE

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


@dataclass
class Gathered:
    """Filled by `look`, one kind after the other, each only as far as AWS lets it."""

    account: Account
    now: datetime
    most_queues: int
    every_queue: bool
    stack: list[Line] = field(default_factory=list)
    free: dict[str, str] = field(default_factory=dict)
    not_priced: list[str] = field(default_factory=list)
    trails: Trails = field(default_factory=Trails)
    queue_arns: list[str] = field(default_factory=list)
    are_more: bool = False
    calls: dict[str, Calls] = field(default_factory=dict)
    not_looked_at: list[Check] = field(default_factory=list)

    def look(self) -> None:
        """Raise Stopped where there is no stack whose queues could be counted."""
        if not self.every_queue:
            self.account.output("CaseTable")
        reader: tuple[tuple[str, Callable[[], Iterable[Check]]], ...] = (
            ("the stack", self._stack),
            ("the trails", lambda: self.trails.look(self.account)),
            ("the queues", self._queues),
            ("the calls of the queues", self._calls),
        )
        for what, ask in reader:
            unknown = [each for each in guarded(what, ask) if each.status is Status.UNKNOWN]
            self.not_looked_at += unknown

    @property
    def stack_dollars(self) -> float | None:
        return sum(each.dollars for each in self.stack) if self.stack else None

    @property
    def stack_beyond(self) -> float | None:
        """Where nothing else on the payer's bill uses up what AWS gives."""
        return sum(each.beyond for each in self.stack) if self.stack else None

    @property
    def asking_dollars(self) -> float:
        """What counting the calls costs each time."""
        return METRIC_ASKED.of(len(self.queue_arns) * len(METRICS))

    def _stack(self) -> Iterator[Check]:
        client: CloudFormationClient = self.account.session.client("cloudformation")
        template: Any = client.get_template(StackName=self.account.stack)["TemplateBody"]
        try:
            stack = Deployed(template)
            self.stack, self.free = bill.lines(stack), bill.free(stack)
            self.not_priced = bill.not_priced(stack)
        except (NotPriced, LookupError, TypeError) as error:
            yield Check("the stack", Status.UNKNOWN, f"its template cannot be priced: {error}")

    def _queues(self) -> Iterator[Check]:
        if self.every_queue:
            listed = self._every_queue()
        else:
            listed = (each.queue_arn for each in managed_queues(self.account))
        found = list(islice(listed, self.most_queues + 1))
        self.are_more = len(found) > self.most_queues
        self.queue_arns = found[: self.most_queues]
        yield from ()

    def _every_queue(self) -> Iterator[str]:
        pages = self.account.clients.sqs.get_paginator("list_queues").paginate(
            PaginationConfig={"PageSize": 1_000}  # without it SQS tells of no more than these
        )
        for page in pages:
            for url in page.get("QueueUrls", ()):
                arn = arn_of_url(url, self.account.region)
                if arn is not None and not self._is_our_own(arn):
                    yield arn

    def _is_our_own(self, queue_arn: str) -> bool:
        """Mendq's own calls are left out of its trail."""
        name = parts_of(queue_arn).name
        return name == PROBE_QUEUE or name.startswith(f"{self.account.stack}-")

    def _calls(self) -> Iterator[Check]:
        wanted = dict.fromkeys(self.queue_arns, EVERY_CALL)
        self.calls = counted(self.account.clients, wanted, self.now)
        yield from ()
