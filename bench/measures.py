"""What is measured: cold starts, warm mendings, storms of one queue."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import boto3

from bench.rounds import Cost, Way, process_cost
from functions.aws.clients import Clients
from tests.functions.aws.conftest import REGION, Account, furnished
from tests.prove.heal_lambda import BATCH_MESSAGES, HealLambda, envelope_of

ENOUGH_EVENTS = 3
# What the tag names needs 45 s: the short lease is raised to them. The long one covers them, so
# what fails on it even so is a person's to look at.
NEED_TAG = {"mendq:max-processing-seconds": "30"}
SHORT, MENDED, LONG = "30", "45", "900"
# The intake messages about a queue, by id.
Bodies = Callable[[str], dict[str, str]]


@dataclass
class Bench:
    """A fresh queue for every go; the ledger is emptied, or they would be one mass symptom."""

    folder: Path
    account: Account = field(
        default_factory=lambda: furnished(Clients(boto3.Session(region_name=REGION)))
    )
    queues: int = 0

    def queue(self, visibility: str = SHORT) -> str:
        """Its failed calls come two minutes later, when its settings have spread.

        A real clock takes them too: they are less than five minutes ahead of it.
        """
        self._forget()
        self.account.now = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=2)
        self.queues += 1
        name = f"bench-{self.queues}"
        self.account.clients.sqs.create_queue(
            QueueName=name,
            Attributes={"VisibilityTimeout": visibility},
            tags={"mendq": "heal", **NEED_TAG},
        )
        return f"arn:aws:sqs:{REGION}:{self.account.settings.account}:{name}"

    def bodies(self, queue_arn: str, events: int = ENOUGH_EVENTS, **over: str) -> dict[str, str]:
        template = envelope_of(self.account.record(queue_arn, "EVENT-ID", **over))
        return {str(n): template.replace("EVENT-ID", f"{queue_arn}-{n}") for n in range(events)}

    def bodies_from_before(self, queue_arn: str) -> dict[str, str]:
        """What failed before the queue became what it is: by now there is nothing to mend."""
        before = self.account.now - timedelta(minutes=10)
        return self.bodies(queue_arn, eventTime=before.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def expect(self, queue_arn: str, visibility: str) -> None:
        """Raise RuntimeError where something else was measured than its name says."""
        found = self.account.attributes(queue_arn)["VisibilityTimeout"]
        if found != visibility:
            raise RuntimeError(f"{queue_arn} stands at {found} s, not at {visibility} s")

    def _forget(self) -> None:
        client = self.account.clients.dynamodb
        for owner, name in self.account.ledger_items():
            key = {"pk": {"S": owner}, "sk": {"S": name}}
            client.delete_item(TableName=self.account.settings.ledger_table, Key=key)


def cold_ways(bench: Bench) -> tuple[Way, ...]:
    environment = bench.account.settings.to_environment()

    def process(module: str, *arguments: str) -> Cost:
        return process_cost(module, *arguments, environment=environment)

    def heal(before: str, after: str, bodies_of: Bodies) -> Cost:
        queue_arn = bench.queue(before)
        bodies = bodies_of(queue_arn)
        records = [{"messageId": name, "body": body} for name, body in bodies.items()]
        path = bench.folder / "batch.json"
        path.write_text(json.dumps({"Records": records}))
        cost = process("bench.cold_heal", str(path))
        bench.expect(queue_arn, after)
        return cost

    def bare_call() -> Cost:
        return process("bench.bare_client", bench.account.url(bench.queue()))

    return (
        Way("boto3 SQS client, no call", lambda: process("bench.bare_client")),
        Way("boto3 SQS client, one call", bare_call),
        Way("heal, imported", lambda: process("bench.cold_heal")),
        Way("heal, one healthy queue", lambda: heal(SHORT, SHORT, bench.bodies_from_before)),
        Way("heal, one mended queue", lambda: heal(SHORT, MENDED, bench.bodies)),
        Way("heal, one queue for a person", lambda: heal(LONG, LONG, bench.bodies)),
    )


def warm_ways(bench: Bench, lambda_: HealLambda) -> tuple[Way, ...]:
    def on(before: str, after: str, bodies_of: Bodies) -> Cost:
        queue_arn = bench.queue(before)
        cost = _delivered(lambda_, bodies_of(queue_arn))
        bench.expect(queue_arn, after)
        return cost

    def case_is_open() -> Cost:
        queue_arn = bench.queue()
        _delivered(lambda_, bench.bodies(queue_arn))
        return _delivered(lambda_, bench.bodies(queue_arn))

    return (
        Way("mended queue", lambda: on(SHORT, MENDED, bench.bodies)),
        Way("healthy queue", lambda: on(SHORT, SHORT, bench.bodies_from_before)),
        Way("queue whose case is open", case_is_open),
        Way("queue for a person: refused and paged", lambda: on(LONG, LONG, bench.bodies)),
    )


def storm_ways(bench: Bench, lambda_: HealLambda) -> tuple[Way, ...]:
    """As Lambda hands them over: in batches of at most so many messages."""

    def storm(events: int) -> Cost:
        queue_arn = bench.queue()
        cost = _delivered(lambda_, bench.bodies(queue_arn, events))
        bench.expect(queue_arn, MENDED)
        return cost

    sizes = (10, 100, 1_000, 10_000)
    return tuple(Way(f"{size:,} events of one queue", partial(storm, size)) for size in sizes)


def _delivered(lambda_: HealLambda, bodies: dict[str, str]) -> Cost:
    messages = list(bodies.items())
    batches = [
        dict(messages[first : first + BATCH_MESSAGES])
        for first in range(0, len(messages), BATCH_MESSAGES)
    ]
    calls, cpu, wall = lambda_.calls.total, time.process_time(), time.perf_counter()
    again = [each for batch in batches for each in lambda_.deliver(batch)]
    wall_ms = 1000 * (time.perf_counter() - wall)
    cpu_ms = 1000 * (time.process_time() - cpu)
    if again:
        raise RuntimeError(f"{len(again)} messages were not taken")
    return Cost(wall_ms, cpu_ms, lambda_.calls.total - calls)
