"""Checks of the stack's resources: they exist, are switched on, and their DLQs are empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Log, Status, make_fault_check, run_checks

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

# A queue is a DLQ of Mendq, whose messages a person must read, if its logical id contains one of
# these.
_DLQ_NAME_PARTS = ("Dlq", "Undelivered")
# In any other state, an event source mapping delivers no messages to heal.
_DELIVERING_MAPPING_STATES = ("Enabled", "Enabling", "Creating", "Updating")
# How far back the command for a log reads. Every scheduled Lambda runs once an hour or more often,
# except those of the nightly job and the weekly report.
_SHOWN_LOG_DURATION = timedelta(hours=1)
_QUEUE_DEPTH_ATTRIBUTE: Literal["ApproximateNumberOfMessages"] = "ApproximateNumberOfMessages"


class Deployment(Struct, frozen=True, dict=True):
    """The resources of the deployed stack, as CloudFormation lists them."""

    account: Account
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    # The Lambdas' logs by function name. `check_resources` adds them.
    logs: dict[str, Log] = field(default_factory=dict)

    @cached_property
    def resources(self) -> list[tuple[str, str, str]]:
        """The stack's resources that exist: type, logical id and physical id of each."""
        client: CloudFormationClient = self.account.session.client("cloudformation")
        pages = client.get_paginator("list_stack_resources").paginate(StackName=self.account.stack)
        resources = []
        for page in pages:
            for resource in page["StackResourceSummaries"]:
                physical_id = resource.get("PhysicalResourceId")
                if physical_id:
                    resources.append(
                        (resource["ResourceType"], resource["LogicalResourceId"], physical_id)
                    )
        return resources

    def check_resources(self) -> Iterator[Check]:
        """Yield one check for each Lambda, role, rule, schedule, queue and event source mapping."""
        make_check_by_type: dict[str, Callable[[str, str], Check]] = {
            "AWS::Lambda::Function": self._check_function,
            "AWS::IAM::Role": self._check_role,
            "AWS::Events::Rule": self._check_rule,
            "AWS::Scheduler::Schedule": self._check_schedule,
            "AWS::SQS::Queue": self._check_queue,
            "AWS::Lambda::EventSourceMapping": self._check_mapping,
        }
        for checked_resource_type, make_check in make_check_by_type.items():
            type_label = (
                checked_resource_type.rpartition("::")[2].lower().removeprefix("eventsource")
            )
            for resource_type, logical_id, physical_id in self.resources:
                if resource_type == checked_resource_type:
                    check_name = f"{type_label} {logical_id}"
                    make_checks = partial(
                        _make_checks_of_resource, make_check, check_name, physical_id
                    )
                    yield from run_checks(check_name, make_checks)

    def _check_function(self, check_name: str, function_name: str) -> Check:
        function_configuration = self.account.clients.functions.get_function_configuration(
            FunctionName=function_name
        )
        if log_group := function_configuration.get("LoggingConfig", {}).get("LogGroup"):
            self.logs[function_name] = self._make_log(log_group)
        state = function_configuration.get("State", "Active")
        # Inactive is no fault: the function was idle for weeks, and the next call wakes it.
        fault = ""
        if state not in ("Active", "Inactive"):
            fault = f"{function_name} is {state}"
        ok_text = f"{function_name} is there"
        return make_fault_check(
            check_name, fault, ok_text, function_configuration.get("StateReason", "")
        )

    def _check_role(self, check_name: str, role_name: str) -> Check:
        client: IAMClient = self.account.session.client("iam")
        client.get_role(RoleName=role_name)
        return Check(check_name, Status.OK, f"{role_name} is there")

    def _check_rule(self, check_name: str, bus_and_rule: str) -> Check:
        client: EventBridgeClient = self.account.session.client("events")
        bus_name, _, rule_name = bus_and_rule.rpartition("|")
        event_bus_arguments = {"EventBusName": bus_name} if bus_name else {}
        fault = ""
        if client.describe_rule(Name=rule_name, **event_bus_arguments)["State"] == "DISABLED":
            fault = f"{rule_name} is disabled: no failed call reaches Mendq"
        command_options = ["--name", rule_name]
        if bus_name:
            command_options = ["--event-bus-name", bus_name, *command_options]
        remedy = self._make_aws_command("events", "enable-rule", *command_options)
        return make_fault_check(check_name, fault, f"{rule_name} is enabled", remedy)

    def _check_schedule(self, check_name: str, group_and_schedule: str) -> Check:
        client: EventBridgeSchedulerClient = self.account.session.client("scheduler")
        schedule = client.get_schedule(Name=group_and_schedule.rpartition("/")[2])
        schedule_expression = schedule["ScheduleExpression"]
        fault = ""
        if schedule["State"] == "DISABLED":
            fault = f"{schedule_expression} is disabled"
        return make_fault_check(
            check_name, fault, f"{schedule_expression} is enabled", "deploy again, or enable it"
        )

    def _check_queue(self, check_name: str, queue_url: str) -> Check:
        """Return the check of a queue. It fails if it is a DLQ that has messages."""
        attributes_response = self.account.clients.sqs.get_queue_attributes(
            QueueUrl=queue_url, AttributeNames=[_QUEUE_DEPTH_ATTRIBUTE]
        )
        message_count = int(attributes_response["Attributes"][_QUEUE_DEPTH_ATTRIBUTE])
        queue_name = queue_url.rpartition("/")[2]
        is_dlq = any(dlq_name_part in check_name for dlq_name_part in _DLQ_NAME_PARTS)
        fault = ""
        if message_count and is_dlq:
            fault = f"{message_count} message(s) wait for a person in {queue_name}"
        # The reason is in the message's attributes. SQS returns them only if the caller asks.
        command_options = ("--message-attribute-names", "All", "--max-number-of-messages", "10")
        remedy = self._make_aws_command(
            "sqs", "receive-message", "--queue-url", queue_url, *command_options
        )
        return make_fault_check(
            check_name, fault, f"{message_count} message(s) in {queue_name}", remedy
        )

    def _check_mapping(self, check_name: str, mapping_id: str) -> Check:
        """Return the check of the event source mapping from the intake queue to heal."""
        functions = self.account.clients.functions
        state = functions.get_event_source_mapping(UUID=mapping_id)["State"]
        state_sentence = f"{mapping_id} is {state}"
        fault = ""
        if state not in _DELIVERING_MAPPING_STATES:
            fault = f"{state_sentence}: failed calls wait in the intake queue"
        command_options = ("--uuid", mapping_id, "--enabled")
        remedy = self._make_aws_command("lambda", "update-event-source-mapping", *command_options)
        return make_fault_check(check_name, fault, state_sentence, remedy)

    def _make_log(self, log_group: str) -> Log:
        """Return the log with a command that prints its last hour, one event on each line."""
        start_milliseconds = int((self.now - _SHOWN_LOG_DURATION).timestamp() * 1000)
        command_options = ("--log-group-name", log_group, "--start-time", str(start_milliseconds))
        output_options = ("--query", "events[].[message]", "--output", "text")
        return Log(
            log_group,
            self._make_aws_command("logs", "filter-log-events", *command_options, *output_options),
        )

    def _make_aws_command(self, service: str, operation: str, *command_options: str) -> Command:
        return Command.aws(self.account.region, service, operation, *command_options)


def _make_checks_of_resource(
    make_check: Callable[[str, str], Check], check_name: str, physical_id: str
) -> list[Check]:
    """Return the one check of a resource, in the form that `run_checks` needs."""
    return [make_check(check_name, physical_id)]
