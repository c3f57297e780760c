"""A dead-letter queue whose letters go back, in an account of moto's, which knows no move task."""

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

from functions.aws.clients import Clients
from functions.aws.redrive_looks import RedriveRun, RedriveStart
from functions.aws.telling import Telling, tell
from functions.healing.case import Case, opened
from functions.healing.dead_letters import Redrive
from functions.healing.evidence import Evidence, Sighting
from functions.healing.facts import Facts
from functions.healing.redrive_step import HELD, RedriveDeadLetters
from functions.healing.states import State
from functions.healing.steps import AttributeStep, Owner, SetMessageRetention
from functions.settings import RedriveSettings
from tests.functions.aws.answers import answered
from tests.functions.aws.conftest import Account, moto_account
from tests.functions.aws.operators import desk_of

SYMPTOM = "dead_letters_waiting"
LONGEST = SetMessageRetention.maximum
CALLED_OFF = {"state": None, "reason": "a person took it back", "code": ""}


@dataclass
class Redriving:
    """`tasks` is what SQS lists; `answers` what the redrive Lambda answers whoever waits for it."""

    account: Account
    source: str
    dead_letters: str
    tasks: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=lambda: dict(CALLED_OFF))

    def run(self, clients: Clients | None = None) -> RedriveRun:
        """An invocation of the redrive Lambda."""
        desk, settings = desk_of(self.account), self.account.settings
        return RedriveRun(
            clients=clients or desk.clients,
            settings=RedriveSettings(
                settings.account,
                ledger_table=settings.ledger_table,
                case_bucket=settings.case_bucket,
                urgent_topic_arn=settings.urgent_topic_arn,
                info_topic_arn=settings.info_topic_arn,
                tag_may_raise_to=settings.tag_may_raise_to,
                autonomy=settings.autonomy,
                queues=settings.queues,
                freeze_calendars=settings.freeze_calendars,
            ),
            owner=desk.owner,
            now=desk.now,
            remaining_seconds=lambda: 60,
            write=RedriveStart(settings.consent).write,
            whose=Owner.REDRIVE,
        )

    def back(self) -> RedriveDeadLetters:
        return RedriveDeadLetters(HELD, self.source)

    def case(self, *states: State, steps: tuple[AttributeStep, ...] = ()) -> Case:
        """A case that went through these states, as the ledger holds it."""
        first, *later = states
        desk = desk_of(self.account)
        view = desk.ledger.look(self.dead_letters, SYMPTOM, ("DeadLetters",))
        case = opened(
            first,
            queue_arn=self.dead_letters,
            symptom=SYMPTOM,
            reason="letters wait",
            evidence=Evidence.of([Sighting.of_measurement(self.account.now)]),
            steps=steps or (self.back(),),
            now=self.account.now,
            actor="heal",
            previous=view.case,
        )
        case = self._told(case)
        for each in later:
            case = self._told(case.moved(each, "it came to that", self.account.now))
        return case

    def _told(self, case: Case) -> Case:
        desk = desk_of(self.account)
        view = desk.ledger.look(self.dead_letters, SYMPTOM, ("DeadLetters",))
        facts = Facts(self.dead_letters, {}, {})
        return tell(case, view, Telling(None, facts), desk, desk.owner)

    def newest(self) -> Case:
        desk = desk_of(self.account)
        case = desk.ledger.look(self.dead_letters, SYMPTOM, ("DeadLetters",)).case
        assert case is not None
        return case

    def send(self, *bodies: str) -> None:
        """Letters into the dead-letter queue."""
        for each in bodies:
            self.account.clients.sqs.send_message(
                QueueUrl=self.account.url(self.dead_letters), MessageBody=each
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
        """SQS says of every letter where it died; moto does not."""
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
def redriving(name: str = "orders", **dead_letters: str) -> Iterator[Redriving]:
    """A source and its dead-letter queue, both to be mended."""
    with moto_account() as account:
        base, ending = name.removesuffix(".fifo"), ".fifo" * name.endswith(".fifo")
        target = account.queue(f"{base}-dlq{ending}", **dead_letters)
        source = account.queue(name, RedrivePolicy=Redrive(target, 3).text)
        world = Redriving(account, source, target)
        world.listen()
        began = monotonic()
        # Whoever waits for letters waits by SQS's clock, which so goes on.
        with patch(
            "moto.sqs.models.unix_time", lambda: account.now.timestamp() + monotonic() - began
        ):
            yield world
