"""What is started more often costs more."""

from __future__ import annotations

import pytest

from cli.cost import billed_by_use
from cli.cost.deployed import Deployed
from tests.infra.synthesized import template_of


def test_settings_change_the_bill() -> None:
    """A pulse every 20 minutes is three times as many calls as one an hour."""
    hourly, thrice = (Deployed(template_of(name).raw) for name in ("default", "proposing"))
    trail = billed_by_use.trail
    assert trail(thrice).dollars == pytest.approx(3 * trail(hourly).dollars)
    invocations = billed_by_use.invocations
    assert invocations(thrice).dollars > invocations(hourly).dollars
