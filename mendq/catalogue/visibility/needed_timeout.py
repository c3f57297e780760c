"""Plan the visibility timeout that a queue's consumers need.

While a consumer works on a message, SQS hides it from other consumers for the visibility timeout.
If the work takes longer, another consumer receives the message and it is handled twice. This file
finds out how long the work may take and plans a timeout that covers it. The rules:

1. Three sources name a need: the timeout of a Lambda function that reads the queue, the tag
   `mendq:max-processing-seconds`, and the duration that consumers publish as a metric. The last one
   counts only if the current timeout covers the other two. If none of them names a need, Mendq
   guesses: one and a half times the current timeout.
2. The goal is AWS's advice for Lambda (six times the function's timeout plus the batching window)
   if the ceiling allows it. Otherwise it is the least that is needed, one and a half times the
   work.
3. No timeout goes over the ceiling: the tag `mendq:max-visibility-seconds`, or else the account's
   limit. A plan covers the whole need or is refused, because a part of it would fix nothing.
4. A consumer that fails needs no longer timeout: it would only slow the retries.
5. A guess is made only after failed calls, never from metrics alone, and never goes far beyond a
   value that a person chose. Durations of failed runs are no evidence: a run that Lambda stops is
   as long as the timeout of its function, however long its work takes.
6. The tag names the time for one message. A consumer that receives ten messages and works on them
   one after the other holds the last one ten times as long. If the timeout covers one message and
   messages are late all the same, Mendq plans for a batch of ten, because nothing shows its real
   size. So a person approves, unless late deletes show the batch and the plan stays near a value
   that a person chose. If a batch does not fit, Mendq says which size fits. If the counts may come
   from retries (rule 4), Mendq plans no timeout, and also says which size fits. It says the same
   if late deletes are too far apart to show a batch, which may have only two or three messages.
7. On a FIFO queue a late delete fails, so a message held too long looks like one that failed. There
   late calls outrank rule 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeGuard

from mendq.catalogue.fifo.stuck_group import MOST_MESSAGES_PER_RECEIVE
from mendq.catalogue.visibility.timeout_not_in_force import refuse_ineffective_timeout
from mendq.model.case import Case
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Ignore, Plan, Refusal, Refuse
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY, TagUnreadable, read_seconds_tag
from mendq.notifications.commands import (
    function_log_command,
    get_attributes_command,
    show_metric_command,
    tag_queue_command,
)
from mendq.notifications.text import format_count

MAX_PROCESSING_TAG = MAX_PROCESSING.key
MAX_VISIBILITY_TAG = MAX_VISIBILITY.key


@dataclass(frozen=True)
class VisibilityNeed:
    """A need for a visibility timeout, and its source.

    Attributes:
        minimum_goal_seconds: The timeout to set if AWS's advice is over the ceiling.
        sufficient_timeout_seconds: A current timeout of at least this value covers the need.
        source_text: The source of the need, in words for people.
        recommended_seconds: The timeout that AWS advises, 0 if there is no advice.
        work_seconds: How long the work takes, 0 if it is not known.
        is_measured: True if Lambda measured `work_seconds`. A tag's value is not measured.
        is_guessed: True if no source names a need.
        highest_mode: The highest mode in which a plan for this need may be carried out.
    """

    minimum_goal_seconds: int
    sufficient_timeout_seconds: int
    source_text: str
    recommended_seconds: int = 0
    work_seconds: float = 0
    is_measured: bool = False
    is_guessed: bool = False
    highest_mode: Mode = Mode.HEAL

    def choose_timeout_within_ceiling(self, ceiling_seconds: int) -> int:
        """Return the timeout to set: AWS's advice if the ceiling allows it, else the minimum."""
        if self.recommended_seconds > ceiling_seconds:
            return self.minimum_goal_seconds
        return max(self.minimum_goal_seconds, self.recommended_seconds)


# A timeout is this many times as long as the work takes.
SAFETY_FACTOR = 1.5


def add_safety_margin(seconds: float) -> int:
    """Return the timeout for work that takes `seconds`: 1.5 times as long, rounded up."""
    return ceil(SAFETY_FACTOR * seconds)


def describe_longer_advised_timeout(needs: Iterable[VisibilityNeed], seconds: int) -> str:
    """Return the end of a sentence: the longest timeout that AWS advises for `needs`.

    The text is empty if that timeout is not above `seconds`.
    """
    recommended_seconds = max((need.recommended_seconds for need in needs), default=0)
    return f"; AWS recommends {recommended_seconds:,} s" if recommended_seconds > seconds else ""


def list_named_needs(facts: Facts) -> list[VisibilityNeed]:
    """Return the needs that the queue's Lambda functions and its tag name.

    For a function, AWS advises six times its timeout plus the batching window, so that Lambda can
    try a batch again. If that is over the ceiling, Mendq sets one and a half times the function's
    timeout plus the window. For a tag, Mendq sets one and a half times the tag's value.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html

    Raises:
        TagUnreadable: The tag's value is not a number of seconds.
    """
    needs = [make_need_of_function(consumer) for consumer in facts.lambda_consumers]
    tagged_seconds = read_seconds_tag(facts.tags, MAX_PROCESSING_TAG)
    if tagged_seconds is not None:
        timeout_seconds = add_safety_margin(tagged_seconds)
        source_text = f"the tag {MAX_PROCESSING_TAG} says {tagged_seconds:,} s"
        needs.append(
            VisibilityNeed(
                timeout_seconds, timeout_seconds, source_text, work_seconds=tagged_seconds
            )
        )
    return needs


def make_need_of_function(consumer: LambdaConsumer) -> VisibilityNeed:
    """Return the need of one Lambda function.

    The batching window counts too, because a message waits for its batch before the function runs.
    """
    timeout_seconds = consumer.timeout_seconds
    batching_window_seconds = consumer.batching_window_seconds
    p99_run_seconds = (
        consumer.duration_p99_seconds if consumer.are_durations_of_finished_runs else None
    )
    source_text = (
        f"its Lambda consumer may run {timeout_seconds:,} s "
        f"and waits {batching_window_seconds:,} s for a batch"
    )
    work_seconds = 0.0
    if p99_run_seconds:
        source_text += f"; in the last hour 1 of 100 runs took {p99_run_seconds:.1f} s or more"
        work_seconds = p99_run_seconds + batching_window_seconds
    return VisibilityNeed(
        minimum_goal_seconds=add_safety_margin(timeout_seconds) + batching_window_seconds,
        sufficient_timeout_seconds=timeout_seconds + batching_window_seconds,
        source_text=source_text,
        recommended_seconds=6 * timeout_seconds + batching_window_seconds,
        work_seconds=work_seconds,
        is_measured=bool(p99_run_seconds),
    )


def list_readable_needs(facts: Facts) -> list[VisibilityNeed]:
    """Return the needs as `list_named_needs` does; empty if the queue's tag cannot be read."""
    try:
        return list_named_needs(facts)
    except TagUnreadable:
        return []


def find_slowest_function(facts: Facts) -> tuple[float, str]:
    """Return the longest p99 of a Lambda function's runs in seconds, and the function's name.

    Return 0 and an empty name if no function reads the queue, or if the p99 of one of them is not
    known, for example because it did not run in the last hour.
    """
    p99_and_name_pairs = [
        (consumer.duration_p99_seconds or 0, consumer.name) for consumer in facts.lambda_consumers
    ]
    if not p99_and_name_pairs or not min(p99_and_name_pairs)[0]:
        return (0, "")
    return max(p99_and_name_pairs)


def plan_advised_timeout(
    facts: Facts, limits: Limits, step_class: type[SetVisibilityTimeout], *, has_symptom: bool
) -> Plan | Refusal:
    """Plan the timeout that AWS advises or a tag names. A person must approve it.

    Only a person knows if others read the queue too.

    Args:
        facts: The queue.
        limits: The account's limits.
        step_class: The class of the change.
        has_symptom: True if the queue still has the symptom. Otherwise nothing is planned.
    """
    try:
        needs = list_named_needs(facts)
        ceiling_seconds = read_ceiling_seconds(facts, limits)
    except TagUnreadable as unreadable:
        return Refuse("tag_unreadable", str(unreadable))
    current_timeout_seconds = facts.visibility_seconds
    need = find_largest_need(facts, needs)
    if not has_symptom or need is None:
        return Ignore(
            "need_already_met", f"the visibility timeout is {current_timeout_seconds:,} s by now"
        )
    advised_seconds = choose_goal_seconds(facts, needs)
    refusal = next(find_exceeded_bounds(facts, need, advised_seconds, ceiling_seconds), None)
    if refusal is not None:
        return refusal
    reason = (
        f"{facts.found}. {advised_seconds:,} s are the most that AWS advises for its Lambda "
        "consumers or a tag names; where others read it and need longer, decline, and tag it "
        f"{MAX_PROCESSING_TAG}"
    )
    return Plan(
        (step_class(current_timeout_seconds, advised_seconds),), reason, highest_mode=Mode.PROPOSE
    )


def list_published_needs(facts: Facts, needs: list[VisibilityNeed]) -> list[VisibilityNeed]:
    """Return a list with the need that the queue's consumers publish as a metric, or an empty list.

    The list is empty if they publish nothing. It is also empty if the current timeout does not
    cover all of `needs`, because a need that a function or a tag names comes first. Anybody who may
    write metrics in the account can publish a need, so a person must approve the change.
    """
    p99_processing_seconds = facts.measurement.processing_p99_seconds if facts.measurement else None
    if p99_processing_seconds is None or list_unmet_needs(facts, needs):
        return []
    timeout_seconds = add_safety_margin(p99_processing_seconds)
    source_text = (
        f"its consumers publish that a message takes up to {p99_processing_seconds:,.1f} s (p99)"
    )
    return [
        VisibilityNeed(
            timeout_seconds,
            timeout_seconds,
            source_text,
            work_seconds=p99_processing_seconds,
            highest_mode=Mode.PROPOSE,
        )
    ]


def read_ceiling_seconds(facts: Facts, limits: Limits) -> int:
    """Return the highest visibility timeout that Mendq may set on the queue.

    The queue's tag names it; without the tag it is the account's limit.

    Raises:
        TagUnreadable: The tag's value is not a number of seconds.
    """
    return read_seconds_tag(facts.tags, MAX_VISIBILITY_TAG) or limits.visibility_ceiling_seconds


def find_largest_need(facts: Facts, needs: list[VisibilityNeed]) -> VisibilityNeed | None:
    """Return the largest need that the current timeout does not cover.

    If the timeout covers all, return the largest of all. None if `needs` is empty.
    """
    candidate_needs = list_unmet_needs(facts, needs) or needs
    return max(candidate_needs, key=lambda need: need.minimum_goal_seconds, default=None)


def choose_goal_seconds(
    facts: Facts, needs: list[VisibilityNeed], ceiling_seconds: int = SetVisibilityTimeout.maximum
) -> int:
    """Return the visibility timeout to set, in seconds; 0 if `needs` is empty.

    Heal, scan and lint all use this value. It covers every need that the current timeout does not
    cover, even if the result is over the ceiling (then the plan is refused). It also covers every
    other need that fits below the ceiling. By default the ceiling is SQS's own maximum, so the
    result is the longest timeout that AWS advises or a tag needs.
    """
    goal_seconds_of_needs = [
        need.choose_timeout_within_ceiling(ceiling_seconds)
        for need in list_unmet_needs(facts, needs)
    ]
    for need in needs:
        goal_seconds = need.choose_timeout_within_ceiling(ceiling_seconds)
        if goal_seconds <= ceiling_seconds:
            goal_seconds_of_needs.append(goal_seconds)
    return max(goal_seconds_of_needs, default=0)


def list_unmet_needs(facts: Facts, needs: list[VisibilityNeed]) -> list[VisibilityNeed]:
    """Return the needs that the current visibility timeout does not cover."""
    return [need for need in needs if facts.visibility_seconds < need.sufficient_timeout_seconds]


def guess_visibility_need(facts: Facts) -> VisibilityNeed:
    """Return the guess for unknown consumers: one and a half times the current timeout."""
    guessed_seconds = max(facts.visibility_seconds + 1, add_safety_margin(facts.visibility_seconds))
    source_text = "nothing names what its consumers need, so half as much again"
    if facts.has_late_deletes_of_batch:
        source_text = f"{source_text}; {_describe_batch_evidence(facts)}"
    return VisibilityNeed(guessed_seconds, guessed_seconds, source_text, is_guessed=True)


def find_failing_function(facts: Facts) -> LambdaConsumer | None:
    """Return the first function that fails in at least half of its runs, but not by its timeout.

    None if there is no such function.
    """
    return next((consumer for consumer in facts.lambda_consumers if consumer.is_failing_fast), None)


def find_batch_need(facts: Facts, needs: list[VisibilityNeed]) -> VisibilityNeed | None:
    """Return the need of a consumer that works on a full batch, one message after the other.

    None if nothing suggests a batch: a named need is not covered yet, no tag names the time for one
    message, the timeout covers a full batch, or neither late deletes nor a scan's finding show that
    messages are late. None also if Lambda reads the queue, because its need is that of a whole
    batch.
    """
    tagged_seconds = read_seconds_tag(facts.tags, MAX_PROCESSING_TAG)
    is_late_in_batch = bool(facts.found) or facts.has_late_deletes_of_batch
    if tagged_seconds is None or not is_late_in_batch:
        return None
    if facts.lambda_consumers or list_unmet_needs(facts, needs):
        return None
    batch_seconds = MOST_MESSAGES_PER_RECEIVE * tagged_seconds
    if facts.visibility_seconds >= batch_seconds:
        return None
    goal_seconds = add_safety_margin(batch_seconds)
    is_guess_near = goal_seconds <= MAXIMUM_GUESSED_TIMEOUT_FACTOR * _find_persons_timeout(facts)
    can_heal = facts.has_late_deletes_of_batch and is_guess_near
    source_text = (
        f"a receive returns up to {MOST_MESSAGES_PER_RECEIVE} messages; worked one after the "
        f"other, at {tagged_seconds:,} s each (tag {MAX_PROCESSING_TAG}), they take "
        f"{batch_seconds:,} s"
    )
    return VisibilityNeed(
        goal_seconds,
        batch_seconds,
        source_text,
        work_seconds=batch_seconds,
        highest_mode=Mode.HEAL if can_heal else Mode.PROPOSE,
    )


def _find_persons_timeout(facts: Facts) -> int:
    """Return the visibility timeout that a person chose last, in seconds."""
    persons_seconds = facts.visibility_seconds_set_by_person
    return facts.visibility_seconds if persons_seconds is None else persons_seconds


def _plan_timeout_for_batch(
    facts: Facts, batch_need: VisibilityNeed, ceiling_seconds: int
) -> Plan | Refusal:
    """Plan the timeout for a full batch. If a bound forbids it, advise a batch size that fits."""
    goal_seconds = batch_need.minimum_goal_seconds
    advice = _describe_fitting_batch(facts, goal_seconds / MOST_MESSAGES_PER_RECEIVE)
    evidence_text = _describe_batch_evidence(facts)
    exceeded_bound = next(
        find_exceeded_bounds(facts, batch_need, goal_seconds, ceiling_seconds), None
    )
    if exceeded_bound is not None:
        reason = f"{evidence_text}. For a whole batch {exceeded_bound.reason}. Instead, {advice}"
        command = get_attributes_command(facts.queue_arn, SetVisibilityTimeout.attribute)
        return Escalate("batch_too_long", reason, command, silent_in_observe=True)
    reason = (
        f"{evidence_text}. The visibility timeout of {facts.visibility_seconds:,} s covers one "
        f"message and not a batch: {batch_need.source_text}. Or, without a longer timeout: {advice}"
    )
    return Plan(
        (SetVisibilityTimeout(facts.visibility_seconds, goal_seconds),),
        reason,
        highest_mode=batch_need.highest_mode,
    )


def _describe_fitting_batch(facts: Facts, seconds_per_message: float) -> str:
    """Return a sentence part: the largest batch whose work fits the current visibility timeout.

    Args:
        facts: The queue.
        seconds_per_message: The timeout that one message needs.
    """
    fitting_batch_size = max(1, int(facts.visibility_seconds / seconds_per_message))
    return (
        f"with MaxNumberOfMessages={fitting_batch_size} the consumer's work fits the timeout of "
        f"{facts.visibility_seconds:,} s"
    )


def _describe_batch_evidence(facts: Facts) -> str:
    """Return a sentence about what shows the batch: late deletes, or the scan's finding."""
    interval_seconds = facts.delete_interval_seconds
    if interval_seconds is None or facts.found:
        return facts.found
    interval_text = f"about {interval_seconds:,.0f} s" if interval_seconds >= 1 else "less than 1 s"
    return (
        f"one caller's late deletes came {interval_text} apart, faster than a consumer can that "
        "holds one message at a time: it holds several, and the later ones are late"
    )


# SQS refuses receives at about 120,000 messages in flight. Mendq plans for at most half of that.
MAXIMUM_EXPECTED_IN_FLIGHT_MESSAGES = 60_000
# A guess may be at most this many times the timeout that a person chose last.
MAXIMUM_GUESSED_TIMEOUT_FACTOR = 4


def find_general_objections(facts: Facts, needs: list[VisibilityNeed]) -> Iterator[Refusal]:
    """Yield refusals that hold for every longer visibility timeout. Only the first one counts."""
    reader_timeout_seconds = facts.smallest_requested_visibility_seconds
    current_timeout_seconds = facts.visibility_seconds
    # After an extension, a message is hidden for as long as that call asked for. A longer timeout
    # of the queue would not make the next extension come in time. But if the queue's timeout is
    # below a need, already the first extension may come too late, and the queue's timeout matters.
    if (
        reader_timeout_seconds is not None
        and reader_timeout_seconds < current_timeout_seconds
        and not list_unmet_needs(facts, needs)
    ):
        reason = (
            f"the late calls extend messages by {reader_timeout_seconds:,} s each, which is less "
            f"than the queue's {current_timeout_seconds:,} s: after such a call a message is "
            f"hidden for {reader_timeout_seconds:,} s, however long the queue's timeout is"
        )
        yield Refuse("readers_set_their_own", reason)
    is_shown_by_late_fifo_calls = facts.is_fifo and not facts.found
    failing_function = None if is_shown_by_late_fifo_calls else find_failing_function(facts)
    if failing_function is not None:
        reason = (
            f"{failing_function.function_arn} fails rather than runs long: "
            "a longer visibility timeout would only slow its retries"
        )
        command = function_log_command(facts.queue_arn, failing_function.name, facts.measurement)
        yield Refuse("consumer_failing", reason, command)
    if facts.found and not list_unmet_needs(facts, needs):
        yield from _refuse_unexplained_double_handling(facts, needs)


def _refuse_unexplained_double_handling(
    facts: Facts, needs: list[VisibilityNeed]
) -> Iterator[Refusal]:
    """Yield the refusals for a queue whose messages seem to be handled twice for no known reason.

    No named need exceeds the current timeout. The refusals notify people. Mendq makes no guess,
    because the counts look the same if consumers fail at first and delete a message twice in the
    end.
    """
    measurement = facts.measurement
    if measurement is not None and measurement.may_be_retries:
        reason = (
            f"{facts.found}. Or its consumers fail at first and delete twice in the end, which "
            f"{measurement.received:,} receives of {measurement.sent:,} sent messages do not rule "
            "out: a longer visibility timeout would then only slow the retries. "
            f"{_advise_if_work_is_slow(facts, needs)}"
        )
        command = show_metric_command(
            facts.queue_arn, "NumberOfMessagesReceived", "Sum", measurement
        )
        yield Escalate("race_or_retries", reason, command, silent_in_observe=True)
    known_need_text = ", and nothing names how long they need"
    advice = (
        f"tag the queue {MAX_PROCESSING_TAG} with the longest that a message may take, in seconds"
    )
    if needs:
        known_need_text = f", although what is named is covered ({needs[0].source_text})"
        advice += ", or receive fewer messages at a time"
    if MAX_PROCESSING_TAG in facts.tags:
        advice = (
            f"correct the tag {MAX_PROCESSING_TAG}, which must name the longest that one message "
            "may take, or receive fewer messages at a time"
        )
    reason = (
        f"{facts.found}. Somebody holds messages longer than the visibility timeout of "
        f"{facts.visibility_seconds:,} s{known_need_text}: {advice}"
    )
    # The person replaces SECONDS. If it is left as it is, Mendq refuses the tag as unreadable.
    tag_command_text = tag_queue_command(f"{MAX_PROCESSING_TAG}=SECONDS", facts.queue_arn)
    if needs:
        yield Escalate("race_despite_named_need", reason, tag_command_text, silent_in_observe=True)
    else:
        yield Escalate("race_without_named_need", reason, tag_command_text, silent_in_observe=True)


def _advise_if_work_is_slow(facts: Facts, needs: list[VisibilityNeed]) -> str:
    """Return what helps if a queue's work takes longer than its timeout and is not retried.

    A person who has tagged the queue is not asked to tag it. If the tag covers one message but not
    a batch of ten, the batch is named. Smaller batches do no harm if work is retried after all; the
    longer timeout that a batch needs would.
    """
    if MAX_PROCESSING_TAG not in facts.tags:
        return (
            f"Where work takes longer than {facts.visibility_seconds:,} s, let the tag "
            f"{MAX_PROCESSING_TAG} say how long"
        )
    batch_need = find_batch_need(facts, needs)
    if batch_need is None:
        return (
            f"Where work takes longer than {facts.visibility_seconds:,} s, correct the tag "
            f"{MAX_PROCESSING_TAG}, which must name the longest that one message may take, or "
            "receive fewer messages at a time"
        )
    seconds_per_message = batch_need.minimum_goal_seconds / MOST_MESSAGES_PER_RECEIVE
    return (
        f"Where consumers work on a batch, the timeout covers one message and not a batch: "
        f"{batch_need.source_text}. Receive fewer messages at a time: "
        f"{_describe_fitting_batch(facts, seconds_per_message)}"
    )


def find_objections_to_need(
    facts: Facts, need: VisibilityNeed, goal_seconds: int, ceiling_seconds: int
) -> Iterator[Refusal]:
    """Yield each reason not to set the timeout to `goal_seconds`, as a refusal.

    Callers use only the first one.
    """
    current_timeout_seconds = facts.visibility_seconds
    if current_timeout_seconds >= need.sufficient_timeout_seconds:
        advice_text = describe_longer_advised_timeout([need], current_timeout_seconds)
        reason = (
            f"the visibility timeout of {current_timeout_seconds:,} s already covers what is "
            f"asked for ({need.source_text}){advice_text}, and calls came too late all the same: "
            f"somebody holds messages longer than is named{_advise_about_small_batch(facts)}"
        )
        yield Refuse("need_already_met", reason)
    timeout_before_guess_seconds = _find_persons_timeout(facts)
    if (
        need.is_guessed
        and goal_seconds > MAXIMUM_GUESSED_TIMEOUT_FACTOR * timeout_before_guess_seconds
    ):
        reason = (
            f"a guess of {goal_seconds:,} s is more than {MAXIMUM_GUESSED_TIMEOUT_FACTOR} times "
            f"the {timeout_before_guess_seconds:,} s that a person chose; the tag "
            f"{MAX_PROCESSING_TAG} would name the need"
        )
        yield Refuse("guess_too_far", reason)
    yield from find_exceeded_bounds(facts, need, goal_seconds, ceiling_seconds)


def _advise_about_small_batch(facts: Facts) -> str:
    """Return the end of a sentence: a batch may hold messages for longer than its tag names.

    If a batch has two or three messages, only its last one is late. Late deletes are then as far
    apart as those of a consumer whose messages take longer than the tag says. The text is empty
    without the tag, or if Lambda reads the queue, because its need is that of a whole batch.
    """
    tagged_seconds = read_seconds_tag(facts.tags, MAX_PROCESSING_TAG)
    if tagged_seconds is None or facts.lambda_consumers:
        return ""
    tag_advice = f". If one message may take more than {tagged_seconds:,} s, correct the tag"
    seconds_per_message = SAFETY_FACTOR * tagged_seconds
    if facts.visibility_seconds >= MOST_MESSAGES_PER_RECEIVE * seconds_per_message:
        return tag_advice
    return (
        f"{tag_advice}. If consumers receive several messages and work on them one after the "
        "other, let them receive fewer: "
        f"{_describe_fitting_batch(facts, seconds_per_message)}"
    )


def find_exceeded_bounds(
    facts: Facts, need: VisibilityNeed, goal_seconds: int, ceiling_seconds: int
) -> Iterator[Refusal]:
    """Yield a refusal for each bound that a timeout of `goal_seconds` would exceed. The first
    counts.

    Nothing is yielded if the timeout is not above the current one. If a bound is exceeded, Mendq
    does not set a smaller value instead, because a part of the need would fix nothing.
    """
    current_timeout_seconds = facts.visibility_seconds
    receive_limit = facts.max_receive_count or 1
    if goal_seconds <= current_timeout_seconds:
        return
    if goal_seconds > ceiling_seconds:
        needed_timeout_text = f"{goal_seconds:,} s are needed ({need.source_text})"
        reason = f"{needed_timeout_text}, over the ceiling of {ceiling_seconds:,} s"
        command = tag_queue_command(f"{MAX_VISIBILITY_TAG}={goal_seconds}", facts.queue_arn)
        # A tag cannot allow more than SQS takes, so its command is not offered then.
        if goal_seconds > SetVisibilityTimeout.maximum:
            reason += f", and SQS takes {SetVisibilityTimeout.maximum:,} s at most"
            command = get_attributes_command(facts.queue_arn, SetVisibilityTimeout.attribute)
        yield Refuse("over_ceiling", reason, command)
    if 2 * receive_limit * goal_seconds > facts.retention_seconds:
        reason = (
            f"{format_count(receive_limit, 'receive')} of {goal_seconds:,} s would take more than "
            f"half of the retention of {facts.retention_seconds:,} s"
        )
        yield Refuse("over_retention", reason)
    expected_in_flight_messages = facts.in_flight * goal_seconds / max(current_timeout_seconds, 1)
    if expected_in_flight_messages > MAXIMUM_EXPECTED_IN_FLIGHT_MESSAGES:
        reason = (
            f"about {expected_in_flight_messages:,.0f} messages would be in flight, over "
            f"{MAXIMUM_EXPECTED_IN_FLIGHT_MESSAGES:,}"
        )
        yield Refuse("over_in_flight", reason)


def plan_needed_timeout(facts: Facts, limits: Limits) -> Plan | Refusal:
    """Plan the longer visibility timeout that the queue's consumers need.

    If AWS's advice exceeds a bound, plan the minimum that is needed. A need that consumers publish
    counts only if a plan for that need would not be refused. Otherwise the published need would
    hide that messages are handled twice for another reason.
    """
    try:
        ceiling_seconds = read_ceiling_seconds(facts, limits)
        needs = list_named_needs(facts)
    except TagUnreadable as unreadable:
        return Refuse("tag_unreadable", str(unreadable))
    refusal = refuse_ineffective_timeout(facts)
    if refusal is not None:
        return refusal
    for need in list_published_needs(facts, needs):
        if not any(
            find_objections_to_need(facts, need, need.minimum_goal_seconds, ceiling_seconds)
        ):
            needs.append(need)
    largest_need = find_largest_need(facts, needs) or guess_visibility_need(facts)
    batch_need = find_batch_need(facts, needs)
    may_be_retries = facts.measurement is not None and facts.measurement.may_be_retries
    if batch_need is not None and not (facts.found and may_be_retries):
        return _plan_timeout_for_batch(facts, batch_need, ceiling_seconds)
    refusal = next(find_general_objections(facts, needs), None)
    if refusal is not None:
        return refusal
    goal_seconds = choose_goal_seconds(facts, needs, ceiling_seconds)
    for seconds in (
        goal_seconds or largest_need.minimum_goal_seconds,
        largest_need.minimum_goal_seconds,
    ):
        refusal = next(find_objections_to_need(facts, largest_need, seconds, ceiling_seconds), None)
        if refusal is None:
            return _plan_longer_timeout(facts, largest_need, seconds, needs)
    assert refusal is not None  # noqa: S101 - otherwise the loop has returned a plan
    return refusal


def _plan_longer_timeout(
    facts: Facts, need: VisibilityNeed, goal_seconds: int, needs: list[VisibilityNeed]
) -> Plan:
    """Return the plan to set `goal_seconds`.

    If AWS advises a longer timeout, `Plan.proposal` has it: people see it, and Mendq never sets it.
    """
    current_timeout_seconds = facts.visibility_seconds
    recommended_seconds = max((need.recommended_seconds for need in needs), default=0)
    source_text = "" if need.source_text in facts.found else f": {need.source_text}"
    reason = (
        f"the visibility timeout of {current_timeout_seconds:,} s ends before its consumers are "
        "done"
        f"{source_text}"
        f"{describe_longer_advised_timeout(needs, current_timeout_seconds)}"
    )
    return Plan(
        (SetVisibilityTimeout(current_timeout_seconds, goal_seconds),),
        f"{reason}; {facts.found}" if facts.found else reason,
        proposal=(SetVisibilityTimeout(current_timeout_seconds, recommended_seconds),)
        if recommended_seconds > goal_seconds
        else (),
        highest_mode=need.highest_mode if _can_raise_without_person(facts, need) else Mode.PROPOSE,
    )


def _can_raise_without_person(facts: Facts, need: VisibilityNeed) -> bool:
    """Return True if the evidence is good enough to raise the timeout without asking a person.

    False if messages only reached the DLQ, and Lambda has not measured that work takes
    longer. A tag may be out of date, and a consumer that extends its messages needs no longer
    timeout.
    """
    measurement = facts.measurement
    is_move_to_dlq_only_harm = (
        facts.found and measurement is not None and not measurement.has_consumer_race
    )
    return need.is_measured or not is_move_to_dlq_only_harm


# Limits on stored needs that are read back. Another program may have written the stored object.
_MAXIMUM_DRAWN_NEEDS = 5
_LONGEST_SPAN_SECONDS = 10**6


def build_needs_document(symptom: str, facts: Facts) -> list[dict[str, Any]]:
    """Return how long the queue's consumers need, and the source of each number.

    A case stores this list with its evidence, and a picture of the case compares the numbers with
    the visibility timeout. The list is empty for every symptom except
    `visibility_timeout_too_short`.

    Returns:
        One JSON object per source that names a need: `what` (the source) and `seconds`. If several
        functions read the queue, the longest time counts.
    """
    if symptom != "visibility_timeout_too_short":
        return []
    consumers = facts.lambda_consumers
    measured_consumers = [
        consumer for consumer in consumers if consumer.are_durations_of_finished_runs
    ]
    tagged_seconds = [
        need.work_seconds for need in list_readable_needs(facts) if not need.recommended_seconds
    ]
    durations_by_source: dict[str, Iterable[float | None]] = {
        "Lambda p50": [consumer.duration_p50_seconds for consumer in measured_consumers],
        "Lambda p99": [consumer.duration_p99_seconds for consumer in measured_consumers],
        "Lambda timeout": [consumer.timeout_seconds for consumer in consumers],
        f"tag {MAX_PROCESSING_TAG}": tagged_seconds,
        "published p99": [need.work_seconds for need in list_published_needs(facts, [])],
    }
    document: list[dict[str, Any]] = []
    for source_name, durations_of_source in durations_by_source.items():
        longest_duration_seconds = max(filter(None, durations_of_source), default=0)
        if longest_duration_seconds:
            document.append({"what": source_name, "seconds": longest_duration_seconds})
    return document


def list_need_spans(transitions: Sequence[Case]) -> list[tuple[str, float]]:
    """Return the times that a case's evidence says consumers need, then the visibility timeouts.

    Args:
        transitions: The case's transitions, oldest first; at least one.

    Returns:
        Pairs of a name and a number of seconds: at most _MAXIMUM_DRAWN_NEEDS times from the
        newest evidence, then the timeout before and after the last planned change. Values that a
        picture cannot show are left out. Empty if the evidence names no time or no timeout was
        planned.
    """
    needs = transitions[-1].evidence.get("needs")
    if not isinstance(needs, list):
        return []
    named_needs = [need for need in needs if isinstance(need, Mapping)]
    timeout_steps: list[Mapping[str, Any]] = []
    for case in transitions:
        if not case.is_rollback:
            timeout_steps += [
                step
                for step in case.steps
                if step.get("attribute") == SetVisibilityTimeout.attribute
            ]
    if not named_needs or not timeout_steps:
        return []
    need_spans: list[tuple[str, Any]] = [
        (str(need.get("what")), need.get("seconds")) for need in named_needs[:_MAXIMUM_DRAWN_NEEDS]
    ]
    last_timeout_step = timeout_steps[-1]
    need_spans.append(("timeout before", _parse_seconds(last_timeout_step.get("before"))))
    need_spans.append(("timeout after", _parse_seconds(last_timeout_step.get("after"))))
    return [(name, seconds) for name, seconds in need_spans if _is_drawable_duration(seconds)]


def _parse_seconds(step_value: object) -> int | None:
    """Return the whole number of up to six digits in a text; None for everything else."""
    if not isinstance(step_value, str) or len(step_value) >= 7:
        return None
    return int(step_value) if step_value.isascii() and step_value.isdigit() else None


def _is_drawable_duration(seconds: Any) -> TypeGuard[float]:
    """Return True if `seconds` is a number that a picture can show. A boolean is not a number."""
    return type(seconds) in {int, float} and 0 < seconds <= _LONGEST_SPAN_SECONDS
