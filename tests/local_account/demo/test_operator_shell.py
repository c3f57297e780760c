"""The command and the clock of a story, against a real account."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from local_account.demo.deployed_schedule import FOLLOW_UP, DeployedSchedule
from local_account.demo.operator_shell import OperatorShell
from local_account.process import LocalAccount

pytestmark = pytest.mark.account


def test_what_the_command_says_and_ends_with_is_what_is_shown(account: LocalAccount) -> None:
    done = OperatorShell(account, 80).mendq("show", "none-at-all")
    assert (done.line, done.code) == ("mendq show none-at-all", 4)
    assert "no case none-at-all in the ledger" in done.text


def test_the_follow_up_is_found_and_fired_for_a_time_that_lies_ahead(account: LocalAccount) -> None:
    follow_up = DeployedSchedule.of(account, FOLLOW_UP)
    assert "FollowUp" in follow_up.name
    follow_up.fire(datetime.now(UTC) + timedelta(hours=48))
    follow_up.fire(None)
