"""The evaluator against the tables of CloudWatch's own page."""

from __future__ import annotations

import pytest

from tests.infra.alarms.evaluator import State, judged

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
