"""Find the queue that a redrive takes messages from and the queue that it sends them to.

The functions also check that the messages may be sent there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from threading import Event

from botocore.exceptions import ClientError
from msgspec import Struct

from mendq.aws.dlqs import NO_TASKS_CODES, list_source_arns
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs, code_of
from mendq.aws.queue import queue_url, tags_of
from mendq.catalogue.dlq.redrive_causes import (
    READ,
    REDRIVE_TAG,
    describe_needed_grants,
    is_redrive_off,
)
from mendq.cli.account import Account
from mendq.cli.commands import DLQ_ACTIONS, SEND_BACK_ACTIONS
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import describe_error
from mendq.cli.queues import find_queue, resolve_queue_arn
from mendq.cli.redrive.hold import require_no_redrive
from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import Facts
from mendq.model.failed_call import canonical_code
from mendq.model.queue import (
    FIFO,
    QUARANTINE_SUFFIX,
    arn_of_name,
    is_quarantine,
    parse_redrive_policy,
    parts_of,
    why_unfit_as_dlq,
)
from mendq.model.steps import RedriveMessages
from mendq.redrive.messages import Message, read_quarantine_mark
from mendq.redrive.mover import MessageMover
from mendq.redrive.reads import is_move_task_running
from mendq.redrive.store import RedriveStore


class Route(Struct, frozen=True):
    """The queue with the messages, and the queue (`source`) that they are sent to.

    Both are the same queue if the messages are deleted or only looked at.
    """

    messages: Facts
    source: Facts
    # ARNs of further queues whose DLQ `messages` is.
    others: tuple[str, ...] = ()
    # ARN of the source's DLQ, empty if it has none. It is claimed during the work, because a
    # redrive of Mendq's would count returning messages as its own.
    dlq_arn: str = ""
    # Returns the ARN of the queue in which a message died, None if it is not known.
    died_in: Callable[[Message], str | None] = attrgetter("source_arn")
    # True if `source` replaces the queue in which the messages died (--to).
    is_replacement: bool = False

    @property
    def is_deletion(self) -> bool:
        """True if messages are not sent: they are deleted or only looked at."""
        return self.messages.queue_arn == self.source.queue_arn

    def count_hidden(self, seen: int) -> int:
        """Return how many messages other consumers hold, if `seen` messages were received here.

        SQS's numbers are older than the receives: messages seen beyond the visible ones were in
        flight when SQS counted.
        """
        return max(0, self.messages.in_flight - max(0, seen - self.messages.visible))

    def make_mover(self, account: Account, stop: Event) -> MessageMover:
        """Return a mover for the messages. It opens no more FIFO groups once `stop` is set.

        Without this, an interrupt would wait for minutes if there are thousands of groups.
        """
        url = queue_url(account.clients, self.messages.queue_arn)
        return MessageMover(account.clients.sqs, url, may_open_groups=lambda: not stop.is_set())

    def require_same(self, now: Route) -> None:
        """Raise CommandError if the queues have changed since the operator agreed."""
        if self._queue_arns != now._queue_arns:
            line = f"{self.source.name} has other DLQ messages, or shares them, since you agreed"
            raise CommandError(
                f"{line}: nothing was moved; look again", error_code="queues_changed"
            )

    @property
    def _queue_arns(self) -> tuple[object, ...]:
        return (self.messages.queue_arn, self.source.queue_arn, self.others, self.dlq_arn)


def require_redrivable(account: Account, arn: str) -> Facts:
    """Return the queue. Raises CommandError if there is none, or if its tag forbids redrives."""
    queue = find_queue(account, arn)
    if queue is None:
        line = "of a source that was deleted, name the DLQ: `mendq redrive DLQ --to OTHER`"
        raise CommandError(f"there is no queue {arn}; {line}", Exit.NOT_FOUND)
    if is_redrive_off(tags_of(account.clients, arn) or {}):
        line = f"the tag {REDRIVE_TAG} of {queue.name} forbids it: set it to on, or take it off"
        raise CommandError(line, error_code="redrive_off")
    return queue


def route_from(account: Account, source_arn: str) -> Route:
    """Return the route from the source's DLQ back to the source.

    Raises CommandError if it has no DLQ, or if this command may not send its messages back.
    """
    source = require_redrivable(account, source_arn)
    messages = require_redrivable(account, _find_dlq_arn(account, source))
    require_no_redrive_policy(messages)
    dlq_arn = messages.queue_arn
    require_idle(account, dlq_arn)
    others = set(list_source_arns(account.clients, dlq_arn)) - {source_arn}
    return Route(messages, source, tuple(sorted(others)), dlq_arn)


def _find_dlq_arn(account: Account, source: Facts) -> str:
    """Return the ARN of the source's DLQ. Raises CommandError with a remedy if it has none."""
    if source.dlq_arn:
        return source.dlq_arn
    source_arns = list_source_arns(account.clients, source.queue_arn)
    if source_arns:
        line = f"it is one itself, so name its source, {parts_of(source_arns[0]).name}"
        raise CommandError(f"{source.name} has no DLQ: {line}", Exit.USAGE)
    line = f"{source.name} has no DLQ: name the queue that the messages died in"
    raise CommandError(line, Exit.NOT_FOUND)


def route_to(account: Account, named: str, other: str, died_in: str | None) -> Route:
    """Return the route from a DLQ to another queue than the messages' source (--to).

    Args:
        named: the DLQ or its source, as the operator gave it.
        other: the queue to send to.
        died_in: the source whose messages are sent (--from). None means: the messages whose source
            was deleted.

    Raises CommandError if the messages' own source exists and is not named, or if the other queue
    cannot take the messages or has no consumers.
    """
    queue = require_redrivable(account, resolve_queue_arn(account, named))
    instead = require_redrivable(account, resolve_queue_arn(account, other))
    redrive_policy = parse_redrive_policy(queue.attributes.get("RedrivePolicy", ""))
    if redrive_policy and died_in is None:
        line = f"{queue.name} is there: without --to its messages go back to it, and with --from "
        raise CommandError(f"{line}{queue.name} they go to {instead.name} all the same", Exit.USAGE)
    messages = queue
    if redrive_policy:
        messages = require_redrivable(account, redrive_policy.dlq_arn)
    require_no_redrive_policy(messages)
    unfit = why_unfit_as_dlq(instead.queue_arn, messages.queue_arn)
    if is_quarantine(instead.name) or list_source_arns(account.clients, instead.queue_arn):
        unfit = "it is a DLQ or a quarantine, which nobody consumes"
    if unfit:
        raise CommandError(f"messages of {messages.name} cannot go to {instead.name}: {unfit}")
    for arn in {messages.queue_arn, instead.dlq_arn or messages.queue_arn}:
        require_idle(account, arn)
    # An empty --from names no queue. It must not mean the messages of every source.
    only = None if died_in is None else resolve_queue_arn(account, died_in)
    find_source = (
        _find_quarantined_source if is_quarantine(messages.name) else attrgetter("source_arn")
    )

    @cache
    def may_go(arn: str) -> bool:
        """Return True if messages that died in that queue may go.

        A message stays if its mark names a queue that cannot have been its source.
        """
        if only or why_unfit_as_dlq(messages.queue_arn, arn):
            return arn == only
        return find_queue(account, arn) is None

    def find_source_or_instead(message: Message) -> str:
        """Return the queue in which the message died, or the other queue if the message may go."""
        arn = find_source(message) or ""
        return instead.queue_arn if may_go(arn) else arn

    others = set(list_source_arns(account.clients, messages.queue_arn)) - {instead.queue_arn}
    return Route(
        messages,
        instead,
        tuple(sorted(others)),
        messages.queue_arn,
        find_source_or_instead,
        is_replacement=True,
    )


def find_quarantine(account: Account, named: str) -> Facts:
    """Return the quarantine of a queue, or the queue itself if it is a quarantine.

    Raises CommandError if there is none, or if looking at its messages would move them to a DLQ.
    """
    named_arn = resolve_queue_arn(account, named)
    arn = named_arn
    if not is_quarantine(parts_of(named_arn).name):
        arn = arn_of_quarantine(named_arn)
    quarantine = find_queue(account, arn)
    if quarantine:
        require_no_redrive_policy(quarantine)
        return quarantine
    line = f"there is no queue {parts_of(arn).name}: it is made when a message comes back; "
    line += "`mendq quarantine list` shows the quarantines that there are"
    raise CommandError(line, Exit.NOT_FOUND)


def route_out_of(account: Account, named: str) -> Route:
    """Return the route from a quarantine back to its source.

    Raises CommandError if one of the two queues is missing or its tag forbids redrives. Also raises
    it while Mendq sends back the source's DLQ messages: if a message fails again, nobody could say
    if it came from the DLQ or from the quarantine.
    """
    messages = find_quarantine(account, named)
    arn = resolve_queue_arn(account, named)
    source_arn = _source_arn_of(arn) if arn == messages.queue_arn else arn
    source = require_redrivable(account, source_arn)
    dlq_arn = source.dlq_arn or ""
    if dlq_arn:
        require_idle(account, dlq_arn)
    messages = require_redrivable(account, messages.queue_arn)
    return Route(messages, source, dlq_arn=dlq_arn, died_in=_find_quarantined_source)


def _find_quarantined_source(message: Message) -> str | None:
    """Return the ARN of the queue that the message's quarantine mark names. None without a mark."""
    reason = read_quarantine_mark(message)
    return None if reason is None else reason.source


def _source_arn_of(quarantine_arn: str) -> str:
    """Return the ARN of the queue from whose name the quarantine's name was made.

    Raises CommandError if the name was cut, so that it does not tell the source's whole name.
    """
    arn = parts_of(quarantine_arn)
    ending = FIFO if arn.name.endswith(FIFO) else ""
    base = arn.name.removesuffix(FIFO).removesuffix(QUARANTINE_SUFFIX)
    source_arn = arn_of_name(f"{base}{ending}", arn.region, arn.account)
    if source_arn is None or arn_of_quarantine(source_arn) != quarantine_arn:
        raise CommandError(f"{arn.name} does not tell its source: name the source", Exit.USAGE)
    return source_arn


def require_no_redrive_policy(messages: Facts) -> None:
    """Raise CommandError if the queue has a DLQ of its own.

    Looking at a message is receiving it, and SQS moves a message that is received too often to the
    queue's DLQ.
    """
    redrive_policy = parse_redrive_policy(messages.attributes.get("RedrivePolicy", ""))
    if redrive_policy:
        times = f"where SQS moves what is looked at {redrive_policy.max_receive_count} times"
        line = f"{messages.name} has a DLQ of its own, {times}: take its RedrivePolicy off first"
        raise CommandError(line, error_code="dlq_of_dlq")


def require_idle(account: Account, dlq_arn: str) -> None:
    """Raise CommandError if a redrive of Mendq's or a message movement task moves the messages."""
    redrives = account.open_store_if_deployed(RedriveStore)
    if redrives:
        require_no_redrive(redrives.read_newest_progress(dlq_arn))
    # SQS may not call a queue a DLQ that no source names any more. Then it has no tasks.
    if is_move_task_running(account.clients, dlq_arn, NO_TASKS_CODES):
        listing = f"aws sqs list-message-move-tasks --source-arn {dlq_arn}"
        line = f"a message movement task runs on {parts_of(dlq_arn).name}: wait, or end it"
        end = "`aws sqs cancel-message-move-task --task-handle HANDLE`"
        raise CommandError(
            f"{line}: {end}, which `{listing}` tells", error_code="move_task_running"
        )


def find_remedy(code: str, message: str, route: Route) -> str:
    """Return which rights are missing, for an error that SQS gave. Empty if it is not known.

    `code` is the canonical error code.
    """
    if code.startswith("Kms") or "kms:" in message:
        return describe_needed_grants("whoever redrives", route.messages, route.source) or (
            f"whoever redrives needs {READ} on the key that the messages were encrypted with"
        )
    if code == "AccessDenied":
        sending = RedriveMessages.iam_action
        reading = ", ".join(sorted((SEND_BACK_ACTIONS | DLQ_ACTIONS) - {sending}))
        return f"it takes {reading} on {route.messages.name}, and {sending} on {route.source.name}"
    return ""


@contextmanager
def explain_refusals(route: Route) -> Iterator[None]:
    """Turn FactsUnavailable and QueueRefusesUs in the block into CommandError, if AWS caused them.

    The message has a remedy if one is known. Errors without a ClientError as their cause are raised
    unchanged, and so is a ClientError itself.
    """
    try:
        yield
    except (FactsUnavailable, QueueRefusesUs) as error:
        cause = error.__cause__
        if not isinstance(cause, ClientError):
            raise
        code = code_of(cause)
        text = describe_error(error)
        remedy = find_remedy(canonical_code(code), text, route)
        raise CommandError(f"{text}; {remedy}" if remedy else text, error_code=code) from error
