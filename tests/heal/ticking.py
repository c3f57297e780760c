"""Ticks of a redrive in moto, which knows no message movement tasks: a client with a list."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from mendq.cases.record import Notification, record_transition
from mendq.heal.apply import write
from mendq.heal.context import Outcome
from mendq.model.case import Case, State, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import Bounds
from mendq.model.metrics import CLOUDWATCH_LAG
from mendq.model.settings import RedriveSettings
from mendq.model.steps import HELD, Owner, RedriveMessages
from mendq.redrive.progress import RedriveProgress, Stage
from mendq.redrive.reads import RedriveRun
from mendq.redrive.redrive import Ticked, redrive
from tests.heal.conftest import Account

SYMPTOM = "dlq_messages_waiting"
LEASE_SECONDS = 10
RECEIVES = 3
INVALID = "InvalidParameterValue"
# Well within what a tick measures.
MEASURED_BEFORE = CLOUDWATCH_LAG + timedelta(minutes=5)
LATE = Bounds(halt_returned=1_000, halt_share=1.0, patience_seconds=300)
SOON = Bounds(patience_seconds=300)


def texts(count: int) -> list[str]:
    return [f"message {at:03}" for at in range(count)]


@dataclass
class Tasks:
    """What SQS lists, oldest first; `refuses` is what it answers the next such call with."""

    known: list[dict[str, Any]] = field(default_factory=list)
    refuses: str = ""

    def run(self, account: Account, status: str = "RUNNING") -> None:
        """Somebody else's."""
        at = int(account.now.timestamp() * 1_000)
        self.known = [{"Status": status, "TaskHandle": "theirs", "StartedTimestamp": at}]


class SqsWithTasks:
    """moto's client, with a list of tasks, and where messages died."""

    def __init__(self, client: Any, died_in: dict[str, str], tasks: Tasks) -> None:
        self._client, self._died_in, self._tasks = client, died_in, tasks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def receive_message(self, **asked: Any) -> Any:
        answer = self._client.receive_message(**{**asked, "WaitTimeSeconds": 0})
        source_arn = self._died_in.get(asked["QueueUrl"].rpartition("/")[2])
        for each in answer.get("Messages", []) if source_arn else []:
            if not each["Body"].startswith("stranger"):
                each.setdefault("Attributes", {})["DeadLetterQueueSourceArn"] = source_arn
        return answer

    def list_message_move_tasks(self, **_asked: Any) -> dict[str, Any]:
        if message := self._tasks.refuses:
            self._tasks.refuses = ""
            error: Any = {"Error": {"Code": INVALID, "Message": message}}
            raise ClientError(error, "ListMessageMoveTasks")
        return {"Results": [dict(each) for each in reversed(self._tasks.known)]}


@dataclass
class Redriven:
    """An applied case about a DLQ, and the ticks of its redrive."""

    account: Account
    dead: str
    source: str
    case: Case
    bounds: Bounds
    tasks: Tasks
    deletes: int = 900
    ticks: int = 0

    @property
    def request(self) -> dict[str, Any]:
        return {"case_id": self.case.case_id, "queue_arn": self.dead, "symptom": SYMPTOM}

    def run(self, *, remaining_seconds: float = 60) -> RedriveRun:
        self.ticks += 1
        heal = self.account.settings
        ours = {each.name for each in fields(RedriveSettings)}
        values = {each.name: getattr(heal, each.name) for each in fields(heal) if each.name in ours}
        return RedriveRun(
            self.account.clients,
            RedriveSettings(**{**values, "bounds": self.bounds}),
            f"tick-{self.ticks}",
            self.account.now,
            lambda: remaining_seconds,
            write,
            Owner.REDRIVE,
        )

    def tick(self, **more: Any) -> Outcome:
        """As follow_up asks for it each minute; consumers have deleted so many lately."""
        self.account.clients.cloudwatch.put_metric_data(
            Namespace="AWS/SQS",
            MetricData=[
                {
                    "MetricName": "NumberOfMessagesDeleted",
                    "Dimensions": [{"Name": "QueueName", "Value": self.source.rpartition(":")[2]}],
                    "Timestamp": self.account.now - MEASURED_BEFORE,
                    "Value": self.deletes,
                }
            ],
        )
        return redrive({**self.request, **more}, self.run())

    def minutes(self, minutes: int, poison: frozenset[str] = frozenset()) -> Outcome:
        """So many of them, each with its tick; the last one's outcome."""
        outcome = Outcome()
        for _ in range(minutes):
            outcome = self.tick()
            if outcome.case is not None:
                break
            self.account.later(minutes=1)
            self.consume(poison)
        return outcome

    def consume(self, poison: frozenset[str] = frozenset()) -> list[str]:
        """Whoever reads the source handles what is good; poison dies."""
        handled: list[str] = []
        for each in self.messages(self.source, take=True):
            if each["Body"] in poison:
                self.write(self.dead, each["Body"], each.get("MessageAttributes", {}))
            else:
                handled.append(each["Body"])
        return handled

    def write(self, queue_arn: str, body: str, attributes: dict[str, Any] | None = None) -> None:
        self.account.clients.sqs.send_message(
            QueueUrl=self.account.url(queue_arn),
            MessageBody=body,
            MessageAttributes=attributes or {},
        )

    def messages(self, queue_arn: str, *, take: bool = False) -> list[dict[str, Any]]:
        """All that are visible now; they stay so, unless they are taken."""
        sqs, url = self.account.clients.sqs, self.account.url(queue_arn)
        found: list[dict[str, Any]] = []
        while messages := sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=30,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        ).get("Messages", []):
            found += (dict(each) for each in messages)
        for each in found:
            handle = each["ReceiptHandle"]
            if take:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
            else:
                sqs.change_message_visibility(
                    QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0
                )
        return found

    def bodies(self, queue_arn: str) -> set[str]:
        return {each["Body"] for each in self.messages(queue_arn)}

    @property
    def progress(self) -> RedriveProgress:
        progress = self.run().courses.course_of(self.dead)
        assert progress is not None
        return progress

    @property
    def state(self) -> State:
        view = self.run().case_store.look(self.dead, SYMPTOM, ())
        assert view.case is not None
        return view.case.state

    @property
    def stage(self) -> Stage:
        return self.progress.stage

    @property
    def pages(self) -> int:
        return len(self.account.pages("urgent") + self.account.pages())

    def denies(
        self,
        call: str,
        code: str,
        message: str = "no",
        match: Callable[[Any], bool] = lambda _asked: True,
        status: int = 400,
    ) -> None:
        """From now on SQS answers the call so, where what it asks for matches."""
        answer: Any = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        error = ClientError(answer, call)
        for each in ("sqs", "sqs_for_writing"):
            client = getattr(self.account.clients, each)
            setattr(client, call, _denied(getattr(client, call), error, match))

    def open_case(self, case: Case) -> None:
        run = self.run()
        view = run.case_store.look(case.queue_arn, case.symptom, ())
        record_transition(
            case, view, Notification(None, Facts(case.queue_arn, {}, {})), run, run.owner
        )


def _denied(call: Any, error: ClientError, match: Callable[[Any], bool]) -> Callable[..., Any]:
    def denied(**asked: Any) -> Any:
        if match(asked):
            raise error
        return call(**asked)

    return denied


def redriven(account: Account, *bodies: str, bounds: Bounds | None = None) -> Redriven:
    """Messages that died an hour ago, and a case that says they go back."""
    dead = account.queue("orders-dlq", MessageRetentionPeriod="1209600")
    policy = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": RECEIVES})
    source = account.queue("orders", VisibilityTimeout=str(LEASE_SECONDS), RedrivePolicy=policy)
    tasks, died_in = Tasks(), {"orders-dlq": source}
    for each in ("sqs", "sqs_for_writing"):
        client = getattr(account.clients, each)
        account.clients.__dict__[each] = SqsWithTasks(client, died_in, tasks)
    written_at = account.now
    account.later(hours=1)
    case = opened(
        State.APPLIED,
        queue_arn=dead,
        symptom=SYMPTOM,
        reason="visibility_timeout_too_short at orders is fixed",
        evidence=Evidence((Sighting.of_measurement(account.now),)),
        steps=(RedriveMessages(HELD, source),),
        now=account.now,
        actor="redrive",
    )
    made = Redriven(account, dead, source, case, bounds or SOON, tasks)
    made.open_case(case)
    account.now, now = written_at, account.now
    for body in bodies:
        made.write(dead, body)
    account.now = now
    return made


def ticked(outcome: Outcome) -> Ticked:
    assert isinstance(outcome, Ticked)
    return outcome
