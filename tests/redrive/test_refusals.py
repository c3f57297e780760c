"""A redrive that is refused before its first look: nothing is asked of SQS, nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mendq.aws.errors import CaseUnreadable
from mendq.cases.transactions import CLAIM_SECONDS, Claim
from mendq.heal.owners import make_owner_request
from mendq.model.state import State
from mendq.model.steps import SetMessageRetention
from mendq.redrive.redrive import redrive
from tests.heal.operators import make_context
from tests.redrive.world import SYMPTOM, Redriving, texts


def items_in_case_store(here: Redriving) -> list[dict[str, Any]]:
    found = here.account.clients.dynamodb.scan(TableName="case_store")["Items"]
    return sorted(found, key=repr)


@contextmanager
def untouched(here: Redriving) -> Iterator[None]:
    """Fail if anything in it calls SQS or changes the case store."""
    before = items_in_case_store(here)
    calls = list[str]()

    def note(call: str, _: object) -> None:
        calls.append(call)

    here.refusals.insert(0, note)
    yield
    here.refusals.remove(note)
    assert calls == [], "SQS was asked"
    assert items_in_case_store(here) == before


@pytest.mark.parametrize(
    ("part", "other"), [("123456789012", "210987654321"), ("us-east-1", "eu-west-1")]
)
@pytest.mark.parametrize("more", [{}, {"cancel": True}])
def test_redrive_of_a_dlq_in_another_account_or_region_raises_and_calls_nothing(
    here: Redriving, part: str, other: str, more: dict[str, Any]
) -> None:
    """Even if the case store holds an applied case about it: whoever wrote that must not decide."""
    here.begun(*texts(9))
    foreign = here.dlq.replace(part, other)
    planted = here.case(State.APPLIED, queue_arn=foreign)
    with (
        untouched(here),
        pytest.raises(CaseUnreadable, match="no queue of this account and region"),
    ):
        redrive({**make_owner_request(planted), **more}, here.run())
    assert here.tick().sent_back_count == 5, "the same case about our own queue goes on"


def claim_as_another_run(here: Redriving) -> None:
    """Claim the case's attribute, as a run does that writes or takes something back."""
    store = make_context(here.account).case_store
    attributes = (here.back().attribute,)
    view = store.look(here.dlq, SYMPTOM, attributes)
    case = here.newest()
    intent = case.move_to(State.ROLLED_BACK, "a person took it back", here.account.now)
    claim = Claim(intent=intent, owner="another run", view=view)
    assert store.claim(claim, {}, writes_per_minute=100) is None


@pytest.mark.parametrize("more", [{}, {"cancel": True}])
def test_redrive_is_refused_for_now_while_another_run_holds_the_claim(
    here: Redriving, more: dict[str, Any]
) -> None:
    here.begun(*texts(9))
    claim_as_another_run(here)
    with untouched(here):
        refusal = redrive({**make_owner_request(here.newest()), **more}, here.run()).refusal
    assert refusal is not None
    assert (refusal.code, refusal.is_retried) == ("claimed", True)
    assert "another run is at work on this queue" in refusal.reason
    assert len(here.bodies(here.dlq)) == 9


def test_redrive_is_refused_while_an_expired_claim_of_a_dead_run_has_an_open_intent(
    here: Redriving,
) -> None:
    """Its claim has run out, and its intent says that it may have written. Follow-up ends that."""
    here.begun(*texts(9))
    claim_as_another_run(here)
    here.account.later(seconds=CLAIM_SECONDS + 1)
    with untouched(here):
        refusal = here.tick().refusal
    assert refusal is not None
    assert refusal.code == "claimed"


def test_redrive_is_refused_until_a_claim_without_intent_expires(here: Redriving) -> None:
    """Until it has run out: then nobody is at work, and nothing may have been written."""
    here.begun(*texts(9))
    until = int(here.account.now.timestamp()) + CLAIM_SECONDS
    claim = {"claim_owner": {"S": "another run"}, "claim_until": {"N": str(until)}}
    key = {"pk": {"S": here.dlq}, "sk": {"S": f"attribute#{here.back().attribute}"}}
    here.account.clients.dynamodb.put_item(TableName="case_store", Item={**key, **claim})
    with untouched(here):
        refusal = here.tick().refusal
    assert refusal is not None
    assert refusal.code == "claimed"
    here.account.later(seconds=CLAIM_SECONDS)
    assert here.tick().sent_back_count == 5


RETENTION = SetMessageRetention(345_600, 1_209_600)


@pytest.mark.parametrize("state", [State.APPROVED, State.APPLIED])
@pytest.mark.parametrize("more", [{}, {"cancel": True}])
def test_redrive_refuses_a_case_that_the_heal_lambda_owns_and_moves_nothing(
    here: Redriving, state: State, more: dict[str, Any]
) -> None:
    """The heal Lambda writes an attribute: redrive neither writes it nor moves the messages."""
    here.send(*texts(9))
    here.account.later(hours=1)
    here.case(State.PROPOSED, state, steps=(RETENTION,))
    with untouched(here):
        refusal = redrive({**make_owner_request(here.newest()), **more}, here.run()).refusal
    assert refusal is not None
    is_to_write = state is State.APPROVED and not more
    assert (refusal.code, refusal.is_retried) == (
        "another_owner" if is_to_write else "moved_on",
        False,
    )
    assert len(here.bodies(here.dlq)) == 9
