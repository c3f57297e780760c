"""What a page takes of whichever severity, as any run sends one that another has left unsent."""

from __future__ import annotations

from dataclasses import replace

from mendq.notifications.sent import NotificationRecord, NotificationText
from tests.heal.conftest import moto_account
from tests.heal.operators import context_of
from tests.infra.aws_calls import Recorded


def page_everybody(recorded: Recorded) -> None:
    """One page to each topic."""
    with moto_account() as account:
        notifier = context_of(replace(account, clients=recorded.clients)).notifier
        for urgent, severity in ((True, "urgent"), (False, "info")):
            page = NotificationText(f"orders: {severity}", "any")
            record = NotificationRecord.after(None, severity, page, urgent=urgent, at=account.now)
            assert notifier.send("orders", severity, record)
            assert len(account.pages(severity)) == 1
