"""The machine in a toy world: crashes at every effect, freezes, somebody else's tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mendq.model.limits import Bounds
from mendq.redrive.progress import Stage
from tests.redrive.toy import Toy

# Halts late, so that poison and crashes run through every stage.
LATE = Bounds(halt_returned=10_000, halt_share=1.0)
IN_PARTS = replace(LATE, mover_per_tick=20)


def test_good_messages_go_back_in_growing_stages() -> None:
    toy = Toy().fill(good=200)
    end = toy.run()
    assert end.stage is Stage.DONE
    assert end.because == "200 messages went back, and none of them came back"
    assert toy.sent_in_stage == {0: 5, 1: 20, 2: 80, 3: 95}
    assert (len(toy.dead), len(toy.processed)) == (0, 200)
    assert max(toy.processed.values()) == 1


def test_poison_is_retained_apart_and_the_rest_is_handled() -> None:
    toy = Toy(bounds=LATE).fill(good=180, poison=20)
    assert toy.run().stage is Stage.DONE
    assert {each.body for each in toy.retained} == toy.poison
    assert (len(toy.processed), len(toy.dead)) == (180, 0)


@pytest.mark.parametrize("bounds", [LATE, IN_PARTS], ids=["at_once", "in_parts"])
def test_no_crash_loses_a_message(bounds: Bounds) -> None:
    """At every effect once: before it, and after it but before it is written down."""
    whole = Toy(bounds=bounds, deletes_per_second=500).fill(good=60, poison=6)
    whole.run()
    every = {f"message {number}" for number in range(66)}
    assert whole.effects > 100
    for at in range(whole.effects):
        toy = Toy(bounds=bounds, deletes_per_second=500, crash_at=at).fill(good=60, poison=6)
        end = toy.run()
        assert toy.everywhere == every, at
        # One message is there twice where it was sent and not deleted.
        assert max(toy.processed.values(), default=0) <= 2, at
        if end.stage is Stage.HALTED:
            # Of a canary that nobody knows to have gone, one message that is back is enough.
            assert end.because.startswith("of 0 or more messages"), (at, end)
            assert toy.sent_in_stage.keys() == {0}, at
            continue
        assert {each.body for each in toy.retained} == toy.poison, at
        assert not toy.dead, at
        assert toy.processed.total() <= 61, at


class Redrive(RuleBasedStateMachine):
    """Anything may happen between two ticks."""

    @initialize(
        good=st.integers(0, 300),
        poison=st.integers(0, 30),
        deletes=st.sampled_from([0.5, 5, 500]),
        bounds=st.sampled_from([Bounds(), LATE, IN_PARTS]),
        is_fifo=st.booleans(),
    )
    def begin(self, good: int, poison: int, deletes: float, bounds: Bounds, is_fifo: bool) -> None:
        self.toy = Toy(bounds=bounds, deletes_per_second=deletes, is_fifo=is_fifo)
        self.toy.fill(good, min(poison, good))
        self.every = self.toy.everywhere

    @rule()
    def tick(self) -> None:
        self.toy.tick()
        self.toy.passes()

    @rule(effects=st.integers(0, 30))
    def tick_and_crash(self, effects: int) -> None:
        self.toy.crash_at = self.toy.effects + effects
        self.toy.tick()
        self.toy.crash_at = inf
        self.toy.passes()

    @rule(minutes=st.integers(1, 90))
    def nobody_ticks(self, minutes: int) -> None:
        self.toy.passes(timedelta(minutes=minutes))

    @rule()
    def freeze(self) -> None:
        self.toy.frozen = "" if self.toy.frozen else "an incident"

    @rule(how=st.sampled_from(["", "blocked_for_now", "refuses_sample"]))
    def nothing_is_seen(self, how: str) -> None:
        self.toy.see()
        if how:
            setattr(self.toy, how, "SQS does not answer")

    @rule()
    def somebody_else_moves(self) -> None:
        self.toy.has_foreign_task = not self.toy.has_foreign_task

    @rule(deletes=st.sampled_from([None, 0, 0.5, 500]))
    def consumers_change(self, deletes: float | None) -> None:
        self.toy.deletes_per_second = deletes

    @rule(reason=st.sampled_from(["", "AccessDenied"]))
    def sqs_refuses(self, reason: str) -> None:
        self.toy.refuses_send = reason

    @precondition(lambda self: self.toy.ended)
    @rule()
    def it_stays_ended(self) -> None:
        before = len(self.toy.dead)
        self.toy.tick()
        assert len(self.toy.dead) == before

    @invariant()
    def nothing_is_lost(self) -> None:
        if hasattr(self, "toy"):
            assert self.toy.everywhere == self.every

    @invariant()
    def no_stage_moves_more_than_it_may(self) -> None:
        if hasattr(self, "toy"):
            self.toy.check()

    def teardown(self) -> None:
        if hasattr(self, "toy") and not self.toy.ended:
            toy = self.toy
            toy.refuses_send = toy.frozen = ""
            toy.has_foreign_task = False
            toy.deletes_per_second = 500
            toy.see()
            toy.run()


Redrive.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestRedrive = Redrive.TestCase
