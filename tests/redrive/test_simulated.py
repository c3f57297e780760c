"""Whole redrives with queues in memory: stages, faults and arbitrary events between ticks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mendq.model.limits import Bounds
from mendq.model.state import State
from tests.prove.memory_cloud import Cloud, cloud
from tests.prove.redrive_tally import IN_PARTS, LATE
from tests.prove.redriven_consumers import Mix
from tests.prove.redriven_world import RedrivenWorld
from tests.prove.struck_calls import Strike

FAULTS = ("killed_before", "killed_after", "answer_lost", "refused")


@pytest.fixture(scope="module")
def memory_cloud() -> Iterator[Cloud]:
    with cloud() as made:
        Redrive.cloud = made
        yield made


def list_sent_counts(world: RedrivenWorld) -> list[int]:
    """Run the redrive to its end. Return how many messages each sending tick sent."""
    sent = [0, *(world.sent_back_count for _ in world.lives())]
    return [after - before for before, after in pairwise(sent) if after > before]


def test_redrive_of_good_messages_sends_growing_stages_of_5_20_80_and_the_rest(
    memory_cloud: Cloud,
) -> None:
    world = RedrivenWorld(memory_cloud, Mix(good=200), seed=1)
    assert list_sent_counts(world) == [5, 20, 80, 95]
    assert world.progress is not None
    assert world.progress.because == "200 messages went back, and none of them came back"
    assert world.consumers.processed == Counter(world.names)


def test_redrive_moves_poison_messages_to_quarantine_and_consumers_process_the_others(
    memory_cloud: Cloud,
) -> None:
    world = RedrivenWorld(memory_cloud, Mix(good=180, poison=20, bounds=LATE), seed=1)
    list_sent_counts(world)
    assert world.ended is State.VERIFIED
    poison = {name for name in world.names if name.startswith("poison")}
    assert (len(poison), world.quarantined_names) == (20, poison)
    assert world.consumers.processed.keys() == world.names - poison


class Redrive(RuleBasedStateMachine):
    """Anything may happen between two ticks."""

    cloud: ClassVar[Cloud]

    @initialize(
        good=st.integers(0, 120),
        poison=st.integers(0, 20),
        deletes=st.sampled_from([0.5, 5, 500]),
        bounds=st.sampled_from([Bounds(), LATE, IN_PARTS]),
        groups=st.sampled_from([0, 0, 1, 7]),
    )
    def begin(self, good: int, poison: int, deletes: float, bounds: Bounds, groups: int) -> None:
        mix = Mix(good, poison, groups=groups, bounds=bounds, deletes_per_second=deletes)
        self.world = RedrivenWorld(self.cloud, mix, seed=1)
        self.sent_in_stage = Counter[int]()

    @rule(strikes=st.dictionaries(st.integers(1, 60), st.sampled_from(FAULTS), max_size=2))
    def tick(self, strikes: Mapping[int, Strike]) -> None:
        world = self.world
        before = self.world.sent_back_count
        world.tick(strikes)
        world.passes()
        if (progress := world.progress) is not None:
            sent = self.sent_in_stage
            sent[progress.current.number] += world.sent_back_count - before
            assert sent[progress.current.number] <= progress.current.size

    @rule(minutes=st.integers(1, 90))
    def nobody_ticks(self, minutes: int) -> None:
        self.world.passes(60 * minutes)

    @rule(is_frozen=st.booleans())
    def freeze(self, *, is_frozen: bool) -> None:
        (self.cloud.freeze if is_frozen else self.cloud.thaw)()

    @rule(seconds=st.sampled_from([60, 300]), per_second=st.sampled_from([0, 1, 5]))
    def somebody_else_moves(self, seconds: int, per_second: int) -> None:
        self.world.sqs.somebody_moves(self.world.dead, seconds, per_second)

    @rule(deletes=st.sampled_from([0, 0.5, 500]))
    def consumers_change(self, deletes: float) -> None:
        self.cloud.deletes_per_second = deletes

    @precondition(lambda self: self.world.ended)
    @rule()
    def it_stays_ended(self) -> None:
        before = self.world.moves
        self.world.tick()
        assert self.world.moves == before

    @invariant()
    def nothing_is_lost(self) -> None:
        assert not self.world.lost_names

    def teardown(self) -> None:
        if hasattr(self, "world") and not self.world.ended:
            self.cloud.thaw()
            self.cloud.deletes_per_second = 500
            list_sent_counts(self.world)
            assert self.world.ended
            self.nothing_is_lost()


@pytest.mark.usefixtures("memory_cloud")
def test_redrive_under_any_events_loses_no_message_exceeds_no_stage_and_always_ends() -> None:
    run_state_machine_as_test(
        Redrive, settings=settings(max_examples=20, stateful_step_count=20, deadline=None)
    )
