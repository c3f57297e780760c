"""A DLQ does not let in the messages of a queue that names it.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.evidence import named
from mendq.model.facts import Facts, Need, SourceQueue
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.queue import MOST_SOURCES, RedriveAllow, allow_of, why_unfit_as_dlq
from mendq.model.steps import AllowRedriveFrom
from mendq.notifications.commands import get_attributes

ATTRIBUTE = AllowRedriveFrom.attribute
_NEEDS = frozenset({Need.QUEUE, Need.DLQ_SOURCES})


def detect(facts: Facts) -> Found | None:
    refused = _refused(facts)
    if not refused:
        return None
    return Found(
        f"its {ATTRIBUTE} keeps out {named(refused)}, whose DLQ it is: what "
        "cannot be handled there is handed out again and again, and never becomes a message"
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """As many of the sources that name it as fit beside those that it lets in; never everybody."""
    found, allowed = detect(facts), _allowed(facts)
    if found is None or allowed is None:
        reason = "it lets in every queue that names it"
        return Ignore("need_already_met", reason)
    if allowed.permission != "byQueue":
        reason = f"{found.because}. It lets in nobody at all, which is its owner's word"
        return _page("denied_to_all", reason, facts)
    refused = _refused(facts)
    fitting = refused[: max(0, MOST_SOURCES - len(allowed.sources))]
    if not fitting:
        reason = f"{found.because}. SQS takes {MOST_SOURCES} sources by name, and it has them"
        return _page("too_many_sources", reason, facts)
    step = AllowRedriveFrom(
        AllowRedriveFrom.standing_in(facts.attributes), allowed.adding(*fitting).text
    )
    reason = f"{found.because}. Whoever named the others may have left it out on purpose"
    if left := refused[len(fitting) :]:
        reason += f". SQS takes {MOST_SOURCES} by name: {named(left)} would stay out"
    return Plan((step,), reason)


def _allowed(facts: Facts) -> RedriveAllow | None:
    return allow_of(facts.attributes.get(ATTRIBUTE, ""))


def _refused(facts: Facts) -> tuple[str, ...]:
    """The sources that fit and are not let in; none where the policy cannot be read."""
    allowed = _allowed(facts)
    if allowed is None:
        return ()
    sources = sorted(each.queue_arn for each in facts.dlq_sources or ())
    return tuple(
        each
        for each in sources
        if not allowed.allows(each) and not why_unfit_as_dlq(each, facts.queue_arn)
    )


def _page(code: str, reason: str, facts: Facts) -> Refusal:
    look = get_attributes(facts.queue_arn, ATTRIBUTE)
    return Escalate(code, reason, next_command=look)


def _messages(allowed: str, *sources: str) -> Facts:
    return replace(
        examples.queue(queue_arn=examples.DLQ_ARN, RedriveAllowPolicy=allowed),
        dlq_sources=tuple(SourceQueue(each, {}) for each in sources),
    )


def _by_queue(*sources: str) -> str:
    return RedriveAllow("byQueue", sources).text


_ORDERS = examples.STANDARD_ARN
_PARCELS = _ORDERS.replace("orders", "parcels")
_TEN = tuple(f"{_PARCELS}-{n}" for n in range(MOST_SOURCES))

DLQ_SOURCE_NOT_ALLOWED = Symptom(
    name="dlq_source_not_allowed",
    sentence="A DLQ does not let in the messages of a queue that names it, "
    "so they are received forever.",
    plan_in_words="Add the source to the queues that RedriveAllowPolicy names, 10 at most; "
    "never all queues.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-dead-letter-queues.html",
    needs=_NEEDS,
    steps=(AllowRedriveFrom,),
    plan=plan,
    autonomy=Mode.PROPOSE,
    shows=(ATTRIBUTE,),
    detection=Detection(detect, needs=_NEEDS, of_configuration=True),
    detected=(
        Detected(
            "another source is named",
            _messages(_by_queue(_PARCELS), _ORDERS, _PARCELS),
            (AllowRedriveFrom(_by_queue(_PARCELS), _by_queue(_ORDERS, _PARCELS)),),
        ),
        Detected(
            "two name it, and one more fits",
            _messages(_by_queue(*_TEN[:9]), *_TEN, _PARCELS),
            (AllowRedriveFrom(_by_queue(*_TEN[:9]), _by_queue(_PARCELS, *_TEN[:9])),),
        ),
        Detected(
            "nobody is let in",
            _messages(RedriveAllow("denyAll").text, _ORDERS),
            code="denied_to_all",
        ),
        Detected(
            "it names ten already",
            _messages(_by_queue(*_TEN), _ORDERS, *_TEN),
            code="too_many_sources",
        ),
    ),
    near_misses=(
        NearMiss("without a policy all are let in", NOT_FOUND, facts=_messages("", _ORDERS)),
        NearMiss("every source is named", NOT_FOUND, facts=_messages(_by_queue(_ORDERS), _ORDERS)),
        NearMiss(
            "a text that is no policy",
            NOT_FOUND,
            facts=_messages('{"redrivePermission":', _ORDERS),
        ),
        NearMiss(
            "a source of the other type cannot be let in",
            NOT_FOUND,
            facts=_messages(_by_queue(_ORDERS), _ORDERS, examples.QUEUE_ARN),
        ),
        NearMiss(
            "somebody named it meanwhile",
            "need_already_met",
            facts=_messages(_by_queue(_ORDERS, _PARCELS), _ORDERS),
        ),
    ),
)
