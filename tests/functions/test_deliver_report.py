"""The deliver_report Lambda writes a weekly report and sends it once to every recipient."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.ses.models import ses_backends
from moto.sns.models import sns_backends

from functions import deliver_report
from mendq.aws.clients import Clients
from mendq.nightly.deliver import ReportNotDelivered
from mendq.report.summary import MOST_SUMMARY_BYTES, SummaryUnreadable
from tests.account.account import ACCOUNT, Account
from tests.account.faults import KINDS, Fault, Killed
from tests.functions.builders import Deploy, LambdaContext, reset_to_cold_start
from tests.nightly.mails import SENDER, list_recipients, read_sent_mails, verify_identity
from tests.report.weeks import make_busy_week

KEY = "summary/week=2026-W46/summary.json"
EVENT = {"detail-type": "Object Created", "detail": {"object": {"key": KEY}}}
READERS = ("ada@example.com", "grace@example.com")
# The AWS calls of one delivery. The SNS notification and both mails are claimed (PutObject), sent,
# and marked as sent (PutObject).
CALLS = (
    *("GetObject", "PutObject"),
    *("PutObject", "Publish", "PutObject"),
    *(2 * ("PutObject", "SendEmail", "PutObject")),
)
# The positions in CALLS, from 1, of what sends and of what marks as sent.
SEND_CALLS = {4, 7, 10}
MARK_CALLS = {5, 8, 11}


@dataclass
class ReportLambda:
    """The deliver_report Lambda, its AWS clients and the metrics that it printed."""

    account: Account
    clients: Clients
    capture: pytest.CaptureFixture[str]
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def put_summary(self, document: bytes) -> None:
        self.account.clients.s3.put_object(Bucket="cases", Key=KEY, Body=document)

    def run(self, request_id: str = "request-1") -> dict[str, Any]:
        """Invoke the Lambda once. Raises what the handler raises."""
        try:
            context: Any = LambdaContext(request_id)
            answer: dict[str, Any] = deliver_report.handler(EVENT, context)
            return answer
        finally:
            lines = self.capture.readouterr().out.splitlines()
            self.metrics += [json.loads(line) for line in lines if '"_aws"' in line]

    def run_with_retries(self, request_id: str = "request-1") -> bool:
        """Invoke up to three times, as Lambda does for an event. Return True if one succeeds."""
        for _ in range(3):
            try:
                self.run(request_id)
            except (Exception, Killed):  # noqa: BLE001, S112 - whatever it was, Lambda tries again
                continue
            return True
        return False

    @property
    def notifications(self) -> list[tuple[str, str]]:
        return self.account.pages("info")

    @property
    def clients_in_use(self) -> tuple[Any, ...]:
        return (self.clients.s3, self.clients.sns_once, self.clients.mail)


@pytest.fixture
def report_lambda(
    account: Account,
    deploy: Deploy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> ReportLambda:
    topic = account.clients.sns.create_topic(Name="info")["TopicArn"]
    settings = {"report_bucket": "cases", "topic_arn": topic, "sender": SENDER}
    deploy(deliver_report.handler, account, **settings, recipients=READERS)
    # Drawing takes a second. tests/report tests it.
    monkeypatch.setattr(
        deliver_report, "make_page", lambda week, _here: f"<!doctype html>{week.made_at}"
    )
    monkeypatch.setattr("mendq.report.mail.make_png", lambda _: b"a picture")
    verify_identity(account)
    report_lambda = ReportLambda(account, account.clients, capsys)
    report_lambda.put_summary(json.dumps(make_busy_week()).encode())
    return report_lambda


def test_deliver_report_with_a_too_large_summary_raises_and_writes_and_sends_nothing(
    report_lambda: ReportLambda,
) -> None:
    report_lambda.put_summary(json.dumps(make_busy_week()).encode() + b" " * MOST_SUMMARY_BYTES)
    with pytest.raises(SummaryUnreadable):
        report_lambda.run()
    listed = report_lambda.clients.s3.list_objects_v2(Bucket="cases", Prefix="report/")
    assert listed["KeyCount"] == 0
    assert report_lambda.notifications == []
    assert read_sent_mails(report_lambda.account) == []
    assert report_lambda.metrics[0]["ReportsNotDelivered"] == [1]
    assert report_lambda.metrics[0]["ReportsDelivered"] == [0]


def test_report_of_an_unfinished_week_is_written_but_sent_only_after_the_week_ends(
    report_lambda: ReportLambda,
) -> None:
    week = make_busy_week()
    running = {**week, "not_seen": {**week["not_seen"], "week_is_over": False}}
    report_lambda.put_summary(json.dumps(running).encode())
    assert report_lambda.run()["sent_to"] == []
    assert _read_page(report_lambda)
    assert report_lambda.notifications == []
    assert read_sent_mails(report_lambda.account) == []
    assert not _has_claim(report_lambda)
    assert report_lambda.metrics[0]["ReportsDelivered"] == [0]
    assert report_lambda.metrics[0]["ReportsNotDelivered"] == [0]
    listed = report_lambda.clients.s3.list_objects_v2(Bucket="cases", Prefix="report/")
    assert [entry["Key"] for entry in listed["Contents"]] == ["report/week=2026-W46/report.html"]
    running["not_seen"]["week_is_over"] = True
    report_lambda.put_summary(json.dumps(running).encode())
    assert report_lambda.run("on Monday")["sent_to"][1:] == list(READERS)
    assert len(report_lambda.notifications) == 1


@pytest.mark.parametrize(("alias", "named_alias"), [("orders-prod", "orders-prod"), (None, "")])
def test_report_names_the_account_alias_only_if_iam_lets_the_lambda_read_it(
    report_lambda: ReportLambda,
    monkeypatch: pytest.MonkeyPatch,
    alias: str | None,
    named_alias: str,
) -> None:
    places: list[Any] = []

    def page(_: object, place: object) -> str:
        places.append(place)
        return "<!doctype html>"

    monkeypatch.setattr(deliver_report, "make_page", page)
    if alias:
        report_lambda.account.clients.iam.create_account_alias(AccountAlias=alias)
    else:
        denied = ClientError({"Error": {"Code": "AccessDenied"}}, "ListAccountAliases")
        monkeypatch.setattr("mendq.aws.clients.Clients.iam", _DeniedIam(denied))
    assert report_lambda.run()["sent_to"][1:] == list(READERS)
    assert [(place.alias, place.account) for place in places] == [(named_alias, ACCOUNT)]


@dataclass
class _DeniedIam:
    error: ClientError

    def list_account_aliases(self) -> None:
        raise self.error


def test_second_event_for_the_same_summary_sends_no_second_report(
    report_lambda: ReportLambda,
) -> None:
    first = report_lambda.run("request-1")
    second = report_lambda.run("request-2")
    assert first["sent_to"][1:] == list(READERS)
    assert second["sent_to"] == []
    assert len(report_lambda.notifications) == 1
    assert list_recipients(report_lambda.account) == list(READERS)
    assert [document["ReportsDelivered"] for document in report_lambda.metrics] == [[1], [0]]
    assert [document["ReportsNotDelivered"] for document in report_lambda.metrics] == [[0], [0]]


def _read_page(report_lambda: ReportLambda) -> str:
    key = "report/week=2026-W46/report.html"
    body = report_lambda.clients.s3.get_object(Bucket="cases", Key=key)["Body"].read().decode()
    assert body.startswith("<!doctype html>")
    return body


def test_report_without_a_sender_address_is_published_to_sns_and_not_mailed(
    report_lambda: ReportLambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("MENDQ_SENDER", "MENDQ_RECIPIENTS"):
        monkeypatch.delenv(variable)
    reset_to_cold_start(deliver_report.handler)
    assert len(report_lambda.run()["sent_to"]) == 1
    assert len(report_lambda.notifications) == 1
    assert read_sent_mails(report_lambda.account) == []


@pytest.mark.parametrize("readers", [(), READERS])
def test_organization_member_sends_its_report_only_if_it_has_recipients_of_its_own(
    report_lambda: ReportLambda, monkeypatch: pytest.MonkeyPatch, readers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MENDQ_IS_MEMBER", "true")
    if not readers:
        monkeypatch.delenv("MENDQ_RECIPIENTS")
    reset_to_cold_start(deliver_report.handler)
    report_lambda.run()
    assert len(report_lambda.notifications) == bool(readers)
    assert len(read_sent_mails(report_lambda.account)) == len(readers)
    assert report_lambda.metrics[0]["ReportsNotDelivered"] == [0]


def test_report_is_mailed_once_if_sns_refuses_it_at_first_and_published_by_the_retry(
    report_lambda: ReportLambda,
) -> None:
    report_lambda.account.clients.sns.delete_topic(TopicArn=f"arn:aws:sns:us-east-1:{ACCOUNT}:info")
    with pytest.raises(ReportNotDelivered, match="NotFound"):
        report_lambda.run()
    assert list_recipients(report_lambda.account) == list(READERS)
    assert report_lambda.metrics[0]["ReportsNotDelivered"] == [1]
    report_lambda.account.clients.sns.create_topic(Name="info")
    report_lambda.run()
    assert len(report_lambda.notifications) == 1
    assert len(read_sent_mails(report_lambda.account)) == 2


def _refuse_mails(
    report_lambda: ReportLambda, *addresses: str, code: str = "MessageRejected"
) -> Callable[..., None]:
    def refuse(params: dict[str, Any], **_: Any) -> None:
        if any(address in str(params["body"]) for address in addresses):
            error = {"Code": code, "Message": "Email address is not verified. \x1b[2J"}
            metadata = {"HTTPStatusCode": 400}
            raise ClientError({"Error": error, "ResponseMetadata": metadata}, "SendEmail")  # type: ignore[typeddict-item]

    report_lambda.clients.mail.meta.events.register("before-call.sesv2.SendEmail", refuse)
    return refuse


def test_report_reaches_all_but_a_refused_recipient_whom_a_notification_names(
    report_lambda: ReportLambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENDQ_DOCS_URL", "https://wiki.example/mendq/*.md")
    reset_to_cold_start(deliver_report.handler)
    _refuse_mails(report_lambda, READERS[0])
    with pytest.raises(ReportNotDelivered, match="MessageRejected"):
        report_lambda.run()
    assert list_recipients(report_lambda.account) == [READERS[1]]
    assert len(report_lambda.notifications) == 2
    subject, text = report_lambda.notifications[1]
    assert subject == "Mendq: the report of week 2026-W46 was not mailed"
    assert "ada@example[.]com" in text
    assert "grace" not in text
    assert "runbook: https://wiki.example/mendq/runbooks/report_not_mailed.md\n" in text
    assert "\x1b" not in text
    assert report_lambda.metrics[0]["ReportsNotDelivered"] == [1]


def test_recipient_that_is_no_address_costs_only_its_own_mail_and_a_notification_names_it(
    report_lambda: ReportLambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENDQ_RECIPIENTS", json.dumps(["ada@example..com", READERS[1]]))
    reset_to_cold_start(deliver_report.handler)
    with pytest.raises(ReportNotDelivered, match=r"is no e-mail address: write report\.sender"):
        report_lambda.run()
    assert list_recipients(report_lambda.account) == [READERS[1]]
    _, text = report_lambda.notifications[1]
    assert "ada@example" in text
    assert "is no e-mail address" in text


def test_retry_for_a_refused_recipient_mails_only_that_recipient(
    report_lambda: ReportLambda,
) -> None:
    refuse = _refuse_mails(report_lambda, READERS[0])
    for _ in range(2):
        with pytest.raises(ReportNotDelivered):
            report_lambda.run()
    assert len(report_lambda.notifications) == 2
    assert list_recipients(report_lambda.account) == [READERS[1]]
    report_lambda.clients.mail.meta.events.unregister("before-call.sesv2.SendEmail", refuse)
    report_lambda.run("by hand")
    assert list_recipients(report_lambda.account) == [READERS[1], READERS[0]]
    assert len(report_lambda.notifications) == 2
    assert [document["ReportsNotDelivered"] for document in report_lambda.metrics] == [
        [1],
        [1],
        [0],
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_report_is_delivered_whole_after_a_kill_at_any_aws_call_with_at_most_one_part_twice(
    report_lambda: ReportLambda, kind: str
) -> None:
    """A report is sent twice only if the Lambda may have sent it and could not mark it as sent.

    A lost report would be worse.
    """
    sent_twice = MARK_CALLS if kind == "killed_before" else SEND_CALLS
    for strike_at, name in enumerate(CALLS, 1):
        _undo_delivery(report_lambda)
        fault = Fault(report_lambda.account, kind, strike_at, report_lambda.clients_in_use)
        assert report_lambda.run_with_retries(), strike_at
        fault.leave()
        assert fault.call.endswith(f".{name}")
        assert set(list_recipients(report_lambda.account)) == set(READERS), strike_at
        assert report_lambda.notifications, strike_at
        count = len(report_lambda.notifications) + len(read_sent_mails(report_lambda.account))
        assert count == 1 + len(READERS) + (strike_at in sent_twice), strike_at
    _undo_delivery(report_lambda)
    fault = Fault(report_lambda.account, kind, len(CALLS) + 1, report_lambda.clients_in_use)
    assert report_lambda.run_with_retries()
    fault.leave()
    assert not fault.struck, "the Lambda makes more calls than CALLS"


def _has_claim(report_lambda: ReportLambda) -> bool:
    """Return True if an object in S3 says that an invocation is sending."""
    s3 = report_lambda.account.clients.s3
    listed = s3.list_objects_v2(Bucket="cases", Prefix="report/week=2026-W46/delivered/")
    for entry in listed.get("Contents", []):
        body = s3.get_object(Bucket="cases", Key=entry["Key"])["Body"].read()
        if json.loads(body)["state"] == "taken":
            return True
    return False


def _undo_delivery(report_lambda: ReportLambda) -> None:
    """Remove the page, the claims, the mails and the notifications of the week."""
    s3 = report_lambda.account.clients.s3
    for entry in s3.list_objects_v2(Bucket="cases", Prefix="report/").get("Contents", []):
        s3.delete_object(Bucket="cases", Key=entry["Key"])
    ses_backends[ACCOUNT]["us-east-1"].sent_messages.clear()
    sns_backends[ACCOUNT]["us-east-1"].topics[
        f"arn:aws:sns:us-east-1:{ACCOUNT}:info"
    ].sent_notifications.clear()
