"""What settings say of places and people: what cannot be so is refused, what is odd is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from infra.settings.deployment import read
from infra.settings.reading import SettingsRefused
from infra.settings.warnings import misplaced, warnings
from infra.synthesis import new_app, synthesize

HERE, THERE = "us-east-1", "eu-west-1"
OWNER, OTHER = "444455556666", "111122223333"
SOMEBODY = ["on-call@example.com"]


def _calendars(*regions: str, partition: str = "aws") -> dict[str, Any]:
    """Another account may share one, but no region reads another's."""
    arn = f"arn:{partition}:ssm:{{}}:{OWNER}:document/quiet-days"
    return {"freezeCalendars": [arn.format(each) for each in regions]}


def _bucket(said: str | None = None) -> dict[str, Any]:
    lies = {"bucketRegion": said} if said else {}
    return {"trail": {"create": False, "bucket": "our-logs", **lies}}


@pytest.mark.parametrize(
    ("raw", "regions", "paths"),
    [
        (_calendars(), [HERE, THERE], []),
        (_calendars(HERE), [HERE, HERE], []),
        (_calendars(THERE), [HERE], ["freezeCalendars[0]"]),
        (_calendars(HERE), [HERE, THERE], ["freezeCalendars[0]"]),
        (_calendars(HERE, THERE), [HERE, THERE], ["freezeCalendars[0]", "freezeCalendars[1]"]),
        (_calendars("cn-north-1", partition="aws-cn"), ["cn-north-1"], []),
        (_calendars("us-gov-west-1", partition="aws-us-gov"), ["us-gov-west-1"], []),
        (_calendars(HERE, partition="aws-cn"), [HERE], ["freezeCalendars[0]"]),
        (_calendars("cn-north-1"), ["cn-north-1"], ["freezeCalendars[0]"]),
        (_bucket(), [HERE, HERE], []),
        (_bucket(HERE), [HERE], []),
        (_bucket(THERE), [HERE], ["trail.bucketRegion"]),
        (_bucket(THERE), [HERE, THERE], ["trail.bucketRegion"]),
        (_bucket(), [HERE, THERE], ["trail.bucket"]),
        ({}, [HERE, THERE], []),
    ],
)
def test_what_a_stack_cannot_read_is_a_mistake(
    raw: dict[str, Any], regions: list[str], paths: list[str]
) -> None:
    found = list(misplaced(read(raw), regions))
    assert [each.path for each in found] == paths
    assert all("frozen for ever" in each.fault for each in found if "freeze" in each.path)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (_calendars(THERE), r"freezeCalendars\[0\]: lies in eu-west-1"),
        (_bucket(THERE), r"trail\.bucketRegion: is eu-west-1"),
        (
            {**_bucket(THERE), "environments": [{"account": OWNER, "region": HERE}]},
            r"trail\.bucketRegion: is eu-west-1",
        ),
    ],
)
def test_synth_refuses_it_and_writes_no_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: dict[str, Any], line: str
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", HERE)
    with pytest.raises(SettingsRefused, match=line):
        synthesize(read(raw), new_app(tmp_path))
    assert not list(tmp_path.glob("*.template.json"))


def _where(*accounts: str, region: str = HERE) -> dict[str, Any]:
    return {"environments": [{"account": each, "region": region} for each in accounts]}


@pytest.mark.parametrize(
    ("raw", "account", "begins"),
    [
        ({}, None, []),
        ({"mode": "observe", "tagMayRaiseTo": "observe"}, None, []),
        ({"mode": "heal", "notifications": {"urgent": SOMEBODY, "info": SOMEBODY}}, None, []),
        ({"mode": "propose"}, None, ["nobody is subscribed"]),
        ({"tagMayRaiseTo": "heal"}, None, ["nobody is subscribed"]),
        ({"notifications": {"info": SOMEBODY}}, None, ["nobody is woken"]),
        ({"mode": "heal", "notifications": {"info": SOMEBODY}}, None, ["nobody is woken"]),
        ({"notifications": {"urgent": SOMEBODY}}, None, ["nobody reads what can wait"]),
        ({"report": {"sender": "a@b.io"}}, None, ["nobody is mailed"]),
        ({"report": {"sender": "a@b.io", "recipients": ["c@d.io"]}}, None, []),
        (
            {"mode": "heal", "report": {"sender": "a@b.io"}},
            None,
            ["nobody is subscribed", "nobody is mailed"],
        ),
        (_calendars(HERE), None, []),
        (_calendars(HERE), OWNER, []),
        (_calendars(HERE), OTHER, ["freezeCalendars"]),
        ({**_calendars(HERE), **_where(OWNER)}, OTHER, []),
        ({**_calendars(HERE), **_where(OTHER)}, OWNER, ["freezeCalendars"]),
        ({**_calendars(HERE), **_where(OWNER, OTHER)}, None, ["freezeCalendars"]),
        (_bucket(), None, ["trail.bucketRegion does not say where trail.bucket lies"]),
        (_bucket(HERE), None, []),
        (_where(OTHER, region="us-gov-west-1"), None, []),
        (_where(OTHER, region="zz-nowhere-99"), None, ["environments"]),
    ],
)
def test_what_is_hardly_meant_is_a_line_each(
    raw: dict[str, Any], account: str | None, begins: list[str]
) -> None:
    assert [line.partition(":")[0] for line in warnings(read(raw), HERE, account)] == begins


PREFIX = f"arn:aws:sqs:eu-west-1:{OTHER}:"


def _misses(prefix: str, *where: str | None, **settings: Any) -> bool:
    """Whether it is said that a prefix, beside one that fits, is of another place."""
    given = read({"trail": {"queueArnPrefixes": [prefix, f"{PREFIX}orders"]}, **settings})
    return any(prefix in each for each in warnings(given, *where))


@pytest.mark.parametrize(
    ("prefix", "warned"),
    [
        ("arn:aws:sqs:", False),
        ("arn:aws:sqs:eu-west-1:", False),
        (f"{PREFIX}billing", False),
        ("arn:aws:sqs:us-east-1:", True),
        (f"arn:aws:sqs:eu-west-1:{OWNER}:billing", True),
        ("arn:aws-cn:sqs:", True),
    ],
)
def test_a_prefix_that_fits_no_stack_is_said(prefix: str, warned: bool) -> None:
    """Named environments are where the stacks go."""
    two = [{"account": OTHER, "region": each} for each in (THERE, "eu-central-1")]
    assert _misses(prefix, THERE, OTHER) == warned
    assert _misses(prefix, HERE, OWNER, environments=two) == warned


def test_region_and_account_are_of_one_stack_and_what_is_not_known_fits_any() -> None:
    two = [{"account": OTHER, "region": HERE}, {"account": OWNER, "region": THERE}]
    assert _misses(f"{PREFIX}billing", environments=two)
    assert not _misses(f"arn:aws:sqs:{HERE}:{OWNER}:billing")
    assert not _misses(f"arn:aws:sqs:{THERE}:{OWNER}:billing", THERE)
    assert _misses(f"arn:aws:sqs:{HERE}:{OWNER}:billing", THERE)
