"""A summary lands: its page is made, and it goes once to everybody, whatever fails in between."""

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
# The summary, the page; then a verdict and two mails, each of them taken, sent, and noted.
CALLS = (
    *("GetObject", "PutObject"),
    *("PutObject", "Publish", "PutObject"),
    *(2 * ("PutObject", "SendEmail", "PutObject")),
)
SENDING, NOTING = {4, 7, 10}, {5, 8, 11}


@dataclass
class Lambda:
    """The Lambda with its own clients, and what it told CloudWatch."""

    account: Account
    clients: Clients
    capture: pytest.CaptureFixture[str]
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def put(self, document: bytes) -> None:
        self.account.clients.s3.put_object(Bucket="cases", Key=KEY, Body=document)

    def run(self, request_id: str = "request-1") -> dict[str, Any]:
        """One invocation; raises what it raises."""
        try:
            context: Any = LambdaContext(request_id)
            answer: dict[str, Any] = deliver_report.handler(EVENT, context)
            return answer
        finally:
            lines = self.capture.readouterr().out.splitlines()
            self.metrics += [json.loads(each) for each in lines if '"_aws"' in each]

    def invoke(self, request_id: str = "request-1") -> bool:
        """As Lambda does for an event: two more tries; whether one went through."""
        for _ in range(3):
            try:
                self.run(request_id)
            except (Exception, Killed):  # noqa: BLE001, S112 - whatever it was, Lambda tries again
                continue
            return True
        return False

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        return self.account.pages("info")

    @property
    def used(self) -> tuple[Any, ...]:
        return (self.clients.s3, self.clients.sns_once, self.clients.mail)


@pytest.fixture
def made(
    account: Account,
    deploy: Deploy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Lambda:
    topic = account.clients.sns.create_topic(Name="info")["TopicArn"]
    over = {"report_bucket": "cases", "topic_arn": topic}
    deploy(deliver_report.handler, account, **over, sender=SENDER, recipients=READERS)
    # Drawing takes a second, and is tested where it is done.
    monkeypatch.setattr(
        deliver_report, "make_page", lambda week, _here: f"<!doctype html>{week.made_at}"
    )
    monkeypatch.setattr("mendq.report.mail.make_png", lambda _: b"a picture")
    verify_identity(account)
    made = Lambda(account, account.clients, capsys)
    made.put(json.dumps(make_busy_week()).encode())
    return made


def test_deliver_report_with_an_unreadable_summary_writes_and_sends_nothing(made: Lambda) -> None:
    made.put(json.dumps(make_busy_week()).encode() + b" " * MOST_SUMMARY_BYTES)
    with pytest.raises(SummaryUnreadable):
        made.run()
    listed = made.clients.s3.list_objects_v2(Bucket="cases", Prefix="report/")
    assert listed["KeyCount"] == 0
    assert (made.verdicts, read_sent_mails(made.account)) == ([], [])
    assert made.metrics[0]["ReportsNotDelivered"] == [1]
    assert made.metrics[0]["ReportsDelivered"] == [0]


def test_report_of_an_unfinished_week_is_written_as_a_page_and_mailed_after_the_week_ends(
    made: Lambda,
) -> None:
    week = make_busy_week()
    running = {**week, "not_seen": {**week["not_seen"], "week_is_over": False}}
    made.put(json.dumps(running).encode())
    assert made.run()["sent_to"] == []
    assert _page(made)
    assert (made.verdicts, read_sent_mails(made.account), _held(made)) == ([], [], False)
    assert made.metrics[0]["ReportsDelivered"] == made.metrics[0]["ReportsNotDelivered"] == [0]
    listed = made.clients.s3.list_objects_v2(Bucket="cases", Prefix="report/")
    assert [each["Key"] for each in listed["Contents"]] == ["report/week=2026-W46/report.html"]
    running["not_seen"]["week_is_over"] = True
    made.put(json.dumps(running).encode())
    assert made.run("on Monday")["sent_to"][1:] == list(READERS)
    assert len(made.verdicts) == 1


@pytest.mark.parametrize(("alias", "said"), [("orders-prod", "orders-prod"), (None, "")])
def test_report_names_the_account_alias_only_if_iam_lets_the_lambda_read_it(
    made: Lambda, monkeypatch: pytest.MonkeyPatch, alias: str | None, said: str
) -> None:
    heres: list[Any] = []

    def page(_: object, here: object) -> str:
        heres.append(here)
        return "<!doctype html>"

    monkeypatch.setattr(deliver_report, "make_page", page)
    if alias:
        made.account.clients.iam.create_account_alias(AccountAlias=alias)
    else:
        denied = ClientError({"Error": {"Code": "AccessDenied"}}, "ListAccountAliases")
        monkeypatch.setattr("mendq.aws.clients.Clients.iam", _Denied(denied))
    assert made.run()["sent_to"][1:] == list(READERS)
    assert [(each.alias, each.account) for each in heres] == [(said, ACCOUNT)]


@dataclass
class _Denied:
    error: ClientError

    def list_account_aliases(self) -> None:
        raise self.error


def test_second_event_for_the_same_summary_sends_no_second_report(made: Lambda) -> None:
    first, second = made.run("request-1"), made.run("request-2")
    assert first["sent_to"][1:] == list(READERS)
    assert second["sent_to"] == []
    assert len(made.verdicts) == 1
    assert list_recipients(made.account) == list(READERS)
    assert [each["ReportsDelivered"] for each in made.metrics] == [[1], [0]]
    assert [each["ReportsNotDelivered"] for each in made.metrics] == [[0], [0]]


def _page(made: Lambda) -> str:
    key = "report/week=2026-W46/report.html"
    body = made.clients.s3.get_object(Bucket="cases", Key=key)["Body"].read().decode()
    assert body.startswith("<!doctype html>")
    return body


def test_report_without_a_sender_address_is_published_to_sns_and_not_mailed(
    made: Lambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("MENDQ_SENDER", "MENDQ_RECIPIENTS"):
        monkeypatch.delenv(variable)
    reset_to_cold_start(deliver_report.handler)
    assert len(made.run()["sent_to"]) == 1
    assert (len(made.verdicts), read_sent_mails(made.account)) == (1, [])


@pytest.mark.parametrize("readers", [(), READERS])
def test_organization_member_sends_a_report_only_if_it_has_recipients_of_its_own(
    made: Lambda, monkeypatch: pytest.MonkeyPatch, readers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MENDQ_IS_MEMBER", "true")
    if not readers:
        monkeypatch.delenv("MENDQ_RECIPIENTS")
    reset_to_cold_start(deliver_report.handler)
    made.run()
    assert (len(made.verdicts), len(read_sent_mails(made.account))) == (bool(readers), len(readers))
    assert made.metrics[0]["ReportsNotDelivered"] == [0]


def test_report_is_mailed_even_if_sns_refuses_the_notification_and_the_retry_mails_nobody_twice(
    made: Lambda,
) -> None:
    made.account.clients.sns.delete_topic(TopicArn=f"arn:aws:sns:us-east-1:{ACCOUNT}:info")
    with pytest.raises(ReportNotDelivered, match="NotFound"):
        made.run()
    assert list_recipients(made.account) == list(READERS)
    assert made.metrics[0]["ReportsNotDelivered"] == [1]
    made.account.clients.sns.create_topic(Name="info")
    made.run()
    assert (len(made.verdicts), len(read_sent_mails(made.account))) == (1, 2)


def _refusing(made: Lambda, *addresses: str, code: str = "MessageRejected") -> Callable[..., None]:
    def refuse(params: dict[str, Any], **_: Any) -> None:
        if any(each in str(params["body"]) for each in addresses):
            error = {"Code": code, "Message": "Email address is not verified. \x1b[2J"}
            metadata = {"HTTPStatusCode": 400}
            raise ClientError({"Error": error, "ResponseMetadata": metadata}, "SendEmail")  # type: ignore[typeddict-item]

    made.clients.mail.meta.events.register("before-call.sesv2.SendEmail", refuse)
    return refuse


def test_report_reaches_other_recipients_if_ses_refuses_one_and_notifies_once_about_the_refusal(
    made: Lambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENDQ_DOCS_URL", "https://wiki.example/mendq/*.md")
    reset_to_cold_start(deliver_report.handler)
    refuse = _refusing(made, READERS[0])
    with pytest.raises(ReportNotDelivered, match="MessageRejected"):
        made.run()
    assert list_recipients(made.account) == [READERS[1]]
    assert len(made.verdicts) == 2
    subject, announced = made.verdicts[1]
    assert subject == "Mendq: the report of week 2026-W46 was not mailed"
    assert READERS[0] in announced
    assert READERS[1] not in announced
    assert "runbook: https://wiki.example/mendq/runbooks/report_not_mailed.md\n" in announced
    assert "\x1b" not in announced
    with pytest.raises(ReportNotDelivered):
        made.run()
    assert (len(made.verdicts), len(read_sent_mails(made.account))) == (2, 1)
    made.clients.mail.meta.events.unregister("before-call.sesv2.SendEmail", refuse)
    made.run("by hand")
    assert list_recipients(made.account) == [READERS[1], READERS[0]]
    assert len(made.verdicts) == 2
    assert [each["ReportsNotDelivered"] for each in made.metrics] == [[1], [1], [0]]


@pytest.mark.parametrize("kind", KINDS)
def test_lambda_killed_at_any_aws_call_delivers_the_whole_report_on_retry(
    made: Lambda, kind: str
) -> None:
    """Twice only where it may have been sent and nobody could note it: what is lost is worse."""
    twice_at = NOTING if kind == "killed_before" else SENDING
    for strike_at, name in enumerate(CALLS, 1):
        _forget(made)
        fault = Fault(made.account, kind, strike_at, made.used)
        assert made.invoke(), strike_at
        fault.leave()
        assert fault.call.endswith(f".{name}")
        assert set(list_recipients(made.account)) == set(READERS), strike_at
        assert made.verdicts, strike_at
        count = len(made.verdicts) + len(read_sent_mails(made.account))
        assert count == 1 + len(READERS) + (strike_at in twice_at), strike_at
    _forget(made)
    fault = Fault(made.account, kind, len(CALLS) + 1, made.used)
    assert made.invoke()
    fault.leave()
    assert not fault.struck, "there are more calls than these"


def _held(made: Lambda) -> bool:
    """Whether a mark says that somebody is sending."""
    s3 = made.account.clients.s3
    listed = s3.list_objects_v2(Bucket="cases", Prefix="report/week=2026-W46/delivered/")
    bodies = (
        s3.get_object(Bucket="cases", Key=each["Key"])["Body"].read()
        for each in listed.get("Contents", [])
    )
    return any(json.loads(each)["state"] == "taken" for each in bodies)


def _forget(made: Lambda) -> None:
    """As before the week's first delivery."""
    s3 = made.account.clients.s3
    for each in s3.list_objects_v2(Bucket="cases", Prefix="report/").get("Contents", []):
        s3.delete_object(Bucket="cases", Key=each["Key"])
    ses_backends[ACCOUNT]["us-east-1"].sent_messages.clear()
    sns_backends[ACCOUNT]["us-east-1"].topics[
        f"arn:aws:sns:us-east-1:{ACCOUNT}:info"
    ].sent_notifications.clear()
