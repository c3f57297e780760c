"""A trail's bucket in another region than the job is refused as far as it can be known."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.settings import SettingsRefused, read
from infra.settings.trail_region import elsewhere
from infra.settings.warnings import warnings
from infra.synthesis import new_app, synthesize

HERE, THERE = "us-east-1", "eu-west-1"
ACCOUNT = "111122223333"


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
    found = list(elsewhere(settings, regions))
    assert [each.path for each in found] == ([path] if path else [])
    assert all(HERE in str(each) for each in found)


def test_a_trail_of_our_own_lies_where_the_stack_does() -> None:
    assert not list(elsewhere(read({}), [HERE, THERE]))


@pytest.mark.parametrize("environments", [[], [{"account": ACCOUNT, "region": HERE}]])
def test_synth_refuses_it_and_writes_no_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environments: list[dict[str, str]]
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", HERE)
    raw = _settings(bucketRegion=THERE)
    with pytest.raises(SettingsRefused, match=r"trail\.bucketRegion: is eu-west-1"):
        synthesize(read({**raw, "environments": environments}), new_app(tmp_path), tmp_path)
    assert not list(tmp_path.glob("*.template.json"))


def test_a_region_that_is_not_said_is_a_warning() -> None:
    assert any("trail.bucketRegion" in each for each in warnings(read(_settings())))
    assert not list(warnings(read(_settings(bucketRegion=HERE))))
    assert not list(warnings(read({})))
