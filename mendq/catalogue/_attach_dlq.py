"""Plans to give a queue its DLQ, and what speaks against one."""

from __future__ import annotations

from dataclasses import dataclass

from mendq.catalogue._stuck_group import head_is_stuck, one_group_blocks
from mendq.catalogue._visibility import failing_consumer
from mendq.catalogue.symptom import Found
from mendq.model.dlq import attributes_of_dlq
from mendq.model.facts import Facts, QueueFacts
from mendq.model.limits import Mode
from mendq.model.metrics import Measured
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.queue import (
    MAX_RECEIVE_COUNT,
    MOST_RECEIVES,
    Redrive,
    allow_of,
    arn_of_dlq,
    is_quarantine,
    parts_of,
    why_unfit_as_dlq,
)
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.commands import get_attributes, metric_command
from mendq.notifications.text import counted, span

# A page for consumers that fail needs so many messages, of which so large a share is not finished:
# a few messages that are given back again and again make many receives. These numbers decide about
# the page alone. Whether a DLQ may be attached is decided without them.
FEWEST_MESSAGES = 100
UNFINISHED_SHARE = 0.2
# Bad messages are received once in each visibility timeout. If what is left was received less than
# this share of that, it is not a few bad messages: it waits for consumers that fail.
TRIED_SHARE_OF_BAD = 0.25
# If no message at all is finished, fewer are enough for the page.
FEWEST_OF_NONE = 10
# So many receives of each message, and hardly one finished: a standing backlog that goes round.
RECEIVED_OFTEN, HARDLY_ANY = 2, 0.05
# A case of it explains what is received again.
EXPLAINED_BY = frozenset({"visibility_timeout_too_short"})


def failing_in(facts: Facts) -> Found | None:
    """Messages that consumers receive and do not finish, although they come and wait.

    Most receives end in no delete, and deletes do not keep up with sends. Messages that are given
    back and finished later are no failure, however often they are received.
    """
    measured = facts.measured
    if measured is None or _is_another_s(facts, measured):
        return None
    fruitless, deleted = measured.fruitless_receives, measured.deleted
    if fruitless < max(deleted, measured.inexact_by) or not _leaves_messages(facts, measured):
        return None
    held = measured.now.in_flight
    still_held = f", {held:,} are still held" if held else ""
    if deleted == 0 and measured.sent:
        return Found(
            f"No message was finished in the last {span(measured.lasted)}: consumers received "
            f"{counted(measured.messages, 'message')} {measured.received:,} times and deleted "
            f"none{still_held}"
        )
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
        or _group_is_blocked(facts, measured)
        or facts.move_task_running
        or facts.takes_dlq_messages
        or bool(EXPLAINED_BY & facts.open_symptoms)
    )


def _group_is_blocked(facts: Facts, measured: Measured) -> bool:
    """True if one message at the head of a FIFO group explains what is not finished."""
    is_stuck = facts.is_fifo and head_is_stuck(measured, facts.visibility_seconds)
    return one_group_blocks(measured) or is_stuck


def _leaves_messages(facts: Facts, measured: Measured) -> bool:
    """True if more messages are left unfinished than a few bad ones explain."""
    is_many = measured.messages >= FEWEST_MESSAGES
    if measured.deleted == 0 and measured.sent:
        is_many = measured.messages >= FEWEST_OF_NONE
    if not is_many and failing_consumer(facts) is None:
        return False
    if measured.sent <= measured.deleted / 2:
        # Nothing comes that deletes could keep up with: what waited is received again and again.
        goes_round = measured.received >= RECEIVED_OFTEN * measured.messages
        is_left = measured.now.backlog > 0
        return is_left and goes_round and measured.deleted <= HARDLY_ANY * measured.messages
    if measured.unfinished > UNFINISHED_SHARE * measured.sent:
        return True
    return measured.unfinished > measured.inexact_by and not _are_bad_messages(facts, measured)


def _are_bad_messages(facts: Facts, measured: Measured) -> bool:
    """True if what is left is received as often as messages that never finish are, on average for
    half of the time; with a DLQ they would leave.
    """
    timeouts = measured.lasted.total_seconds() / max(facts.visibility_seconds, 1)
    expected = measured.unfinished * timeouts / 2
    is_tried = measured.fruitless_receives >= TRIED_SHARE_OF_BAD * expected
    return facts.dlq_arn is None and is_tried


# While one of them is open, a DLQ would only take in what it keeps from being done.
FIXED_FIRST = frozenset({"visibility_timeout_too_short", "consumer_failing"})
POLICIES = ("Policy", AttachDlq.attribute)
# Few steps, so that a plan stays the same while its numbers change a little between the proposal
# and its approval.
RECEIVE_LIMITS = (MAX_RECEIVE_COUNT, 10, 20, 30, 50, MOST_RECEIVES)
# A mean says nothing about the message that needs most receives: a limit at the mean would move
# every message above it.
TIMES_THE_MEAN = 3


def make_and_attach(facts: Facts, because: str) -> Plan | Refusal:
    """A DLQ of the queue's own for one that has none.

    A person approves it unless all that was received was finished at its first receive.
    """
    dlq_arn = arn_of_dlq(facts.queue_arn)
    if not has_none(facts):
        return Ignore("need_already_met", "it has a DLQ by now, or takes DLQ messages itself")
    refusal = _cause_first(facts) or _name_is_taken(facts, dlq_arn)
    if refusal is not None:
        return refusal
    receives = _receive_limit(facts)
    if receives is None:
        return _no_safe_limit(facts, because)
    reason = (
        f"{because}. What is received {receives} times and not deleted would go to "
        f"{dlq_arn}, and be kept there for 14 days{_order(facts)}{_to_know(facts, receives)}"
    )
    steps = CreateDlq("", dlq_arn), AttachDlq("", Redrive(dlq_arn, receives).text)
    return Plan(steps, reason, at_most=_at_most(facts))


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
    refusal = _cause_first(facts)
    if refusal is not None:
        return refusal
    # A person chose this limit; an idle queue has nothing that the new DLQ could take.
    if _is_idle(facts) or _at_most(facts) is Mode.HEAL:
        return Plan((CreateDlq("", dlq_arn),), because + _order(facts))
    reason = because + _order(facts) + _to_know(facts, facts.max_receive_count or 0)
    return Plan((CreateDlq("", dlq_arn),), reason, at_most=Mode.PROPOSE)


def _at_most(facts: Facts) -> Mode:
    """HEAL only if messages were finished, and each at its first receive; else a person is asked.

    None of these questions has a minimum: what is noise to a finding is no leave to write.
    """
    measured = facts.measured
    if measured is None or measured.deleted == 0:
        return Mode.PROPOSE
    # What waited at first was received before anything was counted.
    is_certain = measured.before.backlog <= measured.now.backlog
    is_handled_once = measured.fruitless_receives == 0 and measured.surplus_deletes <= 0
    if measured.has_stopped_finishing or not is_certain or not is_handled_once:
        return Mode.PROPOSE
    return Mode.HEAL


def _sums_of_finished(facts: Facts, measured: Measured) -> Measured:
    """The sums that say how often finished messages were received.

    The head of a blocked group is received all the while: what went by it since says most.
    """
    still = measured.recent.standstill
    is_stuck = facts.is_fifo and head_is_stuck(measured, facts.visibility_seconds)
    return still if is_stuck and still is not None and still.deleted else measured


def _receive_limit(facts: Facts) -> int | None:
    """The maxReceiveCount to set; None if none that Mendq may set is known to spare good messages.

    If nothing was finished, nothing says how often a good message is received: then the highest.
    The head of a blocked group alone is received, so it says nothing about those behind it.
    """
    measured = facts.measured
    if measured is None or measured.fruitless_receives == 0:
        return MAX_RECEIVE_COUNT
    mean = _sums_of_finished(facts, measured).receives_per_finished(is_fifo=facts.is_fifo)
    if mean is None:
        return MAX_RECEIVE_COUNT if _group_is_blocked(facts, measured) else MOST_RECEIVES
    enough = (limit for limit in RECEIVE_LIMITS if limit >= TIMES_THE_MEAN * mean)
    return next(enough, None)


def _no_safe_limit(facts: Facts, because: str) -> Refusal:
    """No limit is proposed: a person, who knows the consumer, has to choose it."""
    reason = (
        f"{because}. A DLQ would stop that, but nothing says which maxReceiveCount spares good "
        f"messages: {_mean(facts)}. Three times that is more than {MOST_RECEIVES}, the highest "
        "that Mendq sets. See in the consumer's log how often it receives a message that it "
        "finishes, then attach a DLQ with a higher maxReceiveCount yourself; the runbook has the "
        "command"
    )
    return Refuse("no_safe_limit", reason, get_attributes(facts.queue_arn))


def _mean(facts: Facts) -> str:
    measured = facts.measured
    assert measured is not None  # noqa: S101 - else there is no mean
    sums = _sums_of_finished(facts, measured)
    mean = sums.receives_per_finished(is_fifo=facts.is_fifo) or 0
    return (
        f"for each finished message CloudWatch counted {mean:,.1f} receives on average in "
        f"{span(sums.lasted)}. Receives of messages that never finish are in this mean, because "
        "sums cannot tell them apart"
    )


def _to_know(facts: Facts, receives: int) -> str:
    """What a person has to know before they approve: what is unknown, and how many would move."""
    measured = facts.measured
    if measured is None or _at_most(facts) is Mode.HEAL:
        return ""
    said = []
    if measured.deleted == 0:
        said.append(
            f"No message was finished in the last {span(measured.lasted)}, so nothing says whether "
            "the consumers work and only these messages fail: look at their log before you "
            "approve, and decline if they finish nothing"
        )
        if receives == MOST_RECEIVES:
            said.append(
                f"Nor does anything say how often a good message is received: {receives} is the "
                "highest limit that Mendq sets"
            )
    elif measured.has_stopped_finishing:
        came = counted(measured.sent_since_delete, "message")
        said.append(f"{came} came since the last delete, and none was finished: look at the log")
    elif measured.fruitless_receives:
        said.append(
            f"F{_mean(facts)[1:]}. If consumers give messages back on purpose, approve only if "
            f"none of them needs more than {counted(receives, 'receive')}"
        )
    if measured.surplus_deletes > 0:
        said.append(
            f"{counted(measured.surplus_deletes, 'delete')} came beyond the messages that left: "
            "some may have been handled twice, because the visibility timeout is too short"
        )
    if waiting := facts.visible + facts.in_flight:
        said.append(
            f"{counted(waiting, 'message')} {'waits' if waiting == 1 else 'wait'} now; each that "
            f"was received {counted(receives, 'time')} goes to the DLQ at its next receive"
        )
    return "".join(f". {sentence}" for sentence in said)


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


def _is_idle(facts: Facts) -> bool:
    """True if nothing reads the queue and nothing waits in it."""
    return not facts.lambda_consumers and facts.visible + facts.in_flight == 0


def _cause_first(facts: Facts) -> Refusal | None:
    """The backlog of a consumer that fails or is too slow would be dumped at once.

    Whether a case is open about that or a person has closed it: what shows it now decides. Where
    nothing was measured nobody can say; where nobody reads and nothing waits, nothing is dumped.
    """
    cause = _cause(facts)
    if cause is not None:
        reason = f"{cause}: its backlog would all become DLQ messages"
        return Ignore("cause_first", reason)
    measured = facts.measured
    if measured is None or facts.move_task_running:
        if _is_idle(facts):
            return None
        reason = "nothing was measured that says whether its consumers finish what they receive"
        return Ignore("not_measured", reason)
    if _group_is_blocked(facts, measured):
        return None
    return _nothing_finished(facts, measured)


def _nothing_finished(facts: Facts, measured: Measured) -> Refusal | None:
    """Messages come and are not finished, though too few for a page: no DLQ, however few."""
    lately = _Counts.lately(measured)
    if measured.has_stopped_finishing:
        messages = measured.sent_since_delete if measured.deleted else measured.sent
        since = "since the last delete" if measured.deleted else f"in {span(measured.lasted)}"
        finished = f"{counted(messages, 'message')} came {since}, and none was finished"
    elif _Counts.of(measured).fails:
        finished = (
            f"of {counted(measured.sent, 'message')} that came in {span(measured.lasted)}, "
            f"{measured.deleted:,} were finished"
        )
    elif lately.fails:
        came = counted(lately.sent, "message")
        finished = f"of {came} that came in the last hour, {lately.deleted:,} were finished"
    else:
        return None
    waiting = counted(facts.visible + facts.in_flight, "message")
    reason = (
        f"{finished}: its consumers may fail, and a DLQ would take in what waits ({waiting}) and "
        "what comes. Look at the consumers' log; when they finish messages, Mendq looks again"
    )
    return Refuse("nothing_finished", reason, _received(facts))


@dataclass(frozen=True)
class _Counts:
    """Messages that came and that were finished, and the receives of what was not.

    Messages are counted, not receives: a few bad ones are received thousands of times.
    """

    sent: int
    deleted: int
    received: int

    @classmethod
    def of(cls, measured: Measured) -> _Counts:
        return cls(measured.sent, measured.deleted, measured.received - measured.now.in_flight)

    @classmethod
    def lately(cls, measured: Measured) -> _Counts:
        """Of the last hour, if its minutes are known."""
        last = measured.recent.stretches[-2:]
        return cls(
            sum(stretch.sent for stretch in last),
            sum(stretch.deleted for stretch in last),
            sum(stretch.received for stretch in last) - measured.now.in_flight * bool(last),
        )

    @property
    def finishes_most(self) -> bool:
        """True if at least half of the messages that came were finished; one alone proves
        nothing.
        """
        return self.sent <= 1 or 2 * self.deleted >= self.sent

    @property
    def fails(self) -> bool:
        """True if fewer were finished, and most receives ended in no delete."""
        return not self.finishes_most and self.received >= 2 * self.deleted and self.received > 0


def _received(facts: Facts) -> str:
    return metric_command(facts.queue_arn, "NumberOfMessagesReceived", "Sum", facts.measured)


def _finishes_others(measured: Measured) -> bool:
    """True if few messages explain all that fails, and the others are finished, lately as well."""
    return (
        measured.deleted > measured.now.backlog
        and measured.fruitless_receives > 0
        and not measured.has_stopped_finishing
        and _Counts.of(measured).finishes_most
        and _Counts.lately(measured).finishes_most
    )


def _cause(facts: Facts) -> str | None:
    if opened := sorted(FIXED_FIRST & facts.open_symptoms):
        return f"{opened[0]} is open about it"
    measured = facts.measured
    failing = failing_consumer(facts)
    # A function that fails at one message again and again fails in most of its runs: what counts
    # is whether the other messages are finished.
    is_finishing = measured is not None and _finishes_others(measured)
    if failing is not None and not is_finishing:
        return f"{failing.function_arn} fails in most of its runs"
    # Late deletes fail on a FIFO queue: what is deleted there was one message's.
    if measured is not None and measured.shows_a_race and not facts.is_fifo:
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
