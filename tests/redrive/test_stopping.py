"""A redrive that goes on is taken back: its owner stops it first, or nothing has ended."""

from __future__ import annotations

import pytest

from mendq.heal.approve import answer_request
from mendq.heal.owners import make_owner_request
from mendq.heal.rollback import rollback
from mendq.model.state import State
from tests.account.faults import calls_of
from tests.account.owners import SILENCE, silence_owners
from tests.heal.operators import ALICE, outcomes_by_attribute, roll_back
from tests.redrive.world import Redriving, texts

WRITES = {"SetQueueAttributes", "TransactWriteItems", "UpdateItem", "PutItem", "PutObject"}


@pytest.mark.parametrize("how", SILENCE)
def test_rollback_of_a_redrive_changes_nothing_if_the_redrive_lambda_cannot_be_reached(
    here: Redriving, how: str
) -> None:
    case = here.begun(*texts(9)).newest()
    here.tick()
    items = here.account.case_store_items()
    speak = silence_owners(here.account, how)
    calls = calls_of(here.account)
    answer = roll_back(here.account, case.case_id)
    assert answer["error"] == "unavailable"
    assert "ask again: it goes on meanwhile" in answer["reason"]
    assert here.newest() == case
    assert WRITES.isdisjoint(calls)
    assert here.account.case_store_items() == items
    assert here.pages == []
    speak()
    here.asked.clear()
    answer = roll_back(here.account, case.case_id)
    assert (answer["state"], outcomes_by_attribute(answer)) == ("rolled_back", {"Dlq": "undone"})
    assert here.asked == [{**make_owner_request(case), "cancel": True}]


def test_rollback_of_a_redrive_is_refused_if_the_deployment_has_no_redrive_lambda(
    here: Redriving,
) -> None:
    case = here.case(State.APPLIED)
    answer = answer_request(
        {"case_id": case.case_id, "actor": ALICE},
        lambda request: rollback(
            request, here.account.run(), dry_run=False, function_name_by_owner={}
        ),
    )
    assert answer["error"] == "unavailable"
    assert "this deployment has no redrive: deploy the stack again" in answer["reason"]
    assert here.newest() == case


def test_rollback_dry_run_neither_stops_the_redrive_nor_writes(here: Redriving) -> None:
    case = here.begun(*texts(9)).newest()
    here.tick()
    items = here.account.case_store_items()
    calls = calls_of(here.account)
    answer = roll_back(here.account, case.case_id, dry_run=True)
    assert outcomes_by_attribute(answer) == {"Dlq": "undone"}
    assert "Invoke" not in calls
    assert WRITES.isdisjoint(calls)
    assert (here.newest(), here.account.case_store_items()) == (case, items)
    assert here.tick().refusal is None, "it goes on"
