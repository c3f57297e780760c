"""A redrive from its case's first minute to its end: messages, consumers, ticks, and time.

No time passes but here; the ticks and the mover are what is deployed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from msgspec import structs

from mendq.heal.outcome import Outcome
from mendq.model.case import Case
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from mendq.model.steps import MESSAGES_HELD_IN_DLQ_VALUE, RedriveMessages
from mendq.redrive.progress import RedriveProgress
from mendq.redrive.reads import RedriveRun
from mendq.redrive.redrive import TickOutcome, redrive
from mendq.redrive.store import RedriveStore
from tests.account.faults import Killed
from tests.heal.operators import make_context
from tests.prove.memory_cloud import Cloud
from tests.prove.memory_queue import MemoryQueue, Message
from tests.prove.memory_sqs import MemorySqs
from tests.prove.redriven_consumers import Consumers, Mix
from tests.prove.struck_calls import Strike
from tests.redrive.world import SYMPTOM, make_run, record_case

MINUTE = 60
# Longer than any that nothing stops.
MOST_MINUTES = 400
STEP = 10
# The queue in which the messages of `Mix.others` died.
OTHER_SOURCE = "billing"
LAMBDA_SECONDS = 60
_TAGS = {"mendq": "heal"}


class _TimeIsUp(dict[int, Strike]):
    """Lambda ends a run whose time is over, whatever call it makes then."""

    def __init__(self, remaining_seconds: Callable[[], float]) -> None:
        super().__init__()
        self.remaining_seconds = remaining_seconds

    def __bool__(self) -> bool:
        return True

    def get(self, _: int, default: Any = "") -> Any:
        return default if self.remaining_seconds() > 0 else "killed_before"


@dataclass
class RedrivenWorld:
    """`names` are the bodies of all messages there ever were, `calls` those of all ticks."""

    cloud: Cloud
    mix: Mix
    seed: int
    names: set[str] = field(default_factory=set)
    ended: State | None = None
    happened: Counter[str] = field(default_factory=Counter)
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        cloud = self.cloud
        cloud.empty()
        cloud.deletes_per_second = self.mix.deletes_per_second
        self.random = random.Random(self.seed)  # noqa: S311 - a proof is to be the same again
        unsteady = self.mix.unsteady
        self.sqs = cloud.sqs = MemorySqs(self.random, self._now, fails=unsteady / 4)
        ending = ".fifo" * bool(self.mix.groups)
        self.dead = self._make_queue(f"orders-dlq{ending}")
        policy = RedrivePolicy(self.dead.arn, self.mix.receives).text
        self.source = self._make_queue(f"orders{ending}", RedrivePolicy=policy)
        self.source.dlq = self.dead
        self.source.most_receives = self.mix.receives
        self.others: dict[str, Message] = {}
        if self.mix.others:
            self._make_queue(OTHER_SOURCE, RedrivePolicy=policy).dlq = self.dead
        for queue in (self.source, self.dead):
            queue.copies = unsteady
            queue.forgets = unsteady / 10
        self.consumers = Consumers(self.source, self.random)
        self._fill()
        self.case = self._open(self.dead.arn, SYMPTOM, State.APPLIED, redriven=True)

    @property
    def _now(self) -> float:
        return self.cloud.account.now.timestamp()

    @property
    def progress(self) -> RedriveProgress | None:
        """As it is written down."""
        run = self.run()
        with self.cloud.calls.run():
            return run.open_store(RedriveStore).read_newest_progress(self.dead.arn)

    @property
    def quarantined_names(self) -> set[str]:
        return set[str]().union(
            *(queue.bodies for name, queue in self.sqs.queues.items() if "-quarantine" in name)
        )

    @property
    def lost_names(self) -> set[str]:
        found = set(self.consumers.processed)
        return self.names - found.union(*(queue.bodies for queue in self.sqs.queues.values()))

    @property
    def touched_others(self) -> set[str]:
        """Messages of the other source that are not in the DLQ as they were, visible again.

        Only their receive count may rise. After a run that died they are hidden for two minutes.
        """
        sent_bodies = {body for _, body in self.sqs.sent}
        return {
            message.body
            for message_id, message in self.others.items()
            if self.dead.messages.get(message_id) is not message
            or message.hidden_until > self._now
            or message.body in sent_bodies
        }

    @property
    def moves(self) -> int:
        """Messages sent back, and messages sent to quarantine."""
        return self.sqs.into.total()

    @property
    def sent_back_count(self) -> int:
        return self.sqs.into[self.source.name]

    @property
    def duplicates(self) -> int:
        """Second copies, and third ones, that the source got of a message."""
        sent = self.sqs.sent.items()
        return sum(times - 1 for (name, _), times in sent if name == self.source.name and times > 1)

    def run(self) -> RedriveRun:
        run = make_run(self.cloud.account, self.mix.bounds)
        before = self._seconds_waited
        return structs.replace(run, remaining_seconds=lambda: self._remaining_since(before))

    @property
    def _seconds_waited(self) -> int:
        return self.sqs.happened["empty_receives"]

    def _remaining_since(self, waited: int) -> float:
        taken = self.mix.call_seconds * len(self.cloud.calls.heard)
        return (
            LAMBDA_SECONDS - taken - (self._seconds_waited - waited) * bool(self.mix.call_seconds)
        )

    def tick(self, strikes: Mapping[int, Strike] | None = None, **more: object) -> Outcome | None:
        """Call the Lambda once. Return None if it died or failed; the next minute calls again."""
        case = self.case
        calls = self.cloud.calls
        request = {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}
        run = self.run()
        dies = _TimeIsUp(run.remaining_seconds) if self.mix.call_seconds else strikes
        with calls.run(dies):
            try:
                outcome = redrive({**request, **more}, run)
            except Killed:
                self.happened["runs_killed"] += 1
                return None
            except Exception:  # noqa: BLE001 - as Lambda has it: whoever called calls again
                self.happened["runs_failed"] += 1
                return None
            finally:
                self.happened["ticks"] += 1
                self.calls += calls.heard
        code = outcome.refusal.code if outcome.refusal else ""
        self.happened["ticks_beside_another"] += code == "claimed"
        if isinstance(outcome, TickOutcome) and outcome.case is not None:
            self.ended = outcome.case.state
        elif code == "moved_on":
            self.ended = self.state()
        return outcome

    def lives(self) -> Iterator[int]:
        """A tick a minute until it ends; yields after each, before time passes."""
        for minute in range(MOST_MINUTES):
            self.tick()
            yield minute
            if self.ended:
                return
            self.passes()

    def passes(self, seconds: float = MINUTE) -> None:
        """Consumers work, somebody else's task moves."""
        for _ in range(round(seconds / STEP)):
            self.cloud.account.now += timedelta(seconds=STEP)
            self.sqs.now = self._now
            self.sqs.tasks_move(STEP)
            self.consumers.work(self.sqs.now)

    def settle(self) -> bool:
        """Until nothing waits at the source; whether that came."""
        for _ in range(120):
            if not (self.source.messages or self.consumers.busy or self.sqs.task_of(self.dead)):
                return True
            self.passes()
        return False

    def state(self) -> State:
        """As the case store says."""
        with self.cloud.calls.run():
            context = make_context(self.cloud.account)
            case = context.case_store.look(self.dead.arn, SYMPTOM, ()).case
        assert case is not None
        return case.state

    def cause_comes_back(self) -> None:
        """A case of a cause is open at the source."""
        self._open(self.source.arn, "visibility_timeout_too_short", State.ESCALATED)

    def produce(self, body: str) -> None:
        """A new message at the source."""
        self.names.add(body)
        self.source.put(Message(body, self._now, group="new" if self.mix.groups else ""), self._now)

    def _make_queue(self, name: str, **attributes: str) -> MemoryQueue:
        visibility = str(self.mix.needed_seconds)
        queue = self.sqs.make(
            name, VisibilityTimeout=visibility, MessageRetentionPeriod="1209600", **attributes
        )
        queue.tags = dict(_TAGS)
        # The messages of the DLQ are an hour old, and died in this queue.
        queue.attributes["CreatedTimestamp"] = str(int(self._now) - 86_400)
        return queue

    def _fill(self) -> None:
        mix = self.mix
        shuffled_poison = mix.poison - mix.leading_poison
        kinds = ["good"] * mix.good + ["poison"] * shuffled_poison + ["slow"] * mix.slow
        kinds += ["parked"] * mix.parked
        self.random.shuffle(kinds)
        kinds = ["poison"] * mix.leading_poison + kinds
        for n, kind in enumerate(kinds):
            group = f"group-{n % mix.groups}" if mix.groups else ""
            self.lay(Message(f"{kind} {n}", self._now - 3_600, group=group), self.source.arn)
        for n in range(mix.others):
            message = Message(f"other {n}", self._now - 3_600)
            self.lay(message, self.sqs.queues[OTHER_SOURCE].arn)
            self.others[message.message_id] = message

    def lay(self, message: Message, source_arn: str) -> None:
        """Into the DLQ, as one that died there, or that somebody has sent (empty)."""
        message.source_arn = source_arn
        self.dead.messages[message.message_id] = message
        self.names.add(message.body)

    def _open(self, queue_arn: str, symptom: str, state: State, *, redriven: bool = False) -> Case:
        steps = (RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, self.source.arn),) if redriven else ()
        with self.cloud.calls.run():
            account = self.cloud.account
            return record_case(account, [state], steps, queue_arn=queue_arn, symptom=symptom)
