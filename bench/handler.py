"""Measure the heal Lambda: cold starts, warm invocations, and storms of events about one queue.

AWS is an emulator, MiniStack, on the loopback interface and in a process of its own. Its time is in
the wall times but not in the CPU times. AWS's own latency is in neither.
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

from bench.rounds import ROOT, Cost, Measure, Variant, measure_call, measure_process, take_measure
from infra.packaging.zips import LAMBDAS_ZIP, copy_sources
from local_account.emulator_environment import emulator_environment, listen
from local_account.where import endpoint_url
from mendq.aws.clients import Clients
from tests.heal.conftest import ACCOUNT, REGION, Account, furnished
from tests.prove.heal_lambda import BATCH_MESSAGES, HealLambda, envelope_of, heal_lambda

COLD_ROUNDS = 11
WARM_ROUNDS = 21
STORM_ROUNDS = 5
# The numbers of events in the storms.
STORM_SIZES = (10, 100, 1_000, 10_000)
START_TIMEOUT_SECONDS = 60
# The number of failed calls that is enough evidence for heal.
ENOUGH_FAILED_CALLS = 3
# A queue with this tag needs a visibility timeout of FIXED_TIMEOUT seconds. Heal raises
# SHORT_TIMEOUT to that. LONG_TIMEOUT is more than enough: if calls fail even then, heal leaves the
# queue to a person.
NEED_TAG = {"mendq:max-processing-seconds": "30"}
SHORT_TIMEOUT = "30"
FIXED_TIMEOUT = "45"
LONG_TIMEOUT = "900"
# A function that makes intake messages about a queue. It takes the queue's ARN, and returns the
# messages by their ids.
MakeMessages = Callable[[str], dict[str, str]]
# A function that delivers intake messages, given by their ids, to heal.
DeliverMessages = Callable[[dict[str, str]], Cost]


@dataclass
class Bench:
    """Makes a new queue for each run, and measures heal on it.

    The case store is emptied before each run. Otherwise heal would see one symptom on many queues
    and suspect a common cause.
    """

    folder: Path  # a temporary folder
    account: Account
    queue_count: int = 0  # the number of queues made so far

    def make_queue(self, visibility_timeout: str = SHORT_TIMEOUT) -> str:
        """Make a queue with this visibility timeout in seconds, and return its ARN.

        Also empty the case store, and set the account's clock two minutes ahead. The failed calls
        get the clock's time, because heal ignores calls that were made before a change of the queue
        took effect. Heal accepts calls that are up to five minutes in the future.
        """
        clients = self.account.clients
        settings = self.account.settings
        for partition_key, sort_key in self.account.case_store_items():
            item_key = {"pk": {"S": partition_key}, "sk": {"S": sort_key}}
            clients.dynamodb.delete_item(TableName=settings.case_table, Key=item_key)
        self.account.now = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=2)
        self.queue_count += 1
        queue_name = f"bench-{self.queue_count}"
        attributes = {"VisibilityTimeout": visibility_timeout}
        tags = {"mendq": "heal", **NEED_TAG}
        clients.sqs.create_queue(QueueName=queue_name, Attributes=attributes, tags=tags)  # type: ignore[arg-type]
        return f"arn:aws:sqs:{REGION}:{settings.account}:{queue_name}"

    def make_bodies(
        self, queue_arn: str, event_count: int = ENOUGH_FAILED_CALLS, **field_changes: str
    ) -> dict[str, str]:
        """Return intake messages with failed calls of a queue, by message id.

        `field_changes` replaces fields of their CloudTrail records.
        """
        body_template = envelope_of(self.account.record(queue_arn, "EVENT-ID", **field_changes))
        bodies: dict[str, str] = {}
        for event_number in range(event_count):
            bodies[str(event_number)] = body_template.replace(
                "EVENT-ID", f"{queue_arn}-{event_number}"
            )
        return bodies

    def make_old_bodies(self, queue_arn: str) -> dict[str, str]:
        """Return intake messages with calls that failed before the queue's last change.

        Heal finds nothing to fix in such a queue.
        """
        failed_at = self.account.now - timedelta(minutes=10)
        return self.make_bodies(queue_arn, eventTime=failed_at.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def measure_queue(
        self,
        timeout_before: str,
        timeout_after: str,
        make_bodies: MakeMessages,
        deliver: DeliverMessages,
    ) -> Cost:
        """Make a queue, and return the cost of delivering failed calls of this queue to heal.

        Args:
            timeout_before: The queue's visibility timeout, in seconds.
            timeout_after: The visibility timeout that the queue must have afterwards, in seconds.
            make_bodies: Makes the messages.
            deliver: Delivers the messages.

        Raises:
            RuntimeError: if the queue has another visibility timeout afterwards.
        """
        queue_arn = self.make_queue(timeout_before)
        cost = deliver(make_bodies(queue_arn))
        timeout = self.account.attributes(queue_arn)["VisibilityTimeout"]
        if timeout != timeout_after:
            raise RuntimeError(
                f"{queue_arn} has a timeout of {timeout} s, not of {timeout_after} s"
            )
        return cost

    def measure_cold(self, *arguments: str, sources: Path = ROOT) -> Cost:
        """Return the cost of a process that runs bench/cold.py with these arguments.

        If `sources` is a copy of Mendq's code, Python must compile it at each start. Python runs
        without its module `site` (-S), which would load an editable installation at each start. A
        Lambda has no such installation.
        """
        python_path = os.pathsep.join((str(sources), sysconfig.get_path("purelib")))
        environment = {**self.account.settings.to_environment(), "PYTHONPATH": python_path}
        if sources == ROOT:
            environment["PYTHONDONTWRITEBYTECODE"] = ""
            environment["PYTHONPYCACHEPREFIX"] = str(self.folder)
        else:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        return measure_process(["-S", str(sources / "bench" / "cold.py"), *arguments], environment)

    def deliver_cold(self, bodies: dict[str, str], sources: Path = ROOT) -> Cost:
        """Deliver one batch to heal in a new process, and return the cost of the process."""
        lambda_records = [
            {"messageId": message_id, "body": body} for message_id, body in bodies.items()
        ]
        batch_file = self.folder / "batch.json"
        batch_file.write_text(json.dumps({"Records": lambda_records}))
        return self.measure_cold("heal", str(batch_file), sources=sources)


def run_measurements(console: Console) -> Iterator[Measure]:
    """Measure cold starts, warm invocations and storms, and yield each measure."""
    with start_emulator(), tempfile.TemporaryDirectory(prefix="mendq-bench-") as folder:
        bench = Bench(Path(folder), furnished(Clients(boto3.Session(region_name=REGION))))
        measure_title = "Cold: a whole process, from start to end"
        yield take_measure(
            console,
            "cold",
            measure_title,
            _make_cold_variants(bench),
            COLD_ROUNDS,
            floor_position=1,
        )
        with heal_lambda(bench.account) as running_heal:
            deliver_warm = partial(_deliver_warm, running_heal)
            measure_title = "Warm: one invocation, three events of one queue"
            warm_variants = _make_warm_variants(bench, deliver_warm)
            yield take_measure(console, "warm", measure_title, warm_variants, WARM_ROUNDS)
            storm_variants: list[Variant] = []
            for event_count in STORM_SIZES:
                make_bodies = partial(bench.make_bodies, event_count=event_count)
                measure_storm = partial(
                    bench.measure_queue, SHORT_TIMEOUT, FIXED_TIMEOUT, make_bodies, deliver_warm
                )
                storm_variants.append(
                    Variant(f"{event_count:,} events of one queue", measure_storm)
                )
            measure_title = "Storms: batches of at most 1,000 events, warm"
            yield take_measure(console, "storm", measure_title, storm_variants, STORM_ROUNDS)


def _make_cold_variants(bench: Bench) -> list[Variant]:
    """Return the variants that start a new process: a boto3 client alone, and heal."""
    copied_sources = bench.folder / "sources"
    copy_sources(copied_sources, (*LAMBDAS_ZIP.own_code, "bench/cold.py"))
    deliver_uncompiled = partial(bench.deliver_cold, sources=copied_sources)
    measure_queue = partial(bench.measure_queue, deliver=bench.deliver_cold)

    def call_sqs_once() -> Cost:
        return bench.measure_cold("client", bench.account.url(bench.make_queue()))

    return [
        Variant("boto3 SQS client, no call", partial(bench.measure_cold, "client")),
        Variant("boto3 SQS client, one call", call_sqs_once),
        Variant("heal, imported", partial(bench.measure_cold, "heal")),
        Variant(
            "heal, one healthy queue",
            partial(measure_queue, SHORT_TIMEOUT, SHORT_TIMEOUT, bench.make_old_bodies),
        ),
        Variant(
            "heal, one fixed queue",
            partial(measure_queue, SHORT_TIMEOUT, FIXED_TIMEOUT, bench.make_bodies),
        ),
        Variant(
            "heal, one queue for a person",
            partial(measure_queue, LONG_TIMEOUT, LONG_TIMEOUT, bench.make_bodies),
        ),
        Variant(
            "heal, one fixed queue, our own code without bytecode",
            partial(
                bench.measure_queue,
                SHORT_TIMEOUT,
                FIXED_TIMEOUT,
                bench.make_bodies,
                deliver_uncompiled,
            ),
        ),
    ]


def _make_warm_variants(bench: Bench, deliver: DeliverMessages) -> list[Variant]:
    """Return the variants that invoke a running heal: one for each decision about the queue."""
    measure_queue = partial(bench.measure_queue, deliver=deliver)

    def deliver_to_open_case() -> Cost:
        queue_arn = bench.make_queue()
        deliver(bench.make_bodies(queue_arn))
        return deliver(bench.make_bodies(queue_arn))

    return [
        Variant(
            "fixed queue", partial(measure_queue, SHORT_TIMEOUT, FIXED_TIMEOUT, bench.make_bodies)
        ),
        Variant(
            "healthy queue",
            partial(measure_queue, SHORT_TIMEOUT, SHORT_TIMEOUT, bench.make_old_bodies),
        ),
        Variant("queue whose case is open", deliver_to_open_case),
        Variant(
            "queue for a person: refused and paged",
            partial(measure_queue, LONG_TIMEOUT, LONG_TIMEOUT, bench.make_bodies),
        ),
    ]


def _deliver_warm(running_heal: HealLambda, bodies: dict[str, str]) -> Cost:
    """Deliver messages to the running heal, in batches of at most BATCH_MESSAGES as Lambda does.

    Raises:
        RuntimeError: if heal does not accept a message.
    """
    messages = list(bodies.items())
    calls_before = running_heal.calls.total
    refused_message_ids: list[str] = []
    batch_starts = range(0, len(messages), BATCH_MESSAGES)
    batches = [
        dict(messages[batch_start : batch_start + BATCH_MESSAGES]) for batch_start in batch_starts
    ]

    def deliver_all() -> None:
        for batch in batches:
            refused_message_ids.extend(running_heal.deliver(batch))

    cpu_seconds_before = time.process_time()
    cost = measure_call(deliver_all)
    cpu_ms = 1000 * (time.process_time() - cpu_seconds_before)
    if refused_message_ids:
        raise RuntimeError(f"heal did not accept {len(refused_message_ids)} messages")
    return replace(cost, cpu_ms=cpu_ms, aws_calls=running_heal.calls.total - calls_before)


@contextmanager
def start_emulator() -> Iterator[str]:
    """Start MiniStack, yield its URL, and stop it at the end of the block.

    The environment of this process is changed so that boto3 calls only this URL, with made-up keys.
    It stays changed after the block.
    """
    with listen(0) as listener:
        port = int(listener.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="mendq-bench-") as scratch_folder:
        environment = emulator_environment(
            {**os.environ, "AUTH": "false"}, Path(scratch_folder), port
        )
        # Every process of this machine can call the emulator, so it must not run code.
        environment |= {"MINISTACK_ACCOUNT_ID": ACCOUNT, "LAMBDA_STRICT": "1"}
        url = endpoint_url(port)
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_until_answering(url, process)
            os.environ.pop("AWS_PROFILE", None)
            os.environ["AWS_ACCESS_KEY_ID"] = "test"
            os.environ["AWS_SECRET_ACCESS_KEY"] = "test"  # noqa: S105 - the emulator takes any
            os.environ["AWS_REGION"] = REGION
            os.environ["AWS_DEFAULT_REGION"] = REGION
            os.environ["AWS_CONFIG_FILE"] = "/nonexistent"
            os.environ["AWS_SHARED_CREDENTIALS_FILE"] = "/nonexistent"
            os.environ["AWS_ENDPOINT_URL"] = url
            yield url
        finally:
            process.kill()
            process.wait()


def _wait_until_answering(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the emulator answers.

    Raise RuntimeError if it ends, or does not answer within START_TIMEOUT_SECONDS.
    """
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/_ministack/health", timeout=1).close()  # noqa: S310
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"MiniStack did not start on {url}: run `python -m ministack` to see why")
