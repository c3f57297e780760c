"""What restore_policy calls, as it does its work in an account."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tests.account.faults import Killed
from tests.heal.conftest import Account, moto_account
from tests.heal.operators import case_of, move, states
from tests.heal.policy_events import DEPLOYS
from tests.heal.restoring import (
    EMPTIED,
    GRANTS,
    deny,
    deploy,
    pinned_queue,
    policy_for,
    policy_of,
    restore,
    set_policy,
)
from tests.infra.aws_calls import Recorded, recording
from tests.infra.paging_runs import page_everybody
from tests.infra.synthesized import CALENDAR

_PASSES = {"result": "PASS", "message": "", "reasons": []}


def restoring() -> Recorded:
    """One policy put back; one stopped as one of many; one that a person set while a run died."""
    recorded = recording(
        {
            "CheckNoPublicAccess": _PASSES,
            "CheckNoNewAccess": _PASSES,
            "GetCalendarState": {"State": "OPEN"},
        }
    )
    for act in (_restored, _one_of_many, _overridden):
        with moto_account() as account:
            account.settings = replace(
                account.settings, queues=("bulk-*",), freeze_calendars=(CALENDAR,)
            )
            act(account, replace(account, clients=recorded.clients, deliveries=100))
    page_everybody(recorded)
    return recorded


def _approved(account: Account, watched: Account) -> str:
    queue = pinned_queue(account)
    deploy(account, queue)
    account.later(minutes=25)
    deny(account, queue)
    move(account, case_of(account), "approved")
    account.later(minutes=1)
    watched.now = account.now
    return queue


def _restored(account: Account, watched: Account) -> None:
    queue = _approved(account, watched)
    restore(watched, case_of(account))
    assert policy_of(account, queue) == GRANTS


def _one_of_many(account: Account, watched: Account) -> None:
    queue = _approved(account, watched)
    others = [account.queue(f"bulk-{n}") for n in range(5)]
    account.run().case_store.spread_to(others, "access_denied", account.now)
    outcome = restore(watched, case_of(account))
    assert outcome.refusal is not None
    assert outcome.refusal.code == "mass_symptom"
    assert policy_of(account, queue) == EMPTIED


def _overridden(account: Account, watched: Account) -> None:
    queue = _approved(account, watched)

    def kill(**_: object) -> None:
        raise Killed

    events = watched.clients.sqs_for_writing.meta.events
    events.register("before-call.sqs.SetQueueAttributes", kill)
    with suppress(Killed):
        restore(watched, case_of(account))
    events.unregister("before-call.sqs.SetQueueAttributes", kill)
    account.later(minutes=5)
    set_policy(account, queue, policy_for(DEPLOYS))
    watched.now = account.now
    restore(watched, case_of(account))
    assert states(account)[-1] == "overridden"
    assert policy_of(account, queue) == policy_for(DEPLOYS)
