"""The writer of policies: every refusal leaves the policy at SQS as it was.

The plan is checked before the writer runs. So most of these states come about only between the look
and the write, or if a plan is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from mendq.heal.restore_policy import PolicyWriter
from mendq.model.facts import Facts
from mendq.model.plan import Refusal
from mendq.model.policy import CheckedPin, Pin, digest_of_policy
from mendq.model.state import State
from mendq.model.steps import AllowRedriveFrom, AttributeStep, RestorePolicy, SetVisibilityTimeout
from tests.account.account import WORKER, Account
from tests.account.faults import calls_of, come_between
from tests.heal.operators import load_newest_case, move_case
from tests.heal.restoring import (
    EMPTIED,
    GRANTS,
    Analyzer,
    deploy_policy,
    make_pinned_queue,
    make_policy,
    make_queue_with_emptied_policy,
    pin_current_policy,
    pins_of,
    policy_of,
    restore_policy,
)

RESTORE = RestorePolicy(EMPTIED, GRANTS)


@pytest.fixture
def analyzer(account: Account) -> Analyzer:
    return Analyzer(account)


@pytest.fixture
def queue(account: Account, analyzer: Analyzer) -> str:
    """A queue whose pinned policy a deployment overwrote; Access Analyzer reports nothing."""
    assert analyzer.results == {}
    queue_arn = make_pinned_queue(account)
    deploy_policy(account, queue_arn)
    account.later(minutes=25)
    return queue_arn


def load_pin(account: Account, queue: str) -> Pin:
    found = pins_of(account).load(queue)
    assert found is not None
    return found


def read_facts(account: Account, queue: str, pinned: CheckedPin | None) -> Facts:
    """The queue's current facts, with the pin that the plan was made from."""
    return Facts(queue, account.attributes(queue), {}, pin=pinned)


def write_steps(
    account: Account,
    seen: Facts,
    steps: Sequence[AttributeStep] = (RESTORE,),
    now: datetime | None = None,
) -> Refusal | None:
    """Let the policy writer write the steps. Return its refusal, or None."""
    return PolicyWriter(pins_of(account), now or account.now).write(account.clients, seen, steps)


def get_refusal_reason(
    account: Account,
    seen: Facts,
    steps: Sequence[AttributeStep] = (RESTORE,),
    now: datetime | None = None,
) -> str:
    """Return the refusal's reason, after checking that nothing was written or asked of AWS."""
    before = account.attributes(seen.queue_arn)
    calls = calls_of(account)
    refusal = write_steps(account, seen, steps, now)
    assert refusal is not None
    assert refusal.code == "pin_not_good"
    assert refusal.case_state is State.ESCALATED
    assert "SetQueueAttributes" not in calls
    assert "CheckNoPublicAccess" not in calls
    assert account.attributes(seen.queue_arn) == before
    return refusal.reason


def test_policy_writer_restores_the_pinned_text(account: Account, queue: str) -> None:
    """Without this, the refusals below could all have the same unrelated cause."""
    seen = read_facts(account, queue, CheckedPin(load_pin(account, queue)))
    assert write_steps(account, seen) is None
    assert policy_of(account, queue) == GRANTS


def put_pin_item(account: Account, queue: str, text: str) -> None:
    """Write a pin without Mendq, as a person with access to the table can."""
    item: Any = {
        "pk": {"S": queue},
        "sk": {"S": "pin"},
        "pin": {"S": text},
        "generation": {"N": "1"},
    }
    account.clients.dynamodb.put_item(TableName=account.settings.case_table, Item=item)


@pytest.mark.parametrize("text", ["[" * 30_000, "{}", "", "null"])
def test_policy_writer_refuses_a_pin_that_cannot_be_read(
    account: Account, queue: str, text: str
) -> None:
    seen = read_facts(account, queue, CheckedPin(load_pin(account, queue)))
    put_pin_item(account, queue, text)
    assert "its pin cannot be read" in get_refusal_reason(account, seen)


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (RESTORE, SetVisibilityTimeout(30, 45)),
        (SetVisibilityTimeout(30, 45), RESTORE),
        (RESTORE, RESTORE),
        # The pinned text in a step that would write another attribute.
        (AllowRedriveFrom("", GRANTS),),
    ],
)
def test_policy_writer_refuses_anything_but_exactly_one_policy_step(
    account: Account, queue: str, steps: tuple[AttributeStep, ...]
) -> None:
    seen = read_facts(account, queue, CheckedPin(load_pin(account, queue)))
    assert "only a policy is restored" in get_refusal_reason(account, seen, steps)


def pin_again(account: Account, queue: str) -> None:
    """Pin the same text once more, as a new generation."""
    known = load_pin(account, queue)
    again = replace(known, generation=known.generation + 1, pinned_at=account.now)
    assert pins_of(account).put(again)


def pin_another_text(account: Account, queue: str) -> None:
    assert pin_current_policy(account, queue)
    assert load_pin(account, queue).policy == policy_of(account, queue) != GRANTS


def remove_pin(account: Account, queue: str) -> None:
    assert pins_of(account).remove(load_pin(account, queue))


PIN_CHANGES: dict[str, Callable[[Account, str], None]] = {
    "pinned again": pin_again,
    "another text is pinned": pin_another_text,
    "taken away": remove_pin,
}


@pytest.mark.parametrize("pin_change", PIN_CHANGES)
def test_policy_writer_refuses_if_the_pin_was_changed_or_removed_since_the_plan(
    account: Account, queue: str, pin_change: str
) -> None:
    seen = read_facts(account, queue, CheckedPin(load_pin(account, queue)))
    PIN_CHANGES[pin_change](account, queue)
    assert "changed or taken away meanwhile" in get_refusal_reason(account, seen)


@pytest.mark.parametrize("is_pinned", [True, False])
@pytest.mark.parametrize("known", [None, CheckedPin(None)])
def test_policy_writer_refuses_a_plan_made_without_a_pin(
    account: Account, queue: str, known: CheckedPin | None, is_pinned: bool
) -> None:
    if not is_pinned:
        remove_pin(account, queue)
    assert "changed or taken away meanwhile" in get_refusal_reason(
        account, read_facts(account, queue, known)
    )


def test_policy_writer_refuses_a_plan_whose_pin_was_in_doubt_and_names_the_doubt(
    account: Account, queue: str
) -> None:
    doubtful = CheckedPin(load_pin(account, queue), "alice has changed it since")
    assert "alice has changed it since" in get_refusal_reason(
        account, read_facts(account, queue, doubtful)
    )


@dataclass(frozen=True, kw_only=True)
class InvalidPin:
    """Fields that make a pin invalid, and the text in the refusal's reason."""

    fields: dict[str, str]
    reason: str


INVALID_PINS = {
    "other text than its digest's": InvalidPin(
        fields={"digest": digest_of_policy("{}")}, reason="its digest"
    ),
    "of another queue": InvalidPin(
        fields={"queue_arn": "arn:aws:sqs:us-east-1:123456789012:payments"},
        reason="another queue of that name",
    ),
    "of a queue made at another time": InvalidPin(
        fields={"queue_created_at": "2026-01-01T00:00:00Z"}, reason="another queue of that name"
    ),
    "pinned in the future": InvalidPin(
        fields={"pinned_at": "2999-01-01T00:00:00Z"}, reason="in the future"
    ),
}


@pytest.mark.parametrize("name", INVALID_PINS)
def test_policy_writer_refuses_an_invalid_pin_although_the_plan_accepted_it(
    account: Account, queue: str, name: str
) -> None:
    invalid_pin = INVALID_PINS[name]
    document = {**load_pin(account, queue).document(), **invalid_pin.fields}
    del document["expires_at"]
    put_pin_item(account, queue, json.dumps(document))
    seen = read_facts(account, queue, CheckedPin(load_pin(account, queue)))
    assert invalid_pin.reason in get_refusal_reason(account, seen)


def test_policy_writer_refuses_a_pin_from_the_moment_it_expires(
    account: Account, queue: str
) -> None:
    pin = load_pin(account, queue)
    seen = read_facts(account, queue, CheckedPin(pin))
    assert "it expired at" in get_refusal_reason(account, seen, now=pin.expires_at)
    assert write_steps(account, seen, now=pin.expires_at - timedelta(seconds=1)) is None
    assert policy_of(account, queue) == GRANTS


@pytest.mark.parametrize(
    "text", [make_policy("*"), make_policy(WORKER, Effect="Deny"), GRANTS + " ", "", "{}"]
)
def test_policy_writer_refuses_another_text_than_the_pinned_one(
    account: Account, queue: str, text: str
) -> None:
    seen = read_facts(account, queue, CheckedPin(load_pin(account, queue)))
    step = RestorePolicy(EMPTIED, text)
    assert "is not the pinned text" in get_refusal_reason(account, seen, [step])


def make_pin_unreadable(account: Account, queue: str) -> None:
    put_pin_item(account, queue, "{}")


@pytest.mark.usefixtures("analyzer")
@pytest.mark.parametrize("act", [pin_again, remove_pin, make_pin_unreadable])
def test_approved_restore_expires_unwritten_if_the_pin_changes_just_before_the_claim(
    account: Account, act: Callable[[Account, str], None]
) -> None:
    """The plan was good when restore_policy read the queue."""
    queue = make_queue_with_emptied_policy(account)
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=1)
    come_between(account, "dynamodb.TransactWriteItems", lambda: act(account, queue))
    outcome = restore_policy(account)
    assert outcome.refusal is not None
    assert outcome.refusal.code == "pin_not_good"
    assert policy_of(account, queue) == EMPTIED
    assert (load_newest_case(account).state, load_newest_case(account).code) == (
        State.EXPIRED,
        "pin_not_good",
    )
    held = [key for key, item in account.case_store_items().items() if "claim_owner" in item]
    assert held == [], "the claim is released"
