"""An account with every Lambda that moves a case: heal, follow_up, approve, rollback.

What follow_up asks of heal is done in an invocation of its own, afterwards, and never again by
itself: Lambda would try an asynchronous call twice more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from mendq.aws.clients import Clients
from mendq.cases.items import case_key
from mendq.follow_up.follow_up import follow_up
from mendq.heal.batch import heal_findings
from mendq.heal.resume import continue_case
from mendq.model.metrics import METRICS_BY_KIND
from mendq.model.queue import parse_queue_arn
from tests.account.account import REGION, Account, moto_account
from tests.account.answers import make_response
from tests.account.faults import Killed
from tests.heal.operators import OWNERS, make_context, make_owner_run
from tests.heal.restoring import Analyzer
from tests.prove.proof import BEGINS_AT

INVOKE = "before-send.lambda.Invoke"
MOVE_TASK_LIST_EVENT = "before-call.sqs.ListMessageMoveTasks"
# The metrics of a queue in use on which nothing happens, but for its deletes.
QUIET_METRICS = tuple(
    metric.metric
    for series, metric in METRICS_BY_KIND["every queue"].items()
    if series != "deleted"
)
# infra: what every Lambda that writes may take.
LAMBDA_SECONDS = 60


@dataclass
class World:
    """`asked` are heal's asynchronous calls that wait; down, it answers none."""

    account: Account
    asked: list[dict[str, str]] = field(default_factory=list)
    heal_is_up: bool = True

    def deliver(self, bodies: Mapping[str, str]) -> bool:
        """Deliver messages of the intake queue once. Return True if heal took all of them."""
        return not self.account.heal(dict(bodies)).error_by_message_id

    def minute(self) -> bool:
        """Run follow_up and then its requests to heal. Return True if nothing failed."""
        followed = follow_up(make_context(self.account), OWNERS, lambda: LAMBDA_SECONDS)
        return all([not followed.errors, *map(self._answer, self._take_waiting_requests())])

    def continue_case(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return continue_case(request, make_owner_run(request["symptom"], self.account)).document()

    def case_id(self, queue_arn: str) -> str:
        """Return the id of the newest case about a queue's visibility timeout, or `none`."""
        answer = self.account.clients.dynamodb.get_item(
            TableName=self.account.settings.case_table,
            Key=case_key(queue_arn, "visibility_timeout_too_short"),
        )
        return answer.get("Item", {}).get("case_id", {}).get("S", "none")

    def find(self, queue_arn: str, symptom: str) -> None:
        """What heal makes of a scan's finding."""
        request = {"found": [{"queue_arn": queue_arn, "symptom": symptom}]}
        healed = heal_findings(request, self.account.run())
        assert healed.error_by_message_id == {}, healed.error_by_message_id

    def deletes(self, queue_arn: str) -> None:
        """As CloudWatch counts what consumers did a minute ago, and nothing in the minutes before.

        Without any datapoint of the other metrics, follow_up would not call a fix verified.
        """
        name = {"Name": "QueueName", "Value": parse_queue_arn(queue_arn).name}
        for metric_name in QUIET_METRICS:
            self._put_metric(metric_name, [0.0] * 12, name)
        self._put_metric("NumberOfMessagesDeleted", [5.0, *[0.0] * 11], name)

    def _put_metric(self, metric_name: str, values: list[float], name: dict[str, str]) -> None:
        """Store values of the last minutes, the newest first."""
        data = [
            {
                "MetricName": metric_name,
                "Dimensions": [name],
                "Timestamp": self.account.now - timedelta(minutes=minutes_ago),
                "Value": value,
            }
            for minutes_ago, value in enumerate(values, 1)
        ]
        self.account.clients.cloudwatch.put_metric_data(
            Namespace="AWS/SQS",
            MetricData=data,  # type: ignore[arg-type]
        )

    def _take_waiting_requests(self) -> list[dict[str, str]]:
        waiting = self.asked
        self.asked = []
        return waiting if self.heal_is_up else []

    def _answer(self, request: Mapping[str, Any]) -> bool:
        try:
            self.continue_case(request)
        except Killed:
            return False
        return True

    def answer_invoke(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        """Lambda's side of an Invoke of heal; an invocation that dies fails the one that asked."""
        asked = json.loads(str(request.body, "utf-8"))  # type: ignore[arg-type]
        if request.headers["X-Amz-Invocation-Type"] in ("Event", b"Event"):
            self.asked.append(asked)
            return make_response(request, {}, status=202)
        try:
            return make_response(request, self._answer_now(asked))
        except (Exception, Killed) as error:  # noqa: BLE001 - Lambda answers whatever was raised
            failed = {"errorMessage": repr(error)}
            return make_response(request, failed, X_Amz_Function_Error="Unhandled")

    def _answer_now(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self.heal_is_up:
            raise TimeoutError("it ran out of time")
        return self.continue_case(request)


def _no_moves(**_: Any) -> tuple[Any, dict[str, Any]]:
    """moto knows no redrives."""
    return SimpleNamespace(status_code=200), {"Results": []}


@cache
def _clients() -> Clients:
    """One account after another has the same, because making them takes longer than a case."""
    return Clients(boto3.Session(region_name=REGION))


@contextmanager
def world() -> Iterator[World]:
    """An empty one."""
    with moto_account(_clients()) as account:
        account.now = BEGINS_AT
        made = World(account)
        callers: list[Any] = [
            account.clients.functions,
            account.clients.functions_with_long_timeout,
        ]
        for caller in callers:
            caller.meta.events.register(INVOKE, made.answer_invoke)
        moves: Any = account.clients.sqs.meta.events
        moves.register(MOVE_TASK_LIST_EVENT, _no_moves)
        analyzer = Analyzer(account)
        try:
            yield made
        finally:
            analyzer.leave()
            for caller in callers:
                caller.meta.events.unregister(INVOKE, made.answer_invoke)
            moves.unregister(MOVE_TASK_LIST_EVENT, _no_moves)
