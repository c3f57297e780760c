"""A calendar that a stack cannot read freezes it for ever, so it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.settings import SettingsRefused, read
from infra.settings.calendar_regions import unreadable
from infra.synthesis import new_app, synthesize

HERE, THERE = "us-east-1", "eu-west-1"


def _calendar(region: str) -> str:
    """Another account may share one, but no region reads another's."""
    return f"arn:aws:ssm:{region}:444455556666:document/quiet-days"


@pytest.mark.parametrize(
    ("calendars", "regions", "paths"),
    [
        ([], [HERE, THERE], []),
        ([HERE], [HERE], []),
        ([HERE], [HERE, HERE], []),
        ([THERE], [HERE], ["freezeCalendars[0]"]),
        ([HERE], [HERE, THERE], ["freezeCalendars[0]"]),
        ([HERE, THERE], [HERE, THERE], ["freezeCalendars[0]", "freezeCalendars[1]"]),
    ],
)
def test_a_calendar_of_another_region_is_a_mistake(
    calendars: list[str], regions: list[str], paths: list[str]
) -> None:
    settings = read({"freezeCalendars": [_calendar(each) for each in calendars]})
    found = list(unreadable(settings, regions))
    assert [each.path for each in found] == paths
    assert all("frozen for ever" in each.fault for each in found)


def test_synth_refuses_it_and_writes_no_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", HERE)
    settings = read({"freezeCalendars": [_calendar(THERE)]})
    with pytest.raises(SettingsRefused, match=r"freezeCalendars\[0\]: lies in eu-west-1"):
        synthesize(settings, new_app(tmp_path), tmp_path)
    assert not list(tmp_path.glob("*.template.json"))
