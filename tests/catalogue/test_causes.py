"""Which cases at a source say what killed its messages, and whether that is fixed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue._redrive_causes import CAUSES, explained_by, still_shows
from mendq.catalogue.examples import AT, case
from mendq.model.case import FINAL, State
from mendq.model.lifecycle import GONE, UNMANAGED

BEFORE = AT - timedelta(hours=1)


def kind(*states: State, **over: Any) -> str:
    found = case("visibility_timeout_too_short", *states)
    explained = explained_by([replace(found, **over)], BEFORE)
    (name,) = [each for each in ("proven", "said", "standing") if getattr(explained, each)]
    return name


@pytest.mark.parametrize("state", [State.VERIFIED, State.WATCHING])
def test_what_is_verified_is_proven_fixed(state: State) -> None:
    assert kind(State.APPLIED, state) == "proven"
    assert not still_shows(case("visibility_timeout_too_short", State.APPLIED, state))


def test_a_watch_that_ended_by_itself_is_proof() -> None:
    assert kind(State.WATCHING, State.CLOSED) == "proven"


@pytest.mark.parametrize(
    "out_of", [State.ESCALATED, State.OVERRIDDEN, State.UNVERIFIED, State.APPLIED]
)
def test_what_was_closed_otherwise_is_only_said(out_of: State) -> None:
    assert kind(out_of, State.CLOSED) == "said"


def test_a_person_s_word_proves_nothing_even_in_the_watch() -> None:
    assert kind(State.WATCHING, State.CLOSED, actor="arn:aws:iam::123456789012:user/ada") == "said"


@pytest.mark.parametrize("reason", [GONE, UNMANAGED])
@pytest.mark.parametrize("out_of", [State.WATCHING, State.ESCALATED])
def test_a_case_that_ended_with_its_queue_fixed_nothing(reason: str, out_of: State) -> None:
    assert kind(out_of, State.CLOSED, reason=reason) == "standing"


@pytest.mark.parametrize(
    "state", sorted(set(State) - {State.VERIFIED, State.WATCHING, State.CLOSED})
)
def test_every_other_state_stands_in_the_way(state: State) -> None:
    assert kind(state) == "standing"
    assert still_shows(case("visibility_timeout_too_short", state)) == (state not in FINAL)


def test_what_was_over_before_the_first_message_came_did_not_kill_it() -> None:
    over = [
        case("visibility_timeout_too_short", State.WATCHING, State.CLOSED),
        case("kms_denied", State.DECLINED),
    ]
    assert explained_by(over, AT).fixed == (over[0],)
    later = explained_by(over, AT + timedelta(seconds=1))
    assert (later.fixed, later.standing) == ((), ())


def test_what_still_shows_counts_however_old_it_is() -> None:
    open_case = case("consumer_failing", State.ESCALATED)
    assert explained_by([open_case], AT + timedelta(days=13)).standing == (open_case,)


def test_only_a_cause_kills_messages() -> None:
    others = [case("message_too_long", State.WATCHING), case("empty_receives", State.PROPOSED)]
    assert explained_by(others, BEFORE) == explained_by([], BEFORE)
    assert "message_too_long" not in CAUSES
