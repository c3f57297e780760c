"""Runs that come in between runs, at any AWS call: nobody's value is lost but in one round trip.

No threads: at the call that was drawn, another actor does the whole of its work, or time passes
until the claim has run out. What stands in the queue is read from the account itself.
"""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, seed, settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from moto.sqs.models import sqs_backends

from mendq.model.case import SILENT_DAYS
from mendq.model.limits import Limits
from tests.heal.conftest import ACCOUNT, REGION, every_client
from tests.heal.conftest import settings as settings_of
from tests.heal.operators import say, undo
from tests.prove.endings import unlisted
from tests.prove.proof import Proof, Proving
from tests.prove.world import world

RACES_SECONDS = 45
EXAMPLES_A_ROUND = 10
STEPS = 14
TEMPLATE_SECONDS = 30
QUEUE = "orders.fifo"
SILENT = timedelta(days=SILENT_DAYS)
LIMITS = Limits(visibility_ceiling_seconds=9_000)

ACTORS = ("heal", "heal", "follow_up", "rollback", "approve", "close")
COMING_IN = (*ACTORS, "person", "person", "cloudformation", "the_claim_runs_out")
PERSONS_SECONDS = (20, 40, 45, 100)


@dataclass
class Frame:
    """One run: what it has looked at last, and who comes in at which of its calls."""

    actor: str
    coming_in: tuple[tuple[int, str], ...] = ()
    calls: int = 0
    looked: int | None = None


@dataclass
class AlarmDescription:
    """What is known without asking Mendq; `ours` is what Mendq wrote last and nobody undid."""

    ours: int | None = None
    overruled_at: datetime | None = None
    undone_at: datetime | None = None
    writes: list[tuple[datetime, int, int]] = field(default_factory=list)

    def set_by_a_person(self, value: int, now: datetime) -> None:
        overrules = self.ours is not None and value != self.ours
        self.overruled_at = now if overrules else None

    def silent(self, now: datetime) -> bool:
        since = [each for each in (self.overruled_at, self.undone_at) if each is not None]
        return any(now - each < SILENT for each in since)


class Races(RuleBasedStateMachine):
    """One queue, everybody at it; `seen` counts over all examples of a round."""

    seen: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.world = self.stack.enter_context(world())
        self.account = self.world.account
        self.account.settings = settings_of(limits=LIMITS)
        self.queue = self.account.queue(QUEUE, VisibilityTimeout=str(TEMPLATE_SECONDS))
        self.account.later(minutes=5)
        self.announced, self.frames = AlarmDescription(), list[Frame]()
        self.events = self.persons = 0
        for client in every_client(self.account.clients):
            writes = client is self.account.clients.sqs_for_writing
            hook = partial(self._come_by, writes=writes)
            client.meta.events.register_last("before-call", hook)
            self.stack.callback(client.meta.events.unregister, "before-call", hook)

    @rule(
        actor=strategies.sampled_from(ACTORS),
        coming_in=strategies.lists(
            strategies.tuples(strategies.integers(1, 14), strategies.sampled_from(COMING_IN)),
            max_size=2,
        ),
    )
    def run(self, actor: str, coming_in: list[tuple[int, str]]) -> None:
        self._act(actor, tuple(coming_in))

    @rule(who=strategies.sampled_from(("person", "cloudformation")))
    def set_by(self, who: str) -> None:
        self._act(who)

    @rule(minutes=strategies.sampled_from((1, 5, 31, 31, 60, 25 * 60, 8 * 24 * 60)))
    def time_passes(self, minutes: int) -> None:
        self.account.later(minutes=minutes)

    @rule(tag=strategies.sampled_from(("heal", "heal", "propose")))
    def tagged(self, tag: str) -> None:
        self.account.tag(self.queue, mendq=tag)

    @rule()
    def consumers_work(self) -> None:
        self.world.deletes(self.queue)

    def teardown(self) -> None:
        """Once everybody has had their turn: no claim is left, and every write was told."""
        with self.stack:
            self.account.later(minutes=10)
            for actor in ("heal", "follow_up", "heal"):
                self._act(actor)
            assert "claim_owner" not in self.account.attribute_item(self.queue)
            cases = self.account.transitions()
            announced = {
                (each["before"], each["after"]) for case in cases for each in case["steps"]
            }
            for _, before, after in self.announced.writes:
                assert (str(before), str(after)) in announced
            assert unlisted(cases) == ()
            self.seen.update(f"became_{case['to']}" for case in cases)

    def _act(self, actor: str, coming_in: tuple[tuple[int, str], ...] = ()) -> None:
        self.frames.append(Frame(actor, coming_in))
        acts: dict[str, Callable[[], object]] = {
            "heal": self._heal,
            "follow_up": self.world.minute,
            "rollback": lambda: undo(self.account, self.world.case_id(self.queue)),
            "approve": lambda: say(self.account, "approve", self.world.case_id(self.queue)),
            "close": lambda: say(self.account, "close", self.world.case_id(self.queue)),
            "person": self._person,
            "cloudformation": lambda: self._set(TEMPLATE_SECONDS),
            "the_claim_runs_out": lambda: self.account.later(minutes=2),
        }
        try:
            acts[actor]()
        finally:
            self.frames.pop()

    def _heal(self) -> None:
        self.events += 3
        ids = (str(self.events - n) for n in range(3))
        self.world.deliver(self.account.late_deletes(self.queue, *ids))

    def _person(self) -> None:
        self.persons += 1
        self._set(PERSONS_SECONDS[self.persons % len(PERSONS_SECONDS)])

    def _set(self, seconds: int) -> None:
        self.seen["values_set_by_people"] += 1
        self.account.set_visibility(self.queue, seconds)
        self.announced.set_by_a_person(seconds, self.account.now)

    def _stands(self) -> int:
        queue: Any = sqs_backends[ACCOUNT][REGION].queues[QUEUE]
        return int(queue.visibility_timeout)

    def _come_by(self, model: Any, params: Any, *, writes: bool, **_: Any) -> None:
        if not self.frames:
            return
        frame = self.frames[-1]
        frame.calls += 1
        for at, other in frame.coming_in:
            if at == frame.calls:
                self.seen["runs_that_came_in_between"] += 1
                self._act(other)
        if model.name == "GetQueueAttributes":
            frame.looked = self._stands()
        if writes:
            attributes = json.loads(params["body"])["Attributes"]
            self._written(frame, int(attributes["VisibilityTimeout"]))

    def _written(self, frame: Frame, after: int) -> None:
        """Mendq is about to write: what may not be true now?"""
        stands, now = self._stands(), self.account.now
        self.seen["writes_of_mendq"] += 1
        came_in = any(at == frame.calls for at, _ in frame.coming_in)
        if stands != frame.looked or (came_in and self.announced.silent(now)):
            assert came_in, "somebody wrote between look and write, and it is not one round trip"
            self.seen["writes_within_the_window"] += 1
        elif frame.actor == "rollback":
            assert stands == self.announced.ours, "a rollback takes back what is not Mendq's"
        else:
            assert not self.announced.silent(now), "a person's value is overwritten"
            day = [each for each in self.announced.writes if now - each[0] < timedelta(days=1)]
            assert len(day) < LIMITS.writes_per_attribute_per_day
        self._note(frame, stands, after)

    def _note(self, frame: Frame, stands: int, after: int) -> None:
        now = self.account.now
        before = frame.looked if frame.looked is not None else stands
        self.announced.overruled_at = None
        if frame.actor == "rollback":
            self.seen["rollbacks"] += 1
            self.announced.ours, self.announced.undone_at = None, now
            self.announced.writes.append((now - timedelta(days=2), before, after))
        else:
            self.announced.ours = after
            self.announced.writes.append((now, before, after))


def race(turn: int, examples: int = EXAMPLES_A_ROUND) -> Counter[str]:
    """One seeded round; what was seen in it. Raises AssertionError."""
    seen: Counter[str] = Counter()
    machine = seed(turn)(type("Races", (Races,), {"seen": seen}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return seen


def races(proving: Proving, seconds: float = RACES_SECONDS) -> None:
    seen: Counter[str] = Counter()
    broken: list[str] = []
    for turn in proving.time_box(seconds):
        seen["rounds"] += 1
        try:
            seen.update(race(turn))
        except AssertionError:
            broken.append(f"round {turn}: {traceback.format_exc(limit=-2)}")
    proving.note(dict(sorted(seen.items())))
    for each in broken[:3]:
        proving.figure("broken", each)
    proving.holds("a person's value is overwritten in the window alone", whether=not broken)
    wanted = ("writes_of_mendq", "runs_that_came_in_between", "values_set_by_people")
    proving.holds(
        "Mendq and people wrote, and runs came in between, or nothing was tried",
        whether=all(seen[each] for each in wanted),
    )


RACES = (
    Proof(
        "races",
        "Whoever comes in at whichever AWS call: a person's value is kept, every write is told.",
        races,
    ),
)
