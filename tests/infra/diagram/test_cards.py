"""The picture's cards: nothing of the template is missing, and each says what its role may do."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from infra.diagram.arrows import PARKS, arrows
from infra.diagram.card import Card
from infra.diagram.cards import ASKED, YOUR_QUEUES, sections, when
from infra.diagram.names import ALARMS, DASHBOARD, DRAWN, FUNCTION, JOB, KEY, QUEUE, STORES, TOPIC
from tests.infra.synthesized import SETTINGS, template_of

CARDS = {FUNCTION, JOB, TOPIC, KEY, DASHBOARD, QUEUE, *STORES}
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
    parked_in = {each.target for each in arrows(resources) if each.does == PARKS}
    parts = {name for name, each in resources.items() if each["Type"] in CARDS}
    (all_alarms,) = (each for each in _cards(resources) if each.endswith(" alarms"))
    assert len(_cards(resources).keys() - {all_alarms}) == len(parts - parked_in)


@pytest.mark.parametrize("settings", ["tagged", "existing trail"])
def test_nothing_that_is_drawn_could_go_unseen(settings: str) -> None:
    """Each schedule, each queue, each rule: the picture is another without it."""
    resources = _resources(settings)
    whole = sections(resources)
    # The topics' cards speak of the settings that these are made of.
    seen = DRAWN - {"AWS::SNS::Subscription"}
    unseen = {
        name
        for name, each in resources.items()
        if each["Type"] in seen
        and sections({one: given for one, given in resources.items() if one != name}) == whole
    }
    assert unseen == set()


def test_the_intake_queue_says_who_fills_it_and_where_it_parks() -> None:
    cards = _cards(_resources())
    assert cards["the intake queue"] == Card(
        "the intake queue",
        "keeps messages for 4 hours",
        ("rule: Failed SQS calls of anyone but Mendq itself",),
        (
            "parks in its dead letters what fails 5 times",
            "parks apart what its rule cannot deliver",
        ),
    )
    first, second, *_ = cards
    assert (first, second) == ("the intake queue", "heal")
    assert not any("intake" in each for each in cards["heal"].touches)


def test_the_pulse_queue_follows_its_pulse() -> None:
    cards = _cards(_resources())
    queue = cards["the pulse queue"]
    assert queue.started_by == ("pulse",)
    assert queue.says == "refuses messages without a deduplication id, keeps others for 1 minute"
    assert list(cards)[list(cards).index("pulse") + 1] == "the pulse queue"
    assert "writes the pulse queue" in cards["pulse"].touches


def test_what_is_tried_once_is_not_said_to_be_parked() -> None:
    cards = _cards(_resources())
    assert "is not tried again where it fails" in cards["redrive"].touches
    assert not any(each.startswith("parks") for each in cards["redrive"].touches)
    assert "parks what fails in its dead letters" in cards["pulse"].touches


def test_the_key_names_what_it_encrypts() -> None:
    resources = copy.deepcopy(_resources())
    topics = {"the urgent topic", "the info topic"}
    encrypted = {f"encrypts what goes to {each}" for each in topics}
    assert set(_cards(resources)["the topics key"].touches) == encrypted
    for each in resources.values():
        each["Properties"].pop("KmsMasterKeyId", None)
    assert _cards(resources)["the topics key"].touches == ()


def test_the_dashboard_says_how_much_of_what_it_shows() -> None:
    card = _cards(_resources())["the dashboard page"]
    shown = json.loads(
        "".join(
            part if isinstance(part, str) else "x"
            for each in _resources().values()
            if each["Type"] == DASHBOARD
            for part in each["Properties"]["DashboardBody"]["Fn::Join"][1]
        )
    )["widgets"]
    charts = sum(each["type"] == "metric" for each in shown)
    alarms = sum(len(each["properties"].get("alarms", ())) for each in shown)
    assert card.says.startswith(f"{charts} charts")
    assert f"{alarms} alarms" in card.started_by


def test_each_is_started_by_what_the_template_says() -> None:
    cards = _cards(_resources())
    assert cards["follow_up"].started_by == ("every minute",)
    assert cards["start_night"].started_by == ("each day at 02:00 UTC", "each Mon at 06:00 UTC")
    assert cards["heal"].started_by == ("the intake queue", "follow_up", "approve", "sweep")
    assert cards["roll_back"].started_by == ("mendq, when a person says so",)
    assert cards["the nightly job"].started_by == ("start_night",)


def test_alarms_that_reach_people_are_told_from_those_that_they_stand_on() -> None:
    resources = _resources()
    alarms = [each["Properties"] for each in resources.values() if each["Type"] in ALARMS]
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
    parks = "parks what fails in its dead letters"
    assert len(_cards(_resources())["pulse"].touches) > 1
    assert _cards(resources)["pulse"].touches == (parks,)


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
