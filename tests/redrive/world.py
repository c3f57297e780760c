"""A source and its DLQ in moto, which knows no move task: messages, ticks, and what SQS answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ClientError
from msgspec import structs

from mendq.aws.clients import Clients
from mendq.cases.record import Notification, record_transition
from mendq.heal.outcome import Outcome
from mendq.heal.owners import make_owner_request
from mendq.model.case import Case, start_case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import Bounds
from mendq.model.queue import RedrivePolicy
from mendq.model.settings import RedriveSettings
from mendq.model.state import State
from mendq.model.steps import (
    MESSAGES_HELD_IN_DLQ_VALUE,
    AttributeStep,
    Owner,
    RedriveMessages,
    SetMessageRetention,
)
from mendq.redrive.messages import Message
from mendq.redrive.mover import read_message
from mendq.redrive.progress import RedriveProgress
from mendq.redrive.reads import RedriveRun, RedriveStart
from mendq.redrive.redrive import TickOutcome, redrive
from mendq.redrive.store import RedriveStore
from tests.account.account import Account, moto_account
from tests.account.answers import answered
from tests.heal.operators import make_context

SYMPTOM = "dlq_messages_waiting"
LONGEST = SetMessageRetention.maximum
CALLED_OFF = {"state": None, "reason": "a person took it back", "code": ""}
LATE = Bounds(halt_returned=1_000, halt_share=1.0, patience_seconds=300)
SOON = Bounds(patience_seconds=300)
# moto says of no message where it died: an attribute may, which nobody but the source sees.
DIED_IN = "died-in"
NOBODY = "nobody"
_NUMBERS = count()


def texts(number: int) -> list[str]:
    return [f"message {index:03}" for index in range(number)]


@dataclass
class Redriving:
    """`tasks` is what SQS lists; `answers` what the redrive Lambda answers whoever waits for it."""

    account: Account
    source: str
    dlq: str
    tasks: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=lambda: dict(CALLED_OFF))
    bounds: Bounds = SOON
    # What consumers deleted, in whichever window it is asked for.
    deleted: float = 9_000
    # What SQS answers calls with, in place of doing them: the first that does not say None.
    refusals: list[Callable[[str, Any], Exception | None]] = field(default_factory=list)

    def run(self, clients: Clients | None = None, remaining_seconds: float = 60) -> RedriveRun:
        """An invocation of the redrive Lambda."""
        return run_of(self.account, self.bounds, clients, remaining_seconds)

    def back(self) -> RedriveMessages:
        return RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, self.source)

    def case(self, *states: State, steps: tuple[AttributeStep, ...] = (), **over: Any) -> Case:
        """A case that went through these states, as the case store holds it."""
        about = {"queue_arn": self.dlq, "symptom": SYMPTOM, **over}
        return recorded(self.account, states, steps or (self.back(),), **about)

    def newest(self) -> Case:
        case = make_context(self.account).case_store.look(self.dlq, SYMPTOM, ("Dlq",)).case
        assert case is not None
        return case

    def begun(self, *bodies: str, bounds: Bounds = SOON) -> Redriving:
        """Messages that died an hour ago, and an applied case that says they go back."""
        self.bounds = bounds
        self.send(*bodies)
        self.account.later(hours=1)
        self.case(State.APPLIED)
        return self

    def send(self, *bodies: str, group: Any = "g", **attributes: Any) -> None:
        """Messages into the DLQ."""
        for body in bodies:
            send(self.account, self.dlq, body, group, **attributes)

    def configure(self, queue_arn: str, **attributes: Any) -> None:
        url = self.account.url(queue_arn)
        given = cast("Any", attributes)
        self.account.clients.sqs.set_queue_attributes(QueueUrl=url, Attributes=given)

    def waiting(self, queue_arn: str) -> int:
        return int(self.account.attributes(queue_arn)["ApproximateNumberOfMessages"])

    def freeze(self, *, thaw: bool = False) -> None:
        table = "case_store"
        key = {"pk": {"S": "account"}, "sk": {"S": "freeze"}}
        dynamodb = self.account.clients.dynamodb
        if thaw:
            dynamodb.delete_item(TableName=table, Key=key)
        else:
            dynamodb.put_item(TableName=table, Item={**key, "reason": {"S": "an incident"}})

    def tick(self, **more: Any) -> TickOutcome:
        """As follow_up asks for it each minute."""
        outcome = redrive({**make_owner_request(self.newest()), **more}, self.run())
        assert isinstance(outcome, TickOutcome)
        return outcome

    def minutes(self, most: int, poison: frozenset[str] = frozenset()) -> Outcome:
        """Until the case ends, at most so many, each with its tick and its consumers."""
        for minute in range(most):
            outcome = self.tick()
            if outcome.case is not None:
                self.taken = minute + 1
                return outcome
            self.account.later(minutes=1)
            self.consume(poison)
        return outcome

    def consume(self, poison: frozenset[str] = frozenset()) -> set[str]:
        """Whoever reads the source handles what is good; poison dies."""
        handled = set[str]()
        for message in self.taken_away(self.source):
            if message.body in poison:
                given = {
                    name: attribute.to_request() for name, attribute in message.attributes.items()
                }
                self.send(message.body, **given)
            else:
                handled.add(message.body)
        return handled

    def seen(self, queue_arn: str) -> list[Message]:
        """All that are visible now; they stay so."""
        return read(self.account, queue_arn, stay=True)

    def taken_away(self, queue_arn: str) -> list[Message]:
        """All that are visible now, as somebody else takes them away."""
        return read(self.account, queue_arn)

    def bodies(self, queue_arn: str) -> set[str]:
        return {message.body for message in self.seen(queue_arn)}

    @property
    def quarantine(self) -> str:
        return f"{self.source}-quarantine"

    @property
    def redrives(self) -> RedriveStore:
        return self.run().open_store(RedriveStore)

    @property
    def progress(self) -> RedriveProgress:
        progress = self.redrives.read_newest_progress(self.dlq)
        assert progress is not None
        return progress

    @property
    def state(self) -> State:
        return self.newest().state

    @property
    def pages(self) -> list[tuple[str, str]]:
        return self.account.pages("urgent") + self.account.pages()

    def refuse(
        self, call: str, code: str, message: str = "no", about: str = "", status: int = 400
    ) -> None:
        """From now on SQS refuses such calls, where `about` is in what they ask for."""
        answer: Any = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        error = ClientError(answer, call)
        self.refusals.append(
            lambda made, asked: error if made == call and about in str(asked) else None
        )

    def listen(self, clients: Clients) -> None:
        """In place of SQS's move tasks, CloudWatch, and Invoke of whichever kind."""
        for client in (clients.sqs, clients.sqs_for_writing):
            client.meta.events.register("before-parameter-build.sqs", self._refused)
            client.meta.events.register("before-call.sqs.ListMessageMoveTasks", self._list)
            client.meta.events.register("after-call.sqs.ReceiveMessage", self.died_here)
        clients.cloudwatch.meta.events.register(
            "before-call.cloudwatch.GetMetricData", self._metrics
        )
        patient: Any = clients.functions_with_long_timeout.meta.events
        patient.register("before-send.lambda.Invoke", self._waited_for)
        calling: Any = clients.functions.meta.events
        calling.register("before-call.lambda.Invoke", self._called)

    def _refused(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        for refusal in self.refusals:
            if error := refusal(model.name, params):
                raise error
        # moto's clock stands still: nobody can wait for a message there.
        if model.name == "ReceiveMessage":
            params["WaitTimeSeconds"] = 0

    def _list(self, **_: Any) -> Any:
        return SimpleNamespace(status_code=200), {"Results": self.tasks}

    def died_here(self, parsed: dict[str, Any], **_: Any) -> None:
        """SQS says of every message where it died; moto does not."""
        for message in parsed.get("Messages", []):
            said = message.get("MessageAttributes", {}).pop(DIED_IN, {})
            source = said.get("StringValue", self.source)
            if source != NOBODY:
                message.setdefault("Attributes", {})["DeadLetterQueueSourceArn"] = source

    def _metrics(self, **_: Any) -> Any:
        deleted = {"Id": "deleted", "Values": [self.deleted], "Timestamps": [self.account.now]}
        return SimpleNamespace(status_code=200), {"MetricDataResults": [deleted]}

    def _waited_for(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        body = request.body if isinstance(request.body, bytes) else b"{}"
        self.asked.append(json.loads(body))
        return answered(request, self.answers)

    def _called(self, params: dict[str, Any], **_: Any) -> Any:
        self.asked.append(json.loads(params["body"]))
        return SimpleNamespace(status_code=202), {"StatusCode": 202}


def run_of(
    account: Account, bounds: Bounds, clients: Clients | None = None, remaining_seconds: float = 60
) -> RedriveRun:
    """An invocation of the redrive Lambda."""
    context = make_context(account)
    settings = account.settings
    return RedriveRun(
        clients=clients or context.clients,
        settings=RedriveSettings(**structs.asdict(settings), bounds=bounds),
        owner=context.owner,
        now=context.now,
        remaining_seconds=lambda: remaining_seconds,
        write_steps=RedriveStart(settings.consent).write,
        writer=Owner.REDRIVE,
    )


def recorded(
    account: Account, states: Sequence[State], steps: tuple[AttributeStep, ...], **about: Any
) -> Case:
    """A case that went through these states, as the case store holds it."""
    context = make_context(account)
    case = None
    queue_arn = about["queue_arn"]
    symptom = about["symptom"]
    for state in states:
        view = context.case_store.look(queue_arn, symptom, ())
        if case is None:
            sighted = Evidence.of([Sighting.from_scan(account.now)])
            case = start_case(
                state,
                reason="messages wait",
                evidence=sighted,
                steps=steps,
                now=account.now,
                actor="heal",
                previous=view.case,
                **about,
            )
        else:
            case = case.move_to(state, "it came to that", account.now)
        notification = Notification(None, Facts(queue_arn, {}, {}))
        case = record_transition(case, view, notification, context)
    assert case is not None
    return case


def send(account: Account, queue_arn: str, body: str, group: str = "g", **attributes: Any) -> str:
    """A message into a queue, of a FIFO queue into one group; its message id."""
    fifo: Any = {"MessageGroupId": group, "MessageDeduplicationId": f"{next(_NUMBERS)}"}
    answer = account.clients.sqs.send_message(
        QueueUrl=account.url(queue_arn),
        MessageBody=body,
        MessageAttributes=attributes,
        **(fifo if queue_arn.endswith(".fifo") else {}),
    )
    return str(answer["MessageId"])


def read(account: Account, queue_arn: str, *, stay: bool = False) -> list[Message]:
    """All of a queue's messages that can be seen, in order of a FIFO group: taken, or left."""
    sqs = account.clients.sqs
    url = account.url(queue_arn)
    found = list[Any]()
    while messages := sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        VisibilityTimeout=30,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["All"],
    ).get("Messages", []):
        found += messages
        for message in () if stay else messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    for message in found if stay else ():
        handle = message["ReceiptHandle"]
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    return [read_message(message) for message in found]


@contextmanager
def timed_by(account: Account) -> Iterator[None]:
    """Visibility timeouts too keep the account's time; at SQS no two moments are one."""
    tick = count()
    with patch(
        "moto.sqs.models.unix_time_millis",
        lambda: account.now.timestamp() * 1_000 + next(tick) / 1_000,
    ):
        yield


@contextmanager
def redriving(name: str = "orders", **dlq: str) -> Iterator[Redriving]:
    """A source and its DLQ, both to be fixed."""
    with moto_account() as account, timed_by(account):
        base = name.removesuffix(".fifo")
        ending = ".fifo" * name.endswith(".fifo")
        target = account.queue(f"{base}-dlq{ending}", **dlq)
        policy = RedrivePolicy(target, 3).text
        source = account.queue(name, RedrivePolicy=policy, VisibilityTimeout="10")
        world = Redriving(account, source, target)
        world.listen(account.clients)
        began = monotonic()
        # Whoever waits for messages by clients of his own waits by SQS's clock, which so goes on.
        with patch(
            "moto.sqs.models.unix_time", lambda: account.now.timestamp() + monotonic() - began
        ):
            yield world
