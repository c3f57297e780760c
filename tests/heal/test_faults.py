"""Killed at any AWS call, before or after it, or its answer lost: a fix, a rollback and an approval
end the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from mendq.model.limits import Mode
from tests.account.faults import (
    DELIVERIES,
    REDELIVERED_AFTER_MINUTES,
    Fault,
    Killed,
)
from tests.heal.conftest import Account, settings
from tests.heal.operators import Heal, case_of, context_of, fail, file_owed, say, states, undo


def _queue(account: Account, tag: str = "heal") -> str:
    """Just before midnight, so that what is tried again comes on another day."""
    account.now = account.now.replace(hour=23, minute=50, second=0)
    queue = account.queue(tag=tag, VisibilityTimeout="30")
    account.later(minutes=5)
    return queue


def _fix(account: Account) -> Callable[[], object]:
    bodies = account.late_deletes(_queue(account), "1", "2", "3")
    return lambda: account.heal(bodies)


def _rollback(account: Account) -> Callable[[], object]:
    fail(account, _queue(account))
    account.later(minutes=5)
    case_id = case_of(account).case_id
    return lambda: undo(account, case_id)


def _approval(account: Account) -> Callable[[], object]:
    account.settings = settings(tag_may_raise_to=Mode.PROPOSE)
    Heal(account)
    fail(account, _queue(account, "propose"))
    account.later(minutes=5)
    case_id = case_of(account).case_id
    return lambda: say(account, "approve", case_id)


@dataclass(frozen=True)
class Scene:
    """`calls` is how many AWS calls it takes; `test_every_call_was_struck` fails when it grows."""

    prepare: Callable[[Account], Callable[[], object]]
    calls: int
    states: tuple[str, ...]
    visibility: int = 45


FIX = Scene(_fix, 12, ("applied",))
ROLLBACK = Scene(_rollback, 10, ("applied", "rolled_back"), visibility=30)
APPROVAL = Scene(_approval, 17, ("proposed", "approved", "applied"))
SCENES = (FIX, ROLLBACK, APPROVAL)


def _acted_with(account: Account, scene: Scene, kind: str, strike_at: int) -> int:
    act = scene.prepare(account)
    fault = Fault(account, kind, strike_at)
    for _ in range(DELIVERIES):
        with suppress(Killed):
            act()
        account.later(minutes=REDELIVERED_AFTER_MINUTES)
    calls, fault.strike_at = fault.calls, -1
    assert fault.struck == (strike_at > 0)
    file_owed(account)
    case, items = case_of(account), account.case_store_items()
    assert account.visibility(case.queue_arn) == scene.visibility
    assert states(account) == list(scene.states)
    retained = context_of(account).open_cases.transitions(case.case_id)
    assert [each.document() for each in retained] == account.transitions()
    listed = account.clients.s3.list_objects_v2(Bucket="cases")["Contents"]
    assert sorted(each["Key"] for each in listed) == sorted(each.key() for each in retained)
    stored = items[case.queue_arn, "case#visibility_timeout_too_short"]
    assert (stored["state"], "open" in stored) == ({"S": case.state}, scene is not ROLLBACK)
    (snapshot,) = (item for (_, sk), item in items.items() if sk.startswith("snapshot#"))
    attributes: dict[str, Any] = json.loads(snapshot["configuration"]["S"])["attributes"]
    assert attributes["VisibilityTimeout"] == "30"
    attribute = account.attribute_item(case.queue_arn)
    assert not {"claim_owner", "intent"} & set(attribute)
    assert "queue_created_at" in attribute
    assert ("overridden_until" in attribute) == (scene is ROLLBACK)
    assert attribute.get("person_value") == (None if scene is ROLLBACK else {"S": "30"})
    return calls


# Killed before a call is killed after the one before it; `make prove` strikes in every way.
@pytest.mark.parametrize("kind", ["killed_after", "answer_lost"])
@pytest.mark.parametrize(
    ("scene", "strike_at"),
    [(scene, call) for scene in SCENES for call in range(1, scene.calls + 1)],
    ids=lambda each: each.prepare.__name__ if isinstance(each, Scene) else str(each),
)
def test_it_ends_the_same(account: Account, scene: Scene, kind: str, strike_at: int) -> None:
    assert _acted_with(account, scene, kind, strike_at) >= strike_at


@pytest.mark.parametrize("scene", SCENES, ids=lambda each: str(each.prepare.__name__))
def test_every_call_was_struck(account: Account, scene: Scene) -> None:
    act = scene.prepare(account)
    fault = Fault(account, "killed_before", -1)
    act()
    assert fault.calls == scene.calls
