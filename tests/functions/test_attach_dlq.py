"""attach_dlq as approve and follow_up call it: a case in, what became of it out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions import attach_dlq
from mendq.aws.clients import Clients
from mendq.aws.errors import CaseUnreadable
from mendq.heal.context import request_about
from mendq.model.settings import AttachDlqSettings
from mendq.model.steps import AttachDlq
from tests.functions.test_heal import Context, metrics
from tests.heal.conftest import Account
from tests.heal.operators import case_of, say, states
from tests.scan.scanning import Scanning, scanning

CONTEXT: Any = Context()


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scanning]:
    with scanning() as made:
        known = AttachDlqSettings.__dataclass_fields__
        shared = {name: getattr(made.account.settings, name) for name in known}
        for variable, text in AttachDlqSettings(**shared).to_environment().items():
            monkeypatch.setenv(variable, text)
        monkeypatch.setattr(Clients, "of_this_lambda", lambda: made.account.clients)
        attach_dlq._cold_start.cache_clear()
        yield made
        attach_dlq._cold_start.cache_clear()


def _approved(scanned: Scanning) -> str:
    """A queue whose message comes back, a day old by the handler's clock."""
    account = scanned.account
    account.now = datetime.now(UTC) - timedelta(days=1, minutes=5)
    queue = account.queue("orders")
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="poison")
    account.later(days=1)
    scanned.count(queue, account.now - timedelta(minutes=100), visible=0)
    scanned.count(queue, account.now - timedelta(minutes=90), received=12, visible=1, sent=1)
    scanned.count(queue, account.now - timedelta(minutes=10), visible=1)
    scanned.scan()
    scanned.heal()
    say(account, "approve", case_of(account).case_id)
    return queue


def _redrive(account: Account, queue: str) -> str:
    return AttachDlq.standing_in(account.attributes(queue))


def test_what_was_approved_is_attached_and_counted(
    scanned: Scanning, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = _approved(scanned)
    capsys.readouterr()
    answered = attach_dlq.handler(request_about(case_of(scanned.account)), CONTEXT)
    assert answered["state"] == "applied", answered
    assert [each["attribute"] for each in answered["steps"]] == ["DeadLetterQueue", "RedrivePolicy"]
    assert _redrive(scanned.account, queue)
    sent = metrics(capsys.readouterr().out)
    assert sent["AutoFixes"] == 1
    assert "Refusals" not in sent


def test_asked_twice_it_answers_that_the_case_has_moved_on(scanned: Scanning) -> None:
    queue = _approved(scanned)
    request = request_about(case_of(scanned.account))
    attach_dlq.handler(request, CONTEXT)
    stands = _redrive(scanned.account, queue)
    assert attach_dlq.handler(request, CONTEXT)["code"] == "moved_on"
    assert _redrive(scanned.account, queue) == stands
    assert states(scanned.account).count("applied") == 1


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"Records": []},
        {"case_id": "c", "queue_arn": "arn:aws:sqs:us-east-1:123456789012:orders"},
        {"case_id": "c", "queue_arn": "orders", "symptom": "dlq_missing"},
    ],
)
@pytest.mark.usefixtures("scanned")
@pytest.mark.filterwarnings("ignore:No application metrics")
def test_what_names_no_case_of_ours_is_the_callers_fault(event: dict[str, Any]) -> None:
    with pytest.raises(CaseUnreadable):
        attach_dlq.handler(event, CONTEXT)


def test_a_case_that_heal_owns_is_not_touched(scanned: Scanning) -> None:
    account = scanned.account
    queue = account.queue("leased.fifo", tag="propose", VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "1", "2", "3"))
    say(account, "approve", case_of(account).case_id)
    answered = attach_dlq.handler(request_about(case_of(account)), CONTEXT)
    assert answered["code"] == "another_owner"
    assert account.visibility(queue) == 30
    assert states(account)[-1] == "approved"
