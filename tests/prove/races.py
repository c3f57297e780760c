"""Everybody at one queue at once: runs of Mendq, people, deaths, lost answers, queues made anew.

No threads: at the call that was drawn, the process dies, its answer is lost, or another actor does
the whole of its work, or time passes until the claim has run out. Each run of the explorer follows
from its seed. What stands in the queue is read from the account itself, and what may be written is
judged by what people did, never by what Mendq has noted.

No two symptoms that ship write one attribute that can be put back, so a second one is made of
`visibility_timeout_too_short`: late extensions are its, late deletes the other's.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial, partialmethod
from random import Random
from typing import Any
from unittest.mock import patch

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws import errors
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME, find_symptom_of
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as OWN,
)
from mendq.follow_up.follow_up import follow_up
from mendq.heal.resume import continue_case
from mendq.model.limits import Limits
from mendq.model.state import SILENT_DAYS
from tests.account.account import make_settings
from tests.account.faults import Killed
from tests.heal.operators import OWNERS, make_context, roll_back, send_decision
from tests.prove.endings import list_unknown_transitions
from tests.prove.memory_account import FREEZE, MemoryAccount, memory_account
from tests.prove.proof import Proof, Proving

# What AWS, or another run that was faster, gives; it comes again.
OF_AWS = (
    *(BotoCoreError, ClientError, errors.CaseMoved, errors.RetryLater, errors.StepFailed),
    *(errors.CaseStoreUnavailable, errors.FactsUnavailable, errors.NotificationNotSent),
    *(errors.OwnerUnavailable, errors.QueueGone),
)
RUNS = 1_000
RACES_SECONDS = 60
TWIN = replace(OWN, name="visibility_timeout_too_short_twin")
SYMPTOMS = {"DeleteMessage": OWN, "ChangeMessageVisibility": TWIN}
NAME = "orders.fifo"
TEMPLATE_SECONDS = 30
SILENT = timedelta(days=SILENT_DAYS)
LIMITS = Limits(visibility_ceiling_seconds=9_000)
ACTORS = (
    *("heal", "heal", "follow_up", "follow_up", "rollback", "rollback"),
    *("approve", "approve", "decline", "close"),
)
PEOPLE = ("person", "cloudformation", "freeze", "thaw", "tag", "delete", "make_anew")
SAYS_A_WRITE = ("applied", "rolled_back", "overridden")
FAULTS = ("killed_before", "killed_after", "answer_lost", "sent_twice", "refused", "throttled")
OFTEN = ("person", "freeze", "freeze", "twin", "twin")
COMING_IN = (*ACTORS, *PEOPLE, *OFTEN, "the_claim_runs_out")
LAST_CALL = 12
PERSONS_SECONDS = (20, 40, 45, 100)
MINUTES = (1, 5, 31, 31, 60, 25 * 60, 8 * 24 * 60)
TAGS = ("heal", "heal", "heal", "propose", "observe", "off", None)


@dataclass
class Frame:
    """One process: the value it read last, the one its claim is based on, and who came in when."""

    actor: str
    coming_in: frozenset[int]
    looked: tuple[str, str] | None = None
    planned_on: tuple[str, str] | None = None
    tag: str | None = None
    frozen_at_claim: bool = False


@dataclass
class QueueFactsOfPeople:
    """Facts about the queue that people and the account know.

    `chain` are Mendq's writes that stand on one another, from the value that a person chose last.
    """

    chain: list[tuple[int, int]] = field(default_factory=list)
    overruled_at: datetime | None = None
    undone_at: datetime | None = None
    fixed_at: list[datetime] = field(default_factory=list)

    @property
    def ours(self) -> int | None:
        return self.chain[-1][1] if self.chain else None

    def set_by_a_person(self, value: int, now: datetime) -> None:
        overrules = self.ours is not None and value != self.ours
        self.overruled_at = now if overrules else None

    def silent(self, now: datetime) -> bool:
        since = [moment for moment in (self.overruled_at, self.undone_at) if moment is not None]
        return any(now - moment < SILENT for moment in since)


class Race:
    """One queue and all its actors, in the order that the seed gives."""

    def __init__(self, world: MemoryAccount, seed: int, seen: Counter[str]) -> None:
        self.world = world
        self.account = world.account
        self.seen = seen
        self.random = Random(seed)  # noqa: S311
        self.known = QueueFactsOfPeople()
        self.frames = list[Frame]()
        self.written: list[tuple[int, int]] = []
        self.approved = False
        self.bodies = dict[str, str]()
        # Broken promises. They are raised at the end, because Mendq catches errors of its calls.
        self.faults: list[str] = []
        self.events = 0
        self.persons = 0
        self.is_quiet = False
        world.calls.answers = self._answer
        world.invoke = self._answer_invoke
        tag = self.random.choice(("heal", "heal", "propose"))
        self.queue_arn = world.make(NAME, TEMPLATE_SECONDS, {"mendq": tag})
        self.account.later(minutes=5)

    def run(self) -> None:
        self._act("heal", strikes=self.random.randint(0, 4))
        for _ in range(self.random.randint(4, 9)):
            chance = self.random.random()
            if chance < 0.55:
                self._act(self.random.choice(ACTORS), strikes=self.random.randint(0, 4))
            elif chance < 0.7:
                self._act(self.random.choice(PEOPLE))
            elif chance < 0.8:
                self.world.deletes.append(self.account.now - timedelta(minutes=1))
            else:
                self.account.later(minutes=self.random.choice(MINUTES))
        self._end()
        for (_, kind), times in self.world.calls.struck.items():
            self.seen[f"calls_{kind}"] += times
        assert not self.faults, "; ".join(self.faults)

    def _holds(self, sentence: str, *, whether: bool) -> None:
        if not whether:
            self.faults.append(sentence)

    def _check_errors(self, errors: Iterable[Exception]) -> None:
        for error in errors:
            of_aws = isinstance(error, OF_AWS) and "Parameter validation" not in str(error)
            self._holds(f"{error!r} was raised", whether=of_aws)

    def _end(self) -> None:
        """Check at the end of the race that no claim is left and every write was notified.

        What a queue that is gone for good has left is nobody's to look at.
        """
        self.world.thaw()
        self.is_quiet = True
        for actor in ("heal", "heal", "follow_up", "follow_up", "follow_up"):
            self.account.later(minutes=10)
            self._act(actor)
        if NAME not in self.world.queues:
            return
        claims = {"claim_owner", "intent"}
        claimed = [sk for (_, sk), item in self.world.items.items() if claims & item.keys()]
        self._holds(f"a claim is left: {claimed}", whether=not claimed)
        cases = [*self.world.objects.values()]
        told = Counter(
            (int(step["before"]), int(step["after"]))
            for case in cases
            for step in case["steps"]
            if case["to"] in SAYS_A_WRITE
        )
        untold = Counter(self.written) - told
        self._holds(f"nobody was told of {dict(untold)}", whether=not untold)
        self._holds(
            f"{list_unknown_transitions(cases)} is no transition",
            whether=list_unknown_transitions(cases) == (),
        )
        self.seen.update(f"became_{case['to']}" for case in cases)

    def _act(self, actor: str, strikes: int = 0) -> None:
        """Run one process to its end or until it is killed."""
        drawn: dict[int, Any] = {}
        for _ in range(strikes):
            at = self.random.randint(1, LAST_CALL)
            fault = self.random.random() < 0.5
            other = self.random.choice(COMING_IN)
            drawn[at] = self.random.choice(FAULTS) if fault else partial(self._come_in, other)
        others = frozenset(
            call_number for call_number, strike in drawn.items() if not isinstance(strike, str)
        )
        self.frames.append(Frame(actor, others))
        try:
            with self.world.calls.run(drawn):
                getattr(self, f"_{actor}")()
        except Killed:
            self.seen["processes_that_died"] += 1
        except Exception as error:  # noqa: BLE001
            self._check_errors([error])
        finally:
            self.frames.pop()

    def _come_in(self, other: str) -> None:
        self.seen["actors_that_came_in_between"] += 1
        self._act(other)

    def _heal(self) -> None:
        self.events += 3
        name = self.random.choice([*SYMPTOMS])
        ids = (str(self.events - n) for n in range(3))
        self.bodies = self.account.late_deletes(self.queue_arn, *ids, eventName=name)
        self._twin()

    def _twin(self) -> None:
        """The same events once more."""
        self._check_errors(self.account.heal(dict(self.bodies)).error_by_message_id.values())

    def _follow_up(self) -> None:
        followed = follow_up(make_context(self.account), OWNERS, lambda: 60)
        self._check_errors(followed.errors.values())
        waiting = self.world.invoked
        self.world.invoked = []
        for request in waiting:
            self._asked = request
            self._act("take_up", strikes=self.random.randint(0, 1 - self.is_quiet))

    def _take_up(self) -> None:
        continue_case(self._asked, self.account.run())

    def _answer_invoke(self, request: dict[str, str]) -> Mapping[str, Any]:
        """Lambda answers whatever was raised, and whoever died."""
        answers: list[Mapping[str, Any]] = [{"errorMessage": "it died"}]
        self.frames.append(Frame("take_up", frozenset()))
        try:
            with self.world.calls.run():
                answers.append(continue_case(request, self.account.run()).document())
        except Exception as error:  # noqa: BLE001
            answers.append({"errorMessage": str(error)})
        finally:
            self.frames.pop()
        return answers[-1]

    def _case_id(self) -> str:
        newest = [item["case_id"]["S"] for item in self.world.items.values() if "case_id" in item]
        return str(self.random.choice([*newest, "none"][:2]))

    def _rollback(self) -> None:
        roll_back(self.account, self._case_id())

    def _say(self, word: str) -> None:
        self.approved |= word == "approve"
        send_decision(self.account, word, self._case_id())

    _approve = partialmethod(_say, "approve")
    _decline = partialmethod(_say, "decline")
    _close = partialmethod(_say, "close")

    def _person(self) -> None:
        self.persons += 1
        self._set(PERSONS_SECONDS[self.persons % len(PERSONS_SECONDS)])

    def _set(self, seconds: int) -> None:
        if NAME in self.world.queues:
            self.seen["values_set_by_people"] += 1
            self.world.set(NAME, {"VisibilityTimeout": str(seconds)})
            self.known.set_by_a_person(seconds, self.account.now)

    _cloudformation = partialmethod(_set, TEMPLATE_SECONDS)

    def _freeze(self) -> None:
        self.world.freeze()

    def _thaw(self) -> None:
        self.world.thaw()

    def _tag(self) -> None:
        if NAME in self.world.queues:
            self.world.queues[NAME] = self.world.queues[NAME][0], self._tags()

    def _tags(self) -> dict[str, str]:
        tag = self.random.choice(TAGS)
        return {} if tag is None else {"mendq": tag}

    def _delete(self) -> None:
        self.world.queues.pop(NAME, None)

    def _make_anew(self) -> None:
        """SQS lets it after a minute; another owner's value, and maybe no tags."""
        self.seen["queues_made_anew"] += 1
        self._delete()
        self.account.later(seconds=61)
        seconds = self.random.choice((TEMPLATE_SECONDS, *PERSONS_SECONDS))
        self.world.make(NAME, seconds, self._tags())
        self.known = QueueFactsOfPeople()
        self.written = []
        self.approved = False

    def _the_claim_runs_out(self) -> None:
        self.account.later(minutes=2)

    def _stands(self) -> tuple[str, str] | None:
        if NAME not in self.world.queues:
            return None
        attributes = self.world.queues[NAME][0]
        return attributes["VisibilityTimeout"], attributes["CreatedTimestamp"]

    def _answer(self, operation: str, asked: Mapping[str, Any]) -> Any:
        frame = self.frames[-1]
        if operation == "SetQueueAttributes" and self._stands() is not None:
            self._check_write(frame, int(asked["Attributes"]["VisibilityTimeout"]))
        answer = self.world.answer(operation, asked)
        if operation == "GetQueueAttributes":
            frame.looked = self._stands()
        elif operation == "ListQueueTags" and NAME in self.world.queues:
            frame.tag = self.world.queues[NAME][1].get("mendq")
        elif operation == "TransactWriteItems":
            frame.planned_on = frame.looked
            frame.frozen_at_claim = FREEZE in self.world.items
        return answer

    def _check_write(self, frame: Frame, after: int) -> None:
        """Mendq is about to write: what may not be true now?"""
        stands = self._stands()
        now = self.account.now
        known = self.known
        assert stands is not None
        self.seen["writes_of_mendq"] += 1
        came_in = len(self.world.calls.heard) in frame.coming_in
        rolls_back = frame.actor == "rollback"
        if came_in and (stands != frame.planned_on or known.silent(now)):
            self.seen["writes_within_the_window"] += 1
        else:
            planned = stands == frame.planned_on
            self._holds("what stood there is not what it planned on", whether=planned)
            if rolls_back:
                self._check_rollback(int(stands[0]), after)
            else:
                self._check_fix(frame, now)
        before, made_at = frame.planned_on or stands
        if made_at == stands[1]:
            self._note(int(before), after, now, rolls_back=rolls_back)

    def _check_rollback(self, value: int, after: int) -> None:
        befores = [before for before, _ in self.known.chain]
        is_ours = value == self.known.ours
        self._holds("a rollback takes back what is not Mendq's", whether=is_ours)
        self._holds("a rollback goes to what nobody had there", whether=after in befores)

    def _check_fix(self, frame: Frame, now: datetime) -> None:
        lately = sum(now - fixed_at < timedelta(days=1) for fixed_at in self.known.fixed_at)
        is_rare = lately < LIMITS.writes_per_attribute_per_day
        wanted = ("heal", "propose") if self.approved else ("heal",)
        self._holds("a person's value is overwritten", whether=not self.known.silent(now))
        self._holds(f"the tag {frame.tag} is overruled", whether=frame.tag in wanted)
        self._holds("what is frozen is written", whether=not frame.frozen_at_claim)
        self._holds("it is written too often", whether=is_rare)

    def _note(self, before: int, after: int, now: datetime, *, rolls_back: bool) -> None:
        known = self.known
        self.written.append((before, after))
        if not rolls_back:
            known.chain = [*([] if known.overruled_at else known.chain), (before, after)]
            known.fixed_at.append(now)
            known.overruled_at = None
            return
        self.seen["rollbacks"] += 1
        befores = [value for value, _ in known.chain]
        known.chain = known.chain[: befores.index(after)] if after in befores else []
        known.undone_at = now


@contextmanager
def racing() -> Iterator[Callable[[int], Counter[str]]]:
    """Run a race by its seed; what was seen in it. That raises AssertionError."""

    def match_twin(call: Any) -> Any:
        return (
            SYMPTOMS.get(call.event_name) if find_symptom_of(call) is OWN else find_symptom_of(call)
        )

    with ExitStack() as stack:
        world = stack.enter_context(memory_account(MemoryAccount))
        world.account.settings = make_settings(limits=LIMITS)
        stack.enter_context(patch("mendq.heal.batch.CATALOGUE", (*CATALOGUE, TWIN)))
        stack.enter_context(patch.dict(SYMPTOM_BY_NAME, {TWIN.name: TWIN}))
        stack.enter_context(patch("mendq.heal.batch.find_symptom_of", match_twin))

        def race(seed: int) -> Counter[str]:
            world.empty()
            world.calls.struck.clear()
            seen = Counter[str](runs=1)
            Race(world, seed, seen).run()
            return seen

        yield race


def races(proving: Proving, seconds: float = RACES_SECONDS, runs: int = RUNS) -> None:
    seen = Counter[str]()
    broken = list[str]()
    with racing() as race:
        for run_number in proving.time_box(seconds, at_least=runs):
            seed = proving.seed + run_number
            try:
                seen.update(race(seed))
            except Exception:  # noqa: BLE001 - the seed is said, and the others still run
                broken.append(f"seed {seed}: {traceback.format_exc(limit=-3)}")
    proving.note(dict(sorted(seen.items())))
    proving.figure("seeds", f"{proving.seed} to {proving.seed + seen['runs'] + len(broken) - 1}")
    for fault in broken[:3]:
        proving.figure("broken", fault)
    proving.holds("nothing is written that was not asked for, and all is told", whether=not broken)
    wanted = ("writes_of_mendq", "rollbacks", "actors_that_came_in_between", "queues_made_anew")
    proving.holds(
        "Mendq and people wrote, and others came in between, or nothing was tried",
        whether=all(seen[counter] for counter in (*wanted, "processes_that_died")),
    )


RACES = (
    Proof(
        "races",
        "Whoever comes in or dies at whichever call: people's values stay, every write is told.",
        races,
    ),
)
