"""A calendar or a trail's bucket that a stack cannot read is refused as far as it is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.settings.deployment import read
from infra.settings.reading import SettingsRefused
from infra.settings.warnings import misplaced, warnings
from infra.synthesis import new_app, synthesize

HERE, THERE = "us-east-1", "eu-west-1"
OWNER, OTHER = "444455556666", "111122223333"


def _calendar(region: str) -> str:
    """Another account may share one, but no region reads another's."""
    return f"arn:aws:ssm:{region}:{OWNER}:document/quiet-days"


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
    found = list(misplaced(settings, regions))
    assert [each.path for each in found] == paths
    assert all("frozen for ever" in each.fault for each in found)


@pytest.mark.parametrize(
    ("partition", "region", "fault"),
    [
        ("aws", HERE, None),
        ("aws-cn", "cn-north-1", None),
        ("aws-us-gov", "us-gov-west-1", None),
        ("aws-cn", HERE, "us-east-1 is in aws"),
        ("aws", "cn-north-1", "cn-north-1 is in aws-cn"),
        ("aws-us-gov", HERE, "us-east-1 is in aws"),
    ],
)
def test_a_calendar_of_another_partition_is_a_mistake(
    partition: str, region: str, fault: str | None
) -> None:
    arn = _calendar(region).replace("arn:aws:", f"arn:{partition}:")
    found = list(misplaced(read({"freezeCalendars": [arn]}), [region]))
    assert [each.path for each in found] == ["freezeCalendars[0]"] * bool(fault)
    for each in found:
        assert str(fault) in each.fault
        assert "frozen for ever" in each.fault


@pytest.mark.parametrize(
    ("environments", "account", "warned"),
    [
        ([], None, False),
        ([], OWNER, False),
        ([], OTHER, True),
        ([OWNER], OTHER, False),
        ([OTHER], OWNER, True),
        ([OWNER, OTHER], None, True),
    ],
)
def test_a_calendar_of_another_account_is_warned_of(
    environments: list[str], account: str | None, warned: bool
) -> None:
    where = [{"account": each, "region": HERE} for each in environments]
    settings = read({"freezeCalendars": [_calendar(HERE)], "environments": where})
    said = [each for each in warnings(settings, HERE, account) if "freezeCalendars" in each]
    assert len(said) == warned
    assert all(_calendar(HERE) in each and "share it first" in each for each in said)
    assert not list(misplaced(settings, [HERE])), "it may be shared, so it is not refused"


def test_synth_refuses_it_and_writes_no_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", HERE)
    settings = read({"freezeCalendars": [_calendar(THERE)]})
    with pytest.raises(SettingsRefused, match=r"freezeCalendars\[0\]: lies in eu-west-1"):
        synthesize(settings, new_app(tmp_path), tmp_path)
    assert not list(tmp_path.glob("*.template.json"))


def _settings(**trail: object) -> dict[str, object]:
    return {"trail": {"create": False, "bucket": "our-logs", **trail}}


@pytest.mark.parametrize(
    ("regions", "said", "path"),
    [
        ([HERE], None, None),
        ([HERE], HERE, None),
        ([HERE, HERE], None, None),
        ([HERE], THERE, "trail.bucketRegion"),
        ([HERE, THERE], THERE, "trail.bucketRegion"),
        ([HERE, THERE], None, "trail.bucket"),
    ],
)
def test_a_bucket_elsewhere_is_a_mistake(
    regions: list[str], said: str | None, path: str | None
) -> None:
    settings = read(_settings(**({"bucketRegion": said} if said else {})))
    found = list(misplaced(settings, regions))
    assert [each.path for each in found] == ([path] if path else [])
    assert all(HERE in str(each) for each in found)


def test_a_trail_of_our_own_lies_where_the_stack_does() -> None:
    assert not list(misplaced(read({}), [HERE, THERE]))


@pytest.mark.parametrize("environments", [[], [{"account": OWNER, "region": HERE}]])
def test_synth_refuses_a_bucket_elsewhere_and_writes_no_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environments: list[dict[str, str]]
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", HERE)
    raw = _settings(bucketRegion=THERE)
    with pytest.raises(SettingsRefused, match=r"trail\.bucketRegion: is eu-west-1"):
        synthesize(read({**raw, "environments": environments}), new_app(tmp_path), tmp_path)
    assert not list(tmp_path.glob("*.template.json"))


def test_a_region_that_is_not_given_is_a_warning() -> None:
    assert any("trail.bucketRegion" in each for each in warnings(read(_settings())))
    assert not list(warnings(read(_settings(bucketRegion=HERE))))
    assert not list(warnings(read({})))
