"""Recognize messages that are sent back from a DLQ again and again, and fail again each time.

A DLQ keeps what always fails, until people look at it. A schedule or a job that sends everything
back hides that: the messages go round. A round begins when messages leave the DLQ. The rules:

1. Two things show a round: a message movement task (SQS's own redrive) that moved at least
   MESSAGES_OF_ROUND messages, or a job that deletes so many from the DLQ. Job rounds are minutes
   with deletes that are close together.

2. A DLQ from which messages are deleted may be one that people clean up, or archive. So a job must
   also send: in the minutes of each round the source has about as many sends more than usual. Sums
   over hours cannot tell this, because each failed message is one send, with or without a job.
   If the DLQ is emptied in most minutes, "usual" is not known, and no job is found.

3. After a round its messages fail again: the source has about `maxReceiveCount` receives without a
   delete for each of them, before the next round. Messages that are sent back after a repair are
   finished instead.

4. At least ROUNDS_OF_LOOP rounds are needed, and each message must have come back about as often:
   all rounds together have at least that many times the messages that are in the DLQ now, or on
   their way. If hundreds of messages go back a few at a time, each of them goes only once.

5. Consumers that do not finish other messages either are the cause, not the loop. The entry
   `redrive_loop` leaves such a queue to the symptoms of consumers, unless move tasks hide these.

Limits: rounds count only within the measured time, six hours at most, so a redrive once a day is
not found. If several sources share the DLQ, a source is found only if most messages are its own.
SQS lists ten move tasks; some may be older.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, sqrt
from statistics import fmean, pvariance

from mendq.model.facts import (
    LEAST_FAILED_SHARE_OF_RECEIVES,
    LEAST_RESENT_SHARE,
    MESSAGES_OF_ROUND,
    ROUNDS_OF_LOOP,
    Facts,
)
from mendq.model.metrics import DATAPOINT_PERIOD, Measurement, MinuteCounts
from mendq.model.redrives import Redrives
from mendq.model.traffic import MARGIN_MESSAGES, count_messages

# Deletes of a DLQ that are at most this far apart belong to one round, and so do the sends to the
# source. A job sends a message right before or after it deletes it.
ROUND_GAP = timedelta(minutes=2)
# A message that fails at once, or whose consumer is busy, fails for the last time later than its
# visibility timeouts say.
TIME_TO_FAIL = timedelta(minutes=5)
# The usual sends are those of the minutes outside of all rounds. They are known if these minutes
# are at least this share of all.
LEAST_SHARE_OF_OTHER_MINUTES = 0.25
# A round counts as sent back if the source has at least LEAST_RESENT_SHARE as many sends more than
# usual. In all rounds together they are at most this many times the deletes. With more, a producer
# sends at the same times.
MOST_SENDS_PER_DELETE = 1.5
# Chance alone makes the sends of some minutes differ by up to this many standard deviations.
CHANCE_DEVIATIONS = 3
# Gauges are inexact, and messages may come back a round later.
LEAST_SHARE_OF_EXPECTED_MESSAGES = 0.8
# Messages still go round if at least this share of the last round is in the DLQ again, or on its
# way there.
LEAST_KEPT_SHARE = 0.5


@dataclass(frozen=True)
class Round:
    """Messages that left the DLQ together.

    Attributes:
        begin: The minute in which the first of them left it.
        end: The end of the minute in which the last of them left it. A move task's end is unknown,
            so it is the minute after its begin.
        messages: The number of messages.
    """

    begin: datetime
    end: datetime
    messages: int


@dataclass(frozen=True)
class RedriveLoop:
    """Messages that go round between a queue and its DLQ.

    Attributes:
        rounds: The rounds after which the messages failed again, oldest first.
        is_by_move_tasks: True if message movement tasks send them back, False if a job does.
        new_messages: The number of other messages that arrived in the measured time.
    """

    rounds: tuple[Round, ...]
    is_by_move_tasks: bool
    new_messages: int

    @property
    def returned_messages(self) -> int:
        """The number of messages of all rounds. A message counts in each round."""
        return sum(dlq_round.messages for dlq_round in self.rounds)


def find_redrive_loop(facts: Facts) -> RedriveLoop | None:
    """Return the loop in which messages of the queue's DLQ come back and fail; None without one."""
    measurement = facts.measurement
    redrives = facts.redrives
    if measurement is None or redrives is None or not facts.may_messages_go_round:
        return None
    move_rounds = _list_move_rounds(redrives, measurement)
    failed_move_rounds = _select_failed_rounds(facts, measurement, move_rounds)
    new_messages = _count_new_messages(measurement, move_rounds)
    if loop := _make_loop(facts, failed_move_rounds, new_messages, is_by_move_tasks=True):
        return loop
    job_rounds = _list_job_rounds(redrives)
    if not _do_sends_match(measurement, job_rounds):
        return None
    new_messages = _count_new_messages(measurement, job_rounds)
    failed_job_rounds = _select_failed_rounds(facts, measurement, job_rounds)
    return _make_loop(facts, failed_job_rounds, new_messages, is_by_move_tasks=False)


def _count_new_messages(measurement: Measurement, rounds: Sequence[Round]) -> int:
    """Return the number of messages that arrived, without those that came back from the DLQ.

    AWS does not say if SQS counts a message that a task has moved as sent. The sends in the minutes
    of the rounds tell it.
    """
    if not _do_sends_match(measurement, rounds):
        return measurement.sent
    return max(0, measurement.sent - sum(dlq_round.messages for dlq_round in rounds))


def is_nothing_else_finished(measurement: Measurement, new_messages: int) -> bool:
    """Return True if consumers finish nothing, or at most half of the messages that are new."""
    if measurement.deleted == 0:
        return True
    return new_messages > MARGIN_MESSAGES and 2 * measurement.deleted <= new_messages


def are_other_messages_unfinished(measurement: Measurement, new_messages: int) -> bool:
    """Return True if more of the new messages are unfinished than inexact counters explain.

    Messages that may have come within the last hour do not count as unfinished.
    """
    messages_of_rounds = measurement.sent - new_messages
    unfinished_new_messages = measurement.unfinished_messages - messages_of_rounds
    return unfinished_new_messages > measurement.counter_tolerance


def _list_move_rounds(redrives: Redrives, measurement: Measurement) -> list[Round]:
    """Return the move tasks of the measured time that moved enough messages, oldest first."""
    move_tasks = sorted(redrives.move_tasks, key=lambda move_task: move_task.started_at)
    return [
        Round(
            move_task.started_at, move_task.started_at + DATAPOINT_PERIOD, move_task.moved_messages
        )
        for move_task in move_tasks
        if measurement.since <= move_task.started_at < measurement.until
        and move_task.moved_messages >= MESSAGES_OF_ROUND
    ]


def _list_job_rounds(redrives: Redrives) -> list[Round]:
    """Return the groups of minutes in which enough messages were deleted from the DLQ."""
    rounds = list[Round]()
    for minute, deleted in redrives.dlq_deletes:
        if rounds and minute - rounds[-1].end <= ROUND_GAP:
            last_round = rounds.pop()
            begin = last_round.begin
            deleted += last_round.messages  # noqa: PLW2901
        else:
            begin = minute
        rounds.append(Round(begin, minute + DATAPOINT_PERIOD, deleted))
    return [dlq_round for dlq_round in rounds if dlq_round.messages >= MESSAGES_OF_ROUND]


def _do_sends_match(measurement: Measurement, rounds: Sequence[Round]) -> bool:
    """Return True if the source has about as many sends in the rounds as leave the DLQ (rule 2)."""
    minutes = measurement.recent.minutes
    minute_numbers_by_round = [
        _list_minute_numbers(measurement, dlq_round.begin, dlq_round.end + ROUND_GAP)
        for dlq_round in rounds
    ]
    round_minute_numbers = set[int]().union(*minute_numbers_by_round)
    other_sends = [
        counts.sent for number, counts in enumerate(minutes) if number not in round_minute_numbers
    ]
    if not other_sends or len(other_sends) < LEAST_SHARE_OF_OTHER_MINUTES * len(minutes):
        return False
    usual_sends = fmean(other_sends)
    resent_counts = [
        sum(minutes[number].sent - usual_sends for number in minute_numbers)
        for minute_numbers in minute_numbers_by_round
    ]
    chance_sends = CHANCE_DEVIATIONS * sqrt(pvariance(other_sends) * len(round_minute_numbers))
    deleted_count = sum(dlq_round.messages for dlq_round in rounds)
    resent_rounds = [
        dlq_round
        for dlq_round, resent_of_round in zip(rounds, resent_counts, strict=True)
        if resent_of_round >= LEAST_RESENT_SHARE * dlq_round.messages
    ]
    resent_count = sum(resent_counts)
    is_more_than_chance = resent_count > chance_sends
    is_no_producer = resent_count <= MOST_SENDS_PER_DELETE * deleted_count
    are_most_rounds_resent = len(resent_rounds) >= LEAST_SHARE_OF_EXPECTED_MESSAGES * len(rounds)
    return is_more_than_chance and is_no_producer and are_most_rounds_resent


def _select_failed_rounds(
    facts: Facts, measurement: Measurement, rounds: Sequence[Round]
) -> tuple[Round, ...]:
    """Return the rounds after which the messages failed again (rule 3)."""
    receives_until_dlq = facts.max_receive_count or 0
    time_to_fail = timedelta(seconds=receives_until_dlq * facts.visibility_seconds) + TIME_TO_FAIL
    failed_rounds = list[Round]()
    for index, dlq_round in enumerate(rounds):
        end = dlq_round.end + time_to_fail
        if index + 1 < len(rounds):
            end = min(end, rounds[index + 1].begin)
        failed_receives = _count_failed_receives(
            measurement.recent.minutes[number]
            for number in _list_minute_numbers(measurement, dlq_round.begin, end)
        )
        expected_receives = receives_until_dlq * dlq_round.messages
        if failed_receives >= LEAST_FAILED_SHARE_OF_RECEIVES * expected_receives:
            failed_rounds.append(dlq_round)
    return tuple(failed_rounds)


def _count_failed_receives(minutes: Iterable[MinuteCounts]) -> int:
    return sum(counts.received - counts.deleted for counts in minutes)


def _list_minute_numbers(measurement: Measurement, begin: datetime, end: datetime) -> range:
    """Return the numbers of the minutes of the measurement from `begin` up to `end`."""
    first_number = (begin - measurement.since) // DATAPOINT_PERIOD
    end_number = ceil((end - measurement.since) / DATAPOINT_PERIOD)
    return range(max(0, first_number), min(end_number, len(measurement.recent.minutes)))


def _make_loop(
    facts: Facts, rounds: tuple[Round, ...], new_messages: int, *, is_by_move_tasks: bool
) -> RedriveLoop | None:
    """Return the loop if the messages of these rounds are still the same ones (rule 4)."""
    if len(rounds) < ROUNDS_OF_LOOP or facts.dlq is None:
        return None
    messages_of_last_round = rounds[-1].messages
    dlq_messages = count_messages(facts.dlq)
    messages_in_loop = dlq_messages
    if dlq_messages < LEAST_KEPT_SHARE * messages_of_last_round:
        # The other messages of the last round may still be on their way back to the DLQ.
        if count_messages(facts) < LEAST_KEPT_SHARE * messages_of_last_round:
            return None
        messages_in_loop = messages_of_last_round
    loop = RedriveLoop(rounds, is_by_move_tasks, new_messages)
    expected_messages = ROUNDS_OF_LOOP * messages_in_loop
    is_same = loop.returned_messages >= LEAST_SHARE_OF_EXPECTED_MESSAGES * expected_messages
    return loop if is_same else None
