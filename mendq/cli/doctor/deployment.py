"""Checks of the stack's resources: they exist, are switched on, and their DLQs are empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Log, Status, check_fault, run_checks

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

# Parts of the logical ids of the queues whose messages a person must read.
_DLQ_NAMES = ("Dlq", "Undelivered")
# In any other state, an event source mapping delivers no messages to heal.
_DELIVERING_STATES = ("Enabled", "Enabling", "Creating", "Updating")
# The command for a log shows the last hour. In an hour every scheduled Lambda runs, except those of
# the nightly job and the weekly report.
_LOG_SINCE = timedelta(hours=1)
_DEPTH: Literal["ApproximateNumberOfMessages"] = "ApproximateNumberOfMessages"


class Deployment(Struct, frozen=True, dict=True):
    """The resources of the deployed stack, as CloudFormation lists them."""

    account: Account
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    # The Lambdas' logs by function name. `check` fills it.
    logs: dict[str, Log] = field(default_factory=dict)

    @cached_property
    def parts(self) -> list[tuple[str, str, str]]:
        """The stack's resources: type, logical id and physical id of each."""
        client: CloudFormationClient = self.account.session.client("cloudformation")
        pages = client.get_paginator("list_stack_resources").paginate(StackName=self.account.stack)
        parts = []
        for page in pages:
            for resource in page["StackResourceSummaries"]:
                physical_id = resource.get("PhysicalResourceId")
                if physical_id:
                    parts.append(
                        (resource["ResourceType"], resource["LogicalResourceId"], physical_id)
                    )
        return parts

    def check(self) -> Iterator[Check]:
        """Yield one check for each resource of the types listed here."""
        check_by_type: dict[str, Callable[[str, str], Check]] = {
            "AWS::Lambda::Function": self._check_function,
            "AWS::IAM::Role": self._check_role,
            "AWS::Events::Rule": self._check_rule,
            "AWS::Scheduler::Schedule": self._check_schedule,
            "AWS::SQS::Queue": self._check_queue,
            "AWS::Lambda::EventSourceMapping": self._check_mapping,
        }
        for checked_type, check_part in check_by_type.items():
            label = checked_type.rpartition("::")[2].lower().removeprefix("eventsource")
            for resource_type, logical_id, physical_id in self.parts:
                if resource_type == checked_type:
                    name = f"{label} {logical_id}"
                    yield from run_checks(name, lambda: [check_part(name, physical_id)])  # noqa: B023 - called at once

    def _check_function(self, name: str, function_name: str) -> Check:
        function = self.account.clients.functions.get_function_configuration(
            FunctionName=function_name
        )
        if group := function.get("LoggingConfig", {}).get("LogGroup"):
            self.logs[function_name] = self._make_log(group)
        state = function.get("State", "Active")
        # Inactive is no fault: the function was idle for weeks, and the next call wakes it.
        fault = ""
        if state not in ("Active", "Inactive"):
            fault = f"{function_name} is {state}"
        ok_text = f"{function_name} is there"
        return check_fault(name, fault, ok_text, function.get("StateReason", ""))

    def _check_role(self, name: str, role_name: str) -> Check:
        client: IAMClient = self.account.session.client("iam")
        client.get_role(RoleName=role_name)
        return Check(name, Status.OK, f"{role_name} is there")

    def _check_rule(self, name: str, bus_and_rule: str) -> Check:
        client: EventBridgeClient = self.account.session.client("events")
        bus, _, rule = bus_and_rule.rpartition("|")
        where = {"EventBusName": bus} if bus else {}
        fault = ""
        if client.describe_rule(Name=rule, **where)["State"] == "DISABLED":
            fault = f"{rule} is disabled: no failed call reaches Mendq"
        options = ["--name", rule]
        if bus:
            options = ["--event-bus-name", bus, *options]
        remedy = self._aws_command("events", "enable-rule", *options)
        return check_fault(name, fault, f"{rule} is enabled", remedy)

    def _check_schedule(self, name: str, group_and_schedule: str) -> Check:
        client: EventBridgeSchedulerClient = self.account.session.client("scheduler")
        schedule = client.get_schedule(Name=group_and_schedule.rpartition("/")[2])
        expression = schedule["ScheduleExpression"]
        fault = ""
        if schedule["State"] == "DISABLED":
            fault = f"{expression} is disabled"
        return check_fault(name, fault, f"{expression} is enabled", "deploy again, or enable it")

    def _check_queue(self, name: str, queue_url: str) -> Check:
        """Return the check of a queue. It fails if it is a DLQ that has messages."""
        answer = self.account.clients.sqs.get_queue_attributes(
            QueueUrl=queue_url, AttributeNames=[_DEPTH]
        )
        depth = int(answer["Attributes"][_DEPTH])
        queue_name = queue_url.rpartition("/")[2]
        is_dlq = any(dlq_name in name for dlq_name in _DLQ_NAMES)
        fault = ""
        if depth and is_dlq:
            fault = f"{depth} message(s) wait for a person in {queue_name}"
        # The reason is in the message's attributes. SQS returns them only if the caller asks.
        options = ("--message-attribute-names", "All", "--max-number-of-messages", "10")
        remedy = self._aws_command("sqs", "receive-message", "--queue-url", queue_url, *options)
        return check_fault(name, fault, f"{depth} message(s) in {queue_name}", remedy)

    def _check_mapping(self, name: str, mapping_id: str) -> Check:
        """Return the check of the event source mapping from the intake queue to heal."""
        functions = self.account.clients.functions
        state = functions.get_event_source_mapping(UUID=mapping_id)["State"]
        text = f"{mapping_id} is {state}"
        fault = ""
        if state not in _DELIVERING_STATES:
            fault = f"{text}: failed calls wait in the intake queue"
        options = ("--uuid", mapping_id, "--enabled")
        remedy = self._aws_command("lambda", "update-event-source-mapping", *options)
        return check_fault(name, fault, text, remedy)

    def _make_log(self, group: str) -> Log:
        """Return the log with a command that prints its last hour, one event on each line."""
        since_ms = int((self.now - _LOG_SINCE).timestamp() * 1000)
        options = ("--log-group-name", group, "--start-time", str(since_ms))
        output_options = ("--query", "events[].[message]", "--output", "text")
        return Log(group, self._aws_command("logs", "filter-log-events", *options, *output_options))

    def _aws_command(self, service: str, operation: str, *options: str) -> Command:
        return Command.aws(self.account.region, service, operation, *options)
