"""A source and its DLQ in moto, with messages, ticks of the redrive, and answers of SQS.

moto has no message move tasks, so this module answers those calls itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ClientError
from msgspec import structs

from mendq.aws.clients import Clients
from mendq.cases.receivers import Receivers
from mendq.cases.record import Notification, record_transition
from mendq.heal.outcome import Outcome
from mendq.heal.owners import make_owner_request
from mendq.model.case import SOURCE_ACCESS_KEY, Case, start_case
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
from tests.account.answers import make_response
from tests.heal.operators import make_context

SYMPTOM = "dlq_messages_waiting"
LONGEST = SetMessageRetention.maximum
CALLED_OFF = {"state": None, "reason": "a person took it back", "code": ""}
LATE = Bounds(halt_returned=1_000, halt_share=1.0, patience_seconds=300)
SOON = Bounds(patience_seconds=300)
# moto does not say in which source a message died. This message attribute does.
DIED_IN = "died-in"
NOBODY = "nobody"
_NUMBERS = count()


def make_bodies(number: int) -> list[str]:
    return [f"message {index:03}" for index in range(number)]


@dataclass
class RedriveWorld:
    """A source queue and its DLQ, both tagged heal.

    `move_tasks` is what SQS lists, `owner_answer` what the redrive Lambda answers a waiting caller.
    """

    account: Account
    source: str
    dlq: str
    move_tasks: list[dict[str, Any]] = field(default_factory=list)
    owner_requests: list[dict[str, Any]] = field(default_factory=list)
    owner_answer: dict[str, Any] = field(default_factory=lambda: dict(CALLED_OFF))
    bounds: Bounds = SOON
    # The digest in the evidence of new cases; empty as in cases of earlier versions.
    source_access: str = ""
    # Messages deleted by consumers, for every window that CloudWatch is asked for.
    deleted_messages: float = 9_000
    # Errors that SQS raises instead of a call. The first one that is not None counts.
    refusals: list[Callable[[str, Any], Exception | None]] = field(default_factory=list)

    def make_run(self, clients: Clients | None = None, remaining_seconds: float = 60) -> RedriveRun:
        """An invocation of the redrive Lambda."""
        return make_run(self.account, self.bounds, clients, remaining_seconds)

    def redrive_step(self) -> RedriveMessages:
        return RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, self.source)

    def record_case(
        self, *states: State, steps: tuple[AttributeStep, ...] = (), **over: Any
    ) -> Case:
        """A case that went through these states, as the case store holds it."""
        about = {
            "queue_arn": self.dlq,
            "symptom": SYMPTOM,
            "source_access": self.source_access,
            **over,
        }
        return record_case(self.account, states, steps or (self.redrive_step(),), **about)

    def read_newest_case(self) -> Case:
        case = make_context(self.account).case_store.look(self.dlq, SYMPTOM, ("Dlq",)).case
        assert case is not None
        return case

    def begin(self, *bodies: str, bounds: Bounds = SOON) -> RedriveWorld:
        """Send messages that died an hour ago, and record an applied redrive case about them."""
        self.bounds = bounds
        self.send(*bodies)
        self.account.later(hours=1)
        self.record_case(State.APPLIED)
        return self

    def send(self, *bodies: str, group: Any = "g", **attributes: Any) -> None:
        """Messages into the DLQ."""
        for body in bodies:
            send(self.account, self.dlq, body, group, **attributes)

    def configure(self, queue_arn: str, **attributes: Any) -> None:
        url = self.account.url(queue_arn)
        given = cast("Any", attributes)
        self.account.clients.sqs.set_queue_attributes(QueueUrl=url, Attributes=given)

    def count_visible_messages(self, queue_arn: str) -> int:
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
        """Run one tick of the redrive, as follow_up does once a minute."""
        outcome = redrive({**make_owner_request(self.read_newest_case()), **more}, self.make_run())
        assert isinstance(outcome, TickOutcome)
        return outcome

    def run_minutes(self, most: int, poison: frozenset[str] = frozenset()) -> Outcome:
        """Run ticks and consumers each minute until the case ends, for at most `most` minutes."""
        for minute in range(most):
            outcome = self.tick()
            if outcome.case is not None:
                self.minutes_taken = minute + 1
                return outcome
            self.account.later(minutes=1)
            self.consume(poison)
        return outcome

    def consume(self, poison: frozenset[str] = frozenset()) -> set[str]:
        """Let consumers delete the good messages of the source. Poison goes to the DLQ."""
        handled = set[str]()
        for message in self.take_messages(self.source):
            if message.body in poison:
                given = {
                    name: attribute.to_request() for name, attribute in message.attributes.items()
                }
                self.send(message.body, **given)
            else:
                handled.add(message.body)
        return handled

    def read_messages(self, queue_arn: str) -> list[Message]:
        """Return all visible messages and leave them visible."""
        return read_queue(self.account, queue_arn, stay=True)

    def take_messages(self, queue_arn: str) -> list[Message]:
        """Return and delete all visible messages."""
        return read_queue(self.account, queue_arn)

    def read_bodies(self, queue_arn: str) -> set[str]:
        return {message.body for message in self.read_messages(queue_arn)}

    @property
    def quarantine_arn(self) -> str:
        return f"{self.source}-quarantine"

    @property
    def redrive_store(self) -> RedriveStore:
        return self.make_run().open_store(RedriveStore)

    @property
    def progress(self) -> RedriveProgress:
        progress = self.redrive_store.read_newest_progress(self.dlq)
        assert progress is not None
        return progress

    @property
    def state(self) -> State:
        return self.read_newest_case().state

    @property
    def notifications(self) -> list[tuple[str, str]]:
        return self.account.pages("urgent") + self.account.pages()

    def refuse(
        self, call: str, code: str, message: str = "no", about: str = "", status: int = 400
    ) -> None:
        """Make SQS refuse these calls from now on if their parameters contain `about`."""
        answer: Any = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        error = ClientError(answer, call)
        self.refusals.append(
            lambda made, asked: error if made == call and about in str(asked) else None
        )

    def register_answers(self, clients: Clients) -> None:
        """Answer in place of SQS's move tasks, CloudWatch and Lambda's Invoke."""
        for client in (clients.sqs, clients.sqs_for_writing):
            client.meta.events.register("before-parameter-build.sqs", self._refuse_call)
            client.meta.events.register(
                "before-call.sqs.ListMessageMoveTasks", self._list_move_tasks
            )
            client.meta.events.register("after-call.sqs.ReceiveMessage", self.set_dlq_source)
        clients.cloudwatch.meta.events.register(
            "before-call.cloudwatch.GetMetricData", self._answer_metrics
        )
        patient: Any = clients.functions_with_long_timeout.meta.events
        patient.register("before-send.lambda.Invoke", self._answer_owner_request)
        calling: Any = clients.functions.meta.events
        calling.register("before-call.lambda.Invoke", self._note_owner_request)

    def _refuse_call(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        for refusal in self.refusals:
            if error := refusal(model.name, params):
                raise error
        # The account's clock stands still, so a long poll would never end.
        if model.name == "ReceiveMessage":
            params["WaitTimeSeconds"] = 0

    def _list_move_tasks(self, **_: Any) -> Any:
        return SimpleNamespace(status_code=200), {"Results": self.move_tasks}

    def set_dlq_source(self, parsed: dict[str, Any], **_: Any) -> None:
        """Add the source ARN that SQS gives with every DLQ message. moto omits it."""
        for message in parsed.get("Messages", []):
            said = message.get("MessageAttributes", {}).pop(DIED_IN, {})
            source = said.get("StringValue", self.source)
            if source != NOBODY:
                message.setdefault("Attributes", {})["DeadLetterQueueSourceArn"] = source

    def _answer_metrics(self, **_: Any) -> Any:
        deleted = {
            "Id": "deleted",
            "Values": [self.deleted_messages],
            "Timestamps": [self.account.now],
        }
        return SimpleNamespace(status_code=200), {"MetricDataResults": [deleted]}

    def _answer_owner_request(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        body = request.body if isinstance(request.body, bytes) else b"{}"
        self.owner_requests.append(json.loads(body))
        return make_response(request, self.owner_answer)

    def _note_owner_request(self, params: dict[str, Any], **_: Any) -> Any:
        self.owner_requests.append(json.loads(params["body"]))
        return SimpleNamespace(status_code=202), {"StatusCode": 202}


def make_run(
    account: Account, bounds: Bounds, clients: Clients | None = None, remaining_seconds: float = 60
) -> RedriveRun:
    """An invocation of the redrive Lambda."""
    context = make_context(account)
    settings = account.settings
    return RedriveRun(
        clients=clients or context.clients,
        settings=RedriveSettings(**structs.asdict(settings), seal_table="seals", bounds=bounds),
        owner=context.owner,
        now=context.now,
        remaining_seconds=lambda: remaining_seconds,
        write_steps=RedriveStart(
            settings.consent, context.open_store(Receivers), context.now
        ).write,
        writer=Owner.REDRIVE,
    )


def record_case(
    account: Account, states: Sequence[State], steps: tuple[AttributeStep, ...], **about: Any
) -> Case:
    """A case that went through these states, as the case store holds it."""
    context = make_context(account)
    case = None
    queue_arn = about["queue_arn"]
    symptom = about["symptom"]
    source_access = about.pop("source_access", "")
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
            if source_access:
                case = replace(case, evidence={**case.evidence, SOURCE_ACCESS_KEY: source_access})
        else:
            case = case.move_to(state, "it came to that", account.now)
        notification = Notification(None, Facts(queue_arn, {}, {}))
        case = record_transition(case, view, notification, context)
    assert case is not None
    return case


def send(account: Account, queue_arn: str, body: str, group: str = "g", **attributes: Any) -> str:
    """Send a message to a queue, in a FIFO queue to `group`. Return its message id."""
    fifo: Any = {"MessageGroupId": group, "MessageDeduplicationId": f"{next(_NUMBERS)}"}
    answer = account.clients.sqs.send_message(
        QueueUrl=account.url(queue_arn),
        MessageBody=body,
        MessageAttributes=attributes,
        **(fifo if queue_arn.endswith(".fifo") else {}),
    )
    return str(answer["MessageId"])


def read_queue(account: Account, queue_arn: str, *, stay: bool = False) -> list[Message]:
    """Return all visible messages in order. Delete them, or with `stay` make them visible again."""
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
def use_account_clock(account: Account) -> Iterator[None]:
    """Let visibility timeouts follow the account's clock. No two moments are equal, as in SQS."""
    tick = count()
    with patch(
        "moto.sqs.models.unix_time_millis",
        lambda: account.now.timestamp() * 1_000 + next(tick) / 1_000,
    ):
        yield


@contextmanager
def make_redrive_world(name: str = "orders", **dlq: str) -> Iterator[RedriveWorld]:
    """Make a source and its DLQ, both tagged heal."""
    with moto_account() as account, use_account_clock(account):
        base = name.removesuffix(".fifo")
        ending = ".fifo" * name.endswith(".fifo")
        target = account.queue(f"{base}-dlq{ending}", **dlq)
        policy = RedrivePolicy(target, 3).text
        source = account.queue(name, RedrivePolicy=policy, VisibilityTimeout="10")
        world = RedriveWorld(account, source, target)
        world.register_answers(account.clients)
        began = monotonic()
        # A long poll through another client waits by SQS's clock, so that clock must advance.
        with patch(
            "moto.sqs.models.unix_time", lambda: account.now.timestamp() + monotonic() - began
        ):
            yield world
