"""The command against an account in moto; the Lambdas' answers are the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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
    "CaseBucket": "cases",
    "HealFunction": "heal",
    "FollowUpFunction": "follow_up",
    "ScanFunction": "scan",
    "NightlyApplication": "00f1r2a3n4d5o6m7",
}
Answer = Callable[[Mapping[str, Any]], dict[str, Any]]


class FakeDeployedAccount(cli_account.Account, frozen=True, dict=True):
    """The account with a stack that nobody deployed, and Lambdas that the test answers for."""

    known: OwnerSettings
    made_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    lambdas: dict[str, Answer] = msgspec.field(default_factory=dict)
    invoked: list[tuple[str, dict[str, Any]]] = msgspec.field(default_factory=list)

    @property
    def outputs(self) -> Mapping[str, str]:
        return STACK_OUTPUTS

    @property
    def created_at(self) -> datetime:
        return self.made_at

    @property
    def settings(self) -> OwnerSettings:
        return self.known

    def invoke(self, output: str, event: Mapping[str, Any]) -> dict[str, Any]:
        self.invoked.append((output, dict(event)))
        return self.lambdas[output](event)


@dataclass
class Operator:
    """Somebody at a shell, without a terminal unless it is given."""

    aws: Account
    account: FakeDeployedAccount

    def mendq(self, *arguments: str, given: str | bytes | None = None) -> Result:
        """What it asks AWS on the way is what docs/rights.md says of the command."""
        with record_called_actions() as asked:
            result = CliRunner().invoke(app, list(arguments), input=given)
        command = find_command_name(arguments)
        undeclared = asked - ACTIONS_BY_COMMAND.get(command, frozenset())
        assert not undeclared, (
            f"`mendq {command}` asks AWS for {', '.join(sorted(undeclared))} and does not declare "
            "it: add it to the actions of its @command, then run `make docs`."
        )
        return result

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The document on standard output, which holds nothing else."""
        result = self.mendq(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def refused(self, *arguments: str, code: int) -> str:
        """Why it was, in the document on standard output."""
        return str(self.json(*arguments, code=code)["error"]["message"])

    def shown(self, *arguments: str, code: int = 0) -> str:
        """What people read, on one line."""
        result = self.mendq(*arguments)
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    def lambdas_answer(self) -> None:
        """As those of approve and rollback do."""
        aws, answers = self.aws, self.account.lambdas
        answers["RollbackFunction"] = lambda e: roll_back(aws, e["case_id"], dry_run=e["dry_run"])
        answers["ApproveFunction"] = lambda e: send_decision(
            aws, e["decision"], e["case_id"], e["actor"]
        )

    def set_by_a_person(self, seconds: int, queue: str = "orders.fifo") -> None:
        self.aws.set_visibility(queue, seconds)

    def answers(self, output: str, *answers: dict[str, Any]) -> None:
        """What a Lambda answers, one after the other."""
        waiting = list(answers)
        self.account.lambdas[output] = lambda _: waiting.pop(0)

    def counted_by_sqs(self, queue: str, metric: str, value: float, *times: datetime) -> None:
        """Datapoints of a queue's metric in CloudWatch."""
        dimensions: Any = [{"Name": "QueueName", "Value": queue}]
        point: Any = {"MetricName": metric, "Dimensions": dimensions, "Value": value}
        data: Any = [{**point, "Timestamp": at} for at in times]
        self.aws.clients.cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=data)

    def proposed(self) -> str:
        """A queue with a case that waits for a person; the case's id."""
        return self._opened("orders.fifo", "propose", "proposed")

    def applied(self, name: str = "orders.fifo") -> str:
        """A queue with a case that was applied; the case's id."""
        return self._opened(name, "heal", "applied")

    def _opened(self, name: str, mode: str, state: str) -> str:
        arn = self.aws.queue(name, mode, VisibilityTimeout="30")
        self.aws.later(seconds=200)
        self.aws.heal(self.aws.late_deletes(arn, *(f"{name}-{each}" for each in "abc")))
        (case,) = (each for each in self.aws.transitions() if each["queue_arn"] == arn)
        assert case["to"] == state
        return str(case["case_id"])


def change_cases(aws: Account, **changes: object) -> None:
    """As another Mendq, or somebody else, left the transitions of every case."""
    client = aws.clients.dynamodb
    for item in client.scan(TableName="case_store")["Items"]:
        if "document" in item and item["pk"]["S"].startswith("case#"):
            document = json.dumps({**json.loads(item["document"]["S"]), **changes})
            client.put_item(TableName="case_store", Item={**item, "document": {"S": document}})


def stub_service(monkeypatch: pytest.MonkeyPatch, service: str) -> Stubber:
    """Return the stub that answers for the service in every session."""
    client, plain = boto3.client(service), boto3.Session.client

    def made(session: boto3.Session, asked: str, *rest: Any, **named: Any) -> Any:
        return client if asked == service else plain(session, asked, *rest, **named)

    monkeypatch.setattr(boto3.Session, "client", made)
    stub = Stubber(client)
    stub.activate()
    return stub
