"""What attach_dead_letters calls, as it takes up cases in an account."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from functions.aws.attach_dead_letters import attach
from functions.aws.call_owner import request_about
from functions.aws.run import Outcome
from functions.aws.take_up import take_up
from functions.healing.dead_letters import Redrive
from functions.healing.steps import Owner
from tests.functions.aws.conftest import Account
from tests.functions.aws.faults import Killed
from tests.functions.aws.operators import case_of, say, states
from tests.functions.aws.sweeping import Sweeping
from tests.functions.aws.sweeping import sweeping as in_an_account
from tests.infra.aws_calls import Recorded, recording
from tests.infra.paging_runs import page_everybody
from tests.infra.sweep_runs import ANSWERS
from tests.infra.synthesized import CALENDAR

SYMPTOM = "dead_letter_queue_missing"


def attaching() -> Recorded:
    """One queue made and attached; one contested, as a run died; one among too many."""
    answers = {**ANSWERS, "GetCalendarState": {"State": "OPEN"}, "LookupEvents": {"Events": []}}
    answers.pop("GetMetricData", None)  # what was not measured is not attached
    recorded = recording(answers)
    for act in (_attached, _contested, _one_of_many):
        with in_an_account() as swept:
            swept.account.settings = replace(
                swept.account.settings, queues=("bulk-*",), freeze_calendars=(CALENDAR,)
            )
            act(swept, recorded)
    page_everybody(recorded)
    return recorded


def _attached(swept: Sweeping, recorded: Recorded) -> None:
    queue = _approved(swept)
    _taken_up(swept.account, recorded)
    assert states(swept.account)[-1] == "applied", states(swept.account)
    assert swept.account.attributes(queue)["RedrivePolicy"]


def _contested(swept: Sweeping, recorded: Recorded) -> None:
    """A person attached another one while a run was dying, and a page says so."""
    account, queue = swept.account, _approved(swept)
    with suppress(Killed):
        _taken_up(account, recorded, dying=True)
    account.later(minutes=5)
    theirs = account.queue("theirs", tag=None)
    account.clients.sqs.set_queue_attributes(
        QueueUrl=account.url(queue), Attributes={"RedrivePolicy": Redrive(theirs, 9).text}
    )
    _taken_up(account, recorded)
    assert states(account)[-1] == "contested", states(account)
    assert account.pages()


def _one_of_many(swept: Sweeping, recorded: Recorded) -> None:
    _approved(swept)
    account = swept.account
    many = [account.queue(f"bulk-{n}", tag=None) for n in range(5)]
    account.run().ledger.spread_to(many, SYMPTOM, account.now)
    outcome = _taken_up(account, recorded)
    assert outcome.refusal is not None
    assert outcome.refusal.code == "mass_symptom", outcome.refusal


def _approved(swept: Sweeping) -> str:
    account = swept.account
    queue = account.queue("orders")
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="poison")
    account.later(days=1)
    swept.count_one_coming_back(queue)
    swept.sweep()
    swept.heal()
    say(account, "approve", case_of(account).case_id)
    account.later(minutes=1)
    return queue


def _taken_up(account: Account, recorded: Recorded, *, dying: bool = False) -> Outcome:
    watched = replace(account, clients=recorded.clients, deliveries=account.deliveries + 100)
    write: Callable[..., Any] = _die if dying else attach
    run = replace(watched.run(), write=write, whose=Owner.ATTACH_DEAD_LETTERS)
    return take_up(request_about(case_of(account)), run)


def _die(*_: Any) -> None:
    raise Killed
