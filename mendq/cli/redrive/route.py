"""Find the queue that a redrive takes messages from and the queue that it sends them to.

The functions also check that the messages may be sent there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event

from botocore.exceptions import ClientError
from msgspec import Struct, field

from mendq.aws.dlqs import ERROR_CODES_WITHOUT_MOVE_TASKS, list_source_arns
from mendq.aws.errors import (
    CaseStoreUnavailable,
    FactsUnavailable,
    QueueRefusesUs,
    error_code_of,
)
from mendq.aws.queue import queue_url, read_queue_tags
from mendq.cases.receivers import Receivers
from mendq.cases.seal_keys import SEAL_TABLE_OUTPUT, SealUse
from mendq.catalogue.dlq.redrive_causes import (
    KMS_READ_ACTION,
    REDRIVE_TAG,
    describe_needed_grants,
    is_redrive_off,
)
from mendq.catalogue.dlq.unconfirmed_receiver import (
    advise_shorter_source_name,
    confirm_receiver_command,
)
from mendq.cli.account import Account
from mendq.cli.commands import DLQ_ACTIONS, SEND_BACK_MESSAGES_ACTIONS
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import describe_error
from mendq.cli.queues import find_queue, resolve_queue_arn
from mendq.cli.redrive.hold import require_no_redrive
from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import Facts
from mendq.model.failed_call import make_canonical_error_code
from mendq.model.queue import (
    FIFO_SUFFIX,
    QUARANTINE_SUFFIX,
    arn_of_name,
    is_quarantine,
    parse_queue_arn,
    parse_redrive_policy,
    why_unfit_as_dlq,
)
from mendq.model.receiver import (
    OtherSourceObjection,
    can_have_several_sources,
    find_other_queue_objection,
    find_receiver_objection,
    find_source_objection,
)
from mendq.model.seal import SealKey
from mendq.model.steps import RedriveMessages
from mendq.notifications.commands import (
    make_aws_command,
    peek_quarantine_command,
    preview_quarantine_return_command,
)
from mendq.redrive.messages import Message, is_quarantine_mark_sealed, read_quarantine_mark
from mendq.redrive.mover import MessageMover
from mendq.redrive.reads import is_move_task_running
from mendq.redrive.store import RedriveStore


class SourceFinder(Struct, frozen=True):
    """Finds the queue in which a message failed: the queue that SQS names as its source."""

    def find_source_arn(self, message: Message) -> str | None:
        """Return the ARN of the queue in which the message failed. None if it is not known."""
        return message.source_arn

    def is_origin_proven(self, message: Message) -> bool:  # noqa: ARG002 - see the subclasses
        """Return True if it is certain who put the message into its queue.

        Here this is always True: SQS itself names the source of a DLQ's message.
        """
        return True


class QuarantineSourceFinder(SourceFinder, frozen=True):
    """Finds the queue in which a quarantined message failed, by the mark that Mendq put on it.

    Anyone who may send to the quarantine can write such a mark, so it counts only with its seal.
    """

    # The secret key of the seals. None if Mendq has sealed nothing for this quarantine.
    seal_key: SealKey | None

    def find_source_arn(self, message: Message) -> str | None:
        """Return the ARN of the queue that the quarantine mark names. None without a mark."""
        mark = read_quarantine_mark(message)
        return None if mark is None else mark.source

    def is_origin_proven(self, message: Message) -> bool:
        """Return True if the message's mark has a seal made with the quarantine's key."""
        return self.seal_key is not None and is_quarantine_mark_sealed(message, self.seal_key)


class ReplacingSourceFinder(SourceFinder, frozen=True):
    """Names the replacement queue (--to) as the source of all messages that may go there."""

    account: Account
    # ARNs of the queue with the messages, and of the queue that takes them.
    messages_queue_arn: str
    replacement_arn: str
    # ARN of the source whose messages may go (--from). None means: the messages of all sources that
    # were deleted.
    only_source_arn: str | None
    # Finds the queue in which a message really failed.
    real_source_finder: SourceFinder
    # Answers of `_may_go_to_replacement`, because each may take a call to AWS.
    may_go_to_replacement_by_source_arn: dict[str, bool] = field(default_factory=dict)

    def find_source_arn(self, message: Message) -> str:
        """Return the replacement's ARN if the message may go, otherwise its real source's ARN.

        Empty if the message may not go and its source is not known.
        """
        source_arn = self.real_source_finder.find_source_arn(message) or ""
        if source_arn not in self.may_go_to_replacement_by_source_arn:
            self.may_go_to_replacement_by_source_arn[source_arn] = self._may_go_to_replacement(
                source_arn
            )
        return (
            self.replacement_arn
            if self.may_go_to_replacement_by_source_arn[source_arn]
            else source_arn
        )

    def is_origin_proven(self, message: Message) -> bool:
        """Return the answer of `real_source_finder`."""
        return self.real_source_finder.is_origin_proven(message)

    def _may_go_to_replacement(self, source_arn: str) -> bool:
        """Return True if messages that failed in this queue may go to the replacement.

        With --from, only the messages of that queue may go. Without it, only those of deleted
        queues, and messages stay if the ARN is not that of a queue that could have this DLQ.
        """
        unfit_source_reason = why_unfit_as_dlq(self.messages_queue_arn, source_arn)
        if self.only_source_arn or unfit_source_reason:
            return source_arn == self.only_source_arn
        return find_queue(self.account, source_arn) is None


# A look receives this many messages more than SQS counted, or this share of them if that is more.
LEAST_LOOK_MARGIN = 100
LOOK_MARGIN_SHARE = 0.1


class Route(Struct, frozen=True):
    """The queue with the messages, and the queue (`source`) that they are sent to.

    Both are the same queue if the messages are deleted or only looked at.
    """

    messages_queue: Facts
    source: Facts
    # ARNs of further queues whose DLQ `messages_queue` is.
    other_source_arns: tuple[str, ...] = ()
    # ARN of the DLQ that is claimed during the work, because a redrive of Mendq's would count
    # returning messages as its own: the source's DLQ, or `messages_queue` with --to. Empty if the
    # source has no DLQ.
    dlq_arn: str = ""
    source_finder: SourceFinder = SourceFinder()
    # True if `source` replaces the queue in which the messages failed (--to).
    is_replacement: bool = False
    # True if messages may go that nothing proves to be Mendq's (--unsealed).
    takes_unsealed: bool = False

    @property
    def is_deletion(self) -> bool:
        """True if messages are not sent: they are deleted or only looked at."""
        return self.messages_queue.queue_arn == self.source.queue_arn

    @property
    def is_from_quarantine(self) -> bool:
        """True if messages are sent out of a quarantine."""
        return not self.is_deletion and is_quarantine(self.messages_queue.name)

    def find_source_arn(self, message: Message) -> str | None:
        """Return the ARN of the queue in which the message failed. None if it is not known.

        With --to this is the ARN of `source` for each message that may go there.
        """
        return self.source_finder.find_source_arn(message)

    def is_older_than_source(self, message: Message) -> bool:
        """Return True if the message failed in an earlier queue of the source's name.

        That queue may have belonged to another person, so such messages stay, as in Mendq's own
        redrives (`classify_messages`). With --to, the operator has named the queue that takes them.
        """
        if self.is_replacement or self.is_deletion:
            return False
        return self.source.is_created_after(message.sent_at)

    def count_hidden_messages(self, seen_count: int) -> int:
        """Return how many messages other consumers hold, after `seen_count` were received here.

        SQS counted before the receives. So if more messages were received than SQS counted as
        visible, the others were in flight at that time, and are not hidden any more.
        """
        seen_in_flight_count = max(0, seen_count - self.messages_queue.visible)
        return max(0, self.messages_queue.in_flight - seen_in_flight_count)

    @property
    def most_messages_to_look_at(self) -> int:
        """The most messages that one look receives: those that SQS counted, and a margin.

        Without this limit a look would not end while new messages keep coming. The margin is for
        messages that came shortly before, because SQS's counts are approximate.
        """
        attributes = self.messages_queue.attributes
        delayed_count = int(attributes.get("ApproximateNumberOfMessagesDelayed", "0"))
        counted = self.messages_queue.visible + self.messages_queue.in_flight + delayed_count
        return counted + max(LEAST_LOOK_MARGIN, int(counted * LOOK_MARGIN_SHARE))

    def make_mover(self, account: Account, stop_event: Event) -> MessageMover:
        """Return a mover for the messages. It opens no FIFO group after `stop_event` is set.

        Otherwise an interrupt would take minutes if there are thousands of groups.
        """
        messages_queue_url = queue_url(account.clients, self.messages_queue.queue_arn)
        return MessageMover(
            account.clients.sqs,
            messages_queue_url,
            may_open_groups=lambda: not stop_event.is_set(),
        )

    def require_same(self, current_route: Route) -> None:
        """Raise CommandError if the queues are other ones than the operator agreed to.

        Only the ARNs are compared, not the queues' attributes or tags.
        """
        if self._arns_of_all_queues != current_route._arns_of_all_queues:
            problem = f"{self.source.name} has other DLQ messages, or shares them, since you agreed"
            raise CommandError(
                f"{problem}: nothing was moved; look again", error_code="queues_changed"
            )

    @property
    def _arns_of_all_queues(self) -> tuple[object, ...]:
        return (
            self.messages_queue.queue_arn,
            self.source.queue_arn,
            self.other_source_arns,
            self.dlq_arn,
        )


def require_redrivable(account: Account, queue_arn: str) -> Facts:
    """Return the queue with its tags.

    Raises CommandError if there is no such queue, or if its tag forbids redrives.
    """
    queue = find_queue(account, queue_arn)
    if queue is None:
        problem = "of a source that was deleted, name the DLQ: `mendq redrive DLQ --to OTHER`"
        raise CommandError(f"there is no queue {queue_arn}; {problem}", Exit.NOT_FOUND)
    tags = read_queue_tags(account.clients, queue_arn) or {}
    if is_redrive_off(tags):
        problem = f"the tag {REDRIVE_TAG} of {queue.name} forbids it: set it to on, or take it off"
        raise CommandError(problem, error_code="redrive_off")
    return replace(queue, tags=tags)


def find_route_to_source(account: Account, source_arn: str) -> Route:
    """Return the route from the source's DLQ back to the source.

    Raises CommandError if a queue is missing or its tag forbids redrives, if the source has no DLQ,
    if the DLQ is a quarantine, if it has a DLQ of its own, or if its messages are being moved
    already.
    """
    source = require_redrivable(account, source_arn)
    messages_queue = require_redrivable(account, _find_dlq_arn(account, source))
    _require_no_quarantine(messages_queue, source)
    require_no_redrive_policy(messages_queue)
    dlq_arn = messages_queue.queue_arn
    require_no_running_redrive(account, dlq_arn)
    other_source_arns = set(list_source_arns(account.clients, dlq_arn)) - {source_arn}
    return Route(messages_queue, source, tuple(sorted(other_source_arns)), dlq_arn)


def _require_no_quarantine(dlq: Facts, source: Facts) -> None:
    """Raise CommandError if the source's DLQ is a quarantine.

    Any queue may name a quarantine as its DLQ. Mendq puts messages into a quarantine, and SQS does
    not say in which queue these failed. So they would go to the queue that names the quarantine,
    and nobody would check their seals.
    """
    if is_quarantine(dlq.name):
        command = preview_quarantine_return_command(dlq.queue_arn)
        problem = f"{source.name} names {dlq.name} as its DLQ, and that is a quarantine"
        reason = f"its messages may belong to another queue than {source.name}"
        remedy = f"see which go back to their own source with `{command}`"
        raise CommandError(
            f"{problem}: {reason}. Nothing was moved; {remedy}, and give {source.name} another DLQ",
            error_code="dlq_is_quarantine",
        )


def _find_dlq_arn(account: Account, source: Facts) -> str:
    """Return the ARN of the source's DLQ. Raises CommandError with a remedy if it has none."""
    if source.dlq_arn:
        return source.dlq_arn
    if is_quarantine(source.name):
        command = preview_quarantine_return_command(source.queue_arn)
        problem = f"{source.name} has no DLQ: it is a quarantine"
        raise CommandError(f"{problem}, so see what goes back with `{command}`", Exit.USAGE)
    source_arns = list_source_arns(account.clients, source.queue_arn)
    if source_arns:
        problem = f"it is one itself, so name its source, {parse_queue_arn(source_arns[0]).name}"
        raise CommandError(f"{source.name} has no DLQ: {problem}", Exit.USAGE)
    problem = f"{source.name} has no DLQ: name the queue that the messages died in"
    raise CommandError(problem, Exit.NOT_FOUND)


def find_route_to_replacement(
    account: Account,
    dlq_or_source: str,
    given_replacement: str,
    given_source: str | None,
    *,
    takes_unsealed: bool = False,
) -> Route:
    """Return the route from a DLQ to another queue than the messages' source (--to).

    Args:
        account: the account and region of the queues.
        dlq_or_source: the DLQ or its source, as the operator gave it.
        given_replacement: the queue to send to, as the operator gave it (--to).
        given_source: the source whose messages are sent (--from). None means: the messages whose
            source was deleted.
        takes_unsealed: True if messages of a quarantine may go without Mendq's seal (--unsealed).

    Raises CommandError in these cases:

    - `dlq_or_source` is a source, and there is no --from.
    - A queue is missing, or its tag forbids redrives.
    - The DLQ has a DLQ of its own.
    - The replacement is of another type than the DLQ, or is itself a DLQ or a quarantine.
    - Messages of one of the two queues' DLQs are being moved already.
    - The messages are in a quarantine that nobody confirmed, or that has changed since.
    - `takes_unsealed` is True, and the messages are in no quarantine.
    """
    queue = require_redrivable(account, resolve_queue_arn(account, dlq_or_source))
    replacement = require_redrivable(account, resolve_queue_arn(account, given_replacement))
    redrive_policy = parse_redrive_policy(queue.attributes.get("RedrivePolicy", ""))
    if redrive_policy and given_source is None:
        problem = f"{queue.name} is there: without --to its messages go back to it"
        remedy = f"with --from {queue.name} they go to {replacement.name} all the same"
        raise CommandError(f"{problem}, and {remedy}", Exit.USAGE)
    messages_queue = queue
    if redrive_policy:
        messages_queue = require_redrivable(account, redrive_policy.dlq_arn)
    require_no_redrive_policy(messages_queue)
    _require_fit_replacement(account, replacement, messages_queue)
    for dlq_arn in {messages_queue.queue_arn, replacement.dlq_arn or messages_queue.queue_arn}:
        require_no_running_redrive(account, dlq_arn)
    # An empty --from names no queue. It must not mean the messages of every source.
    only_source_arn = None if given_source is None else resolve_queue_arn(account, given_source)
    real_source_finder = SourceFinder()
    if is_quarantine(messages_queue.name):
        require_unchanged_quarantine(account, messages_queue)
        real_source_finder = require_quarantine_source_finder(
            account, messages_queue, takes_unsealed=takes_unsealed
        )
    elif takes_unsealed:
        problem = f"{messages_queue.name} is no quarantine: Mendq seals no message there"
        raise CommandError(f"{problem}; leave --unsealed out", Exit.USAGE)
    source_finder = ReplacingSourceFinder(
        account,
        messages_queue.queue_arn,
        replacement.queue_arn,
        only_source_arn,
        real_source_finder=real_source_finder,
    )
    source_arns = set(list_source_arns(account.clients, messages_queue.queue_arn))
    return Route(
        messages_queue,
        replacement,
        tuple(sorted(source_arns - {replacement.queue_arn})),
        messages_queue.queue_arn,
        source_finder,
        is_replacement=True,
        takes_unsealed=takes_unsealed,
    )


def _require_fit_replacement(account: Account, replacement: Facts, messages_queue: Facts) -> None:
    """Raise CommandError if the replacement cannot take the messages.

    It must be of the same type, and not a DLQ or a quarantine, which have no consumers.
    """
    unfit_replacement_reason = why_unfit_as_dlq(replacement.queue_arn, messages_queue.queue_arn)
    if is_quarantine(replacement.name) or list_source_arns(account.clients, replacement.queue_arn):
        unfit_replacement_reason = "it is a DLQ or a quarantine, which nobody consumes"
    if unfit_replacement_reason:
        problem = f"messages of {messages_queue.name} cannot go to {replacement.name}"
        raise CommandError(f"{problem}: {unfit_replacement_reason}")


def find_quarantine(account: Account, source_or_quarantine: str) -> Facts:
    """Return the quarantine of a queue, or the queue itself if it is a quarantine.

    Raises CommandError if there is none, or if looking at its messages would move them to a DLQ.
    """
    given_queue_arn = resolve_queue_arn(account, source_or_quarantine)
    quarantine_arn = given_queue_arn
    if not is_quarantine(parse_queue_arn(given_queue_arn).name):
        quarantine_arn = arn_of_quarantine(given_queue_arn)
    quarantine = find_queue(account, quarantine_arn)
    if quarantine:
        require_no_redrive_policy(quarantine)
        return quarantine
    problem = (
        f"there is no queue {parse_queue_arn(quarantine_arn).name}: it is made when a message "
        "comes back; "
    )
    problem += "`mendq quarantine list` shows the quarantines that there are"
    raise CommandError(problem, Exit.NOT_FOUND)


def find_given_source_arn(account: Account, source_or_quarantine: str) -> str:
    """Return the ARN of the source, as the operator gave it; empty if a quarantine was given."""
    given_queue_arn = resolve_queue_arn(account, source_or_quarantine)
    return "" if is_quarantine(parse_queue_arn(given_queue_arn).name) else given_queue_arn


def find_quarantine_objection(
    account: Account, quarantine: Facts, source_arn: str = ""
) -> str | None:
    """Return why a queue may not be a quarantine of Mendq's, in spite of its name; None if it is.

    `source_arn` is the source whose quarantine it should be, empty for any source.

    None also if Mendq is not deployed, because then nothing is recorded. The queue's policy and
    tags do not matter here: the command takes messages out of it.
    """
    receivers = account.open_store_if_deployed(Receivers)
    if receivers is None:
        return None
    receiver = receivers.load(quarantine.queue_arn)
    objection = find_other_queue_objection(receiver, quarantine)
    if objection or receiver is None:
        return objection
    return find_source_objection(receiver, source_arn)


def require_recorded_quarantine(account: Account, quarantine: Facts, source_arn: str) -> None:
    """Raise CommandError unless Mendq made the quarantine or a person confirmed it.

    Messages of any other queue must not be deleted as quarantined messages. Also raises it if the
    quarantine belongs to another source than `source_arn`. An empty `source_arn` stands for any
    source.
    """
    objection = find_quarantine_objection(account, quarantine, source_arn)
    _require_no_objection(quarantine, objection, source_arn)


def find_unchanged_quarantine_objection(
    account: Account, quarantine: Facts, source_arn: str = ""
) -> str | None:
    """Return why Mendq's own redrives send nothing to the quarantine now; None if they do.

    An empty `source_arn` stands for any source. `quarantine` must have its tags. None also if Mendq
    is not deployed, because then nothing is recorded.
    """
    receivers = account.open_store_if_deployed(Receivers)
    if receivers is None:
        return None
    receiver = receivers.load(quarantine.queue_arn)
    return find_receiver_objection(receiver, quarantine, source_arn)


def require_unchanged_quarantine(account: Account, quarantine: Facts, source_arn: str = "") -> None:
    """Raise CommandError if the quarantine is not on record for this source exactly as it is now.

    An empty `source_arn` stands for any source. This is the rule of Mendq's own redrives: a queue
    that was changed may let other people send to it, and their messages must not reach the source.
    `quarantine` must have its tags. Nothing is checked if Mendq is not deployed, because then
    nothing is recorded.
    """
    objection = find_unchanged_quarantine_objection(account, quarantine, source_arn)
    _require_no_objection(quarantine, objection, source_arn)


def require_quarantine_source_finder(
    account: Account, quarantine: Facts, *, takes_unsealed: bool
) -> QuarantineSourceFinder:
    """Return the finder for messages of a quarantine that are sent on.

    If the key of the seals cannot be read, no message counts as sealed with `takes_unsealed`;
    without it, raise CommandError with a remedy.
    """
    try:
        return make_quarantine_source_finder(account, quarantine)
    except CaseStoreUnavailable as error:
        if takes_unsealed:
            return QuarantineSourceFinder(None)
        peek_command = peek_quarantine_command(quarantine.queue_arn)
        problem = f"the key of Mendq's seals cannot be read: {describe_error(error)}"
        remedy = (
            f"you need dynamodb:GetItem on the stack's table {SEAL_TABLE_OUTPUT}. Or look at the "
            f"messages with `{peek_command}`; --unsealed sends them without that check"
        )
        raise CommandError(
            f"{problem}. Nothing was moved, because nothing shows who sent the messages; {remedy}"
        ) from error


def make_quarantine_source_finder(account: Account, quarantine: Facts) -> QuarantineSourceFinder:
    """Return the finder for messages of a quarantine, with the key of its seals.

    There is no key if Mendq is not deployed, or if its version there is too old to seal. Raises
    CaseStoreUnavailable if the key cannot be read.
    """
    seal_keys = account.open_seal_keys_if_deployed()
    if seal_keys is None:
        return QuarantineSourceFinder(None)
    return QuarantineSourceFinder(seal_keys.load(quarantine.queue_arn, SealUse.QUARANTINE))


def _require_no_objection(quarantine: Facts, objection: str | None, source_arn: str) -> None:
    """Raise CommandError with a remedy if there is an objection to the quarantine."""
    if isinstance(objection, OtherSourceObjection):
        remedy = advise_shorter_source_name(source_arn)
        raise CommandError(
            f"{quarantine.name}: {objection}. Nothing was moved or deleted. {remedy}",
            error_code="receiver_unconfirmed",
        )
    if objection:
        peek_command = peek_quarantine_command(quarantine.queue_arn)
        confirm_command = confirm_receiver_command(quarantine.queue_arn, source_arn)
        problem = f"{quarantine.name} may be another person's queue: {objection}"
        remedy = f"look at its messages with `{peek_command}`; if they are yours, "
        remedy += f"`{confirm_command}`"
        raise CommandError(
            f"{problem}. Nothing was moved or deleted; {remedy}", error_code="receiver_unconfirmed"
        )


def find_route_from_quarantine(
    account: Account, source_or_quarantine: str, *, takes_unsealed: bool = False
) -> Route:
    """Return the route from a quarantine back to its source.

    `takes_unsealed` is True if messages may go without a seal of Mendq (--unsealed).

    Raises CommandError if one of the two queues is missing, if its tag forbids redrives, if the
    quarantine is not on record as it is now (`require_unchanged_quarantine`), or if the given
    quarantine's name does not tell its source. Also raises it while the messages of the source's
    DLQ are being moved: if a message fails again, Mendq could not tell if it came from the DLQ or
    from the quarantine.
    """
    quarantine = find_quarantine(account, source_or_quarantine)
    quarantine = require_redrivable(account, quarantine.queue_arn)
    source_arn = find_given_source_arn(account, source_or_quarantine)
    source_arn = source_arn or find_source_of_quarantine(account, quarantine.queue_arn)
    require_unchanged_quarantine(account, quarantine, source_arn)
    source = require_redrivable(account, source_arn)
    dlq_arn = source.dlq_arn or ""
    if dlq_arn:
        require_no_running_redrive(account, dlq_arn)
    return Route(
        quarantine,
        source,
        dlq_arn=dlq_arn,
        source_finder=require_quarantine_source_finder(
            account, quarantine, takes_unsealed=takes_unsealed
        ),
        takes_unsealed=takes_unsealed,
    )


def find_source_of_quarantine(account: Account, quarantine_arn: str) -> str:
    """Return the ARN of a quarantine's source: from the case store's record, or else from the name.

    Raises CommandError if neither names the source.
    """
    receivers = account.open_store_if_deployed(Receivers)
    receiver = None if receivers is None else receivers.load(quarantine_arn)
    if receiver is not None and receiver.source_arn:
        return receiver.source_arn
    return derive_source_arn(quarantine_arn)


def derive_source_arn(quarantine_arn: str) -> str:
    """Derive the ARN of a quarantine's source from the name of the quarantine.

    Raises CommandError if the quarantine's name may have been cut: then it does not tell the
    source's whole name.
    """
    quarantine = parse_queue_arn(quarantine_arn)
    fifo_suffix = FIFO_SUFFIX if quarantine.name.endswith(FIFO_SUFFIX) else ""
    base_name = quarantine.name.removesuffix(FIFO_SUFFIX).removesuffix(QUARANTINE_SUFFIX)
    source_arn = arn_of_name(f"{base_name}{fifo_suffix}", quarantine.region, quarantine.account)
    if source_arn is None or can_have_several_sources(quarantine.name):
        raise CommandError(
            f"{quarantine.name} does not tell its source: name the source", Exit.USAGE
        )
    return source_arn


def require_no_redrive_policy(queue: Facts) -> None:
    """Raise CommandError if the queue has a DLQ of its own.

    To look at a message is to receive it, and SQS moves a message that is received too often to the
    queue's DLQ.
    """
    redrive_policy = parse_redrive_policy(queue.attributes.get("RedrivePolicy", ""))
    if redrive_policy:
        consequence_text = (
            f"where SQS moves what is looked at {redrive_policy.max_receive_count} times"
        )
        problem = f"{queue.name} has a DLQ of its own, {consequence_text}: "
        problem += "take its RedrivePolicy off first"
        raise CommandError(problem, error_code="dlq_of_dlq")


def require_no_running_redrive(account: Account, dlq_arn: str) -> None:
    """Raise CommandError if a redrive of Mendq or a task of SQS is moving the DLQ's messages."""
    redrive_store = account.open_store_if_deployed(RedriveStore)
    # A scan-only stack has no redrives. A run of an earlier whole stack that still works has
    # claimed the DLQ, so the claim of this command is refused (`hold_dlq`).
    if redrive_store and not account.is_scan_only:
        require_no_redrive(redrive_store.read_newest_progress(dlq_arn))
    # SQS may not call a queue a DLQ that no source names any more. Then it has no tasks.
    if is_move_task_running(account.clients, dlq_arn, ERROR_CODES_WITHOUT_MOVE_TASKS):
        list_command = make_aws_command(
            "sqs list-message-move-tasks", dlq_arn, f"--source-arn {dlq_arn}"
        )
        problem = (
            f"a message movement task runs on {parse_queue_arn(dlq_arn).name}: wait, or end it"
        )
        cancel_command = make_aws_command(
            "sqs cancel-message-move-task", dlq_arn, "--task-handle HANDLE"
        )
        raise CommandError(
            f"{problem}: `{cancel_command}`. For HANDLE, run `{list_command}`",
            error_code="move_task_running",
        )


def find_remedy(error_code: str, error_message: str, route: Route) -> str:
    """Return a sentence about the permissions that are missing after an error of SQS.

    Empty if the error is not about permissions. `error_code` is the canonical error code.
    """
    if error_code.startswith("Kms") or "kms:" in error_message:
        return describe_needed_grants("whoever redrives", route.messages_queue, route.source) or (
            f"whoever redrives needs {KMS_READ_ACTION} on the key that the messages were encrypted "
            "with"
        )
    if error_code == "AccessDenied":
        send_action = RedriveMessages.iam_action
        receive_actions = ", ".join(
            sorted((SEND_BACK_MESSAGES_ACTIONS | DLQ_ACTIONS) - {send_action})
        )
        source_name = route.source.name
        queue_name = route.messages_queue.name
        return f"it takes {receive_actions} on {queue_name}, and {send_action} on {source_name}"
    return ""


@contextmanager
def explain_refusals(route: Route) -> Iterator[None]:
    """Convert FactsUnavailable and QueueRefusesUs in the block to CommandError.

    The message has a remedy if one is known. Only errors that AWS returned are converted: their
    cause is a ClientError. If AWS did not answer, FactsUnavailable is raised unchanged. A
    ClientError itself is not converted either.
    """
    try:
        yield
    except (FactsUnavailable, QueueRefusesUs) as error:
        aws_error = error.__cause__
        if not isinstance(aws_error, ClientError):
            raise
        error_code = error_code_of(aws_error)
        error_text = describe_error(error)
        remedy = find_remedy(make_canonical_error_code(error_code), error_text, route)
        raise CommandError(
            f"{error_text}; {remedy}" if remedy else error_text, error_code=error_code
        ) from error
