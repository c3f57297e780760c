"""Refuse a queue that nobody has confirmed as a DLQ or a quarantine, and say how to confirm it."""

from __future__ import annotations

from mendq.model.plan import Escalate, Refusal
from mendq.notifications.commands import confirm_queue_command


def refuse_unconfirmed_receiver(queue_arn: str, objection: str) -> Refusal:
    """Return the refusal that asks a person to look at a queue and to confirm it.

    Args:
        queue_arn: The existing queue that would receive messages.
        objection: Why Mendq does not use it (`find_receiver_objection`).
    """
    command = confirm_queue_command(queue_arn)
    reason = (
        f"there is a queue {queue_arn}, and {objection}. Whoever may receive from it could read "
        "and delete what Mendq would send there, so it gets no message. Look at it and confirm "
        f"it with `{command}`, or delete it: then Mendq makes its own"
    )
    return Escalate("receiver_unconfirmed", reason, command)
