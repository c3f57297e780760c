"""What settings say of places and people: what cannot be so is refused, what is odd is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.settings.deployment import read
from infra.settings.reading import SettingsRefused
from infra.settings.warnings import misplaced, warnings
from infra.synthesis import new_app, synthesize

HERE, THERE = "us-east-1", "eu-west-1"
OWNER, OTHER = "444455556666", "111122223333"
PREFIX = f"arn:aws:sqs:eu-west-1:{OTHER}:"
# What the user wrote; the stacks' regions and the fields that are refused, or the stack's account
# and how the lines that are printed begin.
ROWS = json.loads(Path(__file__).with_name("places.json").read_text())


@pytest.mark.parametrize(("raw", "regions", "paths"), ROWS["misplaced"])
def test_what_a_stack_cannot_read_is_a_mistake(
    raw: dict[str, Any], regions: list[str], paths: list[str]
) -> None:
    found = list(misplaced(read(raw), regions))
    assert [each.path for each in found] == paths
    assert all("frozen for ever" in each.fault for each in found if "freeze" in each.path)


@pytest.mark.parametrize(
    ("regions", "accounts", "is_here"),
    [
        ([HERE], {OWNER}, True),
        ([HERE, HERE], (), True),
        ([THERE], {OWNER}, False),
        ([HERE, THERE], {OWNER}, False),
        ([HERE], {OWNER, OTHER}, False),
        (["cn-north-1"], (), False),
    ],
)
def test_a_topic_is_of_every_stacks_account_and_region(
    regions: list[str], accounts: set[str], *, is_here: bool
) -> None:
    for name in ("urgent", "info"):
        arn = f"arn:aws:sns:{HERE}:{OWNER}:on-call"
        given = read({"notifications": {"topics": {name: arn}}})
        found = [each.path for each in misplaced(given, regions, accounts)]
        assert found == ([] if is_here else [f"notifications.topics.{name}"])


def test_synth_refuses_it_and_writes_no_template(tmp_path: Path) -> None:
    trail = {"create": False, "bucket": "our-logs", "bucketRegion": THERE}
    raw = {"trail": trail, "environments": [{"account": OWNER, "region": HERE}]}
    with pytest.raises(SettingsRefused, match=r"trail\.bucketRegion: is eu-west-1"):
        synthesize(read(raw), new_app(tmp_path))
    assert not list(tmp_path.glob("*.template.json"))


@pytest.mark.parametrize(("raw", "account", "begins"), ROWS["hardly meant"])
def test_what_is_hardly_meant_is_a_line_each(
    raw: dict[str, Any], account: str | None, begins: list[str]
) -> None:
    assert [line.partition(":")[0] for line in warnings(read(raw), HERE, account)] == begins


def test_what_every_queue_costs_is_a_months_sum() -> None:
    trail = {"queueArnPrefixes": ["arn:aws:sqs:"], "expectedEventsPerDay": 40_000_000}
    (line,) = warnings(read({"trail": trail}), HERE, OWNER)
    assert "$1,200.00 a month for 40,000,000 calls a day" in line


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
