"""Strangers make noise while real queues fail: those are told of, and fixed, in time.

A stranger needs no permission to make a call fail, so junk costs nothing: of managed queues it is a
notification each, of names that nobody knows it is a look at each. Time is simulated; how long an
invocation takes is what its calls to AWS would, at CALL_SECONDS each.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product
from types import SimpleNamespace
from typing import Any

from infra.intake import BATCH_WINDOW_SECONDS, MAXIMUM_RECEIVE_COUNT, VISIBILITY_TIMEOUT_SECONDS
from mendq.follow_up.follow_up import follow_up
from mendq.heal.batch import MAXIMUM_UNKNOWN_QUEUES
from mendq.model.limits import Limits
from mendq.model.settings import OwnerSettings
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR
from tests.account.account import ACCOUNT, REGION, Account, make_settings, moto_account
from tests.heal.operators import OWNERS, make_context
from tests.prove.heal_lambda import BATCH_MESSAGES, HealLambda, envelope_of, heal_lambda
from tests.prove.proof import BEGINS_AT, Proof, Proving
from tests.prove.quick_case_store import quick_case_store

HOURS_OF_JUNK = 8
JUNK_QUEUES_AN_HOUR = 7
# What each junk queue shows: three notifications, and together more than an hour has.
CODES = {
    "access_denied": "AccessDenied",
    "kms_denied": "KMS.AccessDeniedException",
    "kms_key_unusable": "KMS.DisabledException",
}
REAL = ("payments", "refunds", "invoices")
# A sum, caller by caller, comes every ten minutes, by a follow_up that runs each minute; here every
# second one.
TOLD_WITHIN_MINUTES = 15
FOLLOWED_EVERY_MINUTES = 2


def _record(
    account: Account, queue: str, caller: str, event_id: str, **over: Any
) -> dict[str, Any]:
    issuer = {"arn": f"arn:aws:iam::{ACCOUNT}:role/{caller}"}
    identity = {"type": "AssumedRole", "sessionContext": {"sessionIssuer": issuer}}
    queue_arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"
    return account.record(queue_arn, event_id, userIdentity=identity, **over)


def _without_mass_symptoms() -> OwnerSettings:
    """A stranger can keep below what is one; here the account need not be large for that."""
    return make_settings(limits=Limits(mass_symptom_share=1))


@dataclass
class _Noise:
    """An account whose managed queues are shown to fail, by callers of whatever names."""

    account: Account
    heard: dict[str, float] = field(default_factory=dict)

    def fails(self, queue: str, caller: str, symptom: str) -> None:
        over = {"eventName": "SendMessage", "errorCode": CODES[symptom], "errorMessage": ""}
        bodies: dict[str, str] = {}
        for n in range(3):
            event_id = f"{queue}-{symptom}-{self.account.now:%H%M}-{n}"
            record = _record(self.account, queue, caller, event_id, **over)
            bodies[event_id] = envelope_of(record)
        assert self.account.heal(bodies).error_by_message_id == {}

    def junk_of_an_hour(self, hour: int, callers: Sequence[str]) -> None:
        queues = [f"junk-{hour}-{n}" for n in range(JUNK_QUEUES_AN_HOUR)]
        for queue_arn in queues:
            self.account.queue(queue_arn, tag="observe", KmsMasterKeyId="alias/junk")
        self.account.later(minutes=2)
        for n, (symptom, queue) in enumerate(product(CODES, queues)):
            self.fails(queue, callers[n % len(callers)], symptom)

    def real_ones_fail(self) -> None:
        """And are looked for among what people were sent, until all were found."""
        failed_at = self.account.now
        for queue in REAL:
            self.fails(queue, f"{queue}-worker", "access_denied")
        for _ in range(2 * TOLD_WITHIN_MINUTES):
            sent = " ".join(body for _, body in self.account.pages("urgent"))
            for queue in REAL:
                if f"role/{queue}-worker" in sent:
                    minutes = (self.account.now - failed_at).total_seconds() / 60
                    self.heard.setdefault(queue, minutes)
            if len(self.heard) == len(REAL):
                return
            self.account.later(minutes=FOLLOWED_EVERY_MINUTES)
            follow_up(make_context(self.account), OWNERS, lambda: 60)


def _prove_no_starvation(
    proving: Proving, hours: int, callers: Sequence[str], within_minutes: float
) -> None:
    with moto_account() as account, quick_case_store(), proving.measure_seconds("wall_seconds"):
        account.settings = _without_mass_symptoms()
        account.now = BEGINS_AT.replace(minute=0)
        for name in REAL:
            account.queue(name, tag="observe")
        noise = _Noise(account)
        urgent = list[int]()
        for hour in range(hours):
            account.now = BEGINS_AT.replace(minute=0) + timedelta(hours=hour)
            noise.junk_of_an_hour(hour, callers)
            urgent.append(len(account.pages("urgent")))
            proving.progress(hour / hours)
        account.later(minutes=1)
        noise.real_ones_fail()
    most = max(after - before for before, after in zip([0, *urgent], urgent, strict=False))
    latest = max(noise.heard.values(), default=-1.0)
    proving.note({"urgent_sent_an_hour_at_most": most, "told_after_minutes_at_most": latest})
    in_time = len(noise.heard) == len(REAL) and latest <= within_minutes
    # One more says that some wait.
    few = most <= NOTIFICATIONS_PER_HOUR + 1
    proving.holding(
        {
            f"each real queue is told of within {within_minutes:g} minutes": in_time,
            "no hour has more urgent notifications than people read, and one sum": few,
        }
    )


def starved_by_one(proving: Proving) -> None:
    _prove_no_starvation(proving, HOURS_OF_JUNK, ["stranger"], 0)


def starved_by_many(proving: Proving) -> None:
    """One for each notification of junk, and so more than an hour has notifications."""
    callers = [f"stranger-{n}" for n in range(JUNK_QUEUES_AN_HOUR * len(CODES))]
    _prove_no_starvation(proving, 2, callers, TOLD_WITHIN_MINUTES)


NAMES_PER_SECOND = 125
MINUTES_OF_FLOOD = 4
# Of the event source mapping; SQS keeps the intake's messages for four hours, which none here sees.
CONCURRENCY = 2
# What a call to AWS takes, and a record to be read. Both are assumed.
CALL_SECONDS = 0.015
RECORD_SECONDS = 0.0002
FIXED_WITHIN_SECONDS = 15.0


@dataclass(order=True)
class _Message:
    visible_at: float
    message_id: str
    body: str = field(compare=False)
    receives: int = field(default=0, compare=False)


@dataclass
class _Intake:
    """The intake queue and its event source mapping, before one warm Lambda.

    Two invocations at a time are two that are begun one after another and take their time side by
    side.
    """

    account: Account
    lambda_: HealLambda
    waiting: list[_Message]
    free_at: list[float] = field(default_factory=lambda: [0.0] * CONCURRENCY)
    parked: int = 0
    calls: int = 0

    def run(self, after_each: Callable[[float], None]) -> None:
        heapq.heapify(self.waiting)
        while self.waiting:
            free_at = heapq.heappop(self.free_at)
            closes_at = max(free_at, self.waiting[0].visible_at) + BATCH_WINDOW_SECONDS
            batch = list(self._take_messages(closes_at))
            if len(batch) == BATCH_MESSAGES:
                closes_at = max(free_at, batch[-1].visible_at)
            ended_at = closes_at + self._invoke(batch, closes_at)
            heapq.heappush(self.free_at, ended_at)
            after_each(ended_at)

    def _take_messages(self, until: float) -> Iterator[_Message]:
        for _ in range(BATCH_MESSAGES):
            if not self.waiting or self.waiting[0].visible_at > until:
                return
            yield heapq.heappop(self.waiting)

    def _invoke(self, batch: Sequence[_Message], at: float) -> float:
        """The seconds that it takes; what fails is seen again, and at last parked."""
        self.account.now = BEGINS_AT + timedelta(seconds=at)
        before = self.lambda_.calls.total
        failed = self.lambda_.deliver({record.message_id: record.body for record in batch})
        made = self.lambda_.calls.total - before
        self.calls += made
        for record in batch:
            record.receives += 1
            if record.message_id in failed:
                record.visible_at = at + VISIBILITY_TIMEOUT_SECONDS
                self.parked += record.receives == MAXIMUM_RECEIVE_COUNT
                if record.receives < MAXIMUM_RECEIVE_COUNT:
                    heapq.heappush(self.waiting, record)
        return made * CALL_SECONDS + len(batch) * RECORD_SECONDS


def _flood(account: Account, seconds: int) -> Iterator[_Message]:
    """Each call names another queue: by one caller, then by a thousand; one in five by a send."""
    template = envelope_of(_record(account, "QUEUE", "CALLER", "EVENT", eventTime="TIME"))
    sent = template.replace("DeleteMessage", "SendMessage").replace(
        "InvalidParameterValueException", "AWS.SimpleQueueService.NonExistentQueue"
    )
    for n in range(seconds * NAMES_PER_SECOND):
        second = n / NAMES_PER_SECOND
        at = f"{BEGINS_AT + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"
        caller = "stranger" if second < seconds / 2 else f"stranger-{n % 1_000}"
        body = (template if n % 5 else sent).replace("QUEUE", f"junk-{n}")
        body = body.replace("CALLER", caller).replace("EVENT", f"junk-{n}").replace("TIME", at)
        yield _Message(second, f"junk-{n}", body)


def _real(account: Account, fails_at: Mapping[str, int]) -> Iterator[_Message]:
    """A call every five seconds for a minute from then on."""
    for queue, begins in fails_at.items():
        for second in range(begins, begins + 60, 5):
            at = f"{BEGINS_AT + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"
            event_id = f"{queue}-{second}"
            record = _record(account, queue, f"{queue}-worker", event_id, eventTime=at)
            yield _Message(float(second), event_id, envelope_of(record))


@contextmanager
def _flooded_lambda() -> Iterator[HealLambda]:
    """SQS's answers about names that are none come from here: moto's take ten times as long."""
    error = {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "no such queue"}

    def answer(params: Mapping[str, Any], **_: Any) -> Any:
        if "/junk-" not in json.dumps(params["body"], default=str):
            return None
        lambda_.calls.by_operation["sqs", "ListQueueTags"] += 1
        return SimpleNamespace(status_code=400), {"Error": error, "ResponseMetadata": {}}

    with moto_account() as account, quick_case_store():
        account.settings = _without_mass_symptoms()
        with heal_lambda(account) as lambda_:
            events: Any = lambda_.clients.sqs.meta.events
            events.register("before-call.sqs.ListQueueTags", answer)
            yield lambda_


def prove_flood(proving: Proving, minutes: float = MINUTES_OF_FLOOD) -> None:
    seconds = int(minutes * 60)
    fails_at = {f"real-{n}": 20 + n * ((seconds - 93) // 3) for n in range(4)}
    enough_at = {queue: begins + 10 for queue, begins in fails_at.items()}
    delays = dict[str, float]()
    with _flooded_lambda() as lambda_:
        account = lambda_.account
        account.now = BEGINS_AT - timedelta(minutes=30)
        arns = {queue: account.queue(queue, VisibilityTimeout="30") for queue in fails_at}

        def look(at: float) -> None:
            for queue, arn in arns.items():
                if queue not in delays and account.visibility(arn) == 45:
                    delays[queue] = at - enough_at[queue]
            proving.progress(at / seconds)

        messages = [*_flood(account, seconds), *_real(account, fails_at)]
        intake = _Intake(account, lambda_, messages)
        events = len(messages)
        with proving.measure_seconds("wall_seconds"):
            intake.run(look)
        cases = {transition["queue_arn"] for transition in account.transitions()}
        pages = account.pages("urgent")
    slowest = max(delays.values(), default=-1.0)
    proving.note(
        {
            "failed_calls": events,
            "invocations": lambda_.invocations,
            "aws_calls": intake.calls,
            "seconds_to_fix_at_most": round(slowest, 1),
        }
    )
    in_time = len(delays) == len(fails_at) and slowest <= FIXED_WITHIN_SECONDS
    proving.holding(
        {
            f"each real queue is fixed within {FIXED_WITHIN_SECONDS:g} s": in_time,
            "no event is parked or comes again": intake.parked == 0,
            "no name that is no queue has a case": cases == set(arns.values()),
            "the flood is said once": len(pages) == 1,
            "an invocation makes no more calls than three for each name it looks at": intake.calls
            <= 3 * MAXIMUM_UNKNOWN_QUEUES * lambda_.invocations,
        }
    )


FLOODS = (
    Proof(
        "starved_by_one",
        "Eight hours of one stranger's junk keep no queue's first notification from people.",
        starved_by_one,
    ),
    Proof(
        "starved_by_many",
        "More strangers than an hour has notifications hide no queue for a quarter of an hour.",
        starved_by_many,
    ),
    Proof(
        "flood",
        "Beside 125 failed calls a second, each of another name, a queue is fixed in 15 s.",
        prove_flood,
    ),
)
