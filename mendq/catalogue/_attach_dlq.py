"""Plans to give a queue its DLQ, and what speaks against one."""

from __future__ import annotations

from mendq.catalogue._stuck_group import head_is_stuck, one_group_blocks
from mendq.catalogue._visibility import failing_consumer
from mendq.catalogue.symptom import Found
from mendq.model.dlq import attributes_of_dlq
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import Measured
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.queue import (
    MAX_RECEIVE_COUNT,
    Redrive,
    allow_of,
    arn_of_dlq,
    is_quarantine,
    parts_of,
    why_unfit_as_dlq,
)
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.commands import get_attributes
from mendq.notifications.text import counted, span

# A few messages that are given back again and again make many receives: many messages have to
# pass, and many receives to fail, unless Lambda itself counted that its function fails.
FEWEST_MESSAGES = 100
# A case of it explains what is received again.
EXPLAINED_BY = frozenset({"visibility_timeout_too_short"})


def failing_in(facts: Facts) -> Found | None:
    """Received at least twice as often as deleted, and no delete too many."""
    measured = facts.measured
    if measured is None or _is_another_s(facts, measured):
        return None
    fruitless, deleted = measured.fruitless_receives, measured.deleted
    if fruitless < max(deleted, measured.inexact_by) or not _concerns_many(facts, measured):
        return None
    held = measured.now.in_flight
    still_held = f", {held:,} are still held" if held else ""
    return Found(
        f"{fruitless:,} of {measured.received:,} receives in {span(measured.lasted)} ended in no "
        f"delete{still_held}: {counted(measured.sent, 'message')} came and {deleted:,} went by a "
        "delete"
    )


def _is_another_s(facts: Facts, measured: Measured) -> bool:
    """A visibility timeout that ends too early, one message at the head of a group, or people who
    look.
    """
    return (
        measured.has_surplus
        or one_group_blocks(measured)
        or (facts.is_fifo and head_is_stuck(measured, facts.visibility_seconds))
        or facts.move_task_running
        or facts.takes_dlq_messages
        or bool(EXPLAINED_BY & facts.open_symptoms)
    )


def _concerns_many(facts: Facts, measured: Measured) -> bool:
    if failing_consumer(facts):
        return True
    messages = measured.before.backlog + measured.sent
    return min(messages, measured.fruitless_receives) >= FEWEST_MESSAGES


# While one of them is open, a DLQ would only take in what it keeps from being done.
FIXED_FIRST = frozenset({"visibility_timeout_too_short", "consumer_failing"})
POLICIES = ("Policy", AttachDlq.attribute)


def make_and_attach(facts: Facts, because: str) -> Plan | Refusal:
    """A DLQ of the queue's own for one that has none, after five receives."""
    dlq_arn = arn_of_dlq(facts.queue_arn)
    if not has_none(facts):
        return Ignore("need_already_met", "it has a DLQ by now, or takes DLQ messages itself")
    reason = (
        f"{because}. What is received {MAX_RECEIVE_COUNT} times and not deleted would go to "
        f"{dlq_arn}, and be kept there for 14 days{_order(facts)}"
    )
    steps = CreateDlq("", dlq_arn), AttachDlq("", Redrive(dlq_arn, MAX_RECEIVE_COUNT).text)
    return _cause_first(facts) or _name_is_taken(facts, dlq_arn) or Plan(steps, reason)


def make_again(facts: Facts, dlq_arn: str, because: str) -> Plan | Refusal:
    """The queue that its RedrivePolicy names, under that very name; the source is not written.

    Mendq manages no queue of a quarantine's name, and makes one to keep what came back alone.
    """
    if is_quarantine(parts_of(dlq_arn).name):
        reason = (
            f"its RedrivePolicy names {dlq_arn}, which is gone and by its name a quarantine "
            "of Mendq's: that keeps what came back of a redrive, and is no DLQ"
        )
        command = get_attributes(facts.queue_arn, AttachDlq.attribute)
        return Escalate("names_a_quarantine", reason, command)
    return _cause_first(facts) or Plan((CreateDlq("", dlq_arn),), because + _order(facts))


def _order(facts: Facts) -> str:
    """What a DLQ costs a FIFO queue: AWS advises none where the order must hold."""
    held = ". What stands behind it in its group is then handled without it, in the order left"
    return held if facts.is_fifo else ""


def gone(facts: Facts) -> str | None:
    """The DLQ that a RedrivePolicy names in vain, where one could stand there."""
    named = facts.dlq
    if named is None or named.exists or why_unfit_as_dlq(facts.queue_arn, named.queue_arn):
        return None
    return named.queue_arn


def has_none(facts: Facts) -> bool:
    """Whether the queue has no DLQ, and is nobody's itself."""
    return not facts.attributes.get(AttachDlq.attribute) and not facts.takes_dlq_messages


def _cause_first(facts: Facts) -> Refusal | None:
    """The backlog of a consumer that fails or is too slow would be dumped at once.

    Whether a case is open about that or a person has closed it: what shows it now decides. Where
    nothing was measured nobody can say; where nobody reads and nothing waits, nothing is dumped.
    """
    cause = _cause(facts)
    if cause is not None:
        reason = f"{cause}: its backlog would all become DLQ messages"
        return Ignore("cause_first", reason)
    idle = not facts.lambda_consumers and facts.visible + facts.in_flight == 0
    if idle or (facts.measured is not None and not facts.move_task_running):
        return None
    reason = "nothing was measured that says whether its consumers finish what they receive"
    return Ignore("not_measured", reason)


def _cause(facts: Facts) -> str | None:
    if opened := sorted(FIXED_FIRST & facts.open_symptoms):
        return f"{opened[0]} is open about it"
    if (failing := failing_consumer(facts)) is not None:
        return f"{failing.function_arn} fails in most of its runs"
    # Late deletes fail on a FIFO queue: what is deleted there was one message's.
    if facts.measured is not None and facts.measured.shows_a_race and not facts.is_fifo:
        return "its messages are handled twice, so its visibility timeout is too short"
    found = failing_in(facts)
    return found.because if found else None


def _name_is_taken(facts: Facts, dlq_arn: str) -> Refusal | None:
    """One that is as Mendq would make it will do: it is ours from before, or as good."""
    namesake = facts.dlq_namesake
    if namesake is None or namesake.queue_arn != dlq_arn:
        return Ignore("name_not_known", f"nobody looked for {dlq_arn}")
    if not namesake.exists or _is_as_made(facts, namesake):
        return None
    reason = (
        f"there is a queue {dlq_arn} already, and it is not made for this one's messages: "
        "whether to attach it, or another, is for its owner to say"
    )
    return Escalate("name_taken", reason, get_attributes(dlq_arn))


def _is_as_made(facts: Facts, namesake: QueueFacts) -> bool:
    stands = namesake.attributes
    wanted = attributes_of_dlq(facts, namesake.queue_arn)
    allowed = wanted.pop("RedriveAllowPolicy")
    return (
        not any(stands.get(name) for name in POLICIES)
        and allow_of(stands.get("RedriveAllowPolicy", "")) == allow_of(allowed)
        and all(stands.get(name) == value for name, value in wanted.items())
    )
