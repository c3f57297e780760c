"""An operator who runs `mendq` in moto. The test answers for the Lambda functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import boto3
import msgspec
import pytest
from botocore.stub import Stubber
from typer.testing import CliRunner, Result

from mendq.cli import account as cli_account
from mendq.cli.app import app
from mendq.model.settings import OwnerSettings
from tests.account.account import Account
from tests.cli.called_actions import ACTIONS_BY_COMMAND, find_command_name, record_called_actions
from tests.heal.operators import roll_back, send_decision

STACK_OUTPUTS = {
    "CaseTable": "case_store",
    "SealTable": "seals",
    "CaseBucket": "cases",
    "HealFunction": "heal",
    "FollowUpFunction": "follow_up",
    "ScanFunction": "scan",
    "NightlyApplication": "00f1r2a3n4d5o6m7",
}
Answer = Callable[[Mapping[str, Any]], dict[str, Any]]


class FakeDeployedAccount(cli_account.Account, frozen=True, dict=True):
    """An account with a made-up stack, whose Lambda functions the test answers for."""

    known: OwnerSettings
    made_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    clock_ahead: timedelta | None = timedelta()
    lambdas: dict[str, Answer] = msgspec.field(default_factory=dict)
    invoked: list[tuple[str, dict[str, Any]]] = msgspec.field(default_factory=list)

    @property
    def outputs(self) -> Mapping[str, str]:
        return STACK_OUTPUTS

    @property
    def created_at(self) -> datetime:
        return self.made_at

    @property
    def clock_difference(self) -> timedelta | None:
        return self.clock_ahead

    @property
    def settings(self) -> OwnerSettings:
        return self.known

    def invoke(self, output: str, event: Mapping[str, Any]) -> dict[str, Any]:
        self.invoked.append((output, dict(event)))
        return self.lambdas[output](event)


@dataclass
class Operator:
    """An operator at a shell without a terminal."""

    aws: Account
    account: FakeDeployedAccount

    def run(self, *arguments: str, given: str | bytes | None = None) -> Result:
        """Run a command. Fail if it calls an IAM action that it does not declare."""
        with record_called_actions() as asked:
            result = CliRunner().invoke(app, list(arguments), input=given)
        command = find_command_name(arguments)
        undeclared = asked - ACTIONS_BY_COMMAND.get(command, frozenset())
        assert not undeclared, (
            f"`mendq {command}` asks AWS for {', '.join(sorted(undeclared))} and does not declare "
            "it: add it to the actions of its @command, then run `make docs`."
        )
        return result

    def run_json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with --json. Return the document, which is all of standard output."""
        result = self.run(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def read_refusal(self, *arguments: str, code: int) -> str:
        """Return the error message of a refused command."""
        return str(self.run_json(*arguments, code=code)["error"]["message"])

    def read_output(self, *arguments: str, code: int = 0) -> str:
        """Run a command. Return the text for people on one line."""
        result = self.run(*arguments)
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    def connect_lambdas(self) -> None:
        """Let approve and rollback act on the account in moto."""

        def answer_rollback(event: Mapping[str, Any]) -> dict[str, Any]:
            return roll_back(self.aws, event["case_id"], dry_run=event["dry_run"])

        def answer_decision(event: Mapping[str, Any]) -> dict[str, Any]:
            return send_decision(self.aws, event["decision"], event["case_id"], event["actor"])

        self.account.lambdas["RollbackFunction"] = answer_rollback
        self.account.lambdas["ApproveFunction"] = answer_decision

    def set_visibility_by_hand(self, seconds: int, queue: str = "orders.fifo") -> None:
        self.aws.set_visibility(queue, seconds)

    def set_lambda_answers(self, output: str, *answers: dict[str, Any]) -> None:
        """Let a Lambda function give these answers, one per call."""
        waiting = list(answers)
        self.account.lambdas[output] = lambda _: waiting.pop(0)

    def set_template(self, template: object) -> None:
        """Let CloudFormation return this template for the stack."""
        answer = (SimpleNamespace(status_code=200), {"TemplateBody": template})
        # A handler's return value is the answer to the call, which the stubs' types do not allow.
        give_answer = cast("Callable[..., None]", lambda **_: answer)
        events = self.account.session.events
        event_name = "before-call.cloudformation.GetTemplate"
        events.unregister(event_name, unique_id="template")
        events.register_last(event_name, give_answer, unique_id="template")

    def put_sqs_metric(self, queue: str, metric: str, value: float, *times: datetime) -> None:
        """Put datapoints of a queue's metric into CloudWatch."""
        dimensions: Any = [{"Name": "QueueName", "Value": queue}]
        point: Any = {"MetricName": metric, "Dimensions": dimensions, "Value": value}
        data: Any = [{**point, "Timestamp": time} for time in times]
        self.aws.clients.cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=data)

    def open_proposed_case(self) -> str:
        """Make a queue with a case that waits for approval. Return the case's id."""
        return self._open_case("orders.fifo", "propose", "proposed")

    def open_applied_case(self, name: str = "orders.fifo") -> str:
        """Make a queue with a case that was applied. Return the case's id."""
        return self._open_case(name, "heal", "applied")

    def _open_case(self, name: str, mode: str, state: str) -> str:
        arn = self.aws.queue(name, mode, VisibilityTimeout="30")
        self.aws.later(seconds=200)
        self.aws.heal(self.aws.late_deletes(arn, *(f"{name}-{suffix}" for suffix in "abc")))
        (case,) = (
            transition for transition in self.aws.transitions() if transition["queue_arn"] == arn
        )
        assert case["to"] == state
        return str(case["case_id"])


def change_cases(aws: Account, **changes: object) -> None:
    """Overwrite fields in the stored transitions of every case."""
    client = aws.clients.dynamodb
    for item in client.scan(TableName="case_store")["Items"]:
        if "document" in item and item["pk"]["S"].startswith("case#"):
            document = json.dumps({**json.loads(item["document"]["S"]), **changes})
            client.put_item(TableName="case_store", Item={**item, "document": {"S": document}})


def stub_service(monkeypatch: pytest.MonkeyPatch, service: str) -> Stubber:
    """Return the stub that answers for the service in every session."""
    client = boto3.client(service)
    make_client = boto3.Session.client

    def client_or_stub(session: boto3.Session, service_name: str, *rest: Any, **named: Any) -> Any:
        return (
            client
            if service_name == service
            else make_client(session, service_name, *rest, **named)
        )

    monkeypatch.setattr(boto3.Session, "client", client_or_stub)
    stub = Stubber(client)
    stub.activate()
    return stub
