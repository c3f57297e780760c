"""Report of an organization, and of values that Mendq set."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.report.html_page import make_page
from mendq.report.mail import MOST_SUBJECT_CHARACTERS, OutgoingReport
from mendq.report.to_do import describe_drift, list_drift
from mendq.report.verdict import (
    describe_accounts,
    describe_incomplete,
    describe_needy_queues,
    make_verdict_text,
)
from mendq.report.words import remove_marks
from tests.report.hostile import PAYLOADS
from tests.report.weeks import (
    HERE,
    make_member,
    make_organization_week,
    make_previous_weeks,
    make_standing_value,
    make_summary,
    read_document,
)


def make_mail(document: dict[str, Any]) -> OutgoingReport:
    return OutgoingReport(
        read_document(document), "s3://reports/report.html", HERE, "reports@example.com"
    )


def test_organization_report_names_silent_late_and_unreliable_member_accounts() -> None:
    found = read_document(make_organization_week()).organization
    assert found
    said = [remove_marks(sentence) for sentence in describe_incomplete(found)]
    liar = "team-0-prod (111111111111), eu-west-1"
    odd = "of another account, region or queue, or not as Mendq writes them"
    assert said == [
        f"team-2-prod ({make_member(2)['account']}), eu-west-1 reported nothing.",
        f"{make_member(1)['account']}, eu-west-1 reported some days only.",
        f"{liar} shared 3 rows, left out: {odd}.",
        f"{liar} had tables that were unreadable or over the account's limit.",
    ]


def test_organization_report_counts_accounts_and_incidents_and_names_queues_in_need() -> None:
    found = read_document(make_organization_week()).organization
    assert found
    assert describe_accounts(found).startswith("40 accounts: 2 of 266 incidents need somebody; ")
    assert remove_marks(describe_needy_queues(found)[0]).startswith(
        "invoices of team-0-prod (111111111111), eu-west-1: "
    )


def test_organization_mail_subject_counts_accounts_and_incidents_within_the_limit_of_sns() -> None:
    mail = make_mail(make_organization_week())
    assert mail.subject.startswith("Mendq 2026-W46: 40 accounts: 2 of 266 incidents need somebody")
    assert len(mail.subject) <= MOST_SUBJECT_CHARACTERS


def test_organization_mail_describes_all_accounts_before_the_hub_account() -> None:
    mail = make_mail(make_organization_week())
    text = make_verdict_text(mail.summary)
    assert text.index("40 accounts") < text.index("The hub's own account:")


def test_report_without_an_organization_and_set_values_mentions_neither() -> None:
    html = make_page(make_summary(), HERE)
    assert "hub" not in html
    assert "Set by Mendq" not in html


def _make_week_with_texts(text: str) -> dict[str, Any]:
    """Return a week without cases, so without pictures, whose member account sent this text."""
    document = make_organization_week(members=3, cases=[])
    words = {"alias": text, "account": text, "region": text}
    organization = document["organization"]
    organization["members"] = [make_member(0, **words, state=text, rows_left_out=1)]
    organization["queues"][0] |= {**words, "symptom": text, "outcome": text}
    del organization["queues"][0]["alias"]  # the row of a queue has no alias
    organization["unreadable_files"] = [{"file": text, "reason": text}]
    document["standing"] = [make_standing_value(owner=text, attribute=text, after=text)]
    return document


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_texts_of_a_member_account_stay_text_in_page_and_mail(payload: str) -> None:
    mail = make_mail(_make_week_with_texts(payload))
    tame_mail = make_mail(_make_week_with_texts("tame"))
    for html, tame_html in (
        (make_page(mail.summary, HERE), make_page(tame_mail.summary, HERE)),
        (mail.html, tame_mail.html),
    ):
        assert not [marker for marker in ("<script", "<img src=x", "<svg onload") if marker in html]
        assert html.count("<table") == tame_html.count("<table")
        assert "tame" in tame_html


def test_value_set_by_mendq_is_reported_with_its_age_and_patch_command() -> None:
    week = read_document(make_organization_week())
    (first, *_) = list_drift(week, HERE)
    assert remove_marks(first.change) == "VisibilityTimeout from 30 s to 690 s"
    assert first.age == "45 d 21 h"
    case = week.standing[0].case_id
    assert first.command == f"mendq patch {case} --template FILE --region us-east-1"
    assert describe_drift(week) == "3 values that Mendq set stand, perhaps in no template yet."


def test_report_of_a_quiet_week_still_lists_values_set_by_mendq() -> None:
    week = read_document(
        make_organization_week(members=3, previous_weeks=make_previous_weeks(3, 0))
    )
    assert week.is_quiet
    assert "VisibilityTimeout" in make_page(week, HERE)


@pytest.mark.parametrize(
    "odd",
    [
        {"case_id": "x; rm -rf /"},
        {"queue_arn": "arn:aws:sqs:eu-west-1:999999999999:orders"},
        {"symptom": "dlq_missing"},
    ],
)
def test_value_set_by_mendq_has_no_command_if_case_id_account_or_symptom_does_not_fit(
    odd: dict[str, Any],
) -> None:
    document = make_organization_week() | {"standing": [make_standing_value(**odd)]}
    (found,) = list_drift(read_document(document), HERE)
    assert found.command == ""


def test_value_without_a_set_time_is_reported_with_unknown_age() -> None:
    document = make_organization_week() | {"standing": [make_standing_value(set_at="")]}
    assert list_drift(read_document(document), HERE)[0].age == "not known"
