"""FIFO groups of a DLQ in which only the first message can have failed (clear groups)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mendq.redrive.first_in_group import (
    LONGEST_ARRIVAL_TIME_OF_BATCH,
    GroupInDlq,
    find_unclear_groups,
)
from mendq.redrive.messages import Message

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
# Group, seconds after AT, and whether it died in the source.
DRAWN = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 400), st.booleans()), max_size=12)


def group_messages(drawn: list[tuple[str, int, bool]]) -> dict[str, GroupInDlq]:
    groups = dict[str, GroupInDlq]()
    for number, (name, seconds, is_from_source) in enumerate(drawn):
        message = Message(f"m-{number}", "", AT + timedelta(seconds=seconds), group_id=name)
        if name not in groups:
            groups[name] = GroupInDlq.begin_with(message)
        groups[name].add_message(message, is_from_source=is_from_source)
    return groups


@given(DRAWN)
def test_fifo_group_is_clear_only_if_its_messages_died_together_alone_and_in_the_source(
    drawn: list[tuple[str, int, bool]],
) -> None:
    groups = group_messages(drawn)
    unclear = {group.group_id for group in find_unclear_groups(groups, groups, groups)}
    for name in groups.keys() - unclear:
        own = [seconds for group_name, seconds, _ in drawn if group_name == name]
        others = [seconds for group_name, seconds, _ in drawn if group_name != name]
        assert all(is_from_source for group_name, _, is_from_source in drawn if group_name == name)
        assert max(own) - min(own) <= LONGEST_ARRIVAL_TIME_OF_BATCH.total_seconds()
        assert all(abs(mine - other) > 60 for mine in own for other in others)


@given(DRAWN)
def test_named_fifo_group_is_judged_only_by_its_own_messages(
    drawn: list[tuple[str, int, bool]],
) -> None:
    groups = group_messages(drawn)
    for name in groups:
        alone = group_messages([message for message in drawn if message[0] == name])
        named = find_unclear_groups(groups, {name}, {name})
        assert named == find_unclear_groups(alone, alone, alone)
        assert not any(group.can_person_confirm for group in named)


@given(DRAWN)
def test_first_message_of_a_fifo_group_is_the_first_one_sqs_returned(
    drawn: list[tuple[str, int, bool]],
) -> None:
    firsts = {name: group.first_message_id for name, group in group_messages(drawn).items()}
    for name, first_id in firsts.items():
        assert first_id == f"m-{[group_name for group_name, _, _ in drawn].index(name)}"


def test_no_fifo_group_is_unclear_if_none_is_to_be_redriven() -> None:
    groups = group_messages([("a", 0, True), ("a", 300, True), ("b", 0, True)])
    assert find_unclear_groups(groups, groups, ()) == []
