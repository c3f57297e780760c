"""Compare the times of a queue with each other: delay, visibility timeout, receives and retention.

SQS deletes a message at the end of the retention period, wherever the message is then. So the delay
and all receives must fit into it, also after the remedies of other findings.
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue.symptom import DetectedFault
from mendq.catalogue.visibility import needed_timeout
from mendq.catalogue.visibility.needed_timeout import VisibilityNeed
from mendq.lint.queues import DeclaredQueue, DeclaredQueues
from mendq.lint.values import UnknownValue
from mendq.model.facts import LambdaConsumer, QueueFacts
from mendq.model.limits import Limits
from mendq.model.queue import (
    DEFAULT_MAX_RECEIVE_COUNT,
    DEFAULT_NUMBER_BY_ATTRIBUTE,
    LONGEST_RETENTION_SECONDS,
    read_number_attribute,
)
from mendq.model.steps import SetVisibilityTimeout
from mendq.model.tags import TagUnreadable
from mendq.notifications.text import format_count, to_terminal_text

_RETENTION_ATTRIBUTE = "MessageRetentionPeriod"
# The retention periods of a remedy: SQS's default, or its maximum.
_PROPOSED_RETENTIONS = (
    DEFAULT_NUMBER_BY_ATTRIBUTE[_RETENTION_ATTRIBUTE],
    LONGEST_RETENTION_SECONDS,
)


def find_contradicting_times(queue: DeclaredQueue) -> DetectedFault | None:
    """Report a retention that ends before the queue's other settings let a message be handled.

    The worst contradiction is reported alone. If a message is received again, it waits for the
    visibility timeout each time. None if one of the values is not known.
    """
    try:
        return _compare_times(queue)
    except UnknownValue:
        return None


def _compare_times(queue: DeclaredQueue) -> DetectedFault | None:
    """Return the worst contradiction. Raises UnknownValue if a needed value is not known."""
    retention_seconds = queue.retention_seconds
    delay_seconds = read_number_attribute(queue.attributes, "DelaySeconds")
    if delay_seconds >= retention_seconds:
        return DetectedFault(
            f"the delay of {delay_seconds:,} s is not shorter than the retention of "
            f"{retention_seconds:,} s: messages expire before anybody can receive them"
        )
    visibility_seconds = queue.visibility_seconds
    delay_text = f"the delay of {delay_seconds:,} s and " if delay_seconds else ""
    first_try_seconds = delay_seconds + visibility_seconds
    if first_try_seconds >= retention_seconds:
        verb = "are" if delay_seconds else "is"
        return DetectedFault(
            f"{delay_text}the visibility timeout of {visibility_seconds:,} s {verb} not shorter "
            f"than the retention of {retention_seconds:,} s: a message that is not finished at "
            "the first try expires"
        )
    receive_count = queue.max_receive_count
    if receive_count is None:
        return None
    all_seconds = delay_seconds + visibility_seconds * receive_count
    if all_seconds < retention_seconds:
        return None
    return DetectedFault(
        f"a message that fails can expire before it reaches the DLQ: {delay_text}"
        f"{format_count(receive_count, 'receive')} may take {all_seconds:,} s (visibility timeout "
        f"{visibility_seconds:,} s each), and the queue keeps messages for {retention_seconds:,} s"
    )


def list_timeout_needs(queue: DeclaredQueue) -> list[VisibilityNeed]:
    """Return the needs for a visibility timeout of functions, pipes and the queue's tag.

    For a pipe, AWS advises six times what enrichment and target may run together. Functions whose
    times are not known are left out.

    Raises:
        TagUnreadable: The tag's value is not a number of seconds.
    """
    needs = needed_timeout.list_named_needs(keep_known_consumers(queue))
    for pipe_run in queue.pipe_runs:
        runs_as_consumer = LambdaConsumer(
            pipe_run.pipe_id, pipe_run.timeout_seconds, pipe_run.batching_window_seconds
        )
        source_text = (
            f"the functions of its pipe {pipe_run.pipe_id} may run {pipe_run.timeout_seconds:,} s"
        )
        need = needed_timeout.make_need_of_function(runs_as_consumer)
        needs.append(replace(need, source_text=source_text))
    return needs


def keep_known_consumers(queue: DeclaredQueue) -> DeclaredQueue:
    """Return the queue without the consumers whose times are not known."""
    known_consumers = tuple(
        consumer for consumer in queue.lambda_consumers if not consumer.why_timeout_unknown
    )
    return replace(queue, lambda_consumers=known_consumers)


def make_retention_lines(
    queue: DeclaredQueue, declared_queues: DeclaredQueues, visibility_seconds: int | None = None
) -> tuple[str, ...]:
    """Return the retention period that the queue needs after the remedies of all its findings.

    Args:
        queue: The queue.
        declared_queues: The template's queues.
        visibility_seconds: The visibility timeout that a remedy sets; None for the declared one or
            what its consumers need.

    Returns:
        The lines. If no retention is long enough, a comment. Empty if the queue's own retention is
        long enough, or if that is not known.
    """
    try:
        needed_seconds = _find_needed_seconds(queue, visibility_seconds)
        if needed_seconds < queue.retention_seconds:
            return ()
    except UnknownValue:
        return ()
    template = declared_queues.template
    for retention_seconds in _PROPOSED_RETENTIONS:
        if needed_seconds < retention_seconds:
            return (
                *template.render_declaration(_RETENTION_ATTRIBUTE, retention_seconds),
                *_list_dlq_advice(queue, declared_queues, retention_seconds),
            )
    return ("# shorten the visibility timeout, or lower maxReceiveCount",)


def _find_needed_seconds(queue: DeclaredQueue, visibility_seconds: int | None) -> int:
    """Return how long a message needs until its last receive ends, after all remedies.

    Raises UnknownValue if a needed value is not known.
    """
    if visibility_seconds is None:
        visibility_seconds = max(queue.visibility_seconds, _find_advised_timeout(queue))
    receive_count = queue.max_receive_count
    if queue.lambda_consumers:
        receive_count = max(receive_count or 0, DEFAULT_MAX_RECEIVE_COUNT)
    delay_seconds = read_number_attribute(queue.attributes, "DelaySeconds")
    return delay_seconds + visibility_seconds * (receive_count or 1)


def _find_advised_timeout(queue: DeclaredQueue) -> int:
    """Return the visibility timeout that lint's remedy sets; 0 if no consumer's need is known."""
    try:
        needs = list_timeout_needs(queue)
        ceiling_seconds = needed_timeout.read_ceiling_seconds(queue, Limits())
    except TagUnreadable:
        return 0
    goal_seconds = needed_timeout.choose_goal_seconds(queue, needs, ceiling_seconds)
    return goal_seconds if goal_seconds <= SetVisibilityTimeout.maximum else 0


def _list_dlq_advice(
    queue: DeclaredQueue, declared_queues: DeclaredQueues, retention_seconds: int
) -> tuple[str, ...]:
    """Return a comment if the DLQ must keep messages longer too, because its source does."""
    dlq: QueueFacts | None = queue.dlq
    if dlq is None or queue.is_fifo:
        return ()
    try:
        dlq_seconds = dlq.retention_seconds
    except UnknownValue:
        return ()
    if dlq_seconds > retention_seconds or dlq_seconds >= LONGEST_RETENTION_SECONDS:
        return ()
    dlq_name = to_terminal_text(declared_queues.resolver.replace_arns_by_logical_ids(dlq.queue_arn))
    attribute = declared_queues.template.get_attribute_name(_RETENTION_ATTRIBUTE)
    return (f"# set {attribute} of its DLQ {dlq_name} to {LONGEST_RETENTION_SECONDS}",)
