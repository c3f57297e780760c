"""The picture's cards: nothing of the template is missing, and each says what its role may do."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from infra.diagram.cards import ASKED, YOUR_QUEUES, Card, sections, when
from tests.infra.synthesized import SETTINGS, template_of

DRAWN = {"AWS::Lambda::Function", "AWS::SNS::Topic", "AWS::S3::Bucket", "AWS::DynamoDB::Table"}
WRITES = f"reads and writes {YOUR_QUEUES}"


def _resources(settings: str = "tagged") -> Any:
    return template_of(settings).raw["Resources"]


def _cards(resources: Any) -> dict[str, Card]:
    found = [card for section in sections(resources) for card in section.cards]
    cards = {card.title: card for card in found}
    assert len(cards) == len(found)
    return cards


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_part_is_drawn_once(settings: str) -> None:
    resources = _resources(settings)
    parts = sum(each["Type"] in DRAWN for each in resources.values())
    job_and_alarms = 2
    assert len(_cards(resources)) == parts + job_and_alarms


def test_each_is_started_by_what_the_template_says() -> None:
    cards = _cards(_resources())
    assert cards["follow_up"].started_by == ("every minute",)
    assert cards["start_night"].started_by == ("each day at 02:00 UTC", "each Mon at 06:00 UTC")
    assert cards["heal"].started_by[0].endswith("→ the intake queue")
    assert "follow_up" in cards["heal"].started_by
    assert cards["roll_back"].started_by == ("mendq, when a person says so",)
    assert cards["the nightly job"].started_by == ("start_night",)


def test_alarms_that_reach_people_are_told_from_those_that_they_stand_on() -> None:
    resources = _resources()
    alarms = [each["Properties"] for each in resources.values() if each["Type"].endswith("Alarm")]
    telling = sum("AlarmActions" in each for each in alarms)
    card = _cards(resources)[f"{len(alarms)} alarms"]
    assert f"{telling} reach people; the other {len(alarms) - telling} " in card.says
    assert 0 < telling < len(alarms)


def test_who_may_write_to_queues_is_who_may() -> None:
    writers = {title for title, card in _cards(_resources()).items() if WRITES in card.touches}
    assert writers == {"heal", "attach_dead_letters", "restore_policy", "redrive", "roll_back"}


def test_with_observe_alone_nothing_writes_to_queues() -> None:
    for card in _cards(_resources("default")).values():
        assert WRITES not in card.touches


def test_a_grant_that_goes_is_gone_from_the_picture() -> None:
    resources = copy.deepcopy(_resources())
    for name, each in resources.items():
        if each["Type"] == "AWS::IAM::Policy" and name.startswith("PulseRole"):
            each["Properties"]["PolicyDocument"]["Statement"] = []
    assert _cards(_resources())["pulse"].touches
    assert _cards(resources)["pulse"].touches == ()


def test_what_nothing_in_the_template_starts_is_asked_by_people() -> None:
    resources = {
        name: each
        for name, each in _resources().items()
        if each["Type"] not in {"AWS::Scheduler::Schedule", "AWS::Lambda::EventSourceMapping"}
    }
    asked = next(each for each in sections(resources) if each.title == ASKED)
    assert {"heal", "pulse", "sweep"} <= {card.title for card in asked.cards}


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("rate(1 minute)", "every minute"),
        ("rate(2 hours)", "every 2 hours"),
        ("cron(5 3 * * ? *)", "each day at 03:05 UTC"),
        ("cron(0 9 ? * FRI *)", "each Fri at 09:00 UTC"),
        ("cron(0 9 1 * ? 2027)", "cron(0 9 1 * ? 2027)"),
        ("at(2027-01-01T00:00:00)", "at(2027-01-01T00:00:00)"),
    ],
)
def test_when_in_words(expression: str, words: str) -> None:
    assert when(expression, "UTC") == words
