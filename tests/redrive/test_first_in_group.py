"""FIFO groups of a DLQ in which only the first message can have failed (clear groups)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mendq.redrive.first_in_group import (
    LONGEST_ARRIVAL_TIME_OF_BATCH,
    GroupInDlq,
    find_unclear_groups,
)
from mendq.redrive.messages import Message

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Arrival:
    """A message of a FIFO group that came to the DLQ."""

    group: str
    seconds_after_at: int
    is_from_source: bool


ARRIVALS = st.lists(
    st.builds(Arrival, st.sampled_from("abc"), st.integers(0, 400), st.booleans()), max_size=12
)


def group_messages(arrivals: list[Arrival]) -> dict[str, GroupInDlq]:
    groups = dict[str, GroupInDlq]()
    for number, arrival in enumerate(arrivals):
        sent_at = AT + timedelta(seconds=arrival.seconds_after_at)
        message = Message(f"m-{number}", "", sent_at, group_id=arrival.group)
        if arrival.group not in groups:
            groups[arrival.group] = GroupInDlq.begin_with(message)
        groups[arrival.group].add_message(message, is_from_source=arrival.is_from_source)
    return groups


def list_seconds_of_other_groups(arrivals: list[Arrival], group: str) -> list[int]:
    """Return when messages of the source's other groups arrived, in seconds after AT."""
    other_groups = {arrival.group for arrival in arrivals if arrival.is_from_source} - {group}
    return [arrival.seconds_after_at for arrival in arrivals if arrival.group in other_groups]


@given(ARRIVALS)
def test_fifo_group_is_clear_only_if_it_reached_the_dlq_together_alone_and_from_the_source(
    arrivals: list[Arrival],
) -> None:
    groups = group_messages(arrivals)
    unclear = {group.group_id for group in find_unclear_groups(groups, groups, groups)}
    for name in groups.keys() - unclear:
        own_arrivals = [arrival for arrival in arrivals if arrival.group == name]
        own = [arrival.seconds_after_at for arrival in own_arrivals]
        others = list_seconds_of_other_groups(arrivals, name)
        assert all(arrival.is_from_source for arrival in own_arrivals)
        assert max(own) - min(own) <= LONGEST_ARRIVAL_TIME_OF_BATCH.total_seconds()
        assert all(abs(mine - other) > 60 for mine, other in product(own, others))


@given(ARRIVALS)
def test_fifo_group_named_by_a_person_is_judged_only_by_its_messages_and_not_confirmable_again(
    arrivals: list[Arrival],
) -> None:
    groups = group_messages(arrivals)
    for name in groups:
        alone = group_messages([arrival for arrival in arrivals if arrival.group == name])
        named = find_unclear_groups(groups, {name}, {name})
        assert named == find_unclear_groups(alone, alone, alone)
        assert not any(group.can_person_confirm for group in named)


@given(ARRIVALS)
def test_first_message_of_a_fifo_group_is_the_first_one_sqs_returned(
    arrivals: list[Arrival],
) -> None:
    firsts = {name: group.first_message_id for name, group in group_messages(arrivals).items()}
    group_names = [arrival.group for arrival in arrivals]
    for name, first_id in firsts.items():
        assert first_id == f"m-{group_names.index(name)}"


def test_no_fifo_group_is_unclear_if_none_is_to_be_redriven() -> None:
    arrivals = [
        Arrival("a", 0, is_from_source=True),
        Arrival("a", 300, is_from_source=True),
        Arrival("b", 0, is_from_source=True),
    ]
    groups = group_messages(arrivals)
    assert find_unclear_groups(groups, groups, groups) != []
    assert find_unclear_groups(groups, groups, ()) == []
