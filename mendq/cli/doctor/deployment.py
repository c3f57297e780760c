"""The stack's parts: there, switched on, and their DLQ messages empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Log, Status, guarded

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

# The logical names that infra gives to queues whose messages a person reads.
_DLQ = ("Dlq", "Undelivered")
# A mapping in any other state hands heal nothing.
_FEEDING = ("Enabled", "Enabling", "Creating", "Updating")
# Whatever works by the clock ran in that time, but for what belongs to nightly runs and weeks.
_LOG_SINCE = timedelta(hours=1)
_DEPTH: Literal["ApproximateNumberOfMessages"] = "ApproximateNumberOfMessages"


@dataclass(frozen=True)
class Deployment:
    """What CloudFormation says that the stack made.

    `logs` is filled while it is looked at, by the Lambda's name.
    """

    account: Account
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    logs: dict[str, Log] = field(default_factory=dict)

    @cached_property
    def parts(self) -> list[tuple[str, str, str]]:
        """Type, logical and physical id of each."""
        client: CloudFormationClient = self.account.session.client("cloudformation")
        return [
            (each["ResourceType"], each["LogicalResourceId"], each["PhysicalResourceId"])
            for page in client.get_paginator("list_stack_resources").paginate(
                StackName=self.account.stack
            )
            for each in page["StackResourceSummaries"]
            if each.get("PhysicalResourceId")
        ]

    def look(self) -> Iterator[Check]:
        """One check a part."""
        reader: dict[str, Callable[[str, str], Iterator[Check]]] = {
            "AWS::Lambda::Function": self._function,
            "AWS::IAM::Role": self._role,
            "AWS::Events::Rule": self._rule,
            "AWS::Scheduler::Schedule": self._schedule,
            "AWS::SQS::Queue": self._queue,
            "AWS::Lambda::EventSourceMapping": self._mapping,
        }
        for kind, look in reader.items():
            for its_kind, logical, physical in self.parts:
                if its_kind == kind:
                    name = f"{kind.rpartition('::')[2].lower()} {logical}"
                    yield from guarded(name, partial(look, name, physical))

    def _function(self, name: str, physical: str) -> Iterator[Check]:
        found = self.account.clients.functions.get_function_configuration(FunctionName=physical)
        if group := found.get("LoggingConfig", {}).get("LogGroup"):
            self.logs[physical] = self._log(group)
        state = found.get("State", "Active")
        if state in ("Active", "Inactive"):  # idle for weeks: the next call wakes it
            yield Check(name, Status.OK, f"{physical} is there")
        else:
            yield Check(name, Status.FAIL, f"{physical} is {state}", found.get("StateReason", ""))

    def _role(self, name: str, physical: str) -> Iterator[Check]:
        client: IAMClient = self.account.session.client("iam")
        client.get_role(RoleName=physical)
        yield Check(name, Status.OK, f"{physical} is there")

    def _rule(self, name: str, physical: str) -> Iterator[Check]:
        client: EventBridgeClient = self.account.session.client("events")
        bus, _, rule = physical.rpartition("|")
        where = {"EventBusName": bus} if bus else {}
        if client.describe_rule(Name=rule, **where)["State"] == "DISABLED":
            says = f"{rule} is disabled: no failed call reaches Mendq"
            named = ("--event-bus-name", bus, "--name", rule) if bus else ("--name", rule)
            yield Check(name, Status.FAIL, says, self._aws("events", "enable-rule", *named))
        else:
            yield Check(name, Status.OK, f"{rule} is enabled")

    def _schedule(self, name: str, physical: str) -> Iterator[Check]:
        client: EventBridgeSchedulerClient = self.account.session.client("scheduler")
        found = client.get_schedule(Name=physical.rpartition("/")[2])
        when = found["ScheduleExpression"]
        if found["State"] == "DISABLED":
            yield Check(name, Status.FAIL, f"{when} is disabled", "deploy again, or enable it")
        else:
            yield Check(name, Status.OK, f"{when} is enabled")

    def _queue(self, name: str, physical: str) -> Iterator[Check]:
        answer = self.account.clients.sqs.get_queue_attributes(
            QueueUrl=physical, AttributeNames=[_DEPTH]
        )
        depth = int(answer["Attributes"][_DEPTH])
        queue = physical.rpartition("/")[2]
        if depth and any(each in name for each in _DLQ):
            says = f"{depth} message(s) wait for a person in {queue}"
            # SQS tells a message's attributes, where the reason stands, only when asked for them.
            asked = ("--message-attribute-names", "All", "--max-number-of-messages", "10")
            remedy = self._aws("sqs", "receive-message", "--queue-url", physical, *asked)
            yield Check(name, Status.FAIL, says, remedy)
        else:
            yield Check(name, Status.OK, f"{depth} message(s) in {queue}")

    def _mapping(self, name: str, physical: str) -> Iterator[Check]:
        """What feeds heal from the intake queue."""
        state = self.account.clients.functions.get_event_source_mapping(UUID=physical)["State"]
        says, remedy = f"{physical} is {state}", ("update-event-source-mapping", "--uuid", physical)
        if state in _FEEDING:
            yield Check(name, Status.OK, says)
        else:
            says += ": failed calls wait in the intake queue"
            yield Check(name, Status.FAIL, says, self._aws("lambda", *remedy, "--enabled"))

    def _log(self, group: str) -> Log:
        """What was logged of late, a line each."""
        since_ms = int((self.now - _LOG_SINCE).timestamp() * 1000)
        options = ("--log-group-name", group, "--start-time", str(since_ms))
        shown = ("--query", "events[].[message]", "--output", "text")
        return Log(group, self._aws("logs", "filter-log-events", *options, *shown))

    def _aws(self, service: str, operation: str, *options: str) -> Command:
        return Command.aws(self.account.region, service, operation, *options)
