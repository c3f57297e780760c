"""From which queue messages go to which, what stands in the way, and which grant is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from threading import Event

from botocore.exceptions import ClientError
from msgspec import Struct

from mendq.aws.dlqs import NO_TASKS, list_source_arns
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs, code_of
from mendq.aws.queue import queue_url, tags_of
from mendq.catalogue.dlq.redrive_causes import (
    READ,
    REDRIVE_TAG,
    describe_needed_grants,
    is_redrive_off,
)
from mendq.cli.account import Account
from mendq.cli.commands import DLQ, RETURNING
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import describe_error
from mendq.cli.queues import find_queue, resolve_queue_arn
from mendq.cli.redrive.hold import require_over
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
from mendq.redrive.messages import Message, quarantine_reason
from mendq.redrive.mover import MessageMover
from mendq.redrive.reads import move_task_runs
from mendq.redrive.store import RedriveStore

_ways_of = attrgetter("messages.queue_arn", "source.queue_arn", "others", "dlq_arn")


class Route(Struct, frozen=True):
    """`others` are further queues whose messages die into `messages`.

    `dlq_arn` is where messages lie that die in the source, empty where that has none: a
    redrive of Mendq's would take for its own what goes back now. `died_in` says where a message
    failed, None where nobody knows. `takes_the_place` where messages go that died elsewhere.
    """

    messages: Facts
    source: Facts
    others: tuple[str, ...] = ()
    dlq_arn: str = ""
    died_in: Callable[[Message], str | None] = attrgetter("source_arn")
    takes_the_place: bool = False

    @property
    def leads_nowhere(self) -> bool:
        """Where messages are not sent, but deleted."""
        return self.messages.queue_arn == self.source.queue_arn

    def hidden(self, seen: int) -> int:
        """Messages in somebody else's hand, without those that were `seen`.

        SQS's counts lag: what is seen beyond them was in flight when they were made.
        """
        return max(0, self.messages.in_flight - max(0, seen - self.messages.visible))

    def mover(self, account: Account, stop: Event) -> MessageMover:
        """Opens no more FIFO groups once `stop` is set: thousands take minutes."""
        url = queue_url(account.clients, self.messages.queue_arn)
        return MessageMover(account.clients.sqs, url, may_open=lambda: not stop.is_set())

    def require_same(self, now: Route) -> None:
        """Raise CommandError where messages would not go any more from where and to where
        somebody agreed.
        """
        if _ways_of(self) != _ways_of(now):
            line = f"{self.source.name} has other DLQ messages, or shares them, since you agreed"
            raise CommandError(
                f"{line}: nothing was moved; look again", error_code="queues_changed"
            )


def movable(account: Account, arn: str) -> Facts:
    """CommandError where there is none, or where its tag forbids that messages are moved."""
    found = find_queue(account, arn)
    if found is None:
        line = "of a source that was deleted, name the DLQ: `mendq redrive DLQ --to OTHER`"
        raise CommandError(f"there is no queue {arn}; {line}", Exit.NOT_FOUND)
    if is_redrive_off(tags_of(account.clients, arn) or {}):
        line = f"the tag {REDRIVE_TAG} of {found.name} forbids it: set it to on, or take it off"
        raise CommandError(line, error_code="redrive_off")
    return found


def route_from(account: Account, source_arn: str) -> Route:
    """CommandError where the queue has no DLQ messages that this command may send back."""
    source = movable(account, source_arn)
    messages = movable(account, _dlq_arn(account, source))
    require_last(messages)
    dlq_arn = messages.queue_arn
    require_idle(account, dlq_arn)
    others = set(list_source_arns(account.clients, dlq_arn)) - {source_arn}
    return Route(messages, source, tuple(sorted(others)), dlq_arn)


def _dlq_arn(account: Account, source: Facts) -> str:
    if source.dlq_arn:
        return source.dlq_arn
    if of := list_source_arns(account.clients, source.queue_arn):
        line = f"it is one itself, so name its source, {parts_of(of[0]).name}"
        raise CommandError(f"{source.name} has no DLQ: {line}", Exit.USAGE)
    line = f"{source.name} has no DLQ: name the queue that the messages died in"
    raise CommandError(line, Exit.NOT_FOUND)


def route_to(account: Account, named: str, other: str, died_in: str | None) -> Route:
    """From a DLQ to a queue that takes the place of a source that is gone, or that is `died_in`.

    CommandError where the messages' own source is there and nobody has named it, or where what is
    sent there would not be consumed, or not be taken.
    """
    queue, instead = (movable(account, resolve_queue_arn(account, each)) for each in (named, other))
    own = parse_redrive_policy(queue.attributes.get("RedrivePolicy", ""))
    if own and died_in is None:
        line = f"{queue.name} is there: without --to its messages go back to it, and with --from "
        raise CommandError(f"{line}{queue.name} they go to {instead.name} all the same", Exit.USAGE)
    messages = movable(account, own.dlq_arn) if own else queue
    require_last(messages)
    unfit = why_unfit_as_dlq(instead.queue_arn, messages.queue_arn)
    if is_quarantine(instead.name) or list_source_arns(account.clients, instead.queue_arn):
        unfit = "it is a DLQ or a quarantine, which nobody consumes"
    if unfit:
        raise CommandError(f"messages of {messages.name} cannot go to {instead.name}: {unfit}")
    for arn in {messages.queue_arn, instead.dlq_arn or messages.queue_arn}:
        require_idle(account, arn)
    # An empty --from names no queue. It must not mean the messages of every source.
    only = None if died_in is None else resolve_queue_arn(account, died_in)
    failed_in = _retained_for if is_quarantine(messages.name) else attrgetter("source_arn")

    @cache
    def goes(arn: str) -> bool:
        """Where a mark names what cannot have been its source, it stays."""
        if only or why_unfit_as_dlq(messages.queue_arn, arn):
            return arn == only
        return find_queue(account, arn) is None

    def where_from(message: Message) -> str:
        arn = failed_in(message) or ""
        return instead.queue_arn if goes(arn) else arn

    others = set(list_source_arns(account.clients, messages.queue_arn)) - {instead.queue_arn}
    return Route(messages, instead, tuple(sorted(others)), messages.queue_arn, where_from, True)


def quarantine_named(account: Account, named: str) -> Facts:
    """The quarantine of a queue, or the queue itself where that is one.

    CommandError where there is none, or where looking at its messages would move them on.
    """
    source_arn = resolve_queue_arn(account, named)
    is_one = is_quarantine(parts_of(source_arn).name)
    arn = source_arn if is_one else arn_of_quarantine(source_arn)
    if found := find_queue(account, arn):
        require_last(found)
        return found
    line = f"there is no queue {parts_of(arn).name}: it is made when a message comes back; "
    line += "`mendq quarantine list` shows the quarantines that there are"
    raise CommandError(line, Exit.NOT_FOUND)


def route_out_of(account: Account, named: str) -> Route:
    """From a quarantine to its source. CommandError where either is gone, or may not be moved out
    of.

    So it is while Mendq sends back the source's DLQ messages: one that died again after it was
    returned would be taken for one of these.
    """
    messages = quarantine_named(account, named)
    arn = resolve_queue_arn(account, named)
    source = movable(account, _source_of(arn) if arn == messages.queue_arn else arn)
    dlq_arn = source.dlq_arn or ""
    if dlq_arn:
        require_idle(account, dlq_arn)
    messages = movable(account, messages.queue_arn)
    return Route(messages, source, dlq_arn=dlq_arn, died_in=_retained_for)


def _retained_for(message: Message) -> str | None:
    """A message that was marked for another source stays."""
    retained = quarantine_reason(message)
    return None if retained is None else retained.source


def _source_of(quarantine_arn: str) -> str:
    """By the name; of one that had to be cut the source is to be named instead."""
    arn = parts_of(quarantine_arn)
    ending = FIFO if arn.name.endswith(FIFO) else ""
    base = arn.name.removesuffix(FIFO).removesuffix(QUARANTINE_SUFFIX)
    source_arn = arn_of_name(f"{base}{ending}", arn.region, arn.account)
    if source_arn is None or arn_of_quarantine(source_arn) != quarantine_arn:
        raise CommandError(f"{arn.name} does not tell its source: name the source", Exit.USAGE)
    return source_arn


def require_last(messages: Facts) -> None:
    """To look at a message is to receive it, and what is received too often is moved on."""
    if onward := parse_redrive_policy(messages.attributes.get("RedrivePolicy", "")):
        times = f"where SQS moves what is looked at {onward.max_receive_count} times"
        line = f"{messages.name} has a DLQ of its own, {times}: take its RedrivePolicy off first"
        raise CommandError(line, error_code="dlq_of_dlq")


def require_idle(account: Account, dlq_arn: str) -> None:
    """Raise CommandError where somebody else moves the same messages.

    Mendq's own redrive, or a move task.
    """
    if redrives := account.open_store_if_deployed(RedriveStore):
        require_over(redrives.newest(dlq_arn))
    # One that no source names any more may be no DLQ to SQS, and so have no tasks.
    if move_task_runs(account.clients, dlq_arn, NO_TASKS):
        listing = f"aws sqs list-message-move-tasks --source-arn {dlq_arn}"
        line = f"a message movement task runs on {parts_of(dlq_arn).name}: wait, or end it"
        end = "`aws sqs cancel-message-move-task --task-handle HANDLE`"
        raise CommandError(
            f"{line}: {end}, which `{listing}` tells", error_code="move_task_running"
        )


def remedy(code: str, message: str, route: Route) -> str:
    """What would let it through; empty where that is not known of this code (canonical)."""
    if code.startswith("Kms") or "kms:" in message:
        return describe_needed_grants("whoever redrives", route.messages, route.source) or (
            f"whoever redrives needs {READ} on the key that the messages were encrypted with"
        )
    if code == "AccessDenied":
        read, sent_to = route.messages.name, route.source.name
        sending = RedriveMessages.iam_action
        reading = ", ".join(sorted((RETURNING | DLQ) - {sending}))
        return f"it takes {reading} on {read}, and {sending} on {sent_to}"
    return ""


@contextmanager
def with_remedies(route: Route) -> Iterator[None]:
    """Raise CommandError where a queue could not be looked at."""
    try:
        yield
    except (FactsUnavailable, QueueRefusesUs) as error:
        cause = error.__cause__
        if not isinstance(cause, ClientError):
            raise
        code, said = code_of(cause), describe_error(error)
        helps = remedy(canonical_code(code), said, route)
        raise CommandError(f"{said}; {helps}" if helps else said, error_code=code) from error
