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

from bench.large_bodies import measure_large_bodies
from bench.rounds import (
    ROOT,
    Cost,
    Measure,
    Variant,
    measure_call,
    measure_process,
    measure_variants,
)
from infra.packaging.zips import LAMBDAS_ZIP, copy_sources
from local_account.emulator_environment import make_emulator_environment, open_listening_socket
from local_account.where import make_endpoint_url
from mendq.aws.clients import Clients
from tests.account.account import ACCOUNT, REGION, Account, furnish_account
from tests.prove.heal_lambda import BATCH_MESSAGES, HealLambda, envelope_of, heal_lambda

COLD_ROUNDS = 11
WARM_ROUNDS = 21
STORM_ROUNDS = 5
# The numbers of events in the storms.
STORM_EVENT_COUNTS = (10, 100, 1_000, 10_000)
START_TIMEOUT_SECONDS = 60
# The number of failed calls that is enough evidence for heal.
ENOUGH_FAILED_CALLS = 3
# A queue with this tag needs a visibility timeout of TIMEOUT_AFTER_FIX_SECONDS seconds. Heal raises
# SHORT_TIMEOUT_SECONDS to that. LONG_TIMEOUT_SECONDS is more than enough: if calls fail even then,
# heal leaves the queue to a person.
PROCESSING_TIME_TAG = {"mendq:max-processing-seconds": "30"}
SHORT_TIMEOUT_SECONDS = "30"
TIMEOUT_AFTER_FIX_SECONDS = "45"
LONG_TIMEOUT_SECONDS = "900"
# A function that makes intake messages about a queue. It takes the queue's ARN, and returns the
# messages by their ids.
MessageMaker = Callable[[str], dict[str, str]]
# A function that delivers intake messages, given by their ids, to heal.
MessageDeliverer = Callable[[dict[str, str]], Cost]


@dataclass
class HealBench:
    """Makes a new queue for each run, and measures heal on it.

    The case store is emptied before each run. Otherwise heal would see one symptom on many queues
    and suspect a common cause.
    """

    temporary_folder: Path  # a temporary folder
    account: Account
    queue_count: int = 0  # the number of queues made so far

    def make_queue(self, visibility_timeout: str = SHORT_TIMEOUT_SECONDS) -> str:
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
        queue_attributes = {"VisibilityTimeout": visibility_timeout}
        queue_tags = {"mendq": "heal", **PROCESSING_TIME_TAG}
        clients.sqs.create_queue(QueueName=queue_name, Attributes=queue_attributes, tags=queue_tags)  # type: ignore[arg-type]
        return f"arn:aws:sqs:{REGION}:{settings.account}:{queue_name}"

    def make_message_bodies(
        self, queue_arn: str, event_count: int = ENOUGH_FAILED_CALLS, **field_changes: str
    ) -> dict[str, str]:
        """Return intake messages with failed calls of a queue, by message id.

        `field_changes` replaces fields of their CloudTrail records.
        """
        body_template = envelope_of(self.account.record(queue_arn, "EVENT-ID", **field_changes))
        body_by_message_id: dict[str, str] = {}
        for event_number in range(event_count):
            body_by_message_id[str(event_number)] = body_template.replace(
                "EVENT-ID", f"{queue_arn}-{event_number}"
            )
        return body_by_message_id

    def make_bodies_of_old_calls(self, queue_arn: str) -> dict[str, str]:
        """Return intake messages with calls that failed before the queue's last change.

        Heal finds nothing to fix in such a queue.
        """
        failed_at = self.account.now - timedelta(minutes=10)
        return self.make_message_bodies(
            queue_arn, eventTime=failed_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        )

    def measure_delivery(
        self,
        timeout_before: str,
        timeout_after: str,
        make_message_bodies: MessageMaker,
        deliver_messages: MessageDeliverer,
    ) -> Cost:
        """Make a queue, and return the cost of delivering failed calls of this queue to heal.

        Args:
            timeout_before: The queue's visibility timeout, in seconds.
            timeout_after: The visibility timeout that the queue must have afterwards, in seconds.
            make_message_bodies: A function that makes the messages.
            deliver_messages: A function that delivers them.

        Raises:
            RuntimeError: if the queue has another visibility timeout afterwards.
        """
        queue_arn = self.make_queue(timeout_before)
        cost = deliver_messages(make_message_bodies(queue_arn))
        visibility_timeout = self.account.attributes(queue_arn)["VisibilityTimeout"]
        if visibility_timeout != timeout_after:
            raise RuntimeError(
                f"{queue_arn} has a timeout of {visibility_timeout} s, not of {timeout_after} s"
            )
        return cost

    def measure_cold_start(self, *arguments: str, source_root: Path = ROOT) -> Cost:
        """Return the cost of a process that runs bench/cold.py with these arguments.

        If `source_root` has a copy of Mendq's code, Python must compile it at each start. Python
        runs without its module `site` (-S), which would load an editable installation at each
        start. A Lambda has no such installation.
        """
        python_path = os.pathsep.join((str(source_root), sysconfig.get_path("purelib")))
        environment = {**self.account.settings.to_environment(), "PYTHONPATH": python_path}
        if source_root == ROOT:
            environment["PYTHONDONTWRITEBYTECODE"] = ""
            environment["PYTHONPYCACHEPREFIX"] = str(self.temporary_folder)
        else:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        return measure_process(
            ["-S", str(source_root / "bench" / "cold.py"), *arguments], environment
        )

    def deliver_to_new_process(
        self, body_by_message_id: dict[str, str], source_root: Path = ROOT
    ) -> Cost:
        """Deliver one batch to heal in a new process, and return the cost of the process."""
        lambda_records = [
            {"messageId": message_id, "body": body}
            for message_id, body in body_by_message_id.items()
        ]
        batch_file = self.temporary_folder / "batch.json"
        batch_file.write_text(json.dumps({"Records": lambda_records}))
        return self.measure_cold_start("heal", str(batch_file), source_root=source_root)


def run_measurements(console: Console) -> Iterator[Measure]:
    """Measure cold starts, warm invocations and storms, and yield each measure."""
    with start_emulator(), tempfile.TemporaryDirectory(prefix="mendq-bench-") as temporary_folder:
        bench = HealBench(
            Path(temporary_folder), furnish_account(Clients(boto3.Session(region_name=REGION)))
        )
        measure_title = "Cold: a whole process, from start to end"
        yield measure_variants(
            console,
            "cold",
            measure_title,
            _make_cold_variants(bench),
            COLD_ROUNDS,
            baseline_position=1,
        )
        with heal_lambda(bench.account) as running_heal:
            deliver_to_running_heal = partial(_deliver_to_running_heal, running_heal)
            measure_title = "Warm: one invocation, three events of one queue"
            warm_variants = _make_warm_variants(bench, deliver_to_running_heal)
            yield measure_variants(console, "warm", measure_title, warm_variants, WARM_ROUNDS)
            storm_variants: list[Variant] = []
            for event_count in STORM_EVENT_COUNTS:
                make_message_bodies = partial(bench.make_message_bodies, event_count=event_count)
                measure_storm = partial(
                    bench.measure_delivery,
                    SHORT_TIMEOUT_SECONDS,
                    TIMEOUT_AFTER_FIX_SECONDS,
                    make_message_bodies,
                    deliver_to_running_heal,
                )
                storm_variants.append(
                    Variant(f"{event_count:,} events of one queue", measure_storm)
                )
            measure_title = "Storms: batches of at most 1,000 events, warm"
            yield measure_variants(console, "storm", measure_title, storm_variants, STORM_ROUNDS)
    yield measure_large_bodies(console)


def _make_cold_variants(bench: HealBench) -> list[Variant]:
    """Return the variants that start a new process: a boto3 client alone, and heal."""
    copied_source_root = bench.temporary_folder / "sources"
    copy_sources(copied_source_root, (*LAMBDAS_ZIP.own_source_paths, "bench/cold.py"))
    deliver_to_uncompiled_heal = partial(
        bench.deliver_to_new_process, source_root=copied_source_root
    )
    measure_delivery = partial(
        bench.measure_delivery, deliver_messages=bench.deliver_to_new_process
    )

    def call_sqs_once() -> Cost:
        return bench.measure_cold_start("client", bench.account.url(bench.make_queue()))

    return [
        Variant("boto3 SQS client, no call", partial(bench.measure_cold_start, "client")),
        Variant("boto3 SQS client, one call", call_sqs_once),
        Variant("heal, imported", partial(bench.measure_cold_start, "heal")),
        Variant(
            "heal, one healthy queue",
            partial(
                measure_delivery,
                SHORT_TIMEOUT_SECONDS,
                SHORT_TIMEOUT_SECONDS,
                bench.make_bodies_of_old_calls,
            ),
        ),
        Variant(
            "heal, one fixed queue",
            partial(
                measure_delivery,
                SHORT_TIMEOUT_SECONDS,
                TIMEOUT_AFTER_FIX_SECONDS,
                bench.make_message_bodies,
            ),
        ),
        Variant(
            "heal, one queue for a person",
            partial(
                measure_delivery,
                LONG_TIMEOUT_SECONDS,
                LONG_TIMEOUT_SECONDS,
                bench.make_message_bodies,
            ),
        ),
        Variant(
            "heal, one fixed queue, our own code without bytecode",
            partial(
                bench.measure_delivery,
                SHORT_TIMEOUT_SECONDS,
                TIMEOUT_AFTER_FIX_SECONDS,
                bench.make_message_bodies,
                deliver_to_uncompiled_heal,
            ),
        ),
    ]


def _make_warm_variants(bench: HealBench, deliver_messages: MessageDeliverer) -> list[Variant]:
    """Return the variants that invoke a running heal: one for each decision about the queue."""
    measure_delivery = partial(bench.measure_delivery, deliver_messages=deliver_messages)

    def deliver_to_open_case() -> Cost:
        queue_arn = bench.make_queue()
        deliver_messages(bench.make_message_bodies(queue_arn))
        return deliver_messages(bench.make_message_bodies(queue_arn))

    return [
        Variant(
            "fixed queue",
            partial(
                measure_delivery,
                SHORT_TIMEOUT_SECONDS,
                TIMEOUT_AFTER_FIX_SECONDS,
                bench.make_message_bodies,
            ),
        ),
        Variant(
            "healthy queue",
            partial(
                measure_delivery,
                SHORT_TIMEOUT_SECONDS,
                SHORT_TIMEOUT_SECONDS,
                bench.make_bodies_of_old_calls,
            ),
        ),
        Variant("queue whose case is open", deliver_to_open_case),
        Variant(
            "queue for a person: refused and paged",
            partial(
                measure_delivery,
                LONG_TIMEOUT_SECONDS,
                LONG_TIMEOUT_SECONDS,
                bench.make_message_bodies,
            ),
        ),
    ]


def _deliver_to_running_heal(running_heal: HealLambda, body_by_message_id: dict[str, str]) -> Cost:
    """Deliver messages to the running heal, in batches of at most BATCH_MESSAGES as Lambda does.

    Raises:
        RuntimeError: if heal does not accept a message.
    """
    message_items = list(body_by_message_id.items())
    aws_calls_before = running_heal.calls.total
    refused_message_ids: list[str] = []
    batch_starts = range(0, len(message_items), BATCH_MESSAGES)
    batches = [
        dict(message_items[batch_start : batch_start + BATCH_MESSAGES])
        for batch_start in batch_starts
    ]

    def deliver_all() -> None:
        for batch in batches:
            refused_message_ids.extend(running_heal.deliver(batch))

    cpu_seconds_before = time.process_time()
    cost = measure_call(deliver_all)
    cpu_ms = 1000 * (time.process_time() - cpu_seconds_before)
    if refused_message_ids:
        raise RuntimeError(f"heal did not accept {len(refused_message_ids)} messages")
    return replace(cost, cpu_ms=cpu_ms, aws_calls=running_heal.calls.total - aws_calls_before)


@contextmanager
def start_emulator() -> Iterator[str]:
    """Start MiniStack, yield its URL, and stop it at the end of the block.

    The environment of this process is changed so that boto3 calls only this URL, with made-up keys.
    It stays changed after the block.
    """
    with open_listening_socket(0) as port_listener:
        port = int(port_listener.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="mendq-bench-") as scratch_folder:
        environment = make_emulator_environment(
            {**os.environ, "AUTH": "false"}, Path(scratch_folder), port
        )
        # Every process of this machine can call the emulator, so it must not run code.
        environment |= {"MINISTACK_ACCOUNT_ID": ACCOUNT, "LAMBDA_STRICT": "1"}
        emulator_url = make_endpoint_url(port)
        emulator_process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_until_answering(emulator_url, emulator_process)
            os.environ.pop("AWS_PROFILE", None)
            os.environ["AWS_ACCESS_KEY_ID"] = "test"
            os.environ["AWS_SECRET_ACCESS_KEY"] = "test"  # noqa: S105 - the emulator takes any
            os.environ["AWS_REGION"] = REGION
            os.environ["AWS_DEFAULT_REGION"] = REGION
            os.environ["AWS_CONFIG_FILE"] = "/nonexistent"
            os.environ["AWS_SHARED_CREDENTIALS_FILE"] = "/nonexistent"
            os.environ["AWS_ENDPOINT_URL"] = emulator_url
            yield emulator_url
        finally:
            emulator_process.kill()
            emulator_process.wait()


def _wait_until_answering(emulator_url: str, emulator_process: subprocess.Popen[bytes]) -> None:
    """Wait until the emulator answers.

    Raise RuntimeError if it ends, or does not answer within START_TIMEOUT_SECONDS.
    """
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline and emulator_process.poll() is None:
        try:
            urllib.request.urlopen(f"{emulator_url}/_ministack/health", timeout=1).close()  # noqa: S310
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(
        f"MiniStack did not start on {emulator_url}: run `python -m ministack` to see why"
    )
