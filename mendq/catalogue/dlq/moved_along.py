"""Count the good messages that move to a DLQ together with the message that blocks their group.

SQS returns up to ten messages of a group in one receive and counts the receive for each of them. It
returns no other message of the group until these are deleted or visible again. So a message that
always fails is received together with the same messages behind it. Their receive counts rise
together, and all of them reach maxReceiveCount at once, whatever its value is.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from mendq.catalogue.consumers.mapping_change import MappingChange
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.mode import Mode
from mendq.model.plan import Plan, Refusal
from mendq.notifications.commands import redrive_all_but_first_command
from mendq.notifications.text import Section, command_or_note, format_count, to_plain_text

# The most messages that one ReceiveMessage returns, and the largest Lambda batch of a FIFO queue.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
MOST_MESSAGES_PER_BATCH = 10


@dataclass(frozen=True)
class GoodMessageBounds:
    """Upper bounds on the good messages that reach the DLQ with the failing ones.

    `maximum_good_messages_now` is about the messages that are in the queue now.
    `maximum_good_messages_at_change` is about the time of the change, when more messages may wait.

    Attributes:
        waiting_messages: The number of messages in the queue now, visible or in flight.
        largest_batch_size: The largest number of messages that consumers receive at once.
        groups_in_flight: The number of groups with messages in flight; None if it is not known.
    """

    waiting_messages: int
    largest_batch_size: int
    groups_in_flight: int | None

    @property
    def maximum_good_messages_at_change(self) -> int | None:
        """Upper bound on the good messages that may move later; None if it is not known."""
        return (
            None
            if self.groups_in_flight is None
            else self.groups_in_flight * (self.largest_batch_size - 1)
        )

    @property
    def maximum_good_messages_now(self) -> int:
        """Upper bound on the good messages in the queue now that may move to the DLQ."""
        if self.largest_batch_size == 1:
            return 0
        other_waiting_messages = max(0, self.waiting_messages - 1)
        return (
            other_waiting_messages
            if self.maximum_good_messages_at_change is None
            else min(other_waiting_messages, self.maximum_good_messages_at_change)
        )

    @property
    def can_good_messages_move_to_dlq(self) -> bool:
        """True if good messages can move too: consumers receive more than one message at once."""
        return self.largest_batch_size > 1


def make_good_message_bounds(facts: Facts) -> GoodMessageBounds:
    """Return upper bounds on the good messages that move to the DLQ with the failing ones.

    The batch size of Lambda mappings lowers the bounds only if all mappings of the queue are
    enabled, and unchanged since the oldest message was sent: receives with an earlier, larger batch
    size count too.
    """
    measurement = facts.measurement
    waiting_messages = facts.visible + facts.in_flight
    groups_in_flight = None
    if measurement is not None:
        waiting_messages = max(
            waiting_messages, measurement.now.visible + measurement.now.in_flight
        )
        # CloudWatch reports 0 between two receives, also if groups are blocked.
        groups_in_flight = measurement.now.groups_in_flight or None
    return GoodMessageBounds(waiting_messages, _find_largest_batch_size(facts), groups_in_flight)


def _find_largest_batch_size(facts: Facts) -> int:
    """Return the largest batch in which the waiting messages may have been received."""
    measurement, consumers = facts.measurement, facts.lambda_consumers
    if measurement is None or not consumers or facts.stopped_consumers:
        return MOST_MESSAGES_PER_BATCH
    oldest_sent_at = measurement.until - timedelta(seconds=measurement.now.oldest_age_seconds)
    for consumer in consumers:
        if consumer.modified_at is None or consumer.modified_at >= oldest_sent_at:
            return MOST_MESSAGES_PER_BATCH
    return min(MOST_MESSAGES_PER_BATCH, max(consumer.batch_size for consumer in consumers))


def describe_good_messages(facts: Facts) -> str:
    """Return a text that says how many good messages may move to the DLQ, and why.

    If good messages may move, the text also has the command that sends them back.
    """
    bounds = make_good_message_bounds(facts)
    if not bounds.can_good_messages_move_to_dlq:
        return (
            "Its function takes one message at a time, so no good message moves to the DLQ with it"
        )
    wait_verb = "waits" if bounds.waiting_messages == 1 else "wait"
    return (
        f"Up to {format_count(bounds.maximum_good_messages_now, 'good message')} would move to the "
        f"DLQ with the failing one ({bounds.waiting_messages:,} {wait_verb} "
        f"now{_describe_bound_growth(bounds)}): SQS hands out up to {bounds.largest_batch_size} of "
        "a group together and counts the receive for each, whatever maxReceiveCount is. "
        f"`{redrive_all_but_first_command(facts.queue_arn)}` then sends them back in order, "
        "without the failing one"
    )


def describe_possible_loss(facts: Facts) -> str:
    """Return a text that says how many good messages a failing one would take to the DLQ.

    The text is for a queue in which no message is known to fail yet.
    """
    largest_batch_size = _find_largest_batch_size(facts)
    if largest_batch_size == 1:
        return "Its function takes one message at a time, so what fails moves to the DLQ alone"
    good_messages_text = format_count(largest_batch_size - 1, "good message")
    return (
        f"A message that fails takes up to {good_messages_text} of its group along: SQS hands out "
        f"up to {largest_batch_size} of a group together and counts the receive for each. "
        f"`{redrive_all_but_first_command(facts.queue_arn)}` then sends them back in order, "
        "without the failing one"
    )


def require_approval(plan_or_refusal: Plan | Refusal) -> Plan | Refusal:
    """Return a copy of the plan that a person must approve in every mode.

    Good messages may move to the DLQ, so a person must decide. A refusal is returned unchanged.
    """
    if isinstance(plan_or_refusal, Refusal):
        return plan_or_refusal
    return replace(plan_or_refusal, highest_mode=min(plan_or_refusal.highest_mode, Mode.PROPOSE))


def _describe_bound_growth(bounds: GoodMessageBounds) -> str:
    """Return the end of a sentence: how many good messages may move if more messages arrive.

    The text is empty if that number is not known, or not larger than now.
    """
    if (
        bounds.maximum_good_messages_at_change is None
        or bounds.maximum_good_messages_at_change <= bounds.maximum_good_messages_now
    ):
        return ""
    return f"; up to {bounds.maximum_good_messages_at_change:,} if more messages arrive"


def make_good_messages_section(facts: Facts) -> tuple[Section, ...]:
    """Return the section about good messages: why this bound, and what to do before and after.

    Empty if no good message can move to the DLQ.
    """
    bounds = make_good_message_bounds(facts)
    if not bounds.can_good_messages_move_to_dlq:
        return ()
    messages_per_group_text = (
        f"at most {bounds.largest_batch_size - 1} per group, because a batch has at most "
        f"{bounds.largest_batch_size}"
    )
    groups_in_flight_text = "the number of groups in flight is not known"
    if bounds.groups_in_flight is not None:
        groups_in_flight_text = f"{format_count(bounds.groups_in_flight, 'group')} in flight"
    waiting_text = format_count(bounds.waiting_messages, "message")
    groups_and_waiting_text = f"{groups_in_flight_text}, {waiting_text} waiting"
    section_lines = [
        f"an upper bound: {messages_per_group_text}; {groups_and_waiting_text}",
        "before: the failing message comes first in its group only if your consumer deletes the",
        "messages that it finished before. If it deletes only whole batches, set batch size 1:",
    ]
    section_lines += [
        _make_batch_size_line(facts, consumer) for consumer in list_whole_batch_consumers(facts)
    ]
    section_lines += [
        "after: send the good messages back. The command shows which one stays, and asks:"
    ]
    section_lines += [command_or_note(redrive_all_but_first_command(facts.queue_arn))]
    return (Section("GOOD MESSAGES MOVE ALONG", tuple(section_lines), can_be_cut=False),)


def list_whole_batch_consumers(facts: Facts) -> list[LambdaConsumer]:
    """Return the functions whose mapping returns the whole batch to SQS if one message fails."""
    return [
        consumer
        for consumer in facts.lambda_consumers
        if consumer.batch_size > 1 and not consumer.reports_item_failures
    ]


def _make_batch_size_line(facts: Facts, consumer: LambdaConsumer) -> str:
    """Return the command that sets the mapping's batch size to 1, or why Lambda would refuse it."""
    change = MappingChange(facts, consumer, replace(consumer, batch_size=1))
    if change.refusal:
        return f"Lambda refuses that for {to_plain_text(consumer.name, 64)}: {change.refusal}"
    return command_or_note(change.command)
