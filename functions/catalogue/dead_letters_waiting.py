"""Dead letters wait, and what killed them is mended: they could be handled now.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
"""

from __future__ import annotations

from dataclasses import replace

from functions.catalogue.dead_letters_arriving import suspects
from functions.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from functions.healing import examples
from functions.healing import letter_examples as lying
from functions.healing.advance import UNMANAGED
from functions.healing.callers import named
from functions.healing.dead_letters import Redrive
from functions.healing.facts import Facts, Need, SourceQueue
from functions.healing.limits import Limits
from functions.healing.mode import Mode
from functions.healing.plain_text import counted
from functions.healing.plan import Plan, Refusal
from functions.healing.queue_names import parts_of
from functions.healing.redrive_consent import REDRIVE_TAG
from functions.healing.redrive_step import HELD, RedriveDeadLetters
from functions.healing.redriving import MENDED_FIRST, send_back
from functions.healing.states import State
from functions.healing.steps import SetMessageRetention
from functions.healing.waiting_letters import explained, time_left

_DETECTS_BY = frozenset(
    {
        Need.QUEUE,
        Need.DEAD_LETTER_SOURCES,
        Need.MEASUREMENTS,
        Need.SOURCE_CASES,
    }
)


def detect(facts: Facts) -> Found | None:
    """A cause that is mended, of letters that came while it was not; what else there is, is asked
    when it is planned."""
    if facts.measured is None or not facts.visible or not facts.dead_letter_sources:
        return None
    mended = explained(facts).mended
    if not mended:
        return None
    causes = named([f"{each.symptom} at {parts_of(each.queue_arn).name}" for each in mended[:2]])
    left = time_left(facts)
    wait = "waits" if facts.visible == 1 else "wait"
    return Found(
        f"{counted(facts.visible, 'dead letter')} {wait}, and {causes} is mended; "
        f"the first expires {left}",
        seconds_left=left.at_least.total_seconds(),
    )


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    return send_back(facts, facts.found or "letters wait, and what killed them is mended")


_RETENTION = SetMessageRetention(4 * lying.A_DAY, SetMessageRetention.maximum)
_BACK = RedriveDeadLetters(HELD, examples.STANDARD_ARN)
_WAITING = lying.letters()
_SECOND = SourceQueue(f"{examples.STANDARD_ARN}-2", lying.source().attributes)

DEAD_LETTERS_WAITING = Symptom(
    name="dead_letters_waiting",
    sentence="Dead letters wait although what killed them is mended; they expire where nobody "
    "sends them back.",
    plan_in_words="Send them back to their source, a few first, faster only while they stay away; "
    "before that keep them for 14 days where they could expire on the way.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-configure-dead-letter-queue-redrive.html",
    needs=_DETECTS_BY | {Need.LAMBDA_CONSUMERS, Need.MOVE_TASKS, Need.OPEN_CASES, Need.SOLE_SOURCE},
    steps=(RedriveDeadLetters, SetMessageRetention),
    plan=plan,
    autonomy=Mode.PROPOSE,
    shows=("ApproximateNumberOfMessages", "MessageRetentionPeriod"),
    gives_way_to=MENDED_FIRST,
    detection=Detection(detect, needs=_DETECTS_BY, suspects=suspects),
    detected=(
        Detected("the lease that was too short is mended and watched", _WAITING, (_BACK,)),
        Detected(
            "the watch is over, and the letters are kept for too short a time",
            lying.letters(lying.KMS, MessageRetentionPeriod=str(4 * lying.A_DAY)),
            (_BACK, _RETENTION),
        ),
        Detected("a person mended the consumer", lying.letters(lying.BY_A_PERSON), (_BACK,)),
    ),
    near_misses=(
        NearMiss(
            "nothing waits",
            NOT_FOUND,
            facts=lying.letters(ApproximateNumberOfMessages="0"),
        ),
        NearMiss(
            "the lease was raised, and nothing proves yet that it helps",
            NOT_FOUND,
            facts=lying.letters(examples.case("lease_expired", State.APPLIED)),
        ),
        NearMiss(
            "it was mended before the first letter came",
            NOT_FOUND,
            facts=replace(_WAITING, measured=replace(lying.MEASURED, until=lying.LATER)),
        ),
        NearMiss(
            "the case ended because nobody manages the source any more",
            NOT_FOUND,
            facts=lying.letters(
                examples.case("lease_expired", State.WATCHING, State.CLOSED, reason=UNMANAGED)
            ),
        ),
        NearMiss(
            "what was mended kills no message",
            NOT_FOUND,
            facts=lying.letters(examples.case("message_too_long", State.WATCHING)),
        ),
        NearMiss(
            "nobody's dead-letter queue",
            NOT_FOUND,
            facts=replace(_WAITING, dead_letter_sources=()),
        ),
        NearMiss(
            "somebody took them meanwhile",
            "need_already_met",
            facts=lying.letters(ApproximateNumberOfMessages="0"),
        ),
        NearMiss(
            "two queues die there",
            "shared_dead_letters",
            facts=replace(
                _WAITING, dead_letter_sources=(lying.source(), _SECOND), sole_source=None
            ),
        ),
        NearMiss(
            "another source keeps Mendq out",
            "shared_dead_letters",
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
            "the dead-letter queue's own tag forbids it",
            "redrive_off",
            facts=replace(_WAITING, tags={REDRIVE_TAG: "off"}),
        ),
        NearMiss(
            "its letters die further",
            "letters_die_further",
            facts=lying.letters(RedrivePolicy=Redrive(f"{examples.DEAD_LETTER_ARN}-2", 5).text),
        ),
        NearMiss(
            "a function handles the letters",
            "letters_are_read",
            facts=replace(_WAITING, lambda_consumers=(lying.HANDLER,)),
        ),
        NearMiss(
            "somebody deletes letters",
            "letters_are_taken",
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
            facts=lying.letters(lying.LEASE, examples.case("consumer_failing", State.ESCALATED)),
        ),
        NearMiss(
            "the source has another open case",
            "cause_first",
            facts=lying.letters(lying.LEASE, examples.case("consumer_stopped", State.ESCALATED)),
        ),
        NearMiss(
            "a second cause was declined",
            "cause_not_mended",
            facts=lying.letters(
                lying.KMS, examples.case("lease_expired", State.PROPOSED, State.DECLINED)
            ),
        ),
        NearMiss(
            "the cause came back",
            "cause_first",
            facts=lying.letters(examples.case("lease_expired", State.WATCHING, State.INEFFECTIVE)),
        ),
        NearMiss(
            "letters still come, hours after it was mended",
            "letters_arrive",
            facts=replace(
                lying.letters(replace(lying.KMS, at=lying.MEASURED.since)),
                measured=replace(
                    lying.MEASURED,
                    visible_before=190,
                    backlog_before=190,
                    oldest_age_seconds_now=lying.A_DAY,
                ),
            ),
        ),
        NearMiss(
            "nobody knows what killed them",
            "no_mended_cause",
            facts=replace(_WAITING, source_cases=()),
        ),
        NearMiss(
            "the source lets in one network alone",
            "network_only_policy",
            facts=replace(
                _WAITING, dead_letter_sources=(lying.source(Policy=lying.FOR_ONE_NETWORK),)
            ),
        ),
    ),
)
