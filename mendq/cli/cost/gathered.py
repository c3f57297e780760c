"""What was asked of the account: the stack, its trails, its queues; what may not be is said."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mendq.aws.queue import list_queue_names
from mendq.cli.account import Account
from mendq.cli.cost import bill
from mendq.cli.cost.bill import BilledStack, CostLine, NotPriced
from mendq.cli.cost.calls import METRICS, Calls, count_calls
from mendq.cli.doctor.check import Check, Status, run_checks
from mendq.cli.queues import managed_queues
from mendq.model.prices import METRIC_ASKED
from mendq.model.queue import arn_of_name
from mendq.probe.probe import QUEUE_NAME as PROBE_QUEUE

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


class CostReport(Struct):
    """Filled by `look`, one kind after the other, each only as far as AWS lets it."""

    account: Account
    now: datetime
    most_queues: int
    every_queue: bool
    stack: list[CostLine] = field(default_factory=list)
    free: dict[str, str] = field(default_factory=dict)
    not_priced: list[str] = field(default_factory=list)
    queue_arns: list[str] = field(default_factory=list)
    are_more: bool = False
    calls: dict[str, Calls] = field(default_factory=dict)
    not_looked_at: list[Check] = field(default_factory=list)

    def look(self) -> None:
        """Raise CommandError where there is no stack whose queues could be counted."""
        if not self.every_queue:
            self.account.output("CaseTable")
        checks = list(run_checks("the stack", self._stack))
        checks += run_checks("the queues", self._queues)
        checks += run_checks("the calls of the queues", self._calls)
        self.not_looked_at += [each for each in checks if each.status is Status.UNKNOWN]

    @property
    def stack_dollars(self) -> float | None:
        return sum(each.dollars for each in self.stack) if self.stack else None

    @property
    def asking_dollars(self) -> float:
        """What counting the calls costs each time."""
        return METRIC_ASKED.of(len(self.queue_arns) * len(METRICS))

    def _stack(self) -> Iterator[Check]:
        client: CloudFormationClient = self.account.session.client("cloudformation")
        template: Any = client.get_template(StackName=self.account.stack)["TemplateBody"]
        try:
            stack = BilledStack(template)
            self.stack, self.free = bill.list_costs(stack), bill.list_free_types(stack)
            self.not_priced = bill.list_unpriced_types(stack)
        except (NotPriced, LookupError, TypeError) as error:
            yield Check("the stack", Status.UNKNOWN, f"its template cannot be priced: {error}")

    def _queues(self) -> None:
        if self.every_queue:
            listed = self._every_queue()
        else:
            listed = (each.queue_arn for each in managed_queues(self.account))
        found = list(islice(listed, self.most_queues + 1))
        self.are_more = len(found) > self.most_queues
        self.queue_arns = found[: self.most_queues]

    def _every_queue(self) -> Iterator[str]:
        """All but Mendq's own, whose calls are left out of its trail."""
        account = self.account
        for name in list_queue_names(account.clients):
            arn = arn_of_name(name, account.region, account.account_id)
            if arn and name != PROBE_QUEUE and not name.startswith(f"{account.stack}-"):
                yield arn

    def _calls(self) -> None:
        self.calls = count_calls(self.account.clients, self.queue_arns, self.now)
