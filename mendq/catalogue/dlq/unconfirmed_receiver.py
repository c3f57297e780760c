"""Refuse a queue that nobody has confirmed as a DLQ or a quarantine, and say how to confirm it."""

from __future__ import annotations

from mendq.model.plan import Escalate, Refusal
from mendq.model.queue import parse_queue_arn
from mendq.model.receiver import OtherSourceObjection, can_have_several_sources
from mendq.notifications.commands import (
    confirm_quarantine_command,
    confirm_queue_command,
    list_quarantines_command,
)


def refuse_unconfirmed_receiver(queue_arn: str, objection: str, source_arn: str = "") -> Refusal:
    """Return the refusal that asks a person to look at a queue and to confirm it.

    Args:
        queue_arn: The existing queue that would receive messages.
        objection: Why Mendq does not use it (`find_receiver_objection`).
        source_arn: The source of a quarantine; empty for a DLQ.
    """
    if isinstance(objection, OtherSourceObjection):
        remedy = advise_shorter_source_name(source_arn)
        reason = (
            f"the queue {queue_arn} exists, but {objection}. So Mendq sends none there. {remedy}"
        )
        return Escalate("receiver_unconfirmed", reason, list_quarantines_command(queue_arn))
    command = confirm_receiver_command(queue_arn, source_arn)
    reason = (
        f"the queue {queue_arn} exists, but {objection}. Anyone who may receive from it could read "
        "and delete messages that Mendq sends there, so Mendq sends none. See who can read it and "
        f"ask its owner. Then confirm it with `{command}`, or delete it if nobody needs it: Mendq "
        "then makes its own"
    )
    return Escalate("receiver_unconfirmed", reason, command)


def advise_shorter_source_name(source_arn: str) -> str:
    """Return what to do if the quarantine's name of this source is another source's already.

    It names no command that takes the quarantine from the other source: anyone who may create
    queues can choose a name for that.
    """
    source_name = parse_queue_arn(source_arn).name
    return (
        f"Leave the quarantine to that source, and replace {source_name} with a queue of a shorter "
        "name, if its messages need a quarantine"
    )


def confirm_receiver_command(queue_arn: str, source_arn: str) -> str:
    """Return the command that confirms a DLQ or a quarantine.

    It names the source of a quarantine whose name does not tell it, because it may have been cut.
    """
    if source_arn and can_have_several_sources(parse_queue_arn(queue_arn).name):
        return confirm_quarantine_command(queue_arn, source_arn)
    return confirm_queue_command(queue_arn)
