"""A DLQ whose messages go back, in an account of moto's, which knows no move task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from mendq.aws.clients import Clients
from mendq.cases.record import Notification, record_transition
from mendq.model.case import Case, State, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.queue import Redrive
from mendq.model.settings import RedriveSettings
from mendq.model.steps import HELD, AttributeStep, Owner, RedriveMessages, SetMessageRetention
from mendq.redrive.reads import RedriveRun, RedriveStart
from tests.heal.answers import answered
from tests.heal.conftest import Account, moto_account
from tests.heal.operators import context_of

SYMPTOM = "dlq_messages_waiting"
LONGEST = SetMessageRetention.maximum
CALLED_OFF = {"state": None, "reason": "a person took it back", "code": ""}


@dataclass
class Redriving:
    """`tasks` is what SQS lists; `answers` what the redrive Lambda answers whoever waits for it."""

    account: Account
    source: str
    dlq: str
    tasks: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=lambda: dict(CALLED_OFF))

    def run(self, clients: Clients | None = None) -> RedriveRun:
        """An invocation of the redrive Lambda."""
        context, settings = context_of(self.account), self.account.settings
        return RedriveRun(
            clients=clients or context.clients,
            settings=RedriveSettings(
                settings.account,
                case_table=settings.case_table,
                case_bucket=settings.case_bucket,
                urgent_topic_arn=settings.urgent_topic_arn,
                info_topic_arn=settings.info_topic_arn,
                tag_may_raise_to=settings.tag_may_raise_to,
                autonomy=settings.autonomy,
                queues=settings.queues,
                freeze_calendars=settings.freeze_calendars,
            ),
            owner=context.owner,
            now=context.now,
            remaining_seconds=lambda: 60,
            write=RedriveStart(settings.consent).write,
            whose=Owner.REDRIVE,
        )

    def back(self) -> RedriveMessages:
        return RedriveMessages(HELD, self.source)

    def case(self, *states: State, steps: tuple[AttributeStep, ...] = ()) -> Case:
        """A case that went through these states, as the case store holds it."""
        first, *later = states
        context = context_of(self.account)
        view = context.case_store.look(self.dlq, SYMPTOM, ("Dlq",))
        case = opened(
            first,
            queue_arn=self.dlq,
            symptom=SYMPTOM,
            reason="messages wait",
            evidence=Evidence.of([Sighting.of_measurement(self.account.now)]),
            steps=steps or (self.back(),),
            now=self.account.now,
            actor="heal",
            previous=view.case,
        )
        case = self._announced(case)
        for each in later:
            case = self._announced(case.moved(each, "it came to that", self.account.now))
        return case

    def _announced(self, case: Case) -> Case:
        context = context_of(self.account)
        view = context.case_store.look(self.dlq, SYMPTOM, ("Dlq",))
        facts = Facts(self.dlq, {}, {})
        return record_transition(case, view, Notification(None, facts), context, context.owner)

    def newest(self) -> Case:
        context = context_of(self.account)
        case = context.case_store.look(self.dlq, SYMPTOM, ("Dlq",)).case
        assert case is not None
        return case

    def send(self, *bodies: str) -> None:
        """Messages into the DLQ."""
        for each in bodies:
            self.account.clients.sqs.send_message(
                QueueUrl=self.account.url(self.dlq), MessageBody=each
            )

    def waiting(self, queue_arn: str) -> int:
        return int(self.account.attributes(queue_arn)["ApproximateNumberOfMessages"])

    def listen(self) -> None:
        """In place of SQS's move tasks, CloudWatch, and Invoke of whichever kind."""
        clients = self.account.clients
        for client in (clients.sqs, clients.sqs_for_writing):
            client.meta.events.register("before-call.sqs.ListMessageMoveTasks", self._list)
            client.meta.events.register("after-call.sqs.ReceiveMessage", self.died_here)
        clients.cloudwatch.meta.events.register(
            "before-call.cloudwatch.GetMetricData", self._metrics
        )
        patient: Any = clients.functions_that_answer.meta.events
        patient.register("before-send.lambda.Invoke", self._waited_for)
        calling: Any = clients.functions.meta.events
        calling.register("before-call.lambda.Invoke", self._called)

    def _list(self, **_: Any) -> Any:
        return SimpleNamespace(status_code=200), {"Results": self.tasks}

    def died_here(self, parsed: dict[str, Any], **_: Any) -> None:
        """SQS says of every message where it died; moto does not."""
        for each in parsed.get("Messages", []):
            each.setdefault("Attributes", {})["DeadLetterQueueSourceArn"] = self.source

    def _metrics(self, **_: Any) -> Any:
        answer = {"MetricDataResults": [{"Id": "deleted", "Values": [9_000.0]}]}
        return SimpleNamespace(status_code=200), answer

    def _waited_for(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        body = request.body if isinstance(request.body, bytes) else b"{}"
        self.asked.append(json.loads(body))
        return answered(request, self.answers)

    def _called(self, params: dict[str, Any], **_: Any) -> Any:
        self.asked.append(json.loads(params["body"]))
        return SimpleNamespace(status_code=202), {"StatusCode": 202}


@contextmanager
def redriving(name: str = "orders", **dlq: str) -> Iterator[Redriving]:
    """A source and its DLQ, both to be fixed."""
    with moto_account() as account:
        base, ending = name.removesuffix(".fifo"), ".fifo" * name.endswith(".fifo")
        target = account.queue(f"{base}-dlq{ending}", **dlq)
        source = account.queue(name, RedrivePolicy=Redrive(target, 3).text)
        world = Redriving(account, source, target)
        world.listen()
        began = monotonic()
        # Whoever waits for messages waits by SQS's clock, which so goes on.
        with patch(
            "moto.sqs.models.unix_time", lambda: account.now.timestamp() + monotonic() - began
        ):
            yield world
