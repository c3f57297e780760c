"""Decide what a redrive does next.

A redrive sends messages of a DLQ back to the queue in which they failed (the source) after the
cause was fixed. Mendq cannot know in advance that it is fixed. A message that still fails comes
back to the DLQ and may have done harm on the way. So a redrive sends a few messages, waits until a
message that fails must be back, and sends more only if the first ones stayed away.

A redrive is in one of six stages:

- canary: the first few messages go back.
- second canary: some more go back, because a message came back and too few had gone to judge.
- soak: a wait in which nothing is sent. A message that fails is received `maxReceiveCount` times,
  and each receive hides it for one visibility timeout. The soak lasts longer than all of these.
- ramp: more messages go back, a multiple of those that the last stage moved for certain. After each
  ramp comes a soak again.
- done: no message is left that may go back. The case is verified.
- halted: the redrive must not continue. The case is escalated, and the other messages stay in the
  DLQ.

`follow_up` invokes the redrive Lambda for each such case once a minute; one invocation is one tick.
The tick (`mendq.redrive.redrive`) claims the DLQ, reads both queues, and asks `decide` with a
`RedriveSituation`. It stores the progress of the answer, does its action and asks again, until the
action is to wait, part of a stage is left for the next tick, or the redrive has ended. This file is
pure: it does not call AWS, and the clock is a value of the situation.

The case store has one item per DLQ: the claim of the run that works on it, the key that signs the
marks of messages that went back, and the progress (`RedriveProgress`). Nothing else is kept from
one tick to the next. The progress is stored

- before the sample, with the tick counted as one without a result, in case its run dies;
- after the sample, with the number of messages that came back, and then the number of them that
  went to quarantine;
- before messages are sent, with the number in flight;
- after they were sent, with the number that went, and why others did not;
- when the stage, a wait or the reason changes.

Rules, each with its reason:

1. The first row that matches decides, so the order of the rows is part of their meaning.
   BLOCKED_FOR_GOOD (a tag, a deleted queue, the cause) comes first and halts even during a freeze:
   waiting cannot help. The freeze comes next, before every other reason to halt: a redrive must not
   halt for its age or for ticks without a result while others have stopped it. OTHER_MOVE_TASK
   comes before TICKS_WITHOUT_RESULT for the same reason, but after the age: a task that someone
   else started must not stop a redrive for ever. All of them come before the sample and before any
   send, because they do not depend on the messages. The redrive's own waits (BLOCKED_FOR_NOW,
   SOURCE_UNREAD, NO_DELETES) come after the sample: otherwise it would wait although too many
   messages have come back.
2. Store first, then act. A run may die between any two calls. If it acted first, the next run would
   not know about the messages in flight, and would send the whole stage once more.
3. Messages that were in flight when a run died may have gone or not. They count against the size of
   the stage and prove nothing (`correct_progress_after_crash`). Otherwise stages would grow
   although no result is known.
4. Each tick takes a sample before it sends: messages that came back are counted and go to
   quarantine first. Otherwise it would halt a tick late, and send the same poison message again.
   A soak that is not over takes none, because nothing is sent then: messages that came back meet
   the sample at its end. A look is a receive, and after three receives SQS leaves a message out of
   ApproximateAgeOfOldestMessage. Otherwise a long soak would silence the alarm on that metric of
   another team whose messages are in the same DLQ.
5. The next stage is a multiple of the messages that the last stage moved for certain, not of its
   size. If that stage moved none for certain, the next one has a canary's size. Otherwise stages
   that moved nothing would grow, and the first one that moves would be a flood.
6. A soak ends by time and by evidence. Messages that may still be in the source, unread, have
   proven nothing. Otherwise a redrive to a queue without consumers would end as verified.
7. Messages go no faster than a share of the messages that the source's consumers delete, and not at
   all if these delete none. Otherwise new messages of the source would wait behind a backlog. Two
   exceptions keep a slow queue from taking for ever: the first canary is sent whole, and after it
   at least `Bounds.least_per_tick` messages go per tick, however slow the consumers are.
8. Mendq yields to others. During a freeze, or while another message movement task runs, it neither
   samples nor sends. Its own waits (`RedriveWaits`: patience, ticks without a result) begin anew
   afterwards. Otherwise two movers would receive each other's messages, and a long incident would
   halt healthy redrives. All other times continue to count: the end of a soak, the time of a stage,
   the age of the redrive. So a soak can end during a freeze. That is safe, because messages that
   fail come back meanwhile, and the next tick takes a sample before it sends.
9. No wait lasts for ever. Some waits have no end of their own (WAIT_WITH_PATIENCE, and messages
   that SQS refuses). They halt the redrive after `Bounds.patience_seconds`. Three ticks in a row
   without a result halt it too, and so does an age that no message can have. WAIT needs no such
   limit, because time ends it: a soak has an end, and a later tick may send again. Only a freeze
   may last as long as people want. Otherwise people would never hear about a redrive that cannot
   continue.
10. Messages can be back in three ways, and each counts: with the mark of this redrive, without it
    (newly dead), and in a FIFO group or behind a sample that was too short, where only the
    queue's count shows them (unseen). Otherwise consumers that drop attributes would hide that
    every message fails.
11. An end is final. To go on, a person approves a new redrive, which begins with a canary.
    Otherwise one approval would move messages that came after the person gave it.
12. While messages are left to send, the share that halts a redrive is computed over at least
    `Bounds.least_judged_messages` messages, the size of both canaries (35 as shipped). So until 35
    have gone, 2 returned messages halt the redrive. If fewer came back, but their share of those
    that have gone is too high, the next stage is a second canary. Otherwise one poison message
    among the first five, which is 20 %, would keep all the good ones in the DLQ. If no message is
    left to send, the share is computed over those that went, once the soak is over.
13. Only messages that failed in the redrive's source move, by the source that SQS names. Messages
    of other sources are released as soon as the sample is taken, and never count as returned or
    newly dead. Otherwise a queue that still fails would halt the redrive of one that is fixed. A
    look is a receive, so their receive count rises. A FIFO DLQ must have one source, because its
    unseen messages (rule 10) could be another source's.

`DECISION_TABLE` holds the rows. `CHECK_BY_CONDITION` says how a condition is checked and
`CHANGE_BY_ACTION` what an action changes in the progress. docs/redrive-stages.md shows the rows to
operators, in the words of `Condition` and `Action`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field, structs
from msgspec.structs import replace

from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import Facts
from mendq.model.limits import Bounds
from mendq.model.queue import LONGEST_RETENTION_SECONDS, parse_queue_arn, read_number_attribute
from mendq.notifications.text import format_count
from mendq.redrive.progress import (
    RUNNING_STAGES,
    SENDING_STAGES,
    DlqSample,
    RedriveProgress,
    RedriveWaits,
    Stage,
    StageProgress,
)

# The redrive halts after this many consecutive ticks that moved nothing without a known reason.
MOST_TICKS_WITHOUT_RESULT = 3

# Sentences for operators.
NO_DELETES_REASON = (
    "CloudWatch shows no deletes in the source lately, or did not answer: consumers might not "
    "handle what is sent back. Check that the source's consumers run"
)
MESSAGES_STILL_IN_SOURCE_REASON = (
    "messages that went back may still wait in the source. Check that its consumers run"
)
OTHER_MOVE_TASK_REASON = (
    "another message movement task runs on the DLQ; Mendq continues when it ends"
)
TICKS_ENDED_EARLY_REASON = (
    "several runs in a row stopped early, or the case store did not answer. Read the log of the "
    "Lambda Redrive"
)
NO_MESSAGE_TO_SEND_REASON = "no message could be sent back: the last check found none to send"
OTHERS_HOLD_MESSAGES_SUFFIX = (
    ", because other consumers hold the waiting messages, or the run had no time to look"
)
REDRIVE_TOO_OLD_REASON = (
    "the redrive is older than 14 days, the longest time that SQS keeps a message"
)
SOAK_NOT_OVER_REASON = "waiting until a message that fails again must be back in the DLQ"
NO_MESSAGE_DUE_REASON = "waiting: the speed limit allows no message yet"


class Condition(StrEnum):
    """The condition under which a row of the redrive's decision table (`DecisionRow`) applies.

    The values are the words of docs/redrive-stages.md.
    """

    BLOCKED_FOR_GOOD = "a queue is not managed any more, its tag says no, or the cause is back"
    CHANGES_FROZEN = "changes are frozen, or a change calendar is closed"
    REDRIVE_OLDER_THAN_RETENTION = "no message can be older than the redrive"
    OTHER_MOVE_TASK = "somebody else's message movement task runs"
    TICKS_WITHOUT_RESULT = "ticks in a row have moved nothing, and no row says what they waited for"
    NO_SAMPLE_YET = "no sample was taken at this tick, one can be, and no soak is under way"
    TOO_MANY_MESSAGES_RETURNED = "as many are back as halt it"
    BLOCKED_FOR_NOW = "it cannot see what it has to, or keep apart what came back"
    NO_MESSAGE_LEFT = "no message is left that could be sent back"
    SENDS_REFUSED_FOR_LONG = "SQS takes nothing, until patience is over"
    STAGE_OVER = "the stage's messages were moved, or its time is over"
    SOAK_NOT_OVER = "a poison message may not be back yet"
    SOURCE_UNREAD = "what was sent may still stand in the source unread"
    TOO_FEW_TO_JUDGE = "some are back, and too few have gone to judge by"
    NO_DELETES = "the source's deletes are 0 or not measured"
    NO_MESSAGE_DUE = (
        "at its share of what the source's consumers delete, no message's turn has come"
    )
    ALWAYS = "always"


class Action(StrEnum):
    """The action that a row of the redrive's decision table (`DecisionRow`) names.

    The values are the words of docs/redrive-stages.md.
    """

    HALT = "end the case with a page"
    WAIT_FOR_OTHERS = "wait until that is over"
    TAKE_SAMPLE = "look at the messages: what came back goes to quarantine"
    WAIT_WITH_PATIENCE = "wait; once patience is over, end the case with a page"
    SOAK = "wait until a poison message must be back"
    WAIT = "wait"
    FINISH = "end the case as verified"
    BEGIN_STAGE = "begin the next stage"
    SEND = "send messages back"


# A tick ends after one of these actions. It also ends if the redrive is over, or if a part of the
# stage is left after a send. Otherwise `decide` is called again.
WAITING_ACTIONS = frozenset({Action.WAIT, Action.WAIT_FOR_OTHERS, Action.WAIT_WITH_PATIENCE})


class DecisionRow(NamedTuple):
    """One row of the table: if the stage is one of `stages` and `condition` is met, do `action`.

    `next_stage` is the stage after the action; None if the stage stays the same. The action
    WAIT_WITH_PATIENCE changes the stage only when patience is over.
    """

    stages: tuple[Stage, ...]
    condition: Condition
    next_stage: Stage | None
    action: Action


# The decision table. The first row that matches decides.
DECISION_TABLE = (
    DecisionRow(RUNNING_STAGES, Condition.BLOCKED_FOR_GOOD, Stage.HALTED, Action.HALT),
    DecisionRow(RUNNING_STAGES, Condition.CHANGES_FROZEN, None, Action.WAIT_FOR_OTHERS),
    DecisionRow(RUNNING_STAGES, Condition.REDRIVE_OLDER_THAN_RETENTION, Stage.HALTED, Action.HALT),
    DecisionRow(RUNNING_STAGES, Condition.OTHER_MOVE_TASK, None, Action.WAIT_FOR_OTHERS),
    DecisionRow(RUNNING_STAGES, Condition.TICKS_WITHOUT_RESULT, Stage.HALTED, Action.HALT),
    DecisionRow(RUNNING_STAGES, Condition.NO_SAMPLE_YET, None, Action.TAKE_SAMPLE),
    DecisionRow(RUNNING_STAGES, Condition.TOO_MANY_MESSAGES_RETURNED, Stage.HALTED, Action.HALT),
    DecisionRow(RUNNING_STAGES, Condition.BLOCKED_FOR_NOW, Stage.HALTED, Action.WAIT_WITH_PATIENCE),
    DecisionRow(SENDING_STAGES, Condition.NO_MESSAGE_LEFT, Stage.SOAK, Action.SOAK),
    DecisionRow(SENDING_STAGES, Condition.SENDS_REFUSED_FOR_LONG, Stage.HALTED, Action.HALT),
    DecisionRow(SENDING_STAGES, Condition.STAGE_OVER, Stage.SOAK, Action.SOAK),
    DecisionRow((Stage.SOAK,), Condition.SOAK_NOT_OVER, None, Action.WAIT),
    DecisionRow((Stage.SOAK,), Condition.SOURCE_UNREAD, Stage.HALTED, Action.WAIT_WITH_PATIENCE),
    DecisionRow(RUNNING_STAGES, Condition.NO_DELETES, Stage.HALTED, Action.WAIT_WITH_PATIENCE),
    DecisionRow((Stage.SOAK,), Condition.NO_MESSAGE_LEFT, Stage.DONE, Action.FINISH),
    DecisionRow((Stage.SOAK,), Condition.TOO_FEW_TO_JUDGE, Stage.SECOND_CANARY, Action.BEGIN_STAGE),
    DecisionRow((Stage.SOAK,), Condition.ALWAYS, Stage.RAMP, Action.BEGIN_STAGE),
    DecisionRow((Stage.SECOND_CANARY, Stage.RAMP), Condition.NO_MESSAGE_DUE, None, Action.WAIT),
    DecisionRow(SENDING_STAGES, Condition.ALWAYS, None, Action.SEND),
)


class NoDecisionRowError(Exception):
    """No row of the table matches: the redrive has already ended, or the table has a gap."""


class Decision(NamedTuple):
    """The result of `decide`: store the progress first, then do the action."""

    progress: RedriveProgress
    action: Action


def decide(situation: RedriveSituation) -> Decision:
    """Return the new progress and the action of the first row of `DECISION_TABLE` that matches.

    Raises:
        NoDecisionRowError: The redrive has already ended, or the table has a gap.
    """
    situation = situation.correct_progress_after_crash()
    stage = situation.progress.stage
    for decision_row in DECISION_TABLE:
        if stage in decision_row.stages and CHECK_BY_CONDITION[decision_row.condition](situation):
            return Decision(
                CHANGE_BY_ACTION[decision_row.action](situation, decision_row), decision_row.action
            )
    raise NoDecisionRowError(f"no row for a redrive in stage {stage}")


class Blocker(Struct, frozen=True):
    """A reason why a redrive cannot continue.

    Attributes:
        reason: The reason, for operators; empty if nothing blocks the redrive.
        is_for_good: True if waiting cannot help, for example because a tag forbids the redrive or a
            queue was deleted.
    """

    reason: str = ""
    is_for_good: bool = False

    def __or__(self, other_blocker: Blocker) -> Blocker:
        """Return the more important blocker: a lasting one (`is_for_good`), otherwise the first.

        A blocker without a reason is ignored.
        """
        if not self.reason:
            return other_blocker
        if other_blocker.is_for_good and not self.is_for_good:
            return other_blocker
        return self


class RedriveSituation(Struct, frozen=True):
    """Everything that a decision depends on: the stored progress, and the facts read at this tick.

    Attributes:
        dlq: The DLQ; without attributes if it was deleted, or if one of the queues cannot be read.
        source: The source; without attributes if it was deleted, or if one of the queues cannot be
            read.
        deletes_per_second: The number of messages that the source's consumers delete per second;
            None if CloudWatch does not answer.
        deletes_since_send: The number of messages deleted in the source since the last messages
            went back. None outside a soak, before the first send, or if CloudWatch does not answer.
        sample: Messages of the DLQ; None until this tick has taken a sample.
        has_other_move_task_running: True if another message movement task runs on the DLQ.
        freeze_reason: Why all changes are frozen; empty if they are not.
        blocker: What blocks the redrive. Lasting examples: a queue is no longer managed, its tag
            forbids the redrive, or the cause is back. Temporary examples: queues or messages cannot
            be read, or messages cannot be put into quarantine.
    """

    progress: RedriveProgress
    now: datetime
    dlq: Facts
    source: Facts
    bounds: Bounds = field(default_factory=Bounds)
    deletes_per_second: float | None = None
    deletes_since_send: int | None = None
    sample: DlqSample | None = None
    has_other_move_task_running: bool = False
    freeze_reason: str = ""
    blocker: Blocker = Blocker()

    @property
    def sample_or_empty(self) -> DlqSample:
        """The sample of this tick; an empty sample if none was taken yet."""
        return self.sample or DlqSample()

    @property
    def waiting_message_count(self) -> int:
        """The number of messages in the DLQ: visible, in flight or delayed."""
        delayed_count = self.dlq.attributes.get("ApproximateNumberOfMessagesDelayed", "0")
        return self.dlq.visible + self.dlq.in_flight + int(delayed_count)

    @property
    def returned_message_count(self) -> int:
        """The number of messages that this redrive sent back and that failed again."""
        return self.progress.returned + self.sample_or_empty.unquarantined_count

    @property
    def unseen_message_count(self) -> int:
        """The number of messages that reached the DLQ since the stage began, but not the sample.

        In a FIFO queue, SQS returns only the first messages of a group until these are deleted. In
        a standard queue, the sample may be too short. The number is 0 if the soak is not over, if
        there is no sample, or if a standard queue's sample is complete.
        """
        sample = self.sample
        if sample is None or not self.is_soak_over:
            return 0
        if sample.is_complete and not self.source.is_fifo:
            return 0
        seen_message_count = len(sample.returned_messages) + sample.newly_dead_count
        return max(
            0, self.waiting_message_count - self.progress.current.expected - seen_message_count
        )

    @property
    def expected_message_count(self) -> int:
        """The number of messages in the DLQ, without those that went to quarantine at this tick."""
        return max(0, self.waiting_message_count - self.sample_or_empty.quarantined_count)

    @property
    def sendable_message_count(self) -> int:
        """The most messages that could still be sent back.

        Messages that are not in the sample, such as those in flight, count as sendable.
        """
        sample = self.sample_or_empty
        seen_message_count = sample.message_count - sample.quarantined_count
        return max(
            0, max(self.expected_message_count, seen_message_count) - len(sample.staying_messages)
        )

    @property
    def is_soak_over(self) -> bool:
        """True if the redrive is in a soak whose time is over."""
        soak_ends_at = self.progress.current.soak_ends_at
        return (
            self.progress.stage is Stage.SOAK
            and soak_ends_at is not None
            and self.now >= soak_ends_at
        )

    @property
    def halt_threshold(self) -> int:
        """The number of returned messages at which the redrive halts now (rule 12)."""
        judged_message_count = self.progress.moved
        if not self.is_everything_known:
            judged_message_count = max(judged_message_count, self.bounds.least_judged_messages)
        return self.bounds.halt_threshold(judged_message_count)

    @property
    def is_everything_known(self) -> bool:
        """True if the DLQ has no message left to send and the soak is over."""
        return self.sample is not None and self.is_soak_over and not self.sendable_message_count

    @property
    def rate_per_second(self) -> float:
        """The number of messages that may be sent back per second."""
        return self.bounds.rate_per_second(self.deletes_per_second or 0)

    @property
    def most_messages_to_send(self) -> int:
        """The most messages that the mover may send at this tick.

        The first canary is sent as a whole. After it, the number is the rate times the time since
        the last send, but at least `least_per_tick` for each tick in that time (rounded). It is at
        most the number that the rate, `least_per_tick` and `mover_per_tick` allow in one tick, and
        at most the number that the stage has left.
        """
        progress = self.progress
        if progress.stage is Stage.CANARY:
            return progress.current.remaining_message_count
        bounds = self.bounds
        seconds_since_send = (self.now - (progress.moved_at or progress.began_at)).total_seconds()
        least_message_count = bounds.least_per_tick * round(
            seconds_since_send / bounds.tick_seconds
        )
        message_count_per_tick = int(self.rate_per_second * bounds.tick_seconds)
        most_message_count = min(
            max(bounds.least_per_tick, message_count_per_tick), bounds.mover_per_tick
        )
        due_message_count = max(least_message_count, int(self.rate_per_second * seconds_since_send))
        return min(due_message_count, most_message_count, progress.current.remaining_message_count)

    def is_patience_over(self, wait_began_at: datetime | None) -> bool:
        """Return True if a wait that began at `wait_began_at` has lasted `patience_seconds`.

        Return False if `wait_began_at` is None, because there is no wait.
        """
        patience_duration = timedelta(seconds=self.bounds.patience_seconds)
        return wait_began_at is not None and self.now >= wait_began_at + patience_duration

    def correct_progress_after_crash(self) -> RedriveSituation:
        """Return the situation, corrected if the last run died while it was sending (rule 3).

        The messages that were in flight count as moved, but unsure. The dead run's tick counts as
        one without a result.
        """
        current_stage = self.progress.current
        in_flight_message_count = current_stage.in_flight
        if not in_flight_message_count:
            return self
        progress = self.progress.change_current_stage(
            moved=current_stage.moved + in_flight_message_count,
            unsure=current_stage.unsure + in_flight_message_count,
            expected=max(0, current_stage.expected - in_flight_message_count),
            in_flight=0,
        )
        progress = progress.change_waits(fruitless=progress.waits.fruitless + 1)
        return structs.replace(self, progress=progress)


# How each condition is checked.


def is_blocked_for_good(situation: RedriveSituation) -> bool:
    """Return True if something forbids the redrive and waiting cannot help."""
    return situation.blocker.is_for_good


def are_changes_frozen(situation: RedriveSituation) -> bool:
    """Return True if people have frozen all changes, or a change calendar forbids them."""
    return bool(situation.freeze_reason)


def is_redrive_older_than_retention(situation: RedriveSituation) -> bool:
    """Return True if the redrive is older than SQS keeps any message (14 days)."""
    longest_retention = timedelta(seconds=LONGEST_RETENTION_SECONDS)
    return situation.now >= situation.progress.began_at + longest_retention


def has_other_move_task(situation: RedriveSituation) -> bool:
    """Return True if another message movement task runs on the DLQ."""
    return situation.has_other_move_task_running


def had_ticks_without_result(situation: RedriveSituation) -> bool:
    """Return True if too many ticks in a row moved nothing without a known reason."""
    return situation.progress.waits.fruitless >= MOST_TICKS_WITHOUT_RESULT


def has_no_sample_yet(situation: RedriveSituation) -> bool:
    """Return True if this tick must take a sample and has not done so yet.

    No sample is taken during a soak (rule 4), or if something blocks the redrive.
    """
    is_in_soak = situation.progress.stage is Stage.SOAK and not situation.is_soak_over
    return situation.sample is None and not situation.blocker.reason and not is_in_soak


def has_too_many_returned_messages(situation: RedriveSituation) -> bool:
    """Return True if so many messages came back or newly died that the redrive must halt.

    Rule 10 says which messages count, and rule 12 says how many are too many.
    """
    returned_message_count = situation.returned_message_count
    if returned_message_count + situation.unseen_message_count >= situation.halt_threshold:
        return True
    # If consumers drop the mark, any message that was sent back and did not come back with its mark
    # may be among the newly dead.
    unreturned_message_count = situation.progress.moved - returned_message_count
    return situation.sample_or_empty.newly_dead_count >= min(
        situation.bounds.halt_returned, max(1, unreturned_message_count)
    )


def is_blocked_for_now(situation: RedriveSituation) -> bool:
    """Return True if something blocks the redrive. A lasting blocker matches an earlier row."""
    return bool(situation.blocker.reason)


def has_no_message_left(situation: RedriveSituation) -> bool:
    """Return True if the DLQ has no message left that may be sent back."""
    return situation.sendable_message_count == 0


def are_sends_refused_for_long(situation: RedriveSituation) -> bool:
    """Return True if SQS has refused every message for at least `patience_seconds`."""
    redrive_waits = situation.progress.waits
    return redrive_waits.is_refused and situation.is_patience_over(redrive_waits.refused_since)


def is_stage_over(situation: RedriveSituation) -> bool:
    """Return True if all messages of the stage were sent, or if some were and its time is over.

    Time does not end a stage that has moved nothing, because it proves nothing. Time also does not
    end a stage while SQS refuses its messages: `are_sends_refused_for_long` ends that wait.
    """
    current_stage = situation.progress.current
    if current_stage.remaining_message_count == 0:
        return True
    longest_stage_time = timedelta(seconds=situation.bounds.stage_seconds)
    is_stage_time_over = situation.now >= current_stage.began_at + longest_stage_time
    return (
        is_stage_time_over and current_stage.moved > 0 and not situation.progress.waits.is_refused
    )


def is_soak_not_over(situation: RedriveSituation) -> bool:
    """Return True if the soak is not over: a message that fails may not be back yet."""
    return not situation.is_soak_over


def is_source_unread(situation: RedriveSituation) -> bool:
    """Return True if consumers may not have handled all messages of the stage yet.

    This is so if the stage has moved messages, the source has visible messages, and fewer messages
    were deleted there since the last send than had to be handled: `stood` minus the messages that
    came back. If CloudWatch does not answer, the number of deletes counts as 0.
    """
    progress = situation.progress
    if not progress.current.moved or not situation.source.visible:
        return False
    return (situation.deletes_since_send or 0) < progress.current.stood - progress.returned


def are_too_few_to_judge(situation: RedriveSituation) -> bool:
    """Return True if too few messages have gone to judge the share that came back (rule 12).

    The share is too high, but the redrive has not halted, because a second canary may show that it
    is lower. Return False if no message has gone for certain: then the next stage has a canary's
    size (rule 5).
    """
    moved_message_count = situation.progress.moved
    returned_message_count = situation.returned_message_count + situation.unseen_message_count
    halt_threshold = situation.bounds.halt_threshold(moved_message_count)
    return moved_message_count > 0 and returned_message_count >= halt_threshold


def has_no_deletes(situation: RedriveSituation) -> bool:
    """Return True if the source's consumers delete nothing, or if CloudWatch does not answer."""
    return not situation.deletes_per_second


def has_no_message_due(situation: RedriveSituation) -> bool:
    """Return True if no message may be sent at this tick, by the rate or the stage's size."""
    return situation.most_messages_to_send == 0


def is_always_true(_: RedriveSituation) -> bool:
    """Return True. The last row of each running stage has this as its condition."""
    return True


CHECK_BY_CONDITION: Mapping[Condition, Callable[[RedriveSituation], bool]] = {
    Condition.BLOCKED_FOR_GOOD: is_blocked_for_good,
    Condition.CHANGES_FROZEN: are_changes_frozen,
    Condition.REDRIVE_OLDER_THAN_RETENTION: is_redrive_older_than_retention,
    Condition.OTHER_MOVE_TASK: has_other_move_task,
    Condition.TICKS_WITHOUT_RESULT: had_ticks_without_result,
    Condition.NO_SAMPLE_YET: has_no_sample_yet,
    Condition.TOO_MANY_MESSAGES_RETURNED: has_too_many_returned_messages,
    Condition.BLOCKED_FOR_NOW: is_blocked_for_now,
    Condition.NO_MESSAGE_LEFT: has_no_message_left,
    Condition.SENDS_REFUSED_FOR_LONG: are_sends_refused_for_long,
    Condition.STAGE_OVER: is_stage_over,
    Condition.SOAK_NOT_OVER: is_soak_not_over,
    Condition.SOURCE_UNREAD: is_source_unread,
    Condition.TOO_FEW_TO_JUDGE: are_too_few_to_judge,
    Condition.NO_DELETES: has_no_deletes,
    Condition.NO_MESSAGE_DUE: has_no_message_due,
    Condition.ALWAYS: is_always_true,
}


# What each action changes in the progress before it is stored.


def halt_redrive(situation: RedriveSituation, decision_row: DecisionRow) -> RedriveProgress:
    """Return the halted progress, with a sentence about the row's condition as the reason."""
    return enter_next_stage(
        decision_row, situation, explain_condition(decision_row.condition, situation)
    )


def wait_for_others(situation: RedriveSituation, decision_row: DecisionRow) -> RedriveProgress:
    """Return the progress with the reason to wait, and without the redrive's own waits (rule 8)."""
    reason = explain_condition(decision_row.condition, situation)
    return replace(situation.progress, waits=RedriveWaits(), because=reason)


def count_tick_without_result(situation: RedriveSituation, _: DecisionRow) -> RedriveProgress:
    """Return the progress with this tick counted as one without a result.

    After the sample, `count_quarantine` subtracts it again. So the tick stays counted if its run
    dies before that.
    """
    progress = situation.progress
    return progress.change_waits(fruitless=progress.waits.fruitless + 1)


def wait_with_patience(situation: RedriveSituation, decision_row: DecisionRow) -> RedriveProgress:
    """Return the progress with this wait, or the halted progress if patience is over.

    The wait has a known reason, so the count of ticks without a result is set to 0.
    """
    redrive_waits = situation.progress.waits
    if decision_row.condition is Condition.BLOCKED_FOR_NOW:
        wait_began_at = redrive_waits.blocked_since or situation.now
        redrive_waits = replace(redrive_waits, blocked_since=wait_began_at, fruitless=0)
    else:
        wait_began_at = redrive_waits.consumers_since or situation.now
        redrive_waits = replace(redrive_waits, consumers_since=wait_began_at, fruitless=0)
    if situation.is_patience_over(wait_began_at):
        return halt_redrive(situation, decision_row)
    reason = explain_condition(decision_row.condition, situation)
    return replace(situation.progress, waits=redrive_waits, because=reason)


def begin_soak(situation: RedriveSituation, decision_row: DecisionRow) -> RedriveProgress:
    """Return the progress at the start of the soak, with the time at which the soak ends.

    A message that fails must be back in the DLQ by then. So the soak covers all receives of such a
    message, the queue's delay, and the time that consumers need for the messages that are now in
    the source.
    """
    source = situation.source
    deletes_per_second = situation.deletes_per_second
    soak_duration = situation.bounds.soak_duration(
        receives=source.max_receive_count or 1,
        visibility_seconds=read_number_attribute(source.attributes, "VisibilityTimeout"),
        delay_seconds=read_number_attribute(source.attributes, "DelaySeconds"),
        drain_seconds=source.visible / deletes_per_second if deletes_per_second else 0,
    )
    progress = enter_next_stage(decision_row, situation).change_waits(consumers_since=None)
    source_message_count = source.visible + progress.current.moved
    return progress.change_current_stage(
        soak_ends_at=situation.now + soak_duration, stood=source_message_count
    )


def explain_wait(situation: RedriveSituation, decision_row: DecisionRow) -> RedriveProgress:
    """Return the progress with the row's condition as the reason for operators.

    Nothing blocks the redrive in this row, so end the wait `blocked_since`. During a soak, no
    sample would end it.
    """
    progress = situation.progress.change_waits(blocked_since=None)
    return replace(progress, because=explain_condition(decision_row.condition, situation))


def finish_redrive(situation: RedriveSituation, decision_row: DecisionRow) -> RedriveProgress:
    """Return the progress of a finished redrive, with its result as text for operators."""
    return enter_next_stage(decision_row, situation, describe_result(situation))


def begin_stage(situation: RedriveSituation, decision_row: DecisionRow) -> RedriveProgress:
    """Return the progress at the start of the next stage (rule 5).

    The stage's size is a multiple of the number of messages that the last stage certainly moved, or
    a canary's size if it moved none. A second canary has a size of its own (rule 12).
    """
    last_stage = situation.progress.current
    bounds = situation.bounds
    certainly_moved_message_count = min(last_stage.size, last_stage.moved - last_stage.unsure)
    size = bounds.growth * certainly_moved_message_count or bounds.canary
    if decision_row.next_stage is Stage.SECOND_CANARY:
        size = bounds.second_canary
    new_stage = StageProgress(
        began_at=situation.now,
        size=size,
        number=last_stage.number + 1,
        expected=situation.expected_message_count,
    )
    progress = enter_next_stage(decision_row, situation)
    progress = progress.change_waits(consumers_since=None, is_refused=False)
    return replace(progress, current=new_stage, rate_per_second=situation.rate_per_second)


def prepare_send(situation: RedriveSituation, _: DecisionRow) -> RedriveProgress:
    """Return the progress to store before messages are sent (rule 2)."""
    progress = situation.progress.change_current_stage(in_flight=situation.most_messages_to_send)
    progress = progress.change_waits(consumers_since=None)
    if progress.moved_at is None:
        progress = progress.change_current_stage(expected=situation.expected_message_count)
    rate_per_second = situation.rate_per_second
    return replace(progress, moved_at=situation.now, rate_per_second=rate_per_second)


CHANGE_BY_ACTION: Mapping[Action, Callable[[RedriveSituation, DecisionRow], RedriveProgress]] = {
    Action.HALT: halt_redrive,
    Action.WAIT_FOR_OTHERS: wait_for_others,
    Action.TAKE_SAMPLE: count_tick_without_result,
    Action.WAIT_WITH_PATIENCE: wait_with_patience,
    Action.SOAK: begin_soak,
    Action.WAIT: explain_wait,
    Action.FINISH: finish_redrive,
    Action.BEGIN_STAGE: begin_stage,
    Action.SEND: prepare_send,
}


def enter_next_stage(
    decision_row: DecisionRow, situation: RedriveSituation, reason: str = ""
) -> RedriveProgress:
    """Return the progress in the row's next stage, or in the same stage if the row names none."""
    progress = situation.progress
    return progress.enter_stage(decision_row.next_stage or progress.stage, situation.now, reason)


# The sentences that operators read.

FIXED_REASON_BY_CONDITION: Mapping[Condition, str] = {
    Condition.REDRIVE_OLDER_THAN_RETENTION: REDRIVE_TOO_OLD_REASON,
    Condition.OTHER_MOVE_TASK: OTHER_MOVE_TASK_REASON,
    Condition.SOAK_NOT_OVER: SOAK_NOT_OVER_REASON,
    Condition.SOURCE_UNREAD: MESSAGES_STILL_IN_SOURCE_REASON,
    Condition.NO_DELETES: NO_DELETES_REASON,
    Condition.NO_MESSAGE_DUE: NO_MESSAGE_DUE_REASON,
}


def explain_condition(condition: Condition, situation: RedriveSituation) -> str:
    """Return the sentence that tells operators why the redrive waits or halts."""
    reason_in_progress = situation.progress.because
    match condition:
        case Condition.BLOCKED_FOR_GOOD | Condition.BLOCKED_FOR_NOW:
            return situation.blocker.reason
        case Condition.CHANGES_FROZEN:
            return f"changes are frozen: {situation.freeze_reason}"
        case Condition.TICKS_WITHOUT_RESULT:
            return (
                reason_in_progress
                if reason_in_progress.startswith(NO_MESSAGE_TO_SEND_REASON)
                else TICKS_ENDED_EARLY_REASON
            )
        case Condition.TOO_MANY_MESSAGES_RETURNED:
            return describe_returned_messages(situation)
        case Condition.SENDS_REFUSED_FOR_LONG:
            return reason_in_progress
    return FIXED_REASON_BY_CONDITION[condition]


def describe_returned_messages(situation: RedriveSituation) -> str:
    """Return a sentence that says how many messages came back, and where they are now."""
    progress = situation.progress
    newly_dead_count = situation.sample_or_empty.newly_dead_count
    unseen_message_count = situation.unseen_message_count
    other_arrivals_text = ""
    if newly_dead_count:
        other_arrivals_text += (
            f", {newly_dead_count:,} failed for the first time or were sent there"
        )
    if unseen_message_count:
        other_arrivals_text += f", and the queue holds {unseen_message_count:,} more than it should"
    uncertain_count_text = " or more" if progress.current.unsure else ""
    quarantine_text = ""
    if progress.quarantined:
        quarantine_text = f"; what came back is in {get_quarantine_name(progress)}"
    return (
        f"of {progress.moved:,}{uncertain_count_text} messages that went back "
        f"{situation.returned_message_count:,} came back{other_arrivals_text}. "
        f"The limit is {situation.halt_threshold:,}: "
        f"the cause is not fixed, or not for all messages{quarantine_text}"
    )


def describe_result(situation: RedriveSituation) -> str:
    """Return a sentence that says how many messages went back, came back, and stay in the DLQ."""
    progress = situation.progress
    newly_dead_count = situation.sample_or_empty.newly_dead_count
    returned_messages_text = "and none of them came back"
    if progress.returned:
        are_verb = "is" if progress.returned == 1 else "are"
        returned_messages_text = (
            f"{progress.returned} of them came back and {are_verb} in "
            f"{get_quarantine_name(progress)}"
        )
    if newly_dead_count:
        returned_messages_text += (
            f"; {format_count(newly_dead_count, 'message')} came to the DLQ without the mark of "
            "this redrive"
        )
    staying_messages_text = describe_staying_messages(situation)
    moved_message_count_text = format_count(progress.moved, "message")
    return f"{moved_message_count_text} went back, {returned_messages_text}{staying_messages_text}"


def describe_staying_messages(situation: RedriveSituation) -> str:
    """Return a text that says how many messages cannot go back, and in which queues they failed.

    Return an empty text if all messages in the sample can go back.
    """
    message_count_by_origin = Counter[str]()
    for message in situation.sample_or_empty.staying_messages:
        if message.source_arn:
            message_count_by_origin[f"of {message.source_arn.rpartition(':')[2]}"] += 1
        else:
            message_count_by_origin["sent there by hand"] += 1
    if not message_count_by_origin:
        return ""
    message_counts_text = ", ".join(
        f"{message_count:,} {origin}"
        for origin, message_count in sorted(message_count_by_origin.items())
    )
    return (
        f"; {message_count_by_origin.total():,} stay in the DLQ, because they did not fail in this "
        f"source: {message_counts_text}"
    )


def get_quarantine_name(progress: RedriveProgress) -> str:
    return parse_queue_arn(arn_of_quarantine(progress.source_arn)).name
