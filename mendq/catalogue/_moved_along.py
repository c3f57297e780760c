"""The good messages that a DLQ takes along with the message that blocks their FIFO group.

SQS returns up to ten messages of a group in one receive and counts the receive for each of them. No
other of the group is returned until these are deleted or visible again. So a message that always
fails comes with the same messages behind it, their receive counts rise together, and all of them
reach maxReceiveCount at once. No maxReceiveCount keeps them apart.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Mode
from mendq.model.plan import Plan, Refusal
from mendq.notifications.commands import aws_command, leaving_first
from mendq.notifications.text import Section, command_line, counted, plain

# What one ReceiveMessage returns at most, and the largest batch of a mapping on a FIFO queue.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
MOST_IN_A_BATCH = 10


@dataclass(frozen=True)
class MovedAlong:
    """Upper bounds on the good messages that reach the DLQ with the failing ones.

    `now` is for the `waiting` messages that wait or are in flight now. `later` is for the moment
    when the change is made: more messages may wait behind the failing one by then. None if the
    number of groups in flight is not known. `batch` is the largest batch that consumers receive.
    """

    waiting: int
    batch: int
    groups: int | None

    @property
    def later(self) -> int | None:
        return None if self.groups is None else self.groups * (self.batch - 1)

    @property
    def now(self) -> int:
        if self.batch == 1:
            return 0
        others = max(0, self.waiting - 1)
        return others if self.later is None else min(others, self.later)

    @property
    def is_possible(self) -> bool:
        """False if the failing message moves alone, whatever is sent until then."""
        return self.batch > 1


def count_moved_along(facts: Facts) -> MovedAlong:
    """Return how many good messages may move, from what is known of the queue and its consumers.

    The batches of a Lambda mapping bound it only if the mapping has been as it is for as long as
    the oldest message waits: earlier receives are counted too.
    """
    measured = facts.measured
    waiting = facts.visible + facts.in_flight
    groups = None
    if measured is not None:
        waiting = max(waiting, measured.now.visible + measured.now.in_flight)
        # 0 is read between two tries: it says nothing about how many are held up.
        groups = measured.now.groups_in_flight or None
    return MovedAlong(waiting, _largest_batch(facts), groups)


def _largest_batch(facts: Facts) -> int:
    measured, consumers = facts.measured, facts.lambda_consumers
    if measured is None or not consumers or facts.stopped_consumers:
        return MOST_IN_A_BATCH
    oldest_sent_at = measured.until - timedelta(seconds=measured.now.oldest_age_seconds)
    for consumer in consumers:
        if consumer.modified_at is None or consumer.modified_at >= oldest_sent_at:
            return MOST_IN_A_BATCH
    return min(MOST_IN_A_BATCH, max(consumer.batch_size for consumer in consumers))


def say_moved_along(facts: Facts) -> str:
    """Say in one sentence how many good messages may move, why, and how to send them back."""
    along = count_moved_along(facts)
    if not along.is_possible:
        return (
            "Its function takes one message at a time, so no good message moves to the DLQ with it"
        )
    waits = "waits" if along.waiting == 1 else "wait"
    return (
        f"Up to {counted(along.now, 'good message')} would move to the DLQ with the failing one "
        f"({along.waiting:,} {waits} now{_grows(along)}): SQS hands out up to {along.batch} of a "
        "group together and counts the receive for each, whatever maxReceiveCount is. "
        f"`{leaving_first(facts.queue_arn)}` then sends them back in order, without the failing one"
    )


def say_taken_along(facts: Facts) -> str:
    """Say the same of a queue of which nobody knows yet whether a message fails."""
    batch = _largest_batch(facts)
    if batch == 1:
        return "Its function takes one message at a time, so what fails moves to the DLQ alone"
    good = counted(batch - 1, "good message")
    return (
        f"A message that fails takes up to {good} of its group along: "
        f"SQS hands out up to {batch} of a group together and counts the receive for each. "
        f"`{leaving_first(facts.queue_arn)}` then sends them back in order, without the failing one"
    )


def ask_first(planned: Plan | Refusal) -> Plan | Refusal:
    """Have a person see the plan first, whatever the mode: good messages may move to the DLQ."""
    if isinstance(planned, Refusal):
        return planned
    return replace(planned, at_most=min(planned.at_most, Mode.PROPOSE))


def _grows(along: MovedAlong) -> str:
    if along.later is None or along.later <= along.now:
        return ""
    return f"; up to {along.later:,} once more do"


def section_of_good_messages(facts: Facts) -> tuple[Section, ...]:
    """The page's section about them: where the bound comes from, what to do before and after."""
    along = count_moved_along(facts)
    if not along.is_possible:
        return ()
    per_group = f"at most {along.batch - 1} of a group, as a batch has {along.batch} at most"
    groups = "the groups in flight are not known"
    if along.groups is not None:
        groups = f"{counted(along.groups, 'group')} in flight"
    lines = [
        f"an upper bound: {per_group}; {groups}, {counted(along.waiting, 'message')} waiting",
        "before: the first of a group is the failing one only if what was finished before it is",
        "deleted. If your consumer deletes a batch whole or not at all, set its batch size to 1:",
    ]
    lines += [_batch_of_one(facts, consumer) for consumer in whole_batch_consumers(facts)]
    lines += ["after: send the good ones back; it shows which message stays, and asks:"]
    lines += [command_line(leaving_first(facts.queue_arn))]
    return (Section("GOOD MESSAGES MOVE ALONG", tuple(lines), cut=False),)


def whole_batch_consumers(facts: Facts) -> list[LambdaConsumer]:
    """The functions whose mappings give a batch back whole if one message fails."""
    return [
        consumer
        for consumer in facts.lambda_consumers
        if consumer.batch_size > 1 and not consumer.reports_item_failures
    ]


def _batch_of_one(facts: Facts, consumer: LambdaConsumer) -> str:
    options = f"--uuid {plain(consumer.mapping_id, 64)} --batch-size 1"
    command = aws_command("lambda update-event-source-mapping", facts.queue_arn, options)
    return command_line(command)
