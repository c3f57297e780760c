"""Commands of the to-do list: built by Mendq, whatever a summary contains."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE
from mendq.model.case import start_case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.queue import queue_arn_or_none
from mendq.model.state import State
from mendq.report.html_page import make_page
from mendq.report.links import QUEUE_ARN_REGEX
from mendq.report.mail import OutgoingReport
from mendq.report.to_do import list_to_do
from tests.report.hostile import KINDS, PAYLOADS, TEXT
from tests.report.page_parts import PageParts
from tests.report.weeks import (
    ACCOUNT,
    HERE,
    Document,
    make_queue_arn,
    make_recommendation,
    make_week,
    read_document,
)

CASE = "visibility_timeout_too_short-0a1b2c3d4e5f"
COMMAND = re.compile(
    r"mendq (queues|alarms arn:[a-z0-9:-]+:[A-Za-z0-9_.-]{1,80}|"
    r"(approve|show) [a-z_]{1,64}-[0-9a-f]{12}) --region us-east-1"
)
OF_FINDINGS = {"add_alarms": f"alarms {make_queue_arn('orders')}", "correct_tags": "queues"}
PLACE = "s3://reports/report/week=2026-W46/report.html"


def _get_command(**over: object) -> str:
    asked = make_recommendation(**{"case_id": CASE, **over})  # type: ignore[arg-type]
    (found,) = list_to_do(read_document(make_week(do_this_week=[asked])), HERE)
    return found.command


@pytest.mark.parametrize("kind", KINDS)
def test_to_do_without_a_safe_command_gets_one_built_from_its_kind_case_and_region(
    kind: str,
) -> None:
    verb = {"approve": "approve", "fix_caller": "", "name_code": ""}.get(kind, "show")
    made = f"mendq {verb} {CASE} --region us-east-1" if verb else ""
    if kind in OF_FINDINGS:
        made = f"mendq {OF_FINDINGS[kind]} --region us-east-1"
    assert (
        _get_command(kind=kind) == _get_command(kind=kind, command="mendq dlq orders; id") == made
    )


def test_to_do_of_a_case_shows_the_next_step_command_of_the_case() -> None:
    assert _get_command(kind="fix", command="mendq dlq orders") == "mendq dlq orders"


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        *(("kind", kind) for kind in ("approve; true", "drop", "rollback", "")),
        *(
            ("case_id", case_id)
            for case_id in (
                f"{CASE}; curl x",
                f"{CASE}\n",
                f"{CASE}0",
                CASE[:-1],
                CASE.upper(),
                "",
                "--yes",
                "kms_throttled-0a1b2c3d4e5f",
                f"$(id){CASE}",
                f"-{CASE}",
            )
        ),
        *(
            ("queue_arn", queue_arn)
            for queue_arn in (
                "unresolved",
                "orders",
                make_queue_arn("orders;id"),
                make_queue_arn("q" * 81),
                f"{make_queue_arn('orders')}\n",
                make_queue_arn("orders").replace(ACCOUNT, "9" * 12),
                make_queue_arn("orders").replace("us-east", "eu-west"),
                make_queue_arn("orders").replace("sqs", "sns"),
            )
        ),
    ],
)
def test_to_do_with_a_malformed_or_foreign_kind_case_id_or_queue_arn_has_no_command(
    name: str, odd: str
) -> None:
    assert _get_command(**{name: odd}) == ""
    assert COMMAND.fullmatch(_get_command())


def test_to_do_of_a_queue_that_mail_programs_link_has_no_command_with_its_name() -> None:
    assert _get_command(kind="add_alarms", queue_arn=make_queue_arn("www.fifo")) == ""


_FIELDS = (
    "queue_arn",
    "symptom",
    "attribute",
    "before",
    "after",
    "owner",
    "why",
    "reason",
    "case_id",
    "kind",
    "remedy",
    "command",
    "template_line",
)
_NEAR = st.sampled_from(
    (
        CASE,
        make_queue_arn("orders"),
        "approve",
        "visibility_timeout_too_short",
        "690",
        "mendq drop orders",
        "VisibilityTimeout",
        *PAYLOADS,
    )
)


@pytest.mark.usefixtures("picture_stubs")
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    asked=st.lists(
        st.fixed_dictionaries({}, optional=dict.fromkeys(_FIELDS, _NEAR | TEXT)),
        min_size=1,
        max_size=4,
    )
)
def test_texts_of_a_summary_never_become_a_command_link_or_script_in_the_to_do_list(
    asked: list[Document],
) -> None:
    summary = read_document(
        make_week(do_this_week=[make_recommendation() | fields for fields in asked])
    )
    html = make_page(summary, HERE)
    mail = OutgoingReport(summary, PLACE, HERE, "ada@example.com")
    elements = {tag for made in (html, mail.html) for tag, _ in PageParts(made).elements}
    assert not {"a", "script", "form", "iframe", "link"} & elements
    copied = re.findall(r'class="small">run</span> (.*?)</code>', html)
    of_page = {re.sub("<[^>]*>", "", command) for command in copied}
    of_mail = set(re.findall(r'<code class="line"[^>]*>(.*?)</code>', mail.html))
    lines = {line.strip() for line in mail.mail_text.splitlines() if line.startswith("   ")}
    assert of_page == of_mail == {line for line in lines if not line.startswith("owner: ")}
    assert all(COMMAND.fullmatch(command) for command in of_page), of_page


@given(st.from_regex(r"arn:aws[a-z-]{0,3}:s[qn]s:[a-z0-9-]{1,9}:[0-9]{11,13}:[\w.-]{1,82}"))
def test_report_and_engine_accept_the_same_queue_arns(text: str) -> None:
    assert bool(QUEUE_ARN_REGEX.fullmatch(text)) == (queue_arn_or_none(text) is not None)


def test_to_do_of_every_symptom_has_an_approve_command() -> None:
    now = datetime(2026, 11, 9, tzinfo=UTC)
    about: dict[str, Any] = {
        "queue_arn": make_queue_arn("orders"),
        "steps": (),
        "reason": "",
        "actor": "heal",
    }
    about |= {"evidence": Evidence((Sighting.from_scan(now),)), "now": now}
    for symptom in (symptom.name for symptom in CATALOGUE):
        case_id = start_case(State.PROPOSED, symptom=symptom, **about).case_id
        made = _get_command(kind="approve", case_id=case_id, symptom=symptom)
        assert made == f"mendq approve {case_id} --region us-east-1"
