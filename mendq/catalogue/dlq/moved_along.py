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

from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.mode import Mode
from mendq.model.plan import Plan, Refusal
from mendq.notifications.commands import aws_command, leave_first_command
from mendq.notifications.text import Section, command_line, format_count, plain

# The most messages that one ReceiveMessage returns, and the largest Lambda batch of a FIFO queue.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
MOST_IN_A_BATCH = 10


@dataclass(frozen=True)
class MovedAlong:
    """Upper bounds on the good messages that reach the DLQ with the failing ones.

    `now` is the bound for the messages in the queue now; `waiting` counts them, in flight or not.
    `later` is the bound when the change is made, because more messages may wait by then. It is None
    if the number of `groups` in flight is not known. `batch` is the largest batch that consumers
    receive.
    """

    waiting: int
    batch: int
    groups: int | None

    @property
    def later(self) -> int | None:
        """Upper bound on the good messages that may move later; None if it is not known."""
        return None if self.groups is None else self.groups * (self.batch - 1)

    @property
    def now(self) -> int:
        """Upper bound on the good messages in the queue now that may move to the DLQ."""
        if self.batch == 1:
            return 0
        others = max(0, self.waiting - 1)
        return others if self.later is None else min(others, self.later)

    @property
    def is_possible(self) -> bool:
        """True unless consumers receive one message at a time: then the failing one moves alone."""
        return self.batch > 1


def count_moved_along(facts: Facts) -> MovedAlong:
    """Return upper bounds on the good messages that move to the DLQ with the failing ones.

    A Lambda mapping's batch size lowers the bound only if the mapping is unchanged since the oldest
    message was sent. Receives with an earlier, larger batch size count too.
    """
    measured = facts.measurement
    waiting = facts.visible + facts.in_flight
    groups = None
    if measured is not None:
        waiting = max(waiting, measured.now.visible + measured.now.in_flight)
        # CloudWatch reports 0 between two receives, also if groups are blocked.
        groups = measured.now.groups_in_flight or None
    return MovedAlong(waiting, _largest_batch(facts), groups)


def _largest_batch(facts: Facts) -> int:
    """Return the largest batch in which the waiting messages may have been received."""
    measured, consumers = facts.measurement, facts.lambda_consumers
    if measured is None or not consumers or facts.stopped_consumers:
        return MOST_IN_A_BATCH
    oldest_sent_at = measured.until - timedelta(seconds=measured.now.oldest_age_seconds)
    for consumer in consumers:
        if consumer.modified_at is None or consumer.modified_at >= oldest_sent_at:
            return MOST_IN_A_BATCH
    return min(MOST_IN_A_BATCH, max(consumer.batch_size for consumer in consumers))


def describe_moved_along(facts: Facts) -> str:
    """Return a text that says how many good messages may move to the DLQ, and why.

    It also has the command that sends them back.
    """
    along = count_moved_along(facts)
    if not along.is_possible:
        return (
            "Its function takes one message at a time, so no good message moves to the DLQ with it"
        )
    waits = "waits" if along.waiting == 1 else "wait"
    return (
        f"Up to {format_count(along.now, 'good message')} would move to the DLQ with the failing "
        f"one ({along.waiting:,} {waits} now{_describe_growth(along)}): SQS hands out up to "
        f"{along.batch} of a group together and counts the receive for each, whatever "
        "maxReceiveCount is. "
        f"`{leave_first_command(facts.queue_arn)}` then sends them back in order, without the "
        "failing one"
    )


def describe_taken_along(facts: Facts) -> str:
    """Return a text that says how many good messages a failing one would take to the DLQ.

    It is for a queue in which no message is known to fail yet.
    """
    batch = _largest_batch(facts)
    if batch == 1:
        return "Its function takes one message at a time, so what fails moves to the DLQ alone"
    good = format_count(batch - 1, "good message")
    return (
        f"A message that fails takes up to {good} of its group along: "
        f"SQS hands out up to {batch} of a group together and counts the receive for each. "
        f"`{leave_first_command(facts.queue_arn)}` then sends them back in order, without the "
        "failing one"
    )


def ask_first(planned: Plan | Refusal) -> Plan | Refusal:
    """Return the plan so that a person must approve it in every mode.

    Good messages may move to the DLQ, so a person must decide. A refusal is returned unchanged.
    """
    if isinstance(planned, Refusal):
        return planned
    return replace(planned, at_most=min(planned.at_most, Mode.PROPOSE))


def _describe_growth(along: MovedAlong) -> str:
    """Return the end of a sentence: how many good messages may move if more messages arrive.

    The text is empty if that is not more than now, or not known.
    """
    if along.later is None or along.later <= along.now:
        return ""
    return f"; up to {along.later:,} if more messages arrive"


def good_messages_section(facts: Facts) -> tuple[Section, ...]:
    """Return the section about good messages: why this bound, and what to do before and after."""
    along = count_moved_along(facts)
    if not along.is_possible:
        return ()
    per_group = f"at most {along.batch - 1} per group, because a batch has at most {along.batch}"
    groups = "the number of groups in flight is not known"
    if along.groups is not None:
        groups = f"{format_count(along.groups, 'group')} in flight"
    lines = [
        f"an upper bound: {per_group}; {groups}, {format_count(along.waiting, 'message')} waiting",
        "before: the failing message comes first in its group only if your consumer deletes the",
        "messages that it finished before. If it deletes only whole batches, set batch size 1:",
    ]
    lines += [_batch_of_one(facts, consumer) for consumer in whole_batch_consumers(facts)]
    lines += ["after: send the good messages back. The command shows which one stays, and asks:"]
    lines += [command_line(leave_first_command(facts.queue_arn))]
    return (Section("GOOD MESSAGES MOVE ALONG", tuple(lines), can_be_cut=False),)


def whole_batch_consumers(facts: Facts) -> list[LambdaConsumer]:
    """Return the functions whose mapping returns the whole batch to SQS if one message fails."""
    return [
        consumer
        for consumer in facts.lambda_consumers
        if consumer.batch_size > 1 and not consumer.reports_item_failures
    ]


def _batch_of_one(facts: Facts, consumer: LambdaConsumer) -> str:
    """Return the command that sets the mapping's batch size to 1."""
    options = f"--uuid {plain(consumer.mapping_id, 64)} --batch-size 1"
    command = aws_command("lambda update-event-source-mapping", facts.queue_arn, options)
    return command_line(command)
