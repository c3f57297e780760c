"""What people are told when SES refuses the report."""

from __future__ import annotations

import json
import shlex

from mendq.notifications.notification import Again, not_mailed

KEY = "summary/week=2026-W46/summary.json"
AGAIN = Again("Mendq-DeliverReport", "eu-west-1", KEY)
EVIL = "a\nb \x1b[2J \u202e https://evil.example"
WHY = "MessageRejected: Email address is not verified."


def _command(body: str) -> list[str]:
    (line,) = (each for each in body.splitlines() if "lambda invoke" in each)
    return shlex.split(line)


def test_it_names_whom_it_did_not_reach_and_sess_own_words() -> None:
    page = not_mailed("2026-W46", {"ada@example.com": WHY}, AGAIN)
    assert page.subject == "Mendq: the report of week 2026-W46 was not mailed"
    assert f"ada@example.com: {WHY}" in page.body
    assert "To: 1 address;" in page.body


def test_its_command_delivers_that_week_again() -> None:
    arguments = _command(not_mailed("2026-W46", {"ada@example.com": WHY}, AGAIN).body)
    event = json.loads(arguments[arguments.index("--payload") + 1])
    assert event == {"detail": {"object": {"key": KEY}}}
    assert arguments[arguments.index("--function-name") + 1] == AGAIN.function


def test_a_key_cannot_leave_its_place_in_the_command() -> None:
    key = "summary/week=x'; rm -rf ~ #/summary.json"
    arguments = _command(not_mailed("x", {"a@b.io": WHY}, Again("f", "eu-west-1", key)).body)
    event = json.loads(arguments[arguments.index("--payload") + 1])
    assert event["detail"]["object"]["key"] == key
    assert arguments[-1] == "/dev/stdout"


def test_others_words_stay_one_line_and_many_addresses_stay_few() -> None:
    whom = {f"reader-{n}@example.com": EVIL for n in range(50)}
    page = not_mailed("2026-W46", whom, AGAIN)
    assert page.body.isascii()
    assert page.body.replace("\n", "").isprintable()
    assert "\x1b" not in page.body
    assert "://evil" not in page.body
    assert "and 30 more" in page.body
    assert len(page.body.encode()) <= 8_000 + 2_000
