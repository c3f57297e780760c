"""What is to be copied is ours, whatever somebody has written into summary.json."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE
from mendq.model.case import State, opened
from mendq.model.evidence import Evidence, Sighting
from mendq.model.queue import arn_of
from mendq.report.html_page import page
from mendq.report.mail import Outgoing
from mendq.report.to_do import to_do
from tests.report.hostile import KINDS, PAYLOADS, TEXT
from tests.report.page_parts import PageParts
from tests.report.weeks import HERE, Document, arn, read, recommendation, week

CASE = "visibility_timeout_too_short-0a1b2c3d4e5f"
COMMAND = re.compile(r"mendq (approve|show) [a-z_]{1,64}-[0-9a-f]{12} --region us-east-1")
PLACE = "s3://reports/report/week=2026-W46/report.html"


def _copied(**over: object) -> str:
    asked = recommendation(**{"case_id": CASE, **over})  # type: ignore[arg-type]
    (found,) = to_do(read(week(do_this_week=[asked])), HERE)
    return found.command


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_is_made_of_the_kind_the_case_and_the_region(kind: str) -> None:
    verb = {"approve": "approve", "fix_caller": "", "name_code": ""}.get(kind, "show")
    made = f"mendq {verb} {CASE} --region us-east-1" if verb else ""
    assert _copied(kind=kind) == made


@pytest.mark.parametrize(
    "over",
    [
        *({"kind": each} for each in ("approve; true", "drop", "rollback", "")),
        *(
            {"case_id": each}
            for each in (
                *(f"{CASE}; curl x", f"{CASE}\n", f"{CASE}0", CASE[:-1], CASE.upper(), ""),
                *("kms_throttled-0a1b2c3d4e5f", "--yes", f"$(id){CASE}", f"-{CASE}"),
            )
        ),
        *(
            {"queue_arn": each}
            for each in (
                *("unresolved", "orders", arn("orders;id"), arn("q" * 81), f"{arn('orders')}\n"),
                "arn:aws:sqs:us-east-1:999999999999:orders",
                "arn:aws:sqs:eu-west-1:123456789012:orders",
                "arn:aws:sns:us-east-1:123456789012:orders",
            )
        ),
    ],
)
def test_what_has_another_form_has_no_command(over: dict[str, str]) -> None:
    assert _copied(**over) == ""
    assert COMMAND.fullmatch(_copied())


_FIELDS = ("queue_arn", "symptom", "attribute", "before", "after", "owner", "why", "reason",
           "case_id", "kind", "remedy", "command", "template_line")  # fmt: skip
_NEAR = st.sampled_from((CASE, arn("orders"), "approve", "visibility_timeout_too_short", "690",
                         "mendq drop orders", "VisibilityTimeout", *PAYLOADS))  # fmt: skip


@pytest.mark.usefixtures("undrawn")
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
def test_no_text_of_a_summary_is_a_command_a_link_or_a_script(asked: list[Document]) -> None:
    summary = read(week(do_this_week=[recommendation() | each for each in asked]))
    html, mail = page(summary, HERE), Outgoing(summary, PLACE, HERE, "ada@example.com")
    parts = PageParts(html)
    assert not {"a", "script", "form", "iframe", "link"} & {tag for tag, _ in parts.elements}
    ours = {mail.command, PLACE}
    shown = PageParts(mail.html)
    assert not {"a", "script"} & {tag for tag, _ in shown.elements}
    of_page, of_mail = _to_copy(parts), set(shown.texts_of("code")) - ours
    in_text = {each.strip() for each in mail.whole_text.splitlines() if each.startswith("   ")}
    in_text -= {each for each in in_text if each.startswith("owner: ")}
    assert of_page == of_mail == in_text
    assert all(COMMAND.fullmatch(each) for each in of_page), of_page


def _to_copy(parts: PageParts) -> set[str]:
    """The paragraphs to be copied, without the word that says what they are."""
    return {each.partition(" ")[2].strip() for each in parts.texts_of("p", "copy")}


@given(st.from_regex(r"arn:aws[a-z-]{0,3}:s[qn]s:[a-z0-9-]{1,9}:[0-9]{11,13}:[\w.-]{1,82}"))
def test_a_queue_is_one_where_the_engine_takes_it_for_one(text: str) -> None:
    from mendq.report.to_do import _QUEUE_ARN  # noqa: PLC0415 - the form is nobody else's

    assert bool(_QUEUE_ARN.fullmatch(text)) == (arn_of(text) is not None)


def test_every_symptoms_case_can_be_named() -> None:
    now = datetime(2026, 11, 9, tzinfo=UTC)
    seen = Evidence((Sighting.of_measurement(now),))
    for symptom in CATALOGUE:
        case = opened(
            State.PROPOSED, queue_arn=arn("orders"), symptom=symptom.name, evidence=seen, steps=(),
            now=now, reason="", actor="heal",
        )  # fmt: skip
        asked = {"case_id": case.case_id, "symptom": symptom.name, "kind": "approve"}
        assert _copied(**asked) == f"mendq approve {case.case_id} --region us-east-1"
