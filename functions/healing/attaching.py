"""Plans to give a queue its dead-letter queue, and what speaks against one; nothing is asked here.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from functions.healing.dead_letter_steps import AttachDeadLetters, CreateDeadLetters
from functions.healing.dead_letters import (
    MAX_RECEIVE_COUNT,
    Redrive,
    allow_of,
    arn_for,
    attributes_of_new,
    unfit,
)
from functions.healing.facts import DeadLetterQueue, Facts
from functions.healing.failing import failing_in
from functions.healing.look_commands import get_attributes
from functions.healing.plan import Plan, Refusal
from functions.healing.quarantines import is_quarantine
from functions.healing.queue_names import parts_of
from functions.healing.states import State

# While one of them is open, a dead-letter queue would only take in what it keeps from being done.
MENDED_FIRST = frozenset({"lease_expired", "consumer_failing"})
POLICIES = ("Policy", AttachDeadLetters.attribute)


def make_and_attach(facts: Facts, because: str) -> Plan | Refusal:
    """A dead-letter queue of the queue's own for one that has none, after five receives."""
    dead_letter_arn = arn_for(facts.queue_arn)
    refusal = _has_one(facts) or _cause_first(facts) or _name_is_taken(facts, dead_letter_arn)
    if refusal is not None:
        return refusal
    redrive = Redrive(dead_letter_arn, MAX_RECEIVE_COUNT)
    reason = (
        f"{because}. What is received {MAX_RECEIVE_COUNT} times and not deleted would go to "
        f"{dead_letter_arn}, and be kept there for 14 days"
    )
    return Plan(
        (CreateDeadLetters("", dead_letter_arn), AttachDeadLetters("", redrive.text)), reason
    )


def make_again(facts: Facts, dead_letter_arn: str, because: str) -> Plan | Refusal:
    """The queue that its RedrivePolicy names, under that very name; the source is not written."""
    refusal = _is_quarantine(facts, dead_letter_arn) or _cause_first(facts)
    return refusal or Plan((CreateDeadLetters("", dead_letter_arn),), because)


def gone(facts: Facts) -> str | None:
    """The dead-letter queue that a RedrivePolicy names in vain, where one could stand there."""
    named = facts.dead_letter_queue
    if named is None or named.attributes is not None or unfit(facts.queue_arn, named.queue_arn):
        return None
    return named.queue_arn


def has_none(facts: Facts) -> bool:
    """Whether the queue has no dead-letter queue, and is nobody's itself."""
    return not facts.attributes.get(AttachDeadLetters.attribute) and not facts.takes_dead_letters


def _has_one(facts: Facts) -> Refusal | None:
    if has_none(facts):
        return None
    reason = "it has a dead-letter queue by now, or takes dead letters itself"
    return Refusal("need_already_met", reason, becomes=None)


def _is_quarantine(facts: Facts, dead_letter_arn: str) -> Refusal | None:
    """Mendq manages no queue of such a name, and makes one to keep what came back alone."""
    if not is_quarantine(parts_of(dead_letter_arn).name):
        return None
    reason = (
        f"its RedrivePolicy names {dead_letter_arn}, which is gone and by its name a quarantine "
        "of Mendq's: that keeps what came back of a redrive, and is no dead-letter queue"
    )
    look = get_attributes(facts.queue_arn, AttachDeadLetters.attribute)
    return Refusal("names_a_quarantine", reason, State.ESCALATED, next_command=look)


def _cause_first(facts: Facts) -> Refusal | None:
    """The backlog of a consumer that fails or is too slow would be dumped at once.

    Whether a case is open about that or a person has closed it: what shows it now decides.
    """
    cause = _cause(facts)
    if cause is not None:
        reason = f"{cause}: its backlog would all become dead letters"
        return Refusal("cause_first", reason, becomes=None)
    return _not_measured(facts)


def _cause(facts: Facts) -> str | None:
    opened = sorted(MENDED_FIRST & facts.open_symptoms)
    if opened:
        return f"{opened[0]} is open about it"
    failing = next((each for each in facts.lambda_consumers if each.fails_fast), None)
    if failing is not None:
        return f"{failing.function_arn} fails in most of its runs"
    # Late deletes fail on a FIFO queue: what is deleted there was one message's.
    if facts.measured is not None and facts.measured.shows_a_race and not facts.is_fifo:
        return "its messages are handled twice, so its lease is too short"
    return failing_in(facts)


def _not_measured(facts: Facts) -> Refusal | None:
    """Nobody can say that it is not so; where nobody reads and nothing waits, nothing is dumped."""
    idle = not facts.lambda_consumers and facts.visible + facts.in_flight == 0
    if idle or (facts.measured is not None and not facts.move_task_running):
        return None
    reason = "nothing was measured that says whether its consumers finish what they receive"
    return Refusal("not_measured", reason, becomes=None)


def _name_is_taken(facts: Facts, dead_letter_arn: str) -> Refusal | None:
    """One that is as Mendq would make it will do: it is ours from before, or as good."""
    namesake = facts.dead_letter_namesake
    if namesake is None or namesake.queue_arn != dead_letter_arn:
        return Refusal("name_not_known", f"nobody looked for {dead_letter_arn}", becomes=None)
    if namesake.attributes is None or _is_as_made(facts, namesake):
        return None
    reason = (
        f"there is a queue {dead_letter_arn} already, and it is not made for this one's letters: "
        "whether to attach it, or another, is for its owner to say"
    )
    look = get_attributes(dead_letter_arn, "All")
    return Refusal("name_taken", reason, State.ESCALATED, next_command=look)


def _is_as_made(facts: Facts, namesake: DeadLetterQueue) -> bool:
    stands = namesake.attributes or {}
    wanted = attributes_of_new(facts, namesake.queue_arn)
    allowed = wanted.pop("RedriveAllowPolicy")
    return (
        not any(stands.get(each) for each in POLICIES)
        and allow_of(stands.get("RedriveAllowPolicy", "")) == allow_of(allowed)
        and all(stands.get(name) == value for name, value in wanted.items())
    )
