"""What the heal Lambda costs: cold starts, warm fixes, storms of one queue.

AWS is a plain MiniStack on the loopback interface, in a process of its own: its time is in every
wall time here and in no CPU time; nothing of AWS's own latency is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import boto3
from msgspec.structs import replace
from rich.console import Console

from bench.rounds import ROOT, Cost, Measure, Way, measured, process_cost, take
from infra.packaging.zips import LAMBDAS, copy
from local_account.emulator_environment import emulator_environment, listen
from local_account.where import endpoint_url
from mendq.aws.clients import Clients
from tests.heal.conftest import ACCOUNT, REGION, Account, furnished
from tests.prove.heal_lambda import BATCH_MESSAGES, HealLambda, envelope_of, heal_lambda

COLD_ROUNDS, WARM_ROUNDS, STORM_ROUNDS = 11, 21, 5
STORMS = (10, 100, 1_000, 10_000)
STARTS_WITHIN_SECONDS = 60
ENOUGH_EVENTS = 3
# What the tag names needs 45 s: the short timeout is raised to them. The long one covers them, so
# what fails on it even so is a person's to look at.
NEED_TAG = {"mendq:max-processing-seconds": "30"}
SHORT, FIXED, LONG = "30", "45", "900"
# The intake messages about a queue, by id.
Bodies = Callable[[str], dict[str, str]]


@dataclass
class Bench:
    """A fresh queue for every go; the case store is emptied, or they would be one mass symptom."""

    folder: Path
    account: Account
    queues: int = 0

    def queue(self, visibility: str = SHORT) -> str:
        """Make one; its failed calls come two minutes later, when its settings have spread.

        A real clock takes them too: they are less than five minutes ahead of it.
        """
        clients, settings = self.account.clients, self.account.settings
        for owner, name in self.account.case_store_items():
            key = {"pk": {"S": owner}, "sk": {"S": name}}
            clients.dynamodb.delete_item(TableName=settings.case_table, Key=key)
        self.account.now = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=2)
        self.queues += 1
        name = f"bench-{self.queues}"
        attributes, tags = {"VisibilityTimeout": visibility}, {"mendq": "heal", **NEED_TAG}
        clients.sqs.create_queue(QueueName=name, Attributes=attributes, tags=tags)  # type: ignore[arg-type]
        return f"arn:aws:sqs:{REGION}:{settings.account}:{name}"

    def bodies(self, queue_arn: str, events: int = ENOUGH_EVENTS, **over: str) -> dict[str, str]:
        """So many failed calls."""
        template = envelope_of(self.account.record(queue_arn, "EVENT-ID", **over))
        return {str(n): template.replace("EVENT-ID", f"{queue_arn}-{n}") for n in range(events)}

    def bodies_from_before(self, queue_arn: str) -> dict[str, str]:
        """What failed before the queue became what it is: by now there is nothing to fix."""
        before = self.account.now - timedelta(minutes=10)
        return self.bodies(queue_arn, eventTime=before.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def on(
        self, before: str, after: str, bodies_of: Bodies, deliver: Callable[[dict[str, str]], Cost]
    ) -> Cost:
        """Deliver what fails on a queue; raise RuntimeError where it does not end as named."""
        queue_arn = self.queue(before)
        cost = deliver(bodies_of(queue_arn))
        found = self.account.attributes(queue_arn)["VisibilityTimeout"]
        if found != after:
            raise RuntimeError(f"{queue_arn} stands at {found} s, not at {after} s")
        return cost

    def process(self, *words: str, ours: Path = ROOT) -> Cost:
        """Measure a cold process; where `ours` is given it is our own code, without bytecode.

        Without `site`: an editable install's finder would be in every start, and in no Lambda.
        """
        paths = os.pathsep.join((str(ours), sysconfig.get_path("purelib")))
        without = {"PYTHONDONTWRITEBYTECODE": "1" if ours != ROOT else "", "PYTHONPATH": paths}
        cache = {"PYTHONPYCACHEPREFIX": str(self.folder)} if ours == ROOT else {}
        environment = {**self.account.settings.to_environment(), **without, **cache}
        return process_cost(["-S", str(ours / "bench" / "cold.py"), *words], environment)

    def cold(self, bodies: dict[str, str], ours: Path = ROOT) -> Cost:
        """Handle one batch in a process of its own."""
        records = [{"messageId": name, "body": body} for name, body in bodies.items()]
        path = self.folder / "batch.json"
        path.write_text(json.dumps({"Records": records}))
        return self.process("heal", str(path), ours=ours)


def measures(console: Console) -> Iterator[Measure]:
    """Cold, warm, storms."""
    with endpoint(), tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
        bench = Bench(Path(folder), furnished(Clients(boto3.Session(region_name=REGION))))
        title = "Cold: a whole process, from start to end"
        yield take(console, "cold", title, _cold_ways(bench), COLD_ROUNDS, floor=1)
        with heal_lambda(bench.account) as lambda_:
            deliver = partial(_delivered, lambda_)
            title = "Warm: one invocation, three events of one queue"
            yield take(console, "warm", title, _warm_ways(bench, deliver), WARM_ROUNDS)
            ways = [
                Way(
                    f"{size:,} events of one queue",
                    partial(bench.on, SHORT, FIXED, partial(bench.bodies, events=size), deliver),
                )
                for size in STORMS
            ]
            title = "Storms: batches of at most 1,000 events, warm"
            yield take(console, "storm", title, ways, STORM_ROUNDS)


def _cold_ways(bench: Bench) -> list[Way]:
    on, sources = partial(bench.on, deliver=bench.cold), bench.folder / "sources"
    copy(sources, (*LAMBDAS.ours, "bench/cold.py"))
    uncompiled = partial(bench.on, deliver=partial(bench.cold, ours=sources))
    call = lambda: bench.process("client", bench.account.url(bench.queue()))  # noqa: E731
    return [
        Way("boto3 SQS client, no call", lambda: bench.process("client")),
        Way("boto3 SQS client, one call", call),
        Way("heal, imported", lambda: bench.process("heal")),
        Way("heal, one healthy queue", lambda: on(SHORT, SHORT, bench.bodies_from_before)),
        Way("heal, one fixed queue", lambda: on(SHORT, FIXED, bench.bodies)),
        Way("heal, one queue for a person", lambda: on(LONG, LONG, bench.bodies)),
        Way(
            "heal, one fixed queue, our own code without bytecode",
            lambda: uncompiled(SHORT, FIXED, bench.bodies),
        ),
    ]


def _warm_ways(bench: Bench, deliver: Callable[[dict[str, str]], Cost]) -> list[Way]:
    on = partial(bench.on, deliver=deliver)

    def case_is_open() -> Cost:
        queue_arn = bench.queue()
        deliver(bench.bodies(queue_arn))
        return deliver(bench.bodies(queue_arn))

    return [
        Way("fixed queue", lambda: on(SHORT, FIXED, bench.bodies)),
        Way("healthy queue", lambda: on(SHORT, SHORT, bench.bodies_from_before)),
        Way("queue whose case is open", case_is_open),
        Way("queue for a person: refused and paged", lambda: on(LONG, LONG, bench.bodies)),
    ]


def _delivered(lambda_: HealLambda, bodies: dict[str, str]) -> Cost:
    """Deliver as Lambda does: in batches of at most so many messages."""
    messages, calls, again = list(bodies.items()), lambda_.calls.total, list[str]()
    firsts = range(0, len(messages), BATCH_MESSAGES)
    batches = [dict(messages[first : first + BATCH_MESSAGES]) for first in firsts]

    def go() -> None:
        for batch in batches:
            again.extend(lambda_.deliver(batch))

    cpu = time.process_time()
    cost = measured(go)
    cpu_ms = 1000 * (time.process_time() - cpu)
    if again:
        raise RuntimeError(f"{len(again)} messages were not taken")
    return replace(cost, cpu_ms=cpu_ms, aws_calls=lambda_.calls.total - calls)


@contextmanager
def endpoint() -> Iterator[str]:
    """Its URL; this process and its children reach nothing else meanwhile."""
    with listen(0) as taken:
        port = int(taken.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="mendq-bench-") as scratch:
        own = emulator_environment({**os.environ, "AUTH": "false"}, Path(scratch), port)
        # Anybody of this machine may call it meanwhile: it runs no code.
        own |= {"MINISTACK_ACCOUNT_ID": ACCOUNT, "LAMBDA_STRICT": "1"}
        silent, url = subprocess.DEVNULL, endpoint_url(port)
        command = [sys.executable, "-m", "ministack"]
        process = subprocess.Popen(command, env=own, stdout=silent, stderr=silent)
        try:
            _wait_for(url, process)
            os.environ.pop("AWS_PROFILE", None)
            keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test")
            regions = dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), REGION)
            files = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
            os.environ.update(keys | regions | dict.fromkeys(files, "/nonexistent"))
            os.environ["AWS_ENDPOINT_URL"] = url
            yield url
        finally:
            process.kill()
            process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTS_WITHIN_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/_ministack/health", timeout=1).close()  # noqa: S310
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"MiniStack did not start on {url}: run `python -m ministack` to see why")
