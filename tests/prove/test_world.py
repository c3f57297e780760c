"""A proof is the same at any hour: no clock of this machine is in it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock, patch

import pytest

from tests.prove.fault_points import _struck, _undisturbed
from tests.prove.memory_cloud import cloud
from tests.prove.scenes import SCENES
from tests.prove.world import world


@pytest.mark.parametrize("begun", [world, cloud])
def test_every_account_begins_at_the_same_moment(begun: Any) -> None:
    with begun() as first:
        here = first.account.now
    with _day_later(), begun() as second:
        assert second.account.now == here


def test_a_life_is_the_same_after_a_midnight_of_this_machine() -> None:
    scene = SCENES[0]
    undisturbed = _undisturbed(scene)
    with _day_later():
        struck = _struck(scene, ("answer_lost", 1))
    assert struck.ending.left
    assert struck.ending.differs_from(undisturbed.ending) == []


def _day_later() -> AbstractContextManager[object]:
    later = datetime.now(UTC) + timedelta(days=1)
    tomorrow = Mock(wraps=datetime, now=lambda _: later, timestamp=datetime.timestamp)
    return patch("tests.account.account.datetime", tomorrow)
