"""Rollback of a running redrive stops the redrive Lambda first, or changes nothing."""

from __future__ import annotations

import pytest

from mendq.heal.approve import answer_request
from mendq.heal.owners import make_owner_request
from mendq.heal.rollback import rollback
from mendq.model.state import State
from tests.account.faults import calls_of
from tests.account.owners import SILENCE, silence_owners
from tests.heal.operators import ALICE, outcomes_by_attribute, roll_back
from tests.redrive.world import RedriveWorld, make_bodies

WRITES = {"SetQueueAttributes", "TransactWriteItems", "UpdateItem", "PutItem", "PutObject"}


@pytest.mark.parametrize("how", SILENCE)
def test_rollback_of_a_redrive_changes_nothing_if_the_redrive_lambda_cannot_be_reached(
    world: RedriveWorld, how: str
) -> None:
    case = world.begin(*make_bodies(9)).read_newest_case()
    world.tick()
    items = world.account.case_store_items()
    speak = silence_owners(world.account, how)
    calls = calls_of(world.account)
    answer = roll_back(world.account, case.case_id)
    assert answer["error"] == "unavailable"
    assert "ask again: it goes on meanwhile" in answer["reason"]
    assert world.read_newest_case() == case
    assert WRITES.isdisjoint(calls)
    assert world.account.case_store_items() == items
    assert world.notifications == []
    speak()
    world.owner_requests.clear()
    answer = roll_back(world.account, case.case_id)
    assert (answer["state"], outcomes_by_attribute(answer)) == ("rolled_back", {"Dlq": "undone"})
    assert world.owner_requests == [{**make_owner_request(case), "cancel": True}]


def test_rollback_of_a_redrive_is_refused_if_the_deployment_has_no_redrive_lambda(
    world: RedriveWorld,
) -> None:
    case = world.record_case(State.APPLIED)
    answer = answer_request(
        {"case_id": case.case_id, "actor": ALICE},
        lambda request: rollback(
            request, world.account.run(), dry_run=False, function_name_by_owner={}
        ),
    )
    assert answer["error"] == "unavailable"
    assert "this deployment has no redrive: deploy the stack again" in answer["reason"]
    assert world.read_newest_case() == case


def test_rollback_dry_run_neither_stops_the_redrive_nor_writes(world: RedriveWorld) -> None:
    case = world.begin(*make_bodies(9)).read_newest_case()
    world.tick()
    items = world.account.case_store_items()
    calls = calls_of(world.account)
    answer = roll_back(world.account, case.case_id, dry_run=True)
    assert outcomes_by_attribute(answer) == {"Dlq": "undone"}
    assert "Invoke" not in calls
    assert WRITES.isdisjoint(calls)
    assert (world.read_newest_case(), world.account.case_store_items()) == (case, items)
    assert world.tick().refusal is None, "it goes on"
