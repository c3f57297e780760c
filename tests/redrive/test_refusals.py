"""A redrive refused before its first sample calls SQS for nothing and writes nothing."""

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
from tests.redrive.world import SYMPTOM, RedriveWorld, make_bodies


def items_in_case_store(world: RedriveWorld) -> list[dict[str, Any]]:
    found = world.account.clients.dynamodb.scan(TableName="case_store")["Items"]
    return sorted(found, key=repr)


@contextmanager
def require_no_calls_or_writes(world: RedriveWorld) -> Iterator[None]:
    """Fail if the block calls SQS or changes the case store."""
    before = items_in_case_store(world)
    calls = list[str]()

    def note(call: str, _: object) -> None:
        calls.append(call)

    world.refusals.insert(0, note)
    yield
    world.refusals.remove(note)
    assert calls == [], "SQS was asked"
    assert items_in_case_store(world) == before


@pytest.mark.parametrize(
    ("part", "other"), [("123456789012", "210987654321"), ("us-east-1", "eu-west-1")]
)
@pytest.mark.parametrize("more", [{}, {"cancel": True}])
def test_redrive_of_a_dlq_in_another_account_or_region_raises_and_calls_nothing(
    world: RedriveWorld, part: str, other: str, more: dict[str, Any]
) -> None:
    """This holds even if the case store has an applied case: an attacker may have written it."""
    world.begin(*make_bodies(9))
    foreign = world.dlq.replace(part, other)
    planted = world.record_case(State.APPLIED, queue_arn=foreign)
    with (
        require_no_calls_or_writes(world),
        pytest.raises(CaseUnreadable, match="no queue of this account and region"),
    ):
        redrive({**make_owner_request(planted), **more}, world.make_run())
    assert world.tick().sent_back_count == 5, "the same case about our own queue goes on"


def claim_as_another_run(world: RedriveWorld) -> None:
    """Claim the case's attribute, as a run does before a write or a rollback."""
    store = make_context(world.account).case_store
    attributes = (world.redrive_step().attribute,)
    view = store.look(world.dlq, SYMPTOM, attributes)
    case = world.read_newest_case()
    intent = case.move_to(State.ROLLED_BACK, "a person took it back", world.account.now)
    claim = Claim(intent=intent, owner="another run", view=view)
    assert store.claim(claim, {}, writes_per_minute=100) is None


@pytest.mark.parametrize("more", [{}, {"cancel": True}])
def test_redrive_is_refused_for_now_while_another_run_holds_the_claim(
    world: RedriveWorld, more: dict[str, Any]
) -> None:
    world.begin(*make_bodies(9))
    claim_as_another_run(world)
    with require_no_calls_or_writes(world):
        refusal = redrive(
            {**make_owner_request(world.read_newest_case()), **more}, world.make_run()
        ).refusal
    assert refusal is not None
    assert (refusal.code, refusal.is_retried) == ("claimed", True)
    assert "another run is at work on this queue" in refusal.reason
    assert len(world.read_bodies(world.dlq)) == 9


def test_redrive_is_refused_after_a_claim_expired_if_its_dead_run_may_have_written(
    world: RedriveWorld,
) -> None:
    """The intent says that the dead run may have written. Only follow-up can resolve it."""
    world.begin(*make_bodies(9))
    claim_as_another_run(world)
    world.account.later(seconds=CLAIM_SECONDS + 1)
    with require_no_calls_or_writes(world):
        refusal = world.tick().refusal
    assert refusal is not None
    assert refusal.code == "claimed"


def test_redrive_is_refused_until_a_claim_expires_whose_run_cannot_have_written(
    world: RedriveWorld,
) -> None:
    """After it expires no run is at work, and nothing can have been written."""
    world.begin(*make_bodies(9))
    until = int(world.account.now.timestamp()) + CLAIM_SECONDS
    claim = {"claim_owner": {"S": "another run"}, "claim_until": {"N": str(until)}}
    key = {"pk": {"S": world.dlq}, "sk": {"S": f"attribute#{world.redrive_step().attribute}"}}
    world.account.clients.dynamodb.put_item(TableName="case_store", Item={**key, **claim})
    with require_no_calls_or_writes(world):
        refusal = world.tick().refusal
    assert refusal is not None
    assert refusal.code == "claimed"
    world.account.later(seconds=CLAIM_SECONDS)
    assert world.tick().sent_back_count == 5


RETENTION = SetMessageRetention(345_600, 1_209_600)


@pytest.mark.parametrize("state", [State.APPROVED, State.APPLIED])
@pytest.mark.parametrize("more", [{}, {"cancel": True}])
def test_redrive_refuses_a_case_that_the_heal_lambda_owns_and_moves_nothing(
    world: RedriveWorld, state: State, more: dict[str, Any]
) -> None:
    world.send(*make_bodies(9))
    world.account.later(hours=1)
    world.record_case(State.PROPOSED, state, steps=(RETENTION,))
    with require_no_calls_or_writes(world):
        refusal = redrive(
            {**make_owner_request(world.read_newest_case()), **more}, world.make_run()
        ).refusal
    assert refusal is not None
    is_to_write = state is State.APPROVED and not more
    assert (refusal.code, refusal.is_retried) == (
        "another_owner" if is_to_write else "moved_on",
        False,
    )
    assert len(world.read_bodies(world.dlq)) == 9
