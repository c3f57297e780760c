"""What a page takes of whichever severity, as any run sends one that another has left unsent."""

from __future__ import annotations

from dataclasses import replace

from functions.healing.page import Page
from functions.healing.page_record import PageRecord
from tests.functions.aws.conftest import moto_account
from tests.functions.aws.operators import desk_of
from tests.infra.aws_calls import Recorded


def page_everybody(recorded: Recorded) -> None:
    """One page to each topic."""
    with moto_account() as account:
        pager = desk_of(replace(account, clients=recorded.clients)).pager
        for urgent, severity in ((True, "urgent"), (False, "info")):
            page = Page(f"orders: {severity}", "any")
            record = PageRecord.after(None, severity, page, urgent=urgent, at=account.now)
            assert pager.send("orders", severity, record)
            assert len(account.pages(severity)) == 1
