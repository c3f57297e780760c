"""The stack's parts: there, switched on, and their DLQ messages empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Log, Status, failing, guarded

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


class Deployment(Struct, frozen=True, dict=True):
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
        pages = client.get_paginator("list_stack_resources").paginate(StackName=self.account.stack)
        return [
            (each["ResourceType"], each["LogicalResourceId"], each["PhysicalResourceId"])
            for page in pages
            for each in page["StackResourceSummaries"]
            if each.get("PhysicalResourceId")
        ]

    def look(self) -> Iterator[Check]:
        """One check a part."""
        reader: dict[str, Callable[[str, str], Check]] = {
            "AWS::Lambda::Function": self._function,
            "AWS::IAM::Role": self._role,
            "AWS::Events::Rule": self._rule,
            "AWS::Scheduler::Schedule": self._schedule,
            "AWS::SQS::Queue": self._queue,
            "AWS::Lambda::EventSourceMapping": self._mapping,
        }
        for kind, look in reader.items():
            label = kind.rpartition("::")[2].lower().removeprefix("eventsource")
            for its_kind, logical, physical in self.parts:
                if its_kind == kind:
                    name = f"{label} {logical}"
                    yield from guarded(name, lambda: [look(name, physical)])  # noqa: B023 - at once

    def _function(self, name: str, physical: str) -> Check:
        found = self.account.clients.functions.get_function_configuration(FunctionName=physical)
        if group := found.get("LoggingConfig", {}).get("LogGroup"):
            self.logs[physical] = self._log(group)
        state = found.get("State", "Active")
        # Inactive: idle for weeks, and the next call wakes it.
        fault = "" if state in ("Active", "Inactive") else f"{physical} is {state}"
        return failing(name, fault, f"{physical} is there", found.get("StateReason", ""))

    def _role(self, name: str, physical: str) -> Check:
        client: IAMClient = self.account.session.client("iam")
        client.get_role(RoleName=physical)
        return Check(name, Status.OK, f"{physical} is there")

    def _rule(self, name: str, physical: str) -> Check:
        client: EventBridgeClient = self.account.session.client("events")
        bus, _, rule = physical.rpartition("|")
        where = {"EventBusName": bus} if bus else {}
        is_off = client.describe_rule(Name=rule, **where)["State"] == "DISABLED"
        named = (*(("--event-bus-name", bus) if bus else ()), "--name", rule)
        fault = f"{rule} is disabled: no failed call reaches Mendq" if is_off else ""
        remedy = self._aws("events", "enable-rule", *named)
        return failing(name, fault, f"{rule} is enabled", remedy)

    def _schedule(self, name: str, physical: str) -> Check:
        client: EventBridgeSchedulerClient = self.account.session.client("scheduler")
        found = client.get_schedule(Name=physical.rpartition("/")[2])
        when = found["ScheduleExpression"]
        fault = f"{when} is disabled" if found["State"] == "DISABLED" else ""
        return failing(name, fault, f"{when} is enabled", "deploy again, or enable it")

    def _queue(self, name: str, physical: str) -> Check:
        answer = self.account.clients.sqs.get_queue_attributes(
            QueueUrl=physical, AttributeNames=[_DEPTH]
        )
        depth, queue = int(answer["Attributes"][_DEPTH]), physical.rpartition("/")[2]
        waits = depth and any(each in name for each in _DLQ)
        fault = f"{depth} message(s) wait for a person in {queue}" if waits else ""
        # SQS tells a message's attributes, where the reason stands, only when asked for them.
        asked = ("--message-attribute-names", "All", "--max-number-of-messages", "10")
        remedy = self._aws("sqs", "receive-message", "--queue-url", physical, *asked)
        return failing(name, fault, f"{depth} message(s) in {queue}", remedy)

    def _mapping(self, name: str, physical: str) -> Check:
        """What feeds heal from the intake queue."""
        state = self.account.clients.functions.get_event_source_mapping(UUID=physical)["State"]
        says, options = f"{physical} is {state}", ("--uuid", physical, "--enabled")
        fault = "" if state in _FEEDING else f"{says}: failed calls wait in the intake queue"
        return failing(
            name, fault, says, self._aws("lambda", "update-event-source-mapping", *options)
        )

    def _log(self, group: str) -> Log:
        """What was logged of late, a line each."""
        since_ms = int((self.now - _LOG_SINCE).timestamp() * 1000)
        options = ("--log-group-name", group, "--start-time", str(since_ms))
        shown = ("--query", "events[].[message]", "--output", "text")
        return Log(group, self._aws("logs", "filter-log-events", *options, *shown))

    def _aws(self, service: str, operation: str, *options: str) -> Command:
        return Command.aws(self.account.region, service, operation, *options)
