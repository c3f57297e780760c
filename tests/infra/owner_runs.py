"""What attach_dlq calls, as it takes up cases in an account."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mendq.heal.apply import attach
from mendq.heal.context import Outcome, request_about
from mendq.heal.resume import take_up
from mendq.model.queue import Redrive
from mendq.model.steps import Owner
from tests.account.faults import Killed
from tests.heal.conftest import Account
from tests.heal.operators import case_of, say, states
from tests.infra.aws_calls import Recorded, recording
from tests.infra.paging_runs import page_everybody
from tests.infra.scan_runs import ANSWERS
from tests.infra.synthesized import CALENDAR
from tests.scan.scanning import Scanning
from tests.scan.scanning import scanning as in_an_account

SYMPTOM = "dlq_missing"


def attaching() -> Recorded:
    """One queue made and attached; one overridden, as a run died; one among too many."""
    answers = {**ANSWERS, "GetCalendarState": {"State": "OPEN"}, "LookupEvents": {"Events": []}}
    answers.pop("GetMetricData", None)  # what was not measured is not attached
    recorded = recording(answers)
    for act in (_attached, _overridden, _one_of_many):
        with in_an_account() as scanned:
            scanned.account.settings = replace(
                scanned.account.settings, queues=("bulk-*",), freeze_calendars=(CALENDAR,)
            )
            act(scanned, recorded)
    page_everybody(recorded)
    return recorded


def _attached(scanned: Scanning, recorded: Recorded) -> None:
    queue = _approved(scanned)
    _taken_up(scanned.account, recorded)
    assert states(scanned.account)[-1] == "applied", states(scanned.account)
    assert scanned.account.attributes(queue)["RedrivePolicy"]


def _overridden(scanned: Scanning, recorded: Recorded) -> None:
    """A person attached another one while a run was dying, and a page says so."""
    account, queue = scanned.account, _approved(scanned)
    with suppress(Killed):
        _taken_up(account, recorded, dying=True)
    account.later(minutes=5)
    theirs = account.queue("theirs", tag=None)
    account.clients.sqs.set_queue_attributes(
        QueueUrl=account.url(queue), Attributes={"RedrivePolicy": Redrive(theirs, 9).text}
    )
    _taken_up(account, recorded)
    assert states(account)[-1] == "overridden", states(account)
    assert account.pages()


def _one_of_many(scanned: Scanning, recorded: Recorded) -> None:
    _approved(scanned)
    account = scanned.account
    many = [account.queue(f"bulk-{n}", tag=None) for n in range(5)]
    account.run().case_store.spread_to(many, SYMPTOM, account.now)
    outcome = _taken_up(account, recorded)
    assert outcome.refusal is not None
    assert outcome.refusal.code == "mass_symptom", outcome.refusal


def _approved(scanned: Scanning) -> str:
    account = scanned.account
    queue = account.queue("orders")
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="poison")
    account.later(days=1)
    scanned.count_one_coming_back(queue)
    scanned.scan()
    scanned.heal()
    say(account, "approve", case_of(account).case_id)
    account.later(minutes=1)
    return queue


def _taken_up(account: Account, recorded: Recorded, *, dying: bool = False) -> Outcome:
    watched = replace(account, clients=recorded.clients, deliveries=account.deliveries + 100)
    write: Callable[..., Any] = _die if dying else attach
    run = replace(watched.run(), write=write, whose=Owner.ATTACH_DLQ)
    return take_up(request_about(case_of(account)), run)


def _die(*_: Any) -> None:
    raise Killed
