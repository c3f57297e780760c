"""DLQ messages wait, and what killed them is fixed: they could be handled now.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue import examples as lying
from mendq.catalogue._redrive import FIXED_FIRST, explained, send_back, time_left
from mendq.catalogue._redrive_causes import REDRIVE_TAG
from mendq.catalogue.dlq_messages_arriving import suspects
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.case import State
from mendq.model.evidence import named
from mendq.model.facts import Facts, Need, SourceQueue
from mendq.model.lifecycle import UNMANAGED
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import Redrive, parts_of
from mendq.model.steps import HELD, RedriveMessages, SetMessageRetention
from mendq.notifications.text import counted

_DETECTS_BY = frozenset(
    {
        Need.QUEUE,
        Need.DLQ_SOURCES,
        Need.MEASUREMENTS,
        Need.SOURCE_CASES,
    }
)


def detect(facts: Facts) -> Found | None:
    """A cause that is fixed, of messages that came while it was not; what else there is, is asked
    when it is planned."""
    if facts.measured is None or not facts.visible or not facts.dlq_sources:
        return None
    fixed = explained(facts).fixed
    if not fixed:
        return None
    causes = named([f"{each.symptom} at {parts_of(each.queue_arn).name}" for each in fixed[:2]])
    left = time_left(facts)
    wait = "waits" if facts.visible == 1 else "wait"
    return Found(
        f"{counted(facts.visible, 'DLQ message')} {wait}, and {causes} is fixed; "
        f"the first expires {left}",
        seconds_left=left.at_least.total_seconds(),
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    return send_back(facts, facts.found or "messages wait, and what killed them is fixed")


_RETENTION = SetMessageRetention(4 * lying.A_DAY, SetMessageRetention.maximum)
_BACK = RedriveMessages(HELD, examples.STANDARD_ARN)
_WAITING = lying.messages()
_SECOND = SourceQueue(f"{examples.STANDARD_ARN}-2", lying.source().attributes)

DLQ_MESSAGES_WAITING = Symptom(
    name="dlq_messages_waiting",
    sentence="DLQ messages wait although what killed them is fixed; they expire where nobody "
    "sends them back.",
    plan_in_words="Send them back to their source, a few first, faster only while they stay away; "
    "before that keep them for 14 days where they could expire on the way.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-configure-dead-letter-queue-redrive.html",
    needs=_DETECTS_BY | {Need.LAMBDA_CONSUMERS, Need.MOVE_TASKS, Need.OPEN_CASES, Need.SOLE_SOURCE},
    steps=(RedriveMessages, SetMessageRetention),
    plan=plan,
    autonomy=Mode.PROPOSE,
    shows=("ApproximateNumberOfMessages", "MessageRetentionPeriod"),
    gives_way_to=FIXED_FIRST,
    detection=Detection(detect, needs=_DETECTS_BY, suspects=suspects),
    detected=(
        Detected(
            "the visibility timeout that was too short is fixed and watched", _WAITING, (_BACK,)
        ),
        Detected(
            "the watch is over, and the messages are kept for too short a time",
            lying.messages(lying.KMS, MessageRetentionPeriod=str(4 * lying.A_DAY)),
            (_BACK, _RETENTION),
        ),
        Detected("a person fixed the consumer", lying.messages(lying.BY_A_PERSON), (_BACK,)),
    ),
    near_misses=(
        NearMiss(
            "nothing waits",
            NOT_FOUND,
            facts=lying.messages(ApproximateNumberOfMessages="0"),
        ),
        NearMiss(
            "the visibility timeout was raised, and nothing proves yet that it helps",
            NOT_FOUND,
            facts=lying.messages(examples.case("visibility_timeout_too_short", State.APPLIED)),
        ),
        NearMiss(
            "it was fixed before the first message came",
            NOT_FOUND,
            facts=replace(_WAITING, measured=replace(lying.MEASURED, until=lying.LATER)),
        ),
        NearMiss(
            "the case ended because nobody manages the source any more",
            NOT_FOUND,
            facts=lying.messages(
                examples.case(
                    "visibility_timeout_too_short", State.WATCHING, State.CLOSED, reason=UNMANAGED
                )
            ),
        ),
        NearMiss(
            "what was fixed kills no message",
            NOT_FOUND,
            facts=lying.messages(examples.case("message_too_long", State.WATCHING)),
        ),
        NearMiss(
            "nobody's DLQ",
            NOT_FOUND,
            facts=replace(_WAITING, dlq_sources=()),
        ),
        NearMiss(
            "somebody took them meanwhile",
            "need_already_met",
            facts=lying.messages(ApproximateNumberOfMessages="0"),
        ),
        NearMiss(
            "two queues die there",
            "shared_dlq",
            facts=replace(_WAITING, dlq_sources=(lying.source(), _SECOND), sole_source=None),
        ),
        NearMiss(
            "another source keeps Mendq out",
            "shared_dlq",
            facts=replace(_WAITING, sole_source=None),
        ),
        NearMiss(
            "the source is not managed",
            "source_not_managed",
            facts=replace(_WAITING, sole_source=replace(lying.SOLE, mode=None)),
        ),
        NearMiss(
            "the source's tag forbids it",
            "redrive_off",
            facts=replace(_WAITING, sole_source=replace(lying.SOLE, tags={REDRIVE_TAG: "off"})),
        ),
        NearMiss(
            "the DLQ's own tag forbids it",
            "redrive_off",
            facts=replace(_WAITING, tags={REDRIVE_TAG: "off"}),
        ),
        NearMiss(
            "its messages die further",
            "messages_die_further",
            facts=lying.messages(RedrivePolicy=Redrive(f"{examples.DLQ_ARN}-2", 5).text),
        ),
        NearMiss(
            "a function handles the messages",
            "messages_are_read",
            facts=replace(_WAITING, lambda_consumers=(lying.HANDLER,)),
        ),
        NearMiss(
            "somebody deletes messages",
            "messages_are_taken",
            facts=replace(_WAITING, measured=replace(lying.MEASURED, deleted=1, deleted_lately=1)),
        ),
        NearMiss(
            "somebody moves them",
            "move_task_running",
            facts=replace(_WAITING, move_task_running=True),
        ),
        NearMiss(
            "consumers fail by now",
            "cause_first",
            facts=lying.messages(
                lying.VISIBILITY, examples.case("consumer_failing", State.ESCALATED)
            ),
        ),
        NearMiss(
            "the source has another open case",
            "cause_first",
            facts=lying.messages(
                lying.VISIBILITY, examples.case("consumer_stopped", State.ESCALATED)
            ),
        ),
        NearMiss(
            "a second cause was declined",
            "cause_not_fixed",
            facts=lying.messages(
                lying.KMS,
                examples.case("visibility_timeout_too_short", State.PROPOSED, State.DECLINED),
            ),
        ),
        NearMiss(
            "the cause came back",
            "cause_first",
            facts=lying.messages(
                examples.case("visibility_timeout_too_short", State.WATCHING, State.INEFFECTIVE)
            ),
        ),
        NearMiss(
            "messages still come, hours after it was fixed",
            "messages_arrive",
            facts=replace(
                lying.messages(replace(lying.KMS, at=lying.MEASURED.since)),
                measured=lying.recounted(
                    lying.MEASURED,
                    visible_before=190,
                    backlog_before=190,
                    oldest_age_seconds_now=lying.A_DAY,
                ),
            ),
        ),
        NearMiss(
            "nobody knows what killed them",
            "no_fixed_cause",
            facts=replace(_WAITING, source_cases=()),
        ),
        NearMiss(
            "the source lets in one network alone",
            "network_only_policy",
            facts=replace(_WAITING, dlq_sources=(lying.source(Policy=lying.FOR_ONE_NETWORK),)),
        ),
    ),
)
