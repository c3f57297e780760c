"""What is said at synthesis although nothing is refused for it."""

from __future__ import annotations

from typing import Any

import pytest

from infra.settings.deployment import read
from infra.settings.warnings import warnings

SOMEBODY = ["on-call@example.com"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mode": "observe", "tagMayRaiseTo": "observe"},
        {"mode": "heal", "notifications": {"urgent": SOMEBODY, "info": SOMEBODY}},
        {"tagMayRaiseTo": "propose", "notifications": {"urgent": SOMEBODY, "info": SOMEBODY}},
    ],
)
def test_what_only_watches_or_reaches_somebody_is_no_warning(settings: dict[str, Any]) -> None:
    assert list(warnings(read(settings))) == []


@pytest.mark.parametrize("key", ["mode", "tagMayRaiseTo"])
@pytest.mark.parametrize("mode", ["propose", "heal"])
def test_acting_while_pages_reach_nobody_is_one(key: str, mode: str) -> None:
    (line,) = warnings(read({key: mode}))
    assert line.startswith("nobody is subscribed: ")
    assert "notifications.urgent" in line
    assert "notifications.info" in line


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize(
    ("given", "missing", "line"),
    [("info", "urgent", "nobody is woken: "), ("urgent", "info", "nobody reads what can wait: ")],
)
def test_a_topic_that_reaches_nobody_is_one(mode: str, given: str, missing: str, line: str) -> None:
    (said,) = warnings(read({"mode": mode, "notifications": {given: SOMEBODY}}))
    assert said.startswith(line)
    assert f"notifications.{missing} names no address" in said


def test_a_sender_without_recipients_is_one() -> None:
    (line,) = warnings(read({"report": {"sender": "mendq@example.com"}}))
    assert line.startswith("nobody is mailed: ")
    both = {"sender": "mendq@example.com", "recipients": ["sqs@example.com"]}
    assert list(warnings(read({"report": both}))) == []


def test_every_warning_is_a_line_of_its_own() -> None:
    lines = list(warnings(read({"mode": "heal", "report": {"sender": "mendq@example.com"}})))
    assert [line.partition(":")[0] for line in lines] == [
        "nobody is subscribed",
        "nobody is mailed",
    ]


@pytest.mark.parametrize(
    ("region", "warned"),
    [
        ("eu-west-1", False),
        ("us-gov-west-1", False),
        ("cn-north-1", False),
        ("zz-nowhere-99", True),
    ],
)
def test_a_region_that_nobody_knows_is_one(region: str, warned: bool) -> None:
    environments = [{"account": "111122223333", "region": region}]
    said = list(warnings(read({"environments": environments})))
    assert [f"{region} is no region" in each for each in said] == [True] * warned


HERE = "arn:aws:sqs:eu-west-1:111122223333:"


def _of_another_place(prefix: str, *where: str | None, **settings: Any) -> list[str]:
    given = read({"trail": {"queueArnPrefixes": [prefix, f"{HERE}orders"]}, **settings})
    return [each for each in warnings(given, *where) if prefix in each]


@pytest.mark.parametrize(
    ("prefix", "warned"),
    [
        ("arn:aws:sqs:", False),
        ("arn:aws:sqs:eu-west-1:", False),
        (f"{HERE}billing", False),
        ("arn:aws:sqs:us-east-1:", True),
        ("arn:aws:sqs:eu-west-1:444455556666:billing", True),
        ("arn:aws-cn:sqs:", True),
    ],
)
def test_a_prefix_that_fits_no_stack_is_one(prefix: str, warned: bool) -> None:
    environments = [
        {"account": "111122223333", "region": "eu-west-1"},
        {"account": "111122223333", "region": "eu-central-1"},
    ]
    assert len(_of_another_place(prefix, "eu-west-1", "111122223333")) == warned
    assert len(_of_another_place(prefix, environments=environments)) == warned
    elsewhere = _of_another_place(prefix, "us-east-1", "444455556666", environments=environments)
    assert len(elsewhere) == warned, "named environments are where the stacks go"


def test_region_and_account_are_of_one_stack() -> None:
    two = [
        {"account": "111122223333", "region": "us-east-1"},
        {"account": "444455556666", "region": "eu-west-1"},
    ]
    assert _of_another_place(f"{HERE}billing", environments=two)


def test_what_is_not_known_of_the_stack_fits_any_prefix() -> None:
    assert not _of_another_place("arn:aws:sqs:us-east-1:444455556666:billing")
    assert not _of_another_place("arn:aws:sqs:eu-west-1:444455556666:billing", "eu-west-1")
    assert _of_another_place("arn:aws:sqs:us-east-1:444455556666:billing", "eu-west-1")
