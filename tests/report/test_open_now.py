"""Cases that wait for a person: safe commands and links, whatever a summary contains."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.notifications.next_steps import runbook_path
from mendq.report.links import ReportedAccount, make_case_anchor, make_console_url, make_runbook_url
from mendq.report.open_now import choose_command, group_waiting_cases
from tests.report.hostile import PAYLOADS
from tests.report.weeks import (
    ACCOUNT,
    HERE,
    make_open_case,
    make_queue_arn,
    make_week,
    read_document,
)

# As every transition names it.
KMS = runbook_path("kms_denied")
CASE = "visibility_timeout_too_short-0a1b2c3d4e5f"
SHOWN = f"mendq show {CASE} --region us-east-1"
URL = f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/invoices"
TAG = f"aws sqs tag-queue --queue-url {URL} --tags mendq:max-visibility-seconds=1380"


def _get_command(command: str = "", **fields: Any) -> str:
    step = {"sentence": "So.", "command": command, "runbook": ""}
    (kind,) = group_waiting_cases(
        read_document(make_week(open_now=[make_open_case(next_step=step, **fields)])), HERE
    )
    return kind.cases[0].command


@pytest.mark.parametrize(
    "odd",
    [
        *PAYLOADS,
        *(
            f"{SHOWN}{suffix}"
            for suffix in ("; id", "&&id", " $(id)", "\nid", " | sh", " > x", " `id`")
        ),
        *(f"{verb} {CASE}" for verb in ("sh", "mendq destroy", "mendq", "aws lambda invoke")),
        *(f"mendq show {CASE}0", "mendq show"),
        *(f"aws sqs {action}-queue --queue-url {URL}" for action in ("delete", "purge")),
        f"aws sqs tag-queue --queue-url {URL} --tags team=a",
        TAG.replace("invoices", "invoices2"),
        f"{SHOWN} {'a' * 500}",
        *(f"mendq approve {CASE} {flag}" for flag in ("--yes", "-y", "--ye")),
        f"mendq rollback {CASE[:-1]}0 {CASE} --since 2026-01-01",
        *("mendq policy unpin invoices", "mendq redrive orders --all invoices-dlq"),
        f"aws sqs tag-queue --queue-url {URL} --tags mendq=heal mendq:max-visibility-seconds=1380",
        f"aws sqs get-queue-attributes --queue-url {URL} --endpoint-url https://elsewhere.example",
        f"aws sqs get-queue-attributes --queue-url {URL} --endp https://elsewhere.example",
        f"aws sqs get-queue-attributes --queue-url https://elsewhere.example/{ACCOUNT}/invoices",
    ],
)
def test_waiting_case_with_an_unsafe_command_shows_mendq_show_instead(odd: str) -> None:
    assert _get_command(odd) == SHOWN


@pytest.mark.parametrize(
    "harmless",
    [
        *(TAG, SHOWN, TAG.replace("1380", "SECONDS"), f"mendq rollback {CASE}"),
        "mendq policy show invoices --region us-east-1",
        "mendq dlq invoices --region us-east-1",
        f"aws lambda list-event-source-mappings --event-source-arn {make_queue_arn('invoices')}",
        "mendq redrive invoices --all --dry-run --region us-east-1",
        f"aws sqs get-queue-attributes --queue-url {URL} --attribute-names Policy",
    ],
)
def test_waiting_case_shows_its_own_harmless_command(harmless: str) -> None:
    assert _get_command(harmless) == harmless


@pytest.mark.parametrize("name", ["www.fifo", "WWW.fifo"])
def test_waiting_case_of_a_queue_that_mail_programs_link_shows_mendq_show_instead(
    name: str,
) -> None:
    command = f"mendq dlq {name} --region us-east-1"
    assert _get_command(command, queue_arn=make_queue_arn(name)) == SHOWN


@pytest.mark.parametrize(
    ("partition", "region", "domain"),
    [
        ("aws-cn", "cn-north-1", "amazonaws.com.cn"),
        ("aws-eusc", "eusc-de-east-1", "amazonaws.eu"),
        ("aws-us-gov", "us-gov-west-1", "amazonaws.com"),
    ],
)
def test_command_with_the_queues_address_is_shown_in_every_supported_partition(
    partition: str, region: str, domain: str
) -> None:
    queue_arn = f"arn:{partition}:sqs:{region}:{ACCOUNT}:invoices"
    here = ReportedAccount(region, ACCOUNT)
    case = make_open_case(queue_arn=queue_arn)
    (open_case,) = read_document(make_week(open_now=[case])).open_now
    for other_domain in ("amazonaws.com", "amazonaws.com.cn", "amazonaws.eu", "evil.com"):
        queue_url = f"https://sqs.{region}.{other_domain}/{ACCOUNT}/invoices"
        command = f"aws sqs get-queue-attributes --queue-url {queue_url} --attribute-names All"
        shown = choose_command(open_case, command, "show", here)
        assert (shown == command) == (other_domain == domain)


def test_waiting_case_offers_no_command_if_case_id_queue_account_or_symptom_does_not_fit() -> None:
    assert _get_command(case_id="x; id") == _get_command(queue_arn="unresolved") == ""
    assert _get_command(TAG, queue_arn=make_queue_arn("invoices").replace(ACCOUNT, "9" * 12)) == ""
    assert _get_command(symptom="kms_denied") == ""


def test_waiting_case_without_a_command_offers_approve_if_proposed_and_show_otherwise() -> None:
    assert _get_command(state="proposed") == f"mendq approve {CASE} --region us-east-1"
    assert _get_command() == SHOWN


@pytest.mark.parametrize(
    "odd",
    [
        *PAYLOADS,
        *(
            "unresolved",
            "orders",
            make_queue_arn("a/b"),
            make_queue_arn("q" * 81),
            f"{make_queue_arn('orders')}\n",
        ),
        *(
            make_queue_arn("a").replace("us-east-1", region)
            for region in ("evil.example", "x", "us-east-1.evil")
        ),
        make_queue_arn("a").replace("arn:aws", "arn:aws-iso"),
    ],
)
def test_malformed_queue_arn_gives_no_console_link(odd: str) -> None:
    assert make_console_url(odd) == make_case_anchor(odd) == ""


@pytest.mark.parametrize(
    "odd", [*PAYLOADS, "kms_denied", "docs/runbooks/../kms_denied.md", f"https://a.example/{KMS}"]
)
def test_malformed_runbook_path_gives_no_runbook_link(odd: str) -> None:
    assert make_runbook_url(odd, HERE) == ""


def test_queue_links_to_its_console_case_to_its_anchor_and_runbook_to_the_docs() -> None:
    there = f"https%3A%2F%2Fsqs.us-east-1.amazonaws.com%2F{ACCOUNT}%2Forders.fifo"
    at = "console.aws.amazon.com/sqs/v3/home?region=us-east-1#/queues"
    assert make_console_url(make_queue_arn("orders.fifo")) == f"https://us-east-1.{at}/{there}"
    assert make_case_anchor(CASE) == f"case-{CASE}"
    assert make_runbook_url(KMS, HERE) == "https://docs.example/mendq/runbooks/kms_denied.html"


def test_queue_in_china_links_to_the_console_of_china() -> None:
    china = (
        make_queue_arn("a").replace("arn:aws:", "arn:aws-cn:").replace("us-east-1", "cn-north-1")
    )
    assert make_console_url(china).startswith("https://cn-north-1.console.amazonaws.cn/")
    assert "sqs.cn-north-1.amazonaws.com.cn" in make_console_url(china)


def test_missing_case_or_missing_docs_url_gives_no_link() -> None:
    assert (
        make_case_anchor(None)
        == make_runbook_url(KMS, None)
        == make_runbook_url(KMS, ReportedAccount("r", "a"))
        == ""
    )
