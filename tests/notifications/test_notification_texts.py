"""The exact texts of all kinds of notifications."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import QueueExample
from mendq.cli.command_group import find_commands
from mendq.model.limits import Limits, Timing
from mendq.model.state import State
from mendq.model.timeline import build_timeline
from mendq.notifications import notification, sent
from mendq.notifications.notification import ReportRedelivery, describe_refused_mail
from mendq.notifications.text import to_plain_text
from tests.architecture.aws_commands import find_mistake
from tests.golden.checks import fail_if_different
from tests.notifications.pages import (
    AGAIN,
    CASE,
    NOW,
    PAGES_FILE,
    TRIED,
    every_page,
    list_section_lines,
    make_notification,
    read_recorded_pages,
    render_page,
)

LONG_NAME = "q" * 75 + ".fifo"
LONG_ARN = f"arn:aws:sqs:us-east-1:123456789012:{LONG_NAME}"
LONGEST_SYMPTOM = max((symptom.name for symptom in CATALOGUE), key=len)
PAGES = every_page()
RECORDED_PAGES = read_recorded_pages()


@pytest.mark.parametrize("title", PAGES)
def test_notification_text_matches_the_golden_file(title: str) -> None:
    recorded = {title: RECORDED_PAGES.get(title)}
    fail_if_different(PAGES_FILE, recorded, {title: render_page(PAGES[title])})


@pytest.mark.parametrize("state", sorted(set(State) - notification.NOTIFIED_STATES))
def test_describe_case_raises_value_error_for_a_state_that_is_never_notified(state: State) -> None:
    with pytest.raises(ValueError, match="never paged"):
        make_notification(state=state)


@pytest.mark.parametrize("state", sorted(notification.NOTIFIED_STATES))
def test_subject_and_first_line_fit_their_limits_and_name_queue_and_symptom(state: State) -> None:
    short, long = (
        make_notification(state=state, symptom=LONGEST_SYMPTOM, queue_arn=arn)
        for arn in (CASE.queue_arn, LONG_ARN)
    )
    for page, name in ((short, "orders.fifo"), (long, LONG_NAME)):
        line = page.body.splitlines()[0]
        assert line.startswith(f"{name}: visibility timeout too short. ")
        assert len(line) <= notification.MOST_FIRST_LINE_CHARACTERS
    assert long.body.splitlines()[0].endswith(("Approve?", "Look at it", "act", "Choose one"))
    where = "in 123456789012 us-east-1"
    state_text = state.replace("_", " ")
    assert (
        short.subject == f"Mendq {state_text}: visibility timeout too short on orders.fifo {where}"
    )
    assert long.subject.startswith(f"Mendq {state_text}: visibility timeout too short on qqq")
    assert long.subject.endswith(f"q.fifo {where}")
    assert len(long.subject) == sent.MOST_SUBJECT_CHARACTERS


def test_notification_cuts_a_policy_after_a_thousand_characters() -> None:
    policy = json.dumps({"Statement": [{"Sid": "x" * 3_000}]})
    page = make_notification(
        {"attributes": {"Policy": policy}, "always_shown_attributes": ["Policy"]}
    ).body
    (line, *_) = list_section_lines(page, "QUEUE NOW")
    assert re.fullmatch(r'Policy: \{"Statement":\[\{"Sid":"x{800,1000}\.\.\.', line)


def test_notification_cuts_a_reason_only_after_two_thousand_characters() -> None:
    assert "the end\n" in make_notification(reason="x" * 1_990 + " the end").body
    assert "Why: " + "x" * 1_997 + "...\n" in make_notification(reason="x" * 2_001).body


def _list_commands(verb: str) -> list[str]:
    lines = [line.strip() for page in PAGES.values() for line in page.body.splitlines()]
    return [line for line in lines if line.startswith(f"{verb} ")]


def test_mendq_commands_in_notifications_exist() -> None:
    verbs = {command.split()[1] for command in _list_commands("mendq")}
    assert verbs == {"approve", "decline", "close", "rollback", "show", "redrive", "cases"}
    assert verbs <= set(find_commands())


def test_aws_commands_in_notifications_are_valid() -> None:
    commands = {
        command for command in _list_commands("aws") if not re.search(r"'a b'|aws sqs x", command)
    }
    assert len(commands) > 10
    assert {command: find_mistake(command) for command in commands if find_mistake(command)} == {}


@pytest.mark.parametrize("key", [AGAIN.key, "summary/week=x'; rm -rf ~ #/summary.json"])
def test_report_redelivery_command_quotes_the_reports_s3_key(key: str) -> None:
    page = describe_refused_mail("x", {"a@b.io": "why"}, ReportRedelivery("f", "eu-west-1", key))
    (line,) = (line for line in page.body.splitlines() if "lambda invoke" in line)
    words = shlex.split(line)
    assert words[-1] == "/dev/stdout"
    event = json.loads(words[words.index("--payload") + 1])
    assert event == {"detail": {"object": {"key": key}}}


APPLIED = replace(CASE, state=State.APPLIED)
ESCALATED_40_DAYS_LATER = replace(CASE, n=2, at=NOW + timedelta(days=40, hours=7), **TRIED)
TIMELINE = build_timeline([APPLIED, ESCALATED_40_DAYS_LATER], Timing())
WIDEST_TIMELINE_LINE = 82


def list_timeline_lines(points: Sequence[Any]) -> list[str]:
    """Return the lines of the timeline in the notification of a case with these points."""
    return list_section_lines(make_notification({"timeline": points}).body, "CASE SO FAR (UTC)")


def test_notification_of_a_case_with_two_points_in_time_has_no_timeline() -> None:
    assert list_timeline_lines(TIMELINE[:2]) == []


def test_timeline_shows_each_point_with_its_time_since_the_first_failure() -> None:
    assert list_timeline_lines(TIMELINE) == [
        "2026-11-16 09:20:11       +0 s  first failure",
        "2026-11-16 09:29:58     +9 min  evidence complete: 3 failed calls",
        "2026-11-16 09:30:00     +9 min  applied: VisibilityTimeout 30 -> 45",
        "2026-11-16 09:31:45    +11 min  propagated",
        "2026-12-26 16:30:00  +40 d 7 h  escalated",
    ]


def test_timeline_cuts_only_lines_that_are_wider_than_a_terminal() -> None:
    details = "MessageRetentionPeriod 345600 -> 1209600"
    fits = replace(TIMELINE[2], details=details)
    too_wide = replace(TIMELINE[2], details="x" * 99)
    *_, whole, cut = list_timeline_lines([*TIMELINE, fits, too_wide])
    assert details in whole
    assert len(cut) <= WIDEST_TIMELINE_LINE


def _iterate_reasons() -> Iterator[tuple[str, str]]:
    """Yield each symptom's name and its reason for each example."""
    for entry in CATALOGUE:
        for example in entry.examples():
            if entry.plan is not None and isinstance(example, QueueExample):
                yield entry.name, entry.plan(example.facts, Limits()).reason


def test_notification_shows_every_reason_of_the_catalogue_to_its_end() -> None:
    """The end of a proposal's reason tells a person what to know before they approve."""
    reasons = dict.fromkeys(_iterate_reasons())
    assert max(len(reason) for _, reason in reasons) > 1_000, "long ones are among them"
    for symptom, reason in reasons:
        page = make_notification(state=State.PROPOSED, symptom=symptom, reason=reason)
        assert to_plain_text(reason, len(reason) * 2)[-80:] in page.body, symptom
