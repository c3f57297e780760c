"""Who is switched off, and that a queue which nobody ever read is left alone."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples
from mendq.catalogue.consumer_stopped import CONSUMER_STOPPED, detect, plan
from mendq.model.facts import Facts
from mendq.model.limits import Limits

STOPPED = CONSUMER_STOPPED.detected[0].facts


def counted(**counted: int) -> Facts:
    assert STOPPED.measured is not None
    return replace(STOPPED, measured=examples.recounted(STOPPED.measured, **counted))


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 1_209_600))
def test_an_archive_is_never_found(sent: int, visible: int, age_seconds: int) -> None:
    """Nobody ever read it, whatever lies there and however old it is."""
    archive = counted(
        sent=sent, visible_now=visible, least_visible=visible, oldest_age_seconds_now=age_seconds
    )
    assert detect(replace(archive, stopped_consumers=())) is None


@pytest.mark.parametrize(
    ("received", "least_visible", "found"), [(0, 1, True), (1, 1, False), (0, 0, False)]
)
def test_nothing_received_and_messages_all_the_while(
    received: int, least_visible: int, found: bool
) -> None:
    assert bool(detect(counted(received=received, least_visible=least_visible))) is found


def test_the_page_names_the_function_and_how_many_more() -> None:
    more = replace(STOPPED, stopped_consumers=(*STOPPED.stopped_consumers, "arn:other"))
    one, two = detect(STOPPED), detect(more)
    assert one is not None
    assert two is not None
    assert one.because.endswith("the event source mapping of bill is disabled")
    assert two.because.endswith("of bill and 1 more is disabled")


def test_the_command_asks_for_this_queue_s_mappings() -> None:
    words = shlex.split(plan(STOPPED, Limits()).next_command)
    assert words[words.index("--event-source-arn") + 1] == STOPPED.queue_arn


@pytest.mark.parametrize("unknown", ["measured", "dlq_sources"])
def test_what_nobody_could_look_at_is_not_found(unknown: str) -> None:
    assert detect(replace(STOPPED, **{unknown: None})) is None  # type: ignore[arg-type]
