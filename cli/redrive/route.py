"""From which queue messages go to which, what stands in the way, and which grant is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from botocore.exceptions import ClientError

from cli.account import Account
from cli.exit_codes import Exit, Stopped
from cli.redrive.hold import course_ledger, under_way
from functions.aws.dead_letters_look import source_arns_of
from functions.aws.errors import FactsUnavailable, QueueGone, QueueRefusesUs, code_of
from functions.aws.queue_look import attributes_of, queue_url, tags_of
from functions.aws.redrive_looks import move_task_runs
from functions.aws.send_batches import MOST_BYTES, Destination
from functions.healing.dead_letters import redrive_of
from functions.healing.denials import RefusedBy, refused_by
from functions.healing.error_codes import canonical
from functions.healing.marks import hopped
from functions.healing.queue_kinds import on_fifo
from functions.healing.queue_names import arn_of, parts_of
from functions.healing.redrive_consent import (
    READ,
    REDRIVE_TAG,
    key_grants,
    key_sentence,
    redrive_is_off,
)


@dataclass(frozen=True)
class Queue:
    """A queue and what SQS says of it now."""

    arn: str
    url: str
    attributes: Mapping[str, str]

    @property
    def name(self) -> str:
        return parts_of(self.arn).name

    @property
    def waiting(self) -> int:
        return int(self.attributes.get("ApproximateNumberOfMessages", "0"))

    @property
    def in_flight(self) -> int:
        """Hidden, because somebody has received them."""
        return int(self.attributes.get("ApproximateNumberOfMessagesNotVisible", "0"))

    @property
    def is_fifo(self) -> bool:
        return on_fifo(self.arn)

    def unseen(self, seen: int) -> int:
        """Of letters in somebody else's hand how many are not among those that were `seen`.

        SQS's counts lag: what is seen beyond them was in flight when they were made.
        """
        return max(0, self.in_flight - max(0, seen - self.waiting))


@dataclass(frozen=True)
class Route:
    """`others` are further queues whose letters die into `letters`.

    `dead_letter_arn` is where letters lie that die in the source, empty where that has none: a
    redrive of Mendq's would take for its own what goes back now.
    """

    letters: Queue
    source: Queue
    others: tuple[str, ...] = ()
    dead_letter_arn: str = ""

    @property
    def leads_nowhere(self) -> bool:
        """Where letters are not sent, but deleted."""
        return self.letters.arn == self.source.arn

    def destination(self, run_id: str) -> Destination:
        """The source, for letters that say how often they were sent back."""
        most = int(self.source.attributes.get("MaximumMessageSize", MOST_BYTES))
        return Destination(self.source.arn, self.source.url, run_id, hopped, most)

    def require_same(self, now: Route) -> None:
        """Stopped where letters would not go any more from where and to where somebody agreed."""
        if self._ways != now._ways:
            raise Stopped(
                f"{self.source.name} has other dead letters, or shares them with other queues, "
                "since you were asked: nothing was moved; look again",
                word="queues_changed",
            )

    @property
    def _ways(self) -> tuple[object, ...]:
        return self.letters.arn, self.source.arn, self.others, self.dead_letter_arn


def queue_of(account: Account, arn: str) -> Queue:
    """Stopped where there is none."""
    try:
        attributes = attributes_of(account.clients, arn)
    except QueueGone as gone:
        raise Stopped(f"there is no queue {arn}", Exit.NOT_FOUND) from gone
    return Queue(arn, queue_url(account.clients, arn), attributes)


def movable(account: Account, arn: str) -> Queue:
    """Stopped where there is none, or where its tag forbids that letters are moved."""
    found = queue_of(account, arn)
    if redrive_is_off(tags_of(account.clients, arn) or {}):
        line = f"the tag {REDRIVE_TAG} of {found.name} forbids it: set it to on, or take it off"
        raise Stopped(line, word="redrive_off")
    return found


def route_from(account: Account, source_arn: str) -> Route:
    """Stopped where the queue has no dead letters that this command may send back."""
    source = movable(account, source_arn)
    letters = movable(account, _dead_letter_arn(account, source))
    require_last(letters)
    require_idle(account, letters.arn)
    others = set(source_arns_of(account.clients, letters.arn)) - {source_arn}
    return Route(letters, source, tuple(sorted(others)), letters.arn)


def _dead_letter_arn(account: Account, source: Queue) -> str:
    named = redrive_of(source.attributes.get("RedrivePolicy", ""))
    if named is None:
        of = source_arns_of(account.clients, source.arn)
        cure = (
            f"it is one itself, so name its source, {parts_of(of[0]).name}"
            if of
            else "nothing that fails in it is kept, and there is nothing to send back. Name the "
            "queue that the letters died in, or give this one a RedrivePolicy for those to come"
        )
        code = Exit.USAGE if of else Exit.NOT_FOUND
        raise Stopped(f"{source.name} has no dead-letter queue: {cure}", code)
    if arn_of(named.dead_letter_arn) is None:
        raise Stopped(f"the dead-letter queue of {source.name} is none: {named.dead_letter_arn}")
    return named.dead_letter_arn


def require_last(letters: Queue) -> None:
    """To look at a letter is to receive it, and what is received too often is moved on."""
    if onward := redrive_of(letters.attributes.get("RedrivePolicy", "")):
        raise Stopped(
            f"{letters.name} has a dead-letter queue of its own: SQS would move letters there, "
            f"because looking at one is a receive and {onward.max_receive_count} are allowed. Take "
            "its RedrivePolicy off first",
            word="dead_letters_of_dead_letters",
        )


def require_idle(account: Account, dead_letter_arn: str) -> None:
    """Stopped where somebody else moves the same letters: a course of Mendq's, or a move task."""
    ledger = course_ledger(account)
    if ledger is not None and (running := under_way(ledger.course_of(dead_letter_arn))):
        raise running
    if move_task_runs(account.clients, dead_letter_arn):
        listing = f"aws sqs list-message-move-tasks --source-arn {dead_letter_arn}"
        name = parts_of(dead_letter_arn).name
        raise Stopped(
            f"a message movement task of SQS's own runs on {name}: wait, or "
            f"end it: `{listing}` tells its TaskHandle, and "
            "`aws sqs cancel-message-move-task --task-handle HANDLE` takes that",
            word="move_task_running",
        )


_READS = (
    "ReceiveMessage, ChangeMessageVisibility, DeleteMessage, GetQueueAttributes, ListQueueTags, "
    "ListDeadLetterSourceQueues and ListMessageMoveTasks"
)
_PLACES = ("aws:SourceVpc", "aws:SourceVpce", "aws:SourceIp", "aws:VpcSourceIp")


def cure(code: str, message: str, route: Route) -> str:
    """What would let it through; empty where that is not known of this code (canonical)."""
    if code.startswith("Kms") or "kms:" in message:
        return _of_keys(route)
    if refused_by(code, message) is RefusedBy.RESOURCE_POLICY_DENIES and _is_of_a_place(route):
        return (
            "a queue's policy lets calls in only from certain networks: run this command there, or "
            "let that policy except the person who redrives"
        )
    if code == "AccessDenied":
        read, sent_to = route.letters.name, route.source.name
        return f"it takes {_READS} on {read}, and SendMessage on {sent_to}"
    return ""


@contextmanager
def with_cures(route: Route) -> Iterator[None]:
    """Raise Stopped where a queue could not be looked at."""
    try:
        yield
    except (FactsUnavailable, QueueRefusesUs) as error:
        cause = error.__cause__
        if not isinstance(cause, ClientError):
            raise
        code, message = code_of(cause), str(cause.response.get("Error", {}).get("Message", ""))
        said = " ".join(f"AWS refused {cause.operation_name}: {code}: {message}".split())
        helps = cure(canonical(code), message, route)
        raise Stopped(f"{said}; {helps}" if helps else said, word=code) from error


def _of_keys(route: Route) -> str:
    letters, source = route.letters, route.source
    found = key_grants(letters.arn, letters.attributes, source.arn, source.attributes)
    return key_sentence(found, "whoever redrives") or (
        f"whoever redrives needs {READ} on the key that the letters were encrypted with"
    )


def _is_of_a_place(route: Route) -> bool:
    policies = (each.attributes.get("Policy", "") for each in (route.letters, route.source))
    return any(place.lower() in text.lower() for text in policies for place in _PLACES)
