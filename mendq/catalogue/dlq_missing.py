"""Messages that are never handled are handed out until they expire: no DLQ is there."""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue._attach_dlq import FIXED_FIRST, gone, has_none, make_again, make_and_attach
from mendq.catalogue._moved_along import ask_first, say_taken_along
from mendq.catalogue.examples import (
    DLQ_ARN,
    FUNCTION,
    STANDARD_ARN,
    as_dlq,
    but,
    standard,
    with_dlq,
)
from mendq.catalogue.symptom import DLQ_GUIDE, Detected, Detection, Fixed, Found, NotFound, Refused
from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits
from mendq.model.metrics import Measured
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import DLQ_SUFFIX, FIFO, MAX_RECEIVE_COUNT, Redrive
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.text import counted, span

RECEIVES_PER_DELETE = 3
# A case of it is about the same thing, and says it better.
SAID_BY = frozenset({"fifo_group_blocked"})
_NEEDS = frozenset(
    {
        *(Need.QUEUE, Need.LAMBDA_CONSUMERS, Need.MEASUREMENTS, Need.MOVE_TASKS),
        *(Need.DLQ, Need.DLQ_SOURCES, Need.DLQ_NAMESAKE, Need.OPEN_CASES),
    }
)


def detect(facts: Facts) -> Found | None:
    """One that is named and gone, or none where a message would come back forever."""
    dlq_arn = gone(facts)
    if dlq_arn is not None:
        return Found(
            f"its RedrivePolicy names {dlq_arn}, and there is no such queue: what cannot "
            "be handled is handed out again and again until it expires",
            about=dlq_arn,
        )
    because = _why_it_needs_one(facts)
    return Found(because) if because else None


def suspects(facts: Facts) -> bool:
    """A queue without one that nobody knows to need it; the rest is seen without measuring."""
    may_need = has_none(replace(facts, dlq_sources=facts.dlq_sources or ()))
    return may_need and not facts.lambda_consumers and facts.visible + facts.in_flight > 0


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """The very queue that is named, or one of its own; of a FIFO queue a person is asked first."""
    found = detect(facts)
    because = facts.found or (found.because if found else "it has no DLQ")
    if facts.is_fifo:
        return ask_first(_make(facts, f"{because}. {say_taken_along(facts)}"))
    return _make(facts, because)


def _make(facts: Facts, because: str) -> Plan | Refusal:
    dlq_arn = gone(facts)
    if dlq_arn is not None:
        return make_again(facts, dlq_arn, because)
    return make_and_attach(facts, because)


def _why_it_needs_one(facts: Facts) -> str | None:
    """What is called a DLQ is one whose sources are gone."""
    is_called_one = facts.queue_arn.removesuffix(FIFO).endswith(DLQ_SUFFIX)
    if not has_none(facts) or is_called_one or SAID_BY & facts.open_symptoms:
        return None
    if facts.lambda_consumers:
        function_arn = facts.lambda_consumers[0].function_arn
        return f"it has no DLQ, and what {function_arn} fails at comes back forever"
    measured = facts.measured
    if measured is None or facts.move_task_running or not _comes_back(measured):
        return None
    messages = counted(measured.sent + measured.before.backlog, "message")
    return (
        f"it has no DLQ, and messages come back: {measured.received:,} receives of {messages} in "
        f"{span(measured.lasted)}, {measured.deleted:,} of them deleted"
    )


def _comes_back(measured: Measured) -> bool:
    """More receives than there were messages, few deletes, and something left to receive."""
    messages = measured.sent + measured.before.backlog
    return (
        measured.received > RECEIVES_PER_DELETE * measured.deleted
        and measured.received > messages
        and measured.now.backlog > 0
    )


_ATTACH = (CreateDlq("", DLQ_ARN), AttachDlq("", Redrive(DLQ_ARN, MAX_RECEIVE_COUNT).text))
_NONE = standard(ApproximateNumberOfMessages=1, dlq_namesake=QueueFacts(DLQ_ARN, {}))
_READ = but(_NONE, lambda_consumers=(FUNCTION,), sent=60, received=60, deleted=60)
_COMES_BACK = but(_NONE, sent=3, received=60, deleted=2, backlog_now=1, visible_now=1)
_THERE = QueueFacts(DLQ_ARN, {"MessageRetentionPeriod": "345600"})
_QUARANTINE = arn_of_quarantine(STANDARD_ARN)


def _naming(dlq_arn: str) -> Facts:
    return with_dlq(dlq=QueueFacts(dlq_arn, {}))


DLQ_MISSING = Fixed(
    name="dlq_missing",
    sentence="No DLQ takes what cannot be handled, so it comes back till it expires.",
    plan_in_words="Make the queue that RedrivePolicy names, under that name; where none is named, "
    "make one and attach it after 5 receives. Never while consumers fail or are too slow, "
    "nor before that was measured.",
    aws_page=DLQ_GUIDE,
    steps=(CreateDlq, AttachDlq),
    plan=plan,
    gives_way_to=FIXED_FIRST | SAID_BY,
    shows=(AttachDlq.attribute,),
    # It is the configuration that lacks something; a measurement only says that it matters now.
    detection=Detection(detect, _NEEDS, suspects, of_configuration=True),
    examples=lambda: (
        Detected("the queue that is named is gone", _naming(DLQ_ARN), (CreateDlq("", DLQ_ARN),)),
        Detected("a Lambda function reads it", _READ, _ATTACH),
        Detected("a message comes back again and again", _COMES_BACK, _ATTACH),
        Detected("somebody's queue has the name", but(_READ, dlq_namesake=_THERE), "name_taken"),
        Refused("it names a quarantine that is gone", _naming(_QUARANTINE), "names_a_quarantine"),
        NotFound("it has one", with_dlq(dlq=_THERE)),
        NotFound("it takes DLQ messages itself", as_dlq(_READ)),
        NotFound("it is called a DLQ", but(_READ, queue_arn=DLQ_ARN)),
    ),
)
