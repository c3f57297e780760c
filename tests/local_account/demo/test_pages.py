"""Pages as the demo reads, shows and keeps them."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from functions.healing import examples, page
from functions.healing.case import opened
from functions.healing.evidence import Evidence, Sighting
from functions.healing.paging import Severity
from functions.healing.states import State
from local_account.demo import pages
from local_account.demo.mailbox import Mailbox, Message, Notice
from local_account.process import LocalAccount

PAGES = Path("build/demo/pages.txt")
NOTICES = [
    Notice(Severity.INFO, "mendq-proposed-cases-open", "ALARM"),
    Notice(Severity.URGENT, "mendq-escalated-cases-open", "OK"),
]
CASE = opened(
    State.ESCALATED,
    queue_arn="arn:aws:sqs:us-east-1:000000000000:refunds",
    symptom="access_denied",
    reason="denied",
    evidence=Evidence.of([Sighting.of(examples.failed_call("SendMessage", "AccessDenied"))]),
    steps=(),
    now=datetime(2026, 11, 10, tzinfo=UTC),
    actor="heal",
)


def _message(severity: Severity = Severity.URGENT) -> Message:
    told = page.of_case(
        CASE,
        sentence="Callers are refused.",
        runbook="docs/runbooks/access_denied.md",
        attributes={"VisibilityTimeout": "30"},
        tags={"mendq": "heal"},
        event_names=("SendMessage",),
        known=None,
        last_change=None,
        next_command="aws sqs list-queues",
    )
    return Message(severity, told.subject, told.body)


def _printed(*messages: Message, columns: int) -> str:
    console = Console(width=columns, file=io.StringIO())
    with console.capture() as capture:
        console.print(pages.shown(messages, NOTICES, PAGES))
    return capture.get()


def test_the_case_of_a_page_is_read_from_its_text() -> None:
    assert _message().case_id == CASE.case_id


@pytest.mark.parametrize("text", ["the week's verdict: case: none", "", "case:"])
def test_what_names_no_case_is_no_page_of_one(text: str) -> None:
    assert Message(Severity.INFO, "Mendq: week 2026-W46", text).case_id is None


@pytest.mark.parametrize("columns", [80, 120])
def test_what_is_urgent_is_shown_and_the_rest_named(columns: int) -> None:
    printed = _printed(_message(), _message(Severity.INFO), columns=columns)
    urgent, _, others = printed.partition("more lines")
    assert "Mendq cannot mend this: please act." in urgent
    assert str(PAGES) in urgent
    assert "EVIDENCE" not in others
    assert f"info  {_message().subject}" in others
    assert "info  alarm mendq-proposed-cases-open rings" in others
    assert "mendq-escalated-cases-open" not in printed
    assert max(map(len, printed.splitlines())) <= columns


def test_the_file_holds_every_page_in_full(tmp_path: Path) -> None:
    path = tmp_path / "demo" / "pages.txt"
    pages.write([_message(), _message(Severity.INFO)], path)
    text = path.read_text()
    assert text.count(_message().text) == 2
    assert text.count(f"Subject: {_message().subject}") == 2
    assert text.index("To: urgent") < text.index("To: info")


@pytest.mark.account
def test_a_mailbox_gets_what_both_topics_are_told(account: LocalAccount) -> None:
    mailbox = Mailbox.open(account)
    assert mailbox.look() == []
    sns = account.client("sns")
    for arn, severity in mailbox.severities.items():
        sns.publish(TopicArn=arn, Subject=f"to {severity}", Message="text")
    told = json.dumps({"AlarmName": "mendq-not-healing", "NewStateValue": "ALARM"})
    urgent = next(arn for arn, each in mailbox.severities.items() if each is Severity.URGENT)
    sns.publish(TopicArn=urgent, Subject="ALARM", Message=told)
    while len(mailbox.messages) < 2 or not mailbox.notices:
        mailbox.look(wait_seconds=10)
    assert {(each.severity, each.subject) for each in mailbox.messages} == {
        (Severity.URGENT, "to urgent"),
        (Severity.INFO, "to info"),
    }
    assert mailbox.look() == []
    assert mailbox.notices == [Notice(Severity.URGENT, "mendq-not-healing", "ALARM")]


@pytest.mark.parametrize("text", ["", "[]", "7", '{"AlarmName": "x"}', "Mendq applied"])
def test_what_is_no_alarm_is_a_page(text: str) -> None:
    assert Notice.read(Severity.INFO, text) is None
