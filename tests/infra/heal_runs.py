"""What heal calls, as it does its work in an account."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.heal.conftest import Account, moto_account
from tests.infra.aws_calls import Recorded, recording
from tests.infra.scan_runs import ANSWERS, found
from tests.infra.synthesized import CALENDAR


def healing() -> Recorded:
    """A change, a proposal, too little evidence, a mass symptom, a write that fails."""
    recorded = recording(
        {**ANSWERS, "GetCalendarState": {"State": "OPEN"}, "LookupEvents": {"Events": []}}
    )
    with moto_account() as account:
        account.settings = replace(
            account.settings, queues=("bulk-*",), freeze_calendars=(CALENDAR,)
        )
        watched = replace(account, clients=recorded.clients)
        for record_transition in (_changed, _proposed, _waiting, _many, found, _failing):
            record_transition(account, watched)
    return recorded


def _changed(account: Account, watched: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    watched.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) > 30


def _proposed(account: Account, watched: Account) -> None:
    queue = account.queue("proposed.fifo", tag="propose", VisibilityTimeout="30")
    watched.heal(account.late_deletes(queue, "1", "2", "3"))
    states = [each["to"] for each in account.transitions() if each["queue_arn"] == queue]
    assert states == ["proposed"]


def _waiting(account: Account, watched: Account) -> None:
    """Evidence is kept, and dropped once it is old."""
    queue = account.queue("waiting.fifo")
    watched.heal(account.late_deletes(queue, "1"))
    assert account.case_store_items()[(queue, "evidence#visibility_timeout_too_short")]


def _many(account: Account, watched: Account) -> None:
    queues = [account.queue(f"bulk-{number}.fifo") for number in range(5)]
    bodies = [account.late_deletes(each, *(f"{each}-{n}" for n in range(3))) for each in queues]
    healed = watched.heal({name: body for each in bodies for name, body in each.items()})
    assert "mass_symptom" in {each.refusal.code for each in healed.fixed.values() if each.refusal}


def _failing(account: Account, watched: Account) -> None:
    queue = account.queue("failing.fifo", VisibilityTimeout="30")

    def refuse(params: Any, **_: Any) -> None:
        raise ConnectionError

    watched.clients.sqs_for_writing.meta.events.register(
        "before-call.sqs.SetQueueAttributes", refuse
    )
    watched.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 30
