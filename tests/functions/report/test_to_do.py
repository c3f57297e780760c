from __future__ import annotations

from typing import Any

import pytest

from analytics import deeds_of_callers, deeds_of_cases
from analytics.labels import COUNT_ONLY
from functions.report.to_do import _WHAT, MOST_COMMAND, WHY, ToDo, left_out, to_do
from functions.report.words import plain
from tests.functions.report.week_parts import deed
from tests.functions.report.weeks import summary

NO_CHANGE = {"attribute": "", "before": "", "after": "", "template_line": ""}
ROLE = "arn:aws:iam::123456789012:role/orders-api"


def first(kind: str = "write_into_template", **fields: Any) -> ToDo:
    return to_do(summary(do_this_week=[deed(kind, **fields)]))[0]


@pytest.mark.parametrize(
    ("kind", "fields", "what"),
    [
        ("write_into_template", {}, "Set VisibilityTimeout of orders to 690 s in its template."),
        (
            "write_into_template",
            {"queues": 5},
            "Set VisibilityTimeout of orders and 4 other queues to 690 s in their template.",
        ),
        (
            "write_into_template",
            {
                "attribute": "RedrivePolicy",
                "after": '{"deadLetterTargetArn": "a-long-one-of-these"}',
            },
            "Set RedrivePolicy of orders in its template.",
        ),
        (
            "approve",
            {},
            "Approve or decline: VisibilityTimeout of orders from 460 s to 690 s.",
        ),
        (
            "approve",
            {"queues": 2, "before": ""},
            "Approve or decline: VisibilityTimeout of orders and 1 other queue to 690 s.",
        ),
        (
            "approve",
            NO_CHANGE,
            "Approve or decline what Mendq proposes for lease_expired of orders.",
        ),
        ("watch", {}, "Watch VisibilityTimeout of orders, changed from 460 s to 690 s."),
        ("watch", {"before": ""}, "Watch VisibilityTimeout of orders, changed to 690 s."),
        ("watch", {"after": "x" * 41}, "Watch VisibilityTimeout of orders."),
        ("watch", NO_CHANGE, "Watch what Mendq did about lease_expired of orders."),
        ("decide", {}, "Decide on VisibilityTimeout of orders: 460 s or 690 s."),
        ("decide", {"before": ""}, "Decide on VisibilityTimeout of orders."),
        ("decide", NO_CHANGE, "Decide what to do about lease_expired of orders."),
        ("mend", NO_CHANGE, "Mend lease_expired of orders."),
        (
            "mend",
            {},
            "Mend lease_expired of orders, VisibilityTimeout from 460 s to 690 s.",
        ),
        (
            "mend_caller",
            NO_CHANGE | {"owner": ROLE, "reason": "InvalidParameterValue"},
            "Mend role/orders-api, whose calls to orders are mistaken (InvalidParameterValue).",
        ),
        (
            "mend_caller",
            NO_CHANGE | {"queues": 3, "reason": ""},
            "Mend the callers, whose calls to orders and 2 other queues are mistaken.",
        ),
        (
            "label_code",
            NO_CHANGE | {"symptom": "unlabelled:Teapot"},
            "Find out what Teapot means for orders.",
        ),
        ("a_new_kind", {}, "Look at lease_expired of orders."),
    ],
)
def test_what_is_to_be_done(kind: str, fields: dict[str, Any], what: str) -> None:
    assert plain(first(kind, **fields).what) == what


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        (
            "write_into_template",
            {},
            "Mendq changed it and it helped; the next deployment would bring back 460 s.",
        ),
        (
            "write_into_template",
            {"before": ""},
            "Mendq changed it and it helped; the next deployment would bring back the old value.",
        ),
        ("approve", {"why": "proposed"}, "Mendq waits for an answer."),
        (
            "watch",
            {"why": "applied", "reason": "it needs more"},
            "Mendq changed it and has not verified yet that it helped.",
        ),
        (
            "decide",
            {"why": "contested", "reason": "x"},
            "Somebody else changed it after Mendq, which leaves it alone now.",
        ),
        (
            "mend",
            {"why": "observed", "reason": "it needs more"},
            "Mendq only observed: the mode does not let it act.",
        ),
        (
            "mend",
            {"why": "expired", "reason": "x"},
            "Nobody answered Mendq's proposal in time.",
        ),
        ("mend", {"why": "refused", "reason": "over 900 s"}, "Mendq refused to act: over 900 s."),
        ("mend", {"why": "refused", "reason": "so."}, "Mendq refused to act: so."),
        ("mend", {"why": "refused", "reason": ""}, "Mendq refused to act."),
        ("mend", {"why": "escalated", "reason": "x"}, "Mendq left it to a person: x."),
        ("mend", {"why": "ineffective", "reason": "x"}, "Mendq's change did not help: x."),
        (
            "mend_caller",
            {"why": "caller_bug", "reason": "InvalidParameterValue"},
            "Nothing in the queue could mend a caller's mistake.",
        ),
        ("mend", {"why": "a_new_word"}, ""),
        (
            "label_code",
            {"why": "unlabelled", "reason": "Teapot"},
            "The catalogue has no entry for this error code, so nothing acts on it.",
        ),
    ],
)
def test_why(kind: str, fields: dict[str, Any], why: str) -> None:
    assert plain(first(kind, **fields).why) == why


@pytest.mark.parametrize(
    ("incidents", "calls", "effect"),
    [
        (0, 0, ""),
        (1, 1, "Behind 1 incident with 1 failed call this week."),
        (7, 1_980, "Behind 7 incidents with 1,980 failed calls this week."),
    ],
)
def test_what_it_is_behind(incidents: int, calls: int, effect: str) -> None:
    assert first(incidents=incidents, failed_calls=calls).effect == effect


def test_an_owner_is_named_where_one_is_known() -> None:
    assert first(owner="billing").owner == "billing"
    assert first("mend_caller", owner=ROLE).owner == ""


@pytest.mark.parametrize(
    "command",
    ["x" * (MOST_COMMAND + 1), "mendq show a\nrm -rf b", "mendq show \N{RIGHT-TO-LEFT OVERRIDE}a"],
)
def test_what_would_be_copied_wrong_is_not_shown(command: str) -> None:
    found = first(command=command, template_line=command)
    assert (found.command, found.template_line) == ("", "")


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, ""),
        (1, "1 more thing would have prevented less."),
        (312, "312 more things would have prevented less."),
    ],
)
def test_what_is_left_out_is_counted(count: int, said: str) -> None:
    assert left_out(summary(do_this_week_left_out=count)) == said


def test_the_order_is_the_summary_s() -> None:
    found = to_do(summary(do_this_week=[deed("mend", each, **NO_CHANGE) for each in "bca"]))
    assert [plain(each.what)[-2] for each in found] == ["b", "c", "a"]


def test_there_are_words_for_whatever_the_night_asks() -> None:
    asked = {*deeds_of_cases._ASKS.values(), deeds_of_cases.WRITE_INTO_TEMPLATE}
    callers = {deeds_of_callers.MEND_CALLER, deeds_of_callers.LABEL_CODE}
    assert asked | callers | {"watch"} == set(_WHAT)
    states = deeds_of_cases._ASKS.items()
    whys = {"applied" if kind == "watch" else str(state) for state, kind in states}
    assert whys | {"applied", "unlabelled", *COUNT_ONLY} == set(WHY)
