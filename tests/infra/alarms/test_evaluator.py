"""The evaluator against the tables of CloudWatch's own page."""

from __future__ import annotations

import pytest

from tests.infra.alarms.evaluator import Composite, State, judged

OK, ALARM, RETAINED = State.OK, State.ALARM, State.INSUFFICIENT_DATA
_POINT = {"0": False, "X": True, "-": None}


# The newest point stands on the right; five are looked at, three are needed.
@pytest.mark.parametrize(
    ("points", "of", "ignore", "breaching", "not_breaching"),
    [
        ("0-X-X", 3, OK, OK, OK),
        ("0----", 3, OK, OK, OK),
        ("-----", 3, RETAINED, ALARM, OK),
        ("0XX-X", 3, ALARM, ALARM, ALARM),
        ("--X--", 3, RETAINED, ALARM, OK),
        ("0-X-X", 2, ALARM, ALARM, ALARM),
        ("00X0X", 2, ALARM, ALARM, ALARM),
        ("0-X--", 2, OK, ALARM, OK),
        ("----0", 2, OK, ALARM, OK),
        ("---X-", 2, RETAINED, ALARM, OK),
    ],
)
def test_missing_data_is_treated_as_the_page_says(
    points: str, of: int, ignore: State, breaching: State, not_breaching: State
) -> None:
    newest_first = [_POINT[each] for each in reversed(points)]
    treated = {"ignore": ignore, "breaching": breaching, "notBreaching": not_breaching}
    for missing, state in treated.items():
        assert judged(newest_first, of, 3, missing, RETAINED) is state


def _announced(rule: str, *states: str, suppressor: str = "") -> list[tuple[int, str]]:
    """When it tells what; each of `states` is a minute: the alarms that ring then."""
    suppressed = {
        "ActionsSuppressor": "arn:s",
        "ActionsSuppressorWaitPeriod": 60,
        "ActionsSuppressorExtensionPeriod": 60,
    }
    actions = {"AlarmActions": ["t"], "OKActions": ["t"]}
    composite = Composite.read({"AlarmRule": rule, **actions, **(suppressed if suppressor else {})})
    announced = (
        (
            minute,
            composite.look({each: ALARM if each in ringing else OK for each in "abcs"}, minute),
        )
        for minute, ringing in enumerate(states)
    )
    return [(minute, str(state)) for minute, state in announced if state]


@pytest.mark.parametrize(
    ("rule", "ringing", "holds"),
    [
        ('ALARM("arn:a")', "a", True),
        ('(ALARM("arn:a") AND ALARM("arn:b")) OR ALARM("arn:c")', "a", False),
        ('(ALARM("arn:a") AND ALARM("arn:b")) OR ALARM("arn:c")', "ab", True),
        ('(ALARM("arn:a") AND ALARM("arn:b")) OR ALARM("arn:c")', "c", True),
        ('ALARM("arn:a") AND NOT ALARM("arn:b")', "ab", False),
        ('ALARM("arn:a") AND OK("arn:b")', "a", True),
    ],
)
def test_a_rule_is_read(rule: str, ringing: str, holds: bool) -> None:
    assert bool(_announced(rule, ringing)) is holds


@pytest.mark.parametrize(
    ("minutes", "announced"),
    [
        (["a", "a", "a"], [(1, "ALARM")]),
        (["a", "as", "as", "as"], []),
        (["as", "as", "a", "a"], [(3, "ALARM")]),
        (["as", "as", "s", ""], []),
        (["a", "", ""], []),
    ],
)
def test_what_holds_back_is_waited_for_and_outlived_by_a_minute(
    minutes: list[str], announced: list[tuple[int, str]]
) -> None:
    assert _announced('ALARM("a")', *minutes, suppressor="s") == announced
