"""The data for `mendq cost`, read from the account: the stack's template and the queues' calls.

If AWS refuses a read, the report says so, and the other reads continue.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field

from mendq.aws.queue import list_queue_names
from mendq.cli.account import Account
from mendq.cli.cost import bill
from mendq.cli.cost.bill import BilledStack, CostLine, NotPriced
from mendq.cli.cost.calls import CALLS_BY_METRIC, QueueCalls, count_calls
from mendq.cli.cost.scan_cost import ScanCost, estimate_scan_cost
from mendq.cli.doctor.check import Check, Status, run_checks
from mendq.cli.exit_codes import CommandError
from mendq.cli.queues import read_managed_queues
from mendq.model.prices import METRIC_READ
from mendq.model.queue import arn_of_name
from mendq.probe.probe import PROBE_QUEUE_NAME as PROBE_QUEUE

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


class CostReport(Struct):
    """The costs of the stack, and of logging the calls to queues.

    `read` fills in the fields after `is_every_queue_counted`, as far as AWS allows.
    """

    account: Account
    now: datetime
    maximum_queues: int
    # True if all queues of the region are counted, managed or not. Then no stack is needed.
    is_every_queue_counted: bool
    # Lines of the bill. Empty if the stack could not be priced.
    stack_lines: list[CostLine] = field(default_factory=list)
    # Resource types that cost nothing, each with the reason.
    free_reason_by_type: dict[str, str] = field(default_factory=dict)
    unpriced_types: list[str] = field(default_factory=list)
    queue_arns: list[str] = field(default_factory=list)
    # True if there are more queues than `maximum_queues`.
    has_more_queues: bool = False
    # Counted calls by queue ARN. Empty if they could not be counted.
    calls_by_queue: dict[str, QueueCalls] = field(default_factory=dict)
    unreadable_checks: list[Check] = field(default_factory=list)

    def read(self) -> None:
        """Price the stack, list the queues, and count the calls to them.

        Errors of AWS are stored in `unreadable_checks`. But if only the managed queues are counted,
        the stack must be there: raises CommandError if it is not, or if it is too old, and
        ClientError if AWS refuses to describe it.
        """
        if not self.is_every_queue_counted:
            self.account.output("CaseTable")
        checks = list(run_checks("the stack", self._price_stack))
        checks += run_checks("the queues", self._list_queues)
        checks += run_checks("the calls of the queues", self._count_calls)
        self.unreadable_checks += [check for check in checks if check.status is Status.UNKNOWN]

    @property
    def stack_dollars(self) -> float | None:
        """Dollars per month of the whole stack. None if it could not be priced."""
        return sum(line.dollars for line in self.stack_lines) if self.stack_lines else None

    @property
    def dollars_for_counting(self) -> float:
        """Dollars that AWS bills for counting the calls in this run of `mendq cost`."""
        return METRIC_READ.cost(len(self.queue_arns) * len(CALLS_BY_METRIC))

    @property
    def is_stack_scan_only(self) -> bool:
        """True if a stack was priced that was deployed with the setting scanOnly."""
        return bool(self.stack_lines) and self.account.is_scan_only

    @property
    def most_measuring_dollars(self) -> float | None:
        """The most dollars per month that the deployed scan may spend on metrics.

        None if no stack was priced, or if its settings cannot be read.
        """
        if not self.stack_lines:
            return None
        with suppress(CommandError, ClientError, BotoCoreError):
            metrics_per_day = self.account.settings.limits.scan_metrics_per_day
            return METRIC_READ.cost(metrics_per_day * bill.DAYS_PER_MONTH)
        return None

    @property
    def scan_cost(self) -> ScanCost | None:
        """The estimate of what the deployed scan costs for these queues, if all are in use.

        None if no queue was listed, if no stack was priced, or if its settings cannot be read.
        """
        if not self.stack_lines or not self.queue_arns:
            return None
        with suppress(CommandError, ClientError, BotoCoreError):
            metrics_per_day = self.account.settings.limits.scan_metrics_per_day
            return estimate_scan_cost(len(self.queue_arns), metrics_per_day)
        return None

    def _price_stack(self) -> Iterator[Check]:
        """Price the deployed template, and store the bill.

        Yield a check only if the template cannot be priced.
        """
        cloudformation: CloudFormationClient = self.account.session.client("cloudformation")
        template: Any = cloudformation.get_template(StackName=self.account.stack)["TemplateBody"]
        try:
            billed_stack = BilledStack(template)
            self.stack_lines = bill.list_costs(billed_stack)
            self.free_reason_by_type = bill.list_free_types(billed_stack)
            self.unpriced_types = bill.list_unpriced_types(billed_stack)
        except (NotPriced, LookupError, TypeError) as error:
            yield Check("the stack", Status.UNKNOWN, f"its template cannot be priced: {error}")

    def _list_queues(self) -> None:
        """Store the ARNs of at most `maximum_queues` queues, and whether there are more.

        These are the managed queues. If `is_every_queue_counted` is True, they are all queues of
        the region except Mendq's own.
        """
        if self.is_every_queue_counted:
            queue_arns = self._list_every_queue()
        else:
            queue_arns = (queue.queue_arn for queue in read_managed_queues(self.account))
        first_queue_arns = list(islice(queue_arns, self.maximum_queues + 1))
        self.has_more_queues = len(first_queue_arns) > self.maximum_queues
        self.queue_arns = first_queue_arns[: self.maximum_queues]

    def _list_every_queue(self) -> Iterator[str]:
        """Yield the ARNs of all queues of the region except Mendq's own.

        Mendq's own are the probe's queue, and the queues whose names begin with the stack's name.
        """
        account = self.account
        for queue_name in list_queue_names(account.clients):
            queue_arn = arn_of_name(queue_name, account.region, account.account_id)
            if (
                queue_arn
                and queue_name != PROBE_QUEUE
                and not queue_name.startswith(f"{account.stack}-")
            ):
                yield queue_arn

    def _count_calls(self) -> None:
        self.calls_by_queue = count_calls(self.account.clients, self.queue_arns, self.now)
