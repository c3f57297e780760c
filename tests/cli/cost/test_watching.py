"""Which queues and calls a budget pays for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.settings.deployment import read
from mendq.cli.cost.calls import (
    ALL_CALLS,
    METRICS,
    MOST_PREFIXES,
    NO_RECEIVES,
    VISIBILITY,
    Calls,
    _beginning_with,
    within,
)

ARN = "arn:aws:sqs:us-east-1:123456789012:"
DOLLAR = 233_333


def queue(name: str, sent: int = 0, received: int = 0, deleted: int = 0) -> tuple[str, Calls]:
    """By dollars a month."""
    week = {
        "NumberOfMessagesSent": sent * DOLLAR,
        "NumberOfMessagesReceived": received * DOLLAR,
        "NumberOfMessagesDeleted": deleted * DOLLAR,
    }
    return f"{ARN}{name}", Calls(f"{ARN}{name}", week)


TWO = dict([queue("orders", 2, 10, 2), queue("billing", 1, 10, 1)])


@pytest.mark.parametrize(
    ("budget", "choice", "left_out"),
    [
        (26, ALL_CALLS, []),
        (25, NO_RECEIVES, []),
        (5, VISIBILITY, []),
        (2, VISIBILITY, ["orders"]),
        (0, VISIBILITY, ["orders", "billing"]),
    ],
)
def test_rather_fewer_calls_than_fewer_queues(
    budget: float, choice: object, left_out: list[str]
) -> None:
    found = within(budget, TWO)
    assert found.choice is choice
    assert [each.removeprefix(ARN) for each in found.left_out] == left_out


def test_a_name_pays_for_every_queue_that_begins_with_it() -> None:
    """`orders` as a prefix would log `orders-eu`, which is too dear."""
    found = within(5, dict([queue("orders", deleted=1), queue("orders-eu", deleted=9)]))
    assert found.queue_arns == ()
    assert found.dollars == 0


def test_no_more_names_than_a_trail_holds() -> None:
    many = dict(queue(f"q{n:04}-") for n in range(MOST_PREFIXES + 5))
    found = within(1, many)
    assert len(found.queue_arns) == MOST_PREFIXES
    assert len(found.left_out) == 5


def test_idle_queues_take_no_names_from_those_that_are_used() -> None:
    """Names are few and idle queues many: those come last, though they cost nothing."""
    idle = dict(queue(f"idle{n:04}-") for n in range(MOST_PREFIXES))
    used = dict(queue(f"used{n}-", deleted=1) for n in range(3))
    found = within(3, {**idle, **used})
    assert used.keys() <= set(found.queue_arns)
    assert len(found.queue_arns) == MOST_PREFIXES
    assert found.dollars == pytest.approx(3, rel=1e-4)


class _Counted(list[str]):
    """A list that knows how often it was asked for an entry by its place."""

    asked = 0

    def __getitem__(self, place: Any) -> Any:
        self.asked += 1
        return super().__getitem__(place)


def test_a_name_reads_at_the_queues_that_begin_with_it_and_not_at_all() -> None:
    """bisect asks by place too: some 14 times of ten thousand."""
    names = _Counted(sorted(f"{ARN}q{n:05}-" for n in range(10_000)))
    assert list(_beginning_with(f"{ARN}q0500", names)) == [f"{ARN}q0500{n}-" for n in range(10)]
    assert names.asked < 40


def test_it_is_a_setting() -> None:
    trail = read({"trail": within(2, TWO).document()["trail"]}).trail
    assert list(trail.queue_arn_prefixes) == [f"{ARN}billing"]
    assert "ReceiveMessage" not in trail.event_names


_NAMES = st.text("ab", min_size=1, max_size=4)
_WEEKS = st.dictionaries(st.sampled_from(sorted(METRICS)), st.integers(0, 10**9))


@given(st.dictionaries(_NAMES, _WEEKS, max_size=8), st.floats(0, 1e5))
def test_no_budget_is_ever_exceeded(weeks: dict[str, dict[str, int]], budget: float) -> None:
    calls = {f"{ARN}{name}": Calls(f"{ARN}{name}", week) for name, week in weeks.items()}
    found = within(budget, calls)
    logged = [
        each
        for arn, each in calls.items()
        if any(arn.startswith(prefix) for prefix in found.queue_arns)
    ]
    assert found.choice.dollars(logged) <= budget * 1.000001
    assert {each.queue_arn for each in logged} | set(found.left_out) == calls.keys()
    assert {each.queue_arn for each in logged} & set(found.left_out) == set()
