"""Find the Lambda function whose failed runs keep messages from being finished.

Lambda counts a run as failed if the code raises an error or if Lambda stops the run at the
function's timeout. The messages of a failed run return to the queue, or move to the DLQ after
`maxReceiveCount` receives. The rules:

1. Lambda reports at least FEWEST_FAILED_RUNS failed runs in the last hour. How many messages the
   queue holds now does not matter: a DLQ may take them faster than a scan can see them. If no
   function fails in the last hour by these rules, the stretch of the last six hours with the most
   failed runs counts instead, because messages that failed then may be in the DLQ.
2. Nobody stops runs at the timeout on purpose. So if Lambda stopped at least 1 of 5 runs of the
   last hour, that is a fault although the messages are finished later. Below that, a dependency may
   have been down for some minutes. In all other cases rule 3 holds.
3. The failed runs did harm: messages were not finished. A function that gives messages back by an
   error and finishes them later does no harm. There are three kinds of harm:

   - Messages left the queue without a delete, and the failed runs are numerous enough to explain
     `maxReceiveCount` receives of each. A few such messages are no fault of the function: SQS's
     gauges are off by the messages of a minute, and a bad message can reach any function.
   - At least half of the runs fail, and at most half of the messages that arrived were deleted, in
     the last hour or in the whole measured time.
   - At least half of the runs fail, there is no DLQ, and more messages are left than a few bad
     ones, which come back once in each visibility timeout, would explain.
4. One message that blocks its FIFO group explains failed runs better (`fifo_group_blocked`).
5. People are paged only if messages are lost or nothing is finished. The messages decide that, and
   not the share of failed runs, because runs that have nothing to do with the queue can dilute it.
   Messages are lost if more than a few left the queue without a delete, in the last hour or in the
   measured time: to the DLQ, or because they expired. Nothing is finished if at most a twentieth of
   the messages that arrived was deleted, or none while messages wait.
   Other symptoms wait for this finding, and their pages must not get lost. `dlq_messages_arriving`
   waits only for findings with a page. `consumer_failing` and `messages_expire` wait for all, so
   this finding also pages whenever one of them would. If the runs of the last hour succeed again,
   it pages only then.

Limits: a run that reports failed messages with `batchItemFailures` succeeds for Lambda, so it does
not count here. Lambda's metrics are those of the function; if it also reads other queues, its
failed runs may be about them. Rule 3 still asks for unfinished messages of this queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from mendq.catalogue.dlq.attach import (
    HARDLY_FINISHED_MESSAGE_SHARE,
    NOTHING_FINISHED,
    SOME_FAIL,
    find_failing_consumers,
)
from mendq.catalogue.fifo.stuck_group import does_one_group_block, is_oldest_message_stuck
from mendq.catalogue.messages.messages_expire import detect as find_expired_messages
from mendq.catalogue.symptom import EvidenceKind
from mendq.model.facts import (
    FAILING_CONSUMER_ERROR_SHARE,
    Facts,
    FailedStretch,
    LambdaConsumer,
)
from mendq.model.metrics import Measurement
from mendq.notifications.commands import list_consumers_command
from mendq.notifications.text import format_count, format_duration

# With fewer failed runs, the function is not reported.
FEWEST_FAILED_RUNS = 3
# From this share of stopped runs on, a function is reported even if its messages are finished.
LEAST_STOPPED_SHARE = 0.2
# More messages than this must be unfinished.
MOST_TOLERATED_MESSAGES = 3
# Failed runs explain messages that left without a delete if they can have made at least this share
# of the receives of these messages.
LEAST_EXPLAINED_SHARE_OF_RECEIVES = 0.5
# A bad message comes back once in each visibility timeout. If there were at least this share of
# these receives, the messages that are left are a few bad ones.
SHARE_OF_RECEIVES_OF_BAD_MESSAGES = 0.25
# A function works again if less than this share of its last hour's runs failed.
LARGEST_ERROR_SHARE_OF_WORKING_FUNCTION = 0.05
# If at most this share of the messages that arrived was deleted, nothing is finished: a few deletes
# may be of messages that arrived before.
LARGEST_DELETED_SHARE_IF_NOTHING_IS_FINISHED = 0.05


@dataclass(frozen=True)
class HandledMessages:
    """The messages that arrived, were deleted, and left without a delete in some time.

    Attributes:
        sent: Messages that arrived.
        deleted: Messages that consumers deleted.
        left_undeleted: Messages that left the queue without a delete: to the DLQ, or because they
            expired. Negative if messages arrived without a send.
        backlog: Messages that the queue holds at the end.
        minutes: The length of the time.
    """

    sent: int
    deleted: int
    left_undeleted: int
    backlog: int
    minutes: float

    @classmethod
    def of_last_hour(cls, measurement: Measurement) -> HandledMessages:
        """Return the counts of the last two half hours; all are 0 if these are not known."""
        half_hours = measurement.recent.half_hours[-2:]
        if not half_hours:
            return cls(0, 0, 0, 0, 0)
        sent = sum(half_hour.sent for half_hour in half_hours)
        deleted = sum(half_hour.deleted for half_hour in half_hours)
        backlog = half_hours[-1].now.backlog
        backlog_growth = backlog - half_hours[0].before.backlog
        minutes = sum(60 * half_hour.hours for half_hour in half_hours)
        return cls(sent, deleted, sent - deleted - backlog_growth, backlog, minutes)

    @classmethod
    def of_measurement(cls, measurement: Measurement) -> HandledMessages:
        """Return the counts of the whole measured time."""
        backlog = measurement.now.backlog
        left_undeleted = measurement.sent_minus_deleted - backlog + measurement.before.backlog
        minutes = 60 * measurement.hours
        return cls(measurement.sent, measurement.deleted, left_undeleted, backlog, minutes)

    @property
    def are_many_left_undeleted(self) -> bool:
        """True if more messages left without a delete than a few bad ones and inexact gauges.

        SQS reports gauges once a minute, so they are off by up to the messages of a minute.
        """
        messages_of_one_minute = self.sent / max(self.minutes, 1)
        return self.left_undeleted > MOST_TOLERATED_MESSAGES + messages_of_one_minute

    @property
    def is_hardly_finished(self) -> bool:
        """True if at most half of the messages that arrived were deleted."""
        return self.sent - self.deleted > MOST_TOLERATED_MESSAGES and 2 * self.deleted <= self.sent

    @property
    def is_nothing_finished(self) -> bool:
        """True if none of more than a few messages was deleted, or hardly any that arrived."""
        if self.deleted == 0:
            return max(self.sent, self.backlog) > MOST_TOLERATED_MESSAGES
        most_deleted = LARGEST_DELETED_SHARE_IF_NOTHING_IS_FINISHED * self.sent
        return self.sent > MOST_TOLERATED_MESSAGES and self.deleted <= most_deleted


@dataclass(frozen=True)
class FailedRuns:
    """Failed runs of a function, in the last hour or in an earlier stretch.

    Attributes:
        consumer: The function, with the metrics of that time.
        stretch: The stretch; None if the failed runs are those of the last hour.
        invocations_of_receives: The runs that made the receives of the same time.
        does_function_work_again: True if the last hour has runs, and hardly any of them failed.
    """

    consumer: LambdaConsumer
    invocations_of_receives: int
    stretch: FailedStretch | None = None
    does_function_work_again: bool = False

    @property
    def begins_at(self) -> datetime | None:
        """The start of the stretch; None if the failed runs are those of the last hour."""
        return self.stretch.begins_at if self.stretch else None

    @property
    def time_text(self) -> str:
        """The time of the failed runs, as a sentence says it."""
        if self.stretch is None:
            return "in the last hour"
        return f"between {self.stretch.begins_at:%H:%M} and {self.stretch.ends_at:%H:%M} UTC"

    def count_messages(self, measurement: Measurement) -> HandledMessages:
        """Return the messages of the last hour, or of all measured hours for a stretch.

        A message of a failed run reaches the DLQ only after its last receive, which may be hours
        after the stretch.
        """
        if self.stretch is None:
            return HandledMessages.of_last_hour(measurement)
        return HandledMessages.of_measurement(measurement)


def find_failed_runs(facts: Facts, *, at_timeout: bool) -> FailedRuns | None:
    """Return the failed runs that keep messages from being finished (see the module).

    If several functions have such runs, return those of the function with the most. None if there
    are none.

    Args:
        facts: The queue.
        at_timeout: True to look for runs that Lambda stops at the timeout, False for runs that end
            with another error.
    """
    measurement = facts.measurement
    if measurement is None or _is_group_blocked(facts, measurement):
        return None
    harmful_runs = _select_harmful_runs(facts, measurement, _list_runs_of_last_hour(facts))
    if not harmful_runs:
        harmful_runs = _select_harmful_runs(facts, measurement, _list_runs_of_stretches(facts))
    harmful_runs = [runs for runs in harmful_runs if runs.consumer.do_runs_time_out is at_timeout]
    return max(harmful_runs, key=lambda runs: runs.consumer.failed_runs, default=None)


def _select_harmful_runs(
    facts: Facts, measurement: Measurement, all_runs: Iterable[FailedRuns]
) -> list[FailedRuns]:
    return [runs for runs in all_runs if _are_runs_harmful(facts, measurement, runs)]


def _list_runs_of_last_hour(facts: Facts) -> Iterator[FailedRuns]:
    """Yield the runs of each function in the last hour, also if none of them failed."""
    for consumer in facts.lambda_consumers:
        yield FailedRuns(consumer, invocations_of_receives=consumer.invocations)


def _list_runs_of_stretches(facts: Facts) -> Iterator[FailedRuns]:
    """Yield the failed stretch of each function that has one."""
    for consumer in facts.lambda_consumers:
        stretch = consumer.failed_stretch
        if stretch is None:
            continue
        consumer_in_stretch = replace(
            consumer,
            invocations=stretch.invocations,
            error_share=stretch.failed_runs / max(stretch.invocations, stretch.failed_runs),
            duration_p50_seconds=stretch.failed_run_seconds,
            duration_p99_seconds=stretch.failed_run_seconds,
        )
        error_share_now = consumer.error_share
        yield FailedRuns(
            consumer_in_stretch,
            invocations_of_receives=stretch.invocations_of_all_hours,
            stretch=stretch,
            does_function_work_again=error_share_now is not None
            and error_share_now < LARGEST_ERROR_SHARE_OF_WORKING_FUNCTION,
        )


def _are_runs_harmful(facts: Facts, measurement: Measurement, runs: FailedRuns) -> bool:
    """Return True if rules 1 to 3 call the runs a fault."""
    consumer = runs.consumer
    if consumer.failed_runs < FEWEST_FAILED_RUNS:
        return False
    are_many_stopped = (
        runs.stretch is None
        and consumer.do_runs_time_out
        and (consumer.error_share or 0) >= LEAST_STOPPED_SHARE
    )
    return are_many_stopped or _leave_runs_messages_unfinished(facts, measurement, runs)


def _is_group_blocked(facts: Facts, measurement: Measurement) -> bool:
    """Return True if one message at the head of a FIFO group explains the failed runs."""
    return does_one_group_block(measurement) or (
        facts.is_fifo and is_oldest_message_stuck(measurement, facts.visibility_seconds)
    )


def _leave_runs_messages_unfinished(
    facts: Facts, measurement: Measurement, runs: FailedRuns
) -> bool:
    """Return True if the failed runs did one of the three kinds of harm (rule 3)."""
    counts = runs.count_messages(measurement)
    if counts.are_many_left_undeleted and _do_runs_explain(
        facts, measurement, runs, counts.left_undeleted
    ):
        return True
    if (runs.consumer.error_share or 0) < FAILING_CONSUMER_ERROR_SHARE:
        return False
    whole_time = HandledMessages.of_measurement(measurement)
    is_backlog_untouched = (
        measurement.deleted == 0
        and measurement.received > 0
        and measurement.now.backlog > MOST_TOLERATED_MESSAGES
    )
    return (
        counts.is_hardly_finished
        or whole_time.is_hardly_finished
        or is_backlog_untouched
        or _are_more_left_than_bad_ones(facts, measurement)
    )


def _do_runs_explain(
    facts: Facts, measurement: Measurement, runs: FailedRuns, left_undeleted: int
) -> bool:
    """Return True if the failed runs can have made most receives of messages that left undeleted.

    The mean number of messages in a run comes from all receives and runs of the same time.
    """
    received = measurement.recent.received if runs.stretch is None else measurement.received
    mean_messages = received / max(runs.invocations_of_receives, 1)
    messages_per_run = min(max(mean_messages, 1), runs.consumer.batch_size)
    needed_receives = (facts.max_receive_count or 1) * left_undeleted
    return (
        runs.consumer.failed_runs * messages_per_run
        >= LEAST_EXPLAINED_SHARE_OF_RECEIVES * needed_receives
    )


def _are_more_left_than_bad_ones(facts: Facts, measurement: Measurement) -> bool:
    """Return True if a queue without a DLQ is left with more messages than a few bad ones.

    A bad message is received once in each visibility timeout. On average it was there for half of
    the measured time.
    """
    unfinished = measurement.sent_minus_deleted
    if facts.dlq_arn is not None or unfinished <= MOST_TOLERATED_MESSAGES:
        return False
    timeouts = measurement.duration.total_seconds() / max(facts.visibility_seconds, 1)
    receives_of_bad_messages = unfinished * timeouts / 2
    return (
        measurement.fruitless_receives
        < SHARE_OF_RECEIVES_OF_BAD_MESSAGES * receives_of_bad_messages
    )


def must_page(facts: Facts, runs: FailedRuns) -> bool:
    """Return True if people must be paged about the failed runs (rule 5).

    That is so if messages are lost, if nothing is finished, or if a symptom would page that waits
    for this one. If the function works again, only the last counts.
    """
    if _would_waiting_symptom_page(facts):
        return True
    measurement = facts.measurement
    if runs.does_function_work_again or measurement is None:
        return False
    # Over hours, one message that is not finished is enough: some queues get only a few.
    if measurement.deleted == 0 and measurement.messages:
        return True
    counts_of_times = (
        runs.count_messages(measurement),
        HandledMessages.of_measurement(measurement),
    )
    return any(
        counts.are_many_left_undeleted or counts.is_nothing_finished for counts in counts_of_times
    )


def _would_waiting_symptom_page(facts: Facts) -> bool:
    """Return True if `consumer_failing` or `messages_expire` would page without this finding.

    They are silent while a case of this finding is open, so open cases are left out here. A
    function reads the queue, so the receives are none of people who look at DLQ messages, and the
    sources are not needed.
    """
    facts_without_cases = replace(facts, open_symptoms=frozenset(), dlq_sources=())
    expired_messages = find_expired_messages(facts_without_cases)
    if expired_messages is not None and not expired_messages.is_hygiene:
        return True
    consumer_fault = find_failing_consumers(facts_without_cases)
    return consumer_fault is not None and consumer_fault.should_page


class FailedRunsAdvice(NamedTuple):
    """The reason and the command that people get about failed runs; they may also be paged."""

    reason: str
    command: str
    should_page: bool


def make_advice(
    facts: Facts,
    advice: str,
    make_log_command: Callable[[str, str, Measurement | None, datetime | None], str],
    *,
    at_timeout: bool,
) -> FailedRunsAdvice:
    """Return the advice to people about the failed runs that `find_failed_runs` finds.

    Args:
        facts: The queue.
        advice: Sentences that say what to do. They come after the sentence of the finding.
        make_log_command: Makes the command that shows the failed runs in the function's log, from
            the queue's ARN, the function's name, the measurement and the start of the runs.
        at_timeout: True if Lambda stops the runs at the timeout.
    """
    reason = f"{facts.found}. {advice} {describe_consequence(facts)}"
    runs = find_failed_runs(facts, at_timeout=at_timeout)
    if runs is None:
        return FailedRunsAdvice(reason, list_consumers_command(facts.queue_arn), should_page=False)
    command = make_log_command(
        facts.queue_arn, runs.consumer.name, facts.measurement, runs.begins_at
    )
    return FailedRunsAdvice(reason, command, should_page=must_page(facts, runs))


def choose_evidence_kind(measurement: Measurement, runs: FailedRuns) -> EvidenceKind:
    """Return the kind of evidence: nothing is finished, or a part of the messages fails.

    Nothing is finished if consumers deleted at most 1 message in 20 runs, in the time of the failed
    runs.
    """
    counts = runs.count_messages(measurement)
    most_deletes = HARDLY_FINISHED_MESSAGE_SHARE * runs.consumer.invocations
    return NOTHING_FINISHED if counts.deleted <= most_deletes else SOME_FAIL


def describe_failed_runs(runs: FailedRuns) -> str:
    """Return the start of a sentence: how many runs failed, and when."""
    consumer = runs.consumer
    return (
        f"{consumer.failed_runs:,} of {format_count(consumer.invocations, 'run')} of "
        f"{consumer.name} {runs.time_text} failed ({100 * (consumer.error_share or 0):.0f} %)"
    )


def describe_unfinished_messages(facts: Facts, measurement: Measurement, runs: FailedRuns) -> str:
    """Return the end of a sentence: what became of the messages in the measured time."""
    counts = runs.count_messages(measurement)
    period_text = "in the last hour"
    is_harm_in_last_hour = counts.is_hardly_finished or counts.are_many_left_undeleted
    if runs.stretch is not None or not is_harm_in_last_hour:
        counts = HandledMessages.of_measurement(measurement)
        period_text = f"in the last {format_duration(measurement.duration)}"
    left_text = ""
    if facts.max_receive_count and counts.are_many_left_undeleted:
        left_text = f", and about {counts.left_undeleted:,} moved to the DLQ"
    elif measurement.now.backlog:
        left_text = f", and {format_count(measurement.now.backlog, 'message')} are left"
    return (
        f"{format_count(counts.sent, 'message')} arrived {period_text}, "
        f"{counts.deleted:,} were deleted{left_text}"
    )


def describe_consequence(facts: Facts) -> str:
    """Return a sentence about where messages of failed runs go."""
    if facts.max_receive_count:
        return (
            f"After {format_count(facts.max_receive_count, 'receive')} a message moves to "
            f"{facts.dlq_arn}. Send the messages back when the function works"
        )
    return (
        "There is no DLQ, so a message that fails comes back until it expires. Attach a DLQ only "
        "when the function works: before that it would take every message"
    )
