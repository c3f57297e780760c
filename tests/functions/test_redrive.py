"""The redrive Lambda as Lambda calls it: a case in, how far its messages have come out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions import redrive
from mendq.aws.clients import Clients
from mendq.aws.errors import CaseUnreadable
from mendq.heal.context import request_about
from mendq.model.case import State
from tests.functions.test_heal import Context
from tests.redrive.world import Redriving, redriving

CONTEXT: Any = Context()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Redriving]:
    with redriving() as made:
        for variable, text in made.run().settings.to_environment().items():
            monkeypatch.setenv(variable, text)
        monkeypatch.setattr(Clients, "of_this_lambda", lambda: made.account.clients)
        redrive._cold_start.cache_clear()
        yield made
        redrive._cold_start.cache_clear()


def _metrics(printed: str) -> dict[str, float]:
    """By name, as CloudWatch reads them out of the log."""
    documents = (json.loads(line) for line in printed.splitlines() if '"_aws"' in line)
    return {
        metric["Name"]: document[metric["Name"]][0]
        for document in documents
        for metric in document["_aws"]["CloudWatchMetrics"][0]["Metrics"]
    }


def test_a_tick_answers_how_far_it_has_come_and_counts_messages(
    world: Redriving, capsys: pytest.CaptureFixture[str]
) -> None:
    world.send(*"abcdefgh")
    case = world.case(State.APPLIED)
    answer = redrive.handler(request_about(case), CONTEXT)
    assert (answer["state"], answer["stage"], answer["moved"]) == (None, "soak", 5)
    assert world.waiting(world.source) == 5
    counted = _metrics(capsys.readouterr().out)
    assert counted == {"RedrivenMessages": 5, "QuarantinedMessages": 0}


def test_a_case_that_is_not_applied_or_approved_is_left_alone(world: Redriving) -> None:
    world.send("a")
    case = world.case(State.PROPOSED)
    answer = redrive.handler(request_about(case), CONTEXT)
    assert (answer["state"], answer["code"]) == (None, "moved_on")
    assert world.waiting(world.source) == 0


def test_what_went_back_is_counted_where_it_is_stopped(
    world: Redriving, capsys: pytest.CaptureFixture[str]
) -> None:
    world.send("a")
    case = world.case(State.APPLIED)
    answer = redrive.handler({**request_about(case), "cancel": True}, CONTEXT)
    assert answer["code"] == ""
    assert world.waiting(world.source) == 0
    assert _metrics(capsys.readouterr().out)["RedrivenMessages"] == 0


@pytest.mark.parametrize("event", [{}, {"case_id": "x"}, {"cancel": True}, {"Records": []}])
def test_what_is_no_case_is_reported_to_whoever_sent_it(
    world: Redriving, event: dict[str, Any]
) -> None:
    # There is nothing to count of it, which Powertools warns of.
    with pytest.warns(UserWarning, match="No application metrics"), pytest.raises(CaseUnreadable):
        redrive.handler(event, CONTEXT)
