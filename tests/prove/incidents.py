"""Forty incidents and eight healthy queues on the local account, and one `mendq scan` of them.

`python -m tests.prove.incidents` prints which finding comes first for each; `--write` puts the
table into docs/precision.md. `make evidence NAMES=incidents` demands that at least LEAST_RIGHT of
the 40 faulty ones are right, and that no healthy one is named.

Real queues, Lambda functions and event source mappings run on the local account, all at once. Their
traffic comes in rounds of some seconds. Between two rounds, each queue's past is put back by some
minutes, so that the traffic covers hours. That is no real account: a message's visibility timeout
is a matter of seconds here, and CloudWatch has the minutes of the rounds only. A consumer that
crashes or stops extending its messages for minutes is emulated: the next round makes its messages
visible.
"""

from __future__ import annotations

import argparse
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, sleep
from typing import Any

from botocore.exceptions import ClientError

from local_account.process import LocalAccount
from mendq.model.queue import RedrivePolicy
from tests.local_account.accounts import TINY_ASSEMBLY
from tests.local_account.callers import ALL_OF_SQS, Function, new_function
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import Queue
from tests.prove.exact_intervals import describe_share
from tests.prove.false_alarms import PAGE, fill_blocks
from tests.prove.proof import Proof, Proving

LEAST_RIGHT = 32
FAULTY_INCIDENTS = 40
HEALTHY_INCIDENTS = 8
INCIDENTS_BLOCK = "python -m tests.prove.incidents --write"
EMPTY_POLLS = 300
ROUNDS = 8
MINUTES_BETWEEN_ROUNDS = 25
# A queue has to be as it is for an hour before it is measured.
MINUTES_BEFORE = 61
MINUTES_UNTIL_MEASURED = 5
FUNCTION_SECONDS = 10.0
# A slow machine makes a round longer, up to this.
LONGEST_ROUND_SECONDS = 60.0
THREADS = 8
# Findings of these classes are about the configuration, not about what happens.
QUIET_CLASSES = frozenset({"hygiene", "exposed"})
# Fails, sleeps, or names the messages that failed, as the message's body says.
CODE = """
import time

def handler(event, context):
    failed = []
    for record in event["Records"]:
        body = record["body"]
        if body == "bad":
            raise ValueError("bad message")
        if body == "failed":
            failed.append({"itemIdentifier": record["messageId"]})
        if body.startswith("sleep"):
            time.sleep(float(body[5:]))
    return {"batchItemFailures": failed}
"""
CODE_THAT_DOES_NOT_START = "import a_module_that_is_not_there\n"


@dataclass
class Stage:
    """A queue of an incident, with its DLQ and its function."""

    account: LocalAccount
    name: str
    queue: Queue
    dlq: Queue | None = None
    function: Function | None = None
    mapping_id: str = ""
    held: list[str] = field(default_factory=list)
    round: int = 0

    @property
    def is_last_round(self) -> bool:
        return self.round == ROUNDS - 1

    def send(self, bodies: list[str], group: str = "g") -> None:
        """Send messages in batches of ten."""
        for start in range(0, len(bodies), 10):
            entries: list[dict[str, Any]] = []
            for number, body in enumerate(bodies[start : start + 10]):
                entry = {"Id": f"{number}", "MessageBody": body}
                if self.queue.is_fifo:
                    unique_id = f"{self.round}-{start + number}"
                    entry |= {"MessageGroupId": group, "MessageDeduplicationId": unique_id}
                entries.append(entry)
            self.queue.sqs.send_message_batch(QueueUrl=self.queue.url, Entries=entries)

    def receive(self, queue: Queue | None = None) -> list[dict[str, Any]]:
        """Return up to ten messages, or none."""
        from_queue = queue or self.queue
        return from_queue.receive_some(MessageSystemAttributeNames=["ApproximateReceiveCount"])

    def delete(self, message: Mapping[str, Any]) -> None:
        with suppress(ClientError):
            self.queue.delete(message["ReceiptHandle"])

    def drain(
        self, decide: Callable[[Mapping[str, Any]], str], deletes: int, receives: int = 0
    ) -> None:
        """Receive until so many deletes and receives were made.

        Do with each message what `decide` says: "delete", "leave" it to the visibility timeout, or
        "give back" at once.
        """
        ends_at = monotonic() + LONGEST_ROUND_SECONDS
        while (deletes > 0 or receives > 0) and monotonic() < ends_at:
            messages = self.receive()
            receives -= len(messages)
            for message in messages:
                decision = decide(message)
                if decision == "delete":
                    self.delete(message)
                    deletes -= 1
                elif decision == "give back":
                    self.queue.change(message["ReceiptHandle"], 0)
            if not messages:
                sleep(0.3)

    def take(self, count: int) -> list[dict[str, Any]]:
        """Receive so many messages."""
        messages: list[dict[str, Any]] = []
        ends_at = monotonic() + LONGEST_ROUND_SECONDS
        while len(messages) < count and monotonic() < ends_at:
            messages += self.receive()
        return messages


Play = Callable[[Stage], None]


@dataclass(frozen=True)
class Incident:
    """One queue and its traffic.

    Attributes:
        right_names: The symptoms of which one should come first; none for a healthy queue.
        play: Plays one round.
        receives: maxReceiveCount of its DLQ; 0 for no DLQ.
        code: The code of its Lambda function; empty for none.
        function: Settings of the function.
        mapping: Settings of the event source mapping.
        attributes: Attributes of the queue.
        prepare: Changes the function or the mapping before the first round.
        is_fifo: True for a FIFO queue.
        minutes_between: By so much the queue's past is put back between two rounds.
    """

    right_names: tuple[str, ...]
    play: Play
    receives: int = 50
    code: str = ""
    function: Mapping[str, Any] = field(default_factory=dict)
    mapping: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    prepare: Play = lambda _stage: None
    is_fifo: bool = False
    minutes_between: int = MINUTES_BETWEEN_ROUNDS


def finish(_message: Mapping[str, Any]) -> str:
    return "delete"


def leave(_message: Mapping[str, Any]) -> str:
    return "leave"


def count_receives(message: Mapping[str, Any]) -> int:
    return int(message["Attributes"]["ApproximateReceiveCount"])


def finish_at_receive(receive: int, message: Mapping[str, Any]) -> str:
    return "delete" if count_receives(message) >= receive else "give back"


def finish_good(message: Mapping[str, Any]) -> str:
    return "delete" if message["Body"] == "good" else "leave"


def fail_all(count: int) -> Play:
    """Consumers finish nothing."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * count)
        stage.drain(leave, 0, count * min(INCIDENTS[stage.name].receives, 3))

    return play


def fail_some(good: int, bad: int, bad_rounds: int = ROUNDS) -> Play:
    """Consumers fail at bad messages, which come in the first rounds."""

    def play(stage: Stage) -> None:
        bad_count = bad if stage.round < bad_rounds else 0
        stage.send(["bad"] * bad_count + ["good"] * good)
        stage.drain(finish_good, good, good + 3 * bad)

    return play


def work_steadily(count: int, receive: int = 1) -> Play:
    """Consumers finish each message, at the receive of this number."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * count)
        stage.drain(partial(finish_at_receive, receive), count)

    return play


def delete_late(count: int, late: int) -> Play:
    """For some messages the work ends after the visibility timeout; a second consumer has them."""

    def play(stage: Stage) -> None:
        if count > late:
            stage.send(["good"] * (count - late))
            stage.drain(finish, count - late)
        stage.send(["good"] * late)
        first = stage.take(late)
        sleep(int(stage.queue.attributes("VisibilityTimeout")["VisibilityTimeout"]) + 0.5)
        for message in (*first, *stage.take(late)):
            stage.delete(message)

    return play


def stop_consumer(count: int, waiting: int) -> Play:
    """The consumer works in the first two rounds, and then no more."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * (count if stage.round < 2 else waiting))
        if stage.round < 2:
            stage.drain(finish, count)

    return play


def grow(sent: int, finished: int) -> Play:
    """Consumers finish a part of what comes."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * sent)
        stage.drain(finish, finished)

    return play


def send_only(count: int) -> Play:
    return lambda stage: stage.send(["good"] * count)


def drain_at_times(count: int) -> Play:
    """Messages come in each round. A consumer empties the queue in every fourth round."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * count)
        if stage.round % 4 == 3:
            stage.drain(finish, count)
            while messages := stage.receive():
                for message in messages:
                    stage.delete(message)

    return play


def resend_from_dlq(bad: int) -> Play:
    """A job moves what is in the DLQ back to the queue."""

    def play(stage: Stage) -> None:
        assert stage.dlq
        if stage.round == 0:
            stage.send(["bad"] * bad)
        for message in stage.receive(stage.dlq) if stage.round else ():
            stage.send([message["Body"]])
            stage.dlq.delete(message["ReceiptHandle"])
        stage.send(["good"] * 6)
        stage.drain(finish_good, 6, 6 + 2 * bad)

    return play


def crash(count: int, crashes: int) -> Play:
    """A consumer ends while it holds messages; their timeout ends before the next round."""

    def play(stage: Stage) -> None:
        for handle in stage.held:
            with suppress(ClientError):
                stage.queue.change(handle, 0)
        stage.drain(finish, len(stage.held))
        stage.send(["good"] * crashes)
        stage.held = [message["ReceiptHandle"] for message in stage.take(crashes)]
        stage.send(["good"] * count)
        stage.drain(finish, count)

    return play


def receive_only(count: int) -> Play:
    """A consumer receives the messages and never deletes one, as if that were switched off."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * count)
        stage.drain(leave, 0, 3 * count)

    return play


def give_all_back(count: int) -> Play:
    """Consumers make each message visible again at once, as a library does with a "nack"."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * count)
        stage.drain(lambda _message: "give back", 0, count * min(INCIDENTS[stage.name].receives, 3))

    return play


def block_group(others: int) -> Play:
    """The first message of a FIFO group always fails. Another group's messages are finished."""

    def play(stage: Stage) -> None:
        if stage.round == 0:
            stage.send(["bad"], "blocked")
        stage.send(["good"], "blocked")
        stage.send(["good"] * others, "other")
        stage.drain(finish_good, others, others + 4)

    return play


def poll_empty_queue(count: int) -> Play:
    """Consumers ask an empty queue again and again, without waiting. A few messages come."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * count)
        stage.drain(finish, count)
        for _ in range(EMPTY_POLLS):
            stage.queue.sqs.receive_message(QueueUrl=stage.queue.url, WaitTimeSeconds=0)

    return play


def extend_too_little(count: int, late: int) -> Play:
    """Consumers extend the timeout of some messages for a while, and their work takes longer."""

    def play(stage: Stage) -> None:
        stage.send(["good"] * (count - late))
        stage.drain(finish, count - late)
        stage.send(["good"] * late)
        first = stage.take(late)
        for message in first:
            stage.queue.change(message["ReceiptHandle"], 4)
        sleep(4.5)
        for message in (*first, *stage.take(late)):
            stage.delete(message)

    return play


def delete_dlq(stage: Stage) -> None:
    assert stage.dlq
    stage.dlq.sqs.delete_queue(QueueUrl=stage.dlq.url)
    stage.dlq = None


def send_to_function(*bodies: str, first_round: int = 0, before: tuple[str, ...] = ()) -> Play:
    """Send messages to a function, others before `first_round`, and let it work."""

    def play(stage: Stage) -> None:
        stage.send([*(bodies if stage.round >= first_round else before)])
        sleep(FUNCTION_SECONDS)

    return play


def disable_mapping(stage: Stage) -> None:
    assert stage.function
    stage.function.client.update_event_source_mapping(UUID=stage.mapping_id, Enabled=False)


def delete_function(stage: Stage) -> None:
    assert stage.function
    stage.function.client.delete_function(FunctionName=stage.function.name)


def switch_function_off(stage: Stage) -> None:
    assert stage.function
    stage.function.client.put_function_concurrency(
        FunctionName=stage.function.name, ReservedConcurrentExecutions=0
    )


def disable_key(stage: Stage) -> None:
    key = stage.queue.attributes("KmsMasterKeyId")["KmsMasterKeyId"]
    stage.account.client("kms").disable_key(KeyId=key)


def look_in_console(stage: Stage) -> None:
    """Three old messages; a person looks at them twice."""
    if stage.round == 0:
        stage.send(["good"] * 3)
    if stage.is_last_round:
        for message in stage.receive():
            stage.queue.change(message["ReceiptHandle"], 0)


FAILING = ("consumer_failing",)
TOO_SHORT = ("visibility_timeout_too_short",)
STOPPED = ("consumer_stopped",)
ERRORS = ("function_errors",)
TIMES_OUT = ("function_times_out",)
GROWS = ("backlog_grows",)
BATCH = ("mapping_wastes_receives", "batch_failures_not_reported")
FILTERS = {"FilterCriteria": {"Filters": [{"Pattern": '{"body": {"kind": ["order"]}}'}]}}
ONE = {"BatchSize": 1}
TEN_REPORTED = {"BatchSize": 10, "FunctionResponseTypes": ["ReportBatchItemFailures"]}
TIMEOUT_1 = {"VisibilityTimeout": "1"}
TIMEOUT_2 = {"VisibilityTimeout": "2"}
# Long enough for the start of a run on a slow machine.
SMALL = {"Timeout": 12}
ENCRYPTED = {"KmsMasterKeyId": "new"}
LONG_TIMEOUT = {"VisibilityTimeout": "600"}
FUNCTION_TIMEOUT = {"VisibilityTimeout": "80"}
RETRIED_SOON = {"VisibilityTimeout": "12"}

INCIDENTS: Mapping[str, Incident] = {
    "each message fails, maxReceiveCount 3": Incident(
        FAILING, fail_all(12), 3, attributes=TIMEOUT_1
    ),
    "each message fails, maxReceiveCount 5": Incident(
        FAILING, fail_all(8), 5, attributes=TIMEOUT_1
    ),
    "each message fails, maxReceiveCount 2": Incident(
        FAILING, fail_all(30), 2, attributes=TIMEOUT_2
    ),
    "each message fails, far DLQ": Incident(FAILING, fail_all(15), attributes=TIMEOUT_1),
    "one message in four fails": Incident(FAILING, fail_some(18, 6), 3, attributes=TIMEOUT_1),
    "one message in ten fails": Incident(FAILING, fail_some(36, 4), 3, attributes=TIMEOUT_1),
    "half of the messages fail": Incident(FAILING, fail_some(10, 10), 2, attributes=TIMEOUT_1),
    "all deletes come late": Incident(TOO_SHORT, delete_late(10, 10), attributes=TIMEOUT_2),
    "half of the deletes come late": Incident(TOO_SHORT, delete_late(20, 10), attributes=TIMEOUT_2),
    "few deletes come late": Incident(TOO_SHORT, delete_late(12, 4), attributes=TIMEOUT_1),
    "deletes come late, busy queue": Incident(TOO_SHORT, delete_late(60, 15), attributes=TIMEOUT_1),
    "container ends, 15 wait": Incident(STOPPED, stop_consumer(20, 3), minutes_between=70),
    "container ends, 110 wait": Incident(STOPPED, stop_consumer(30, 19), minutes_between=70),
    "container ends, no DLQ": Incident(STOPPED, stop_consumer(12, 7), 0, minutes_between=70),
    "one in three is finished": Incident(GROWS, grow(60, 20)),
    "nine in ten are finished": Incident(GROWS, grow(100, 90)),
    "messages expire between two drains": Incident(
        ("messages_expire",),
        drain_at_times(16),
        attributes={"MessageRetentionPeriod": "3600"},
        minutes_between=19,
    ),
    "two bad messages, no DLQ": Incident(
        ("dlq_missing",), fail_some(20, 2, 1), 0, attributes=TIMEOUT_1
    ),
    "six bad messages, no DLQ": Incident(
        ("dlq_missing",), fail_some(20, 6, 1), 0, attributes=TIMEOUT_1
    ),
    "a job sends dead messages back": Incident(
        ("redrive_loop",), resend_from_dlq(8), 2, attributes=TIMEOUT_1
    ),
    "container crashes at times": Incident(
        ("consumer_crashes",), crash(12, 4), attributes=LONG_TIMEOUT
    ),
    "key is disabled": Incident(
        ("kms_key_unusable",), lambda _stage: None, attributes=ENCRYPTED, prepare=disable_key
    ),
    "function fails in each run": Incident(
        ERRORS, send_to_function(*["bad"] * 4), 3, CODE, SMALL, ONE, RETRIED_SOON
    ),
    "function fails in half of its runs": Incident(
        ERRORS, send_to_function(*["bad", "good"] * 3), 3, CODE, SMALL, ONE, RETRIED_SOON
    ),
    "function fails since a change": Incident(
        ERRORS,
        send_to_function(*["bad"] * 6, first_round=2, before=("good",) * 6),
        3,
        CODE,
        SMALL,
        ONE,
        RETRIED_SOON,
    ),
    "function does not start": Incident(
        ERRORS,
        send_to_function(*["good"] * 4),
        3,
        CODE_THAT_DOES_NOT_START,
        SMALL,
        ONE,
        RETRIED_SOON,
    ),
    "function times out in each run": Incident(
        TIMES_OUT, send_to_function(*["sleep9"] * 3), 2, CODE, {"Timeout": 2}, ONE, TIMEOUT_2
    ),
    "function raises although it reports items": Incident(
        ERRORS, send_to_function(*["bad"] * 5), 3, CODE, SMALL, TEN_REPORTED, RETRIED_SOON
    ),
    "one bad message fails its batch of ten": Incident(
        BATCH,
        send_to_function("bad", *["good"] * 9),
        5,
        CODE,
        SMALL,
        {"BatchSize": 10},
        RETRIED_SOON,
    ),
    "filter drops most messages": Incident(
        ("filter_deletes_messages",),
        send_to_function(*['{"kind": "order"}'] * 4, *['{"kind": "test"}'] * 7),
        5,
        CODE,
        SMALL,
        {"BatchSize": 10, **FILTERS},
        FUNCTION_TIMEOUT,
    ),
    "mapping is disabled": Incident(
        STOPPED, send_only(8), 5, CODE, SMALL, ONE, FUNCTION_TIMEOUT, disable_mapping
    ),
    "function was deleted": Incident(
        STOPPED, send_only(8), 5, CODE, SMALL, ONE, FUNCTION_TIMEOUT, delete_function
    ),
    "function has no concurrency": Incident(
        ("consumer_throttled",),
        send_only(8),
        5,
        CODE,
        SMALL,
        ONE,
        FUNCTION_TIMEOUT,
        switch_function_off,
    ),
    "first message of a FIFO group fails": Incident(
        ("fifo_group_blocked",), block_group(6), 0, attributes=TIMEOUT_1, is_fifo=True
    ),
    "each message of a FIFO queue fails": Incident(
        FAILING, fail_all(6), 2, attributes=TIMEOUT_1, is_fifo=True
    ),
    "consumer deletes nothing, no DLQ": Incident(
        FAILING, receive_only(12), 0, attributes=TIMEOUT_1
    ),
    "consumer gives all messages back at once": Incident(
        FAILING, give_all_back(10), 5, attributes=TIMEOUT_2
    ),
    "consumer polls without waiting": Incident(("empty_receives",), poll_empty_queue(3)),
    "heartbeat ends before the work": Incident(
        ("heartbeat_ends_early", *TOO_SHORT), extend_too_little(12, 6), attributes=TIMEOUT_1
    ),
    "DLQ was deleted": Incident(("dlq_missing",), work_steadily(10), 5, prepare=delete_dlq),
    "healthy: steady": Incident((), work_steadily(25)),
    "healthy: given back three times": Incident((), work_steadily(15, 4)),
    "healthy: a few come back once": Incident((), work_steadily(8, 2)),
    "healthy: steady FIFO": Incident((), work_steadily(10), is_fifo=True),
    "healthy: function": Incident(
        (), send_to_function(*["good"] * 5), 5, CODE, SMALL, ONE, FUNCTION_TIMEOUT
    ),
    "healthy: function reports an item at times": Incident(
        (),
        send_to_function(*["good"] * 5),
        5,
        CODE,
        SMALL,
        TEN_REPORTED,
        FUNCTION_TIMEOUT,
    ),
    "healthy: person looks at three messages": Incident((), look_in_console),
    "healthy: unused": Incident((), lambda _stage: None),
}


def make_stage(account: LocalAccount, name: str, incident: Incident) -> Stage:
    """Make the queue of an incident, its DLQ, its function and its mapping."""
    slug = name.replace(":", "").replace(",", "").replace(" ", "-")[:60]
    sqs = account.client("sqs")
    ending = ".fifo" if incident.is_fifo else ""
    fifo = {"FifoQueue": "true"} if incident.is_fifo else {}
    attributes = {**incident.attributes, **fifo}
    if attributes.get("KmsMasterKeyId") == "new":
        attributes["KmsMasterKeyId"] = account.client("kms").create_key()["KeyMetadata"]["KeyId"]
    dlq = None
    if incident.receives:
        dlq_attributes = {"MessageRetentionPeriod": "1209600", **fifo}
        url = sqs.create_queue(QueueName=f"{slug}-dlq{ending}", Attributes=dlq_attributes)
        dlq = Queue(sqs, url["QueueUrl"], incident.is_fifo)
        attributes["RedrivePolicy"] = RedrivePolicy(dlq.arn, incident.receives).text
    url = sqs.create_queue(QueueName=f"{slug}{ending}", Attributes=attributes)
    stage = Stage(account, name, Queue(sqs, url["QueueUrl"], incident.is_fifo), dlq)
    if incident.code:
        _make_function(stage, incident)
    incident.prepare(stage)
    return stage


def _make_function(stage: Stage, incident: Incident) -> None:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", incident.code)
    stage.function = new_function(stage.account, ALL_OF_SQS, **incident.function)
    client = stage.function.client
    client.update_function_code(FunctionName=stage.function.name, ZipFile=code.getvalue())
    mapping = client.create_event_source_mapping(
        FunctionName=stage.function.name, EventSourceArn=stage.queue.arn, **incident.mapping
    )
    stage.mapping_id = mapping["UUID"]


def put_back(stages: list[Stage], minutes: int = 0) -> None:
    """Put the past of all queues back, by default by the minutes between their rounds."""
    for stage in stages:
        for queue in (stage.queue, stage.dlq):
            if queue:
                minutes_of_queue = minutes or INCIDENTS[stage.name].minutes_between
                stage.account.put_back(queue.arn, minutes=minutes_of_queue)


def play_incidents(progress: Callable[[float], None] = lambda _: None) -> dict[str, list[str]]:
    """Play all incidents, scan once, and return the names that come first, by incident."""
    with LocalAccount(options=("--assembly", str(TINY_ASSEMBLY))) as account:
        stages = [make_stage(account, name, incident) for name, incident in INCIDENTS.items()]
        put_back(stages, MINUTES_BEFORE)
        with ThreadPoolExecutor(THREADS) as pool:
            for number in range(ROUNDS):
                for stage in stages:
                    stage.round = number
                runs = [pool.submit(INCIDENTS[stage.name].play, stage) for stage in stages]
                for run in runs:
                    run.result()
                last = number == ROUNDS - 1
                put_back(stages, MINUTES_UNTIL_MEASURED if last else 0)
                progress((number + 1) / ROUNDS)
        document = json.loads(mendq_here(account, "scan", "--json", "--yes").stdout)
    names_by_queue: dict[str, list[str]] = {}
    for finding in document["findings"]:
        if finding["class"] not in QUIET_CLASSES:
            queue_name = finding["queue_arn"].rpartition(":")[2]
            names_by_queue.setdefault(queue_name, []).append(finding["symptom"])
    found: dict[str, list[str]] = {}
    for stage in stages:
        found[stage.name] = names_by_queue.get(stage.queue.url.rpartition("/")[2], [])
    return found


def is_right(name: str, found: Mapping[str, list[str]]) -> bool:
    """Return True if the right name comes first, or if nothing is said about a healthy queue."""
    right_names = INCIDENTS[name].right_names
    names = found[name]
    return names[0] in right_names if names and right_names else not names and not right_names


def list_lines(found: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the lines of the table, and its sum."""
    yield "| incident | right name | what the scan says first | right |"
    yield "|---|---|---|---|"
    for name, incident in INCIDENTS.items():
        right_text = " or ".join(incident.right_names) or "-"
        said_text = ", ".join(found[name][:2]) or "-"
        mark = "yes" if is_right(name, found) else "no"
        yield f"| {name} | {right_text} | {said_text} | {mark} |"
    right_count = count_right(found)
    named_count = len(list_named_healthy(found))
    yield ""
    yield (
        f"The right name comes first for {right_count} of {FAULTY_INCIDENTS} faulty queues: "
        f"{describe_share(right_count, FAULTY_INCIDENTS)}. Of {HEALTHY_INCIDENTS} healthy queues, "
        f"{named_count} are named: {describe_share(named_count, HEALTHY_INCIDENTS)}."
    )


def count_right(found: Mapping[str, list[str]]) -> int:
    """Return how many of the faulty incidents have the right name first."""
    faulty_names = [name for name, incident in INCIDENTS.items() if incident.right_names]
    return sum(is_right(name, found) for name in faulty_names)


def list_named_healthy(found: Mapping[str, list[str]]) -> list[str]:
    """Return the healthy queues about which the scan says something."""
    return [name for name, names in found.items() if names and not INCIDENTS[name].right_names]


def has_all_incidents() -> bool:
    """Return True if there are as many faulty and healthy incidents as the proof is about."""
    faulty_count = sum(bool(incident.right_names) for incident in INCIDENTS.values())
    healthy_count = len(INCIDENTS) - faulty_count
    return (faulty_count, healthy_count) == (FAULTY_INCIDENTS, HEALTHY_INCIDENTS)


def prove_incidents(proving: Proving) -> None:
    found = play_incidents(proving.progress)
    print("\n".join(list_lines(found)), flush=True)  # noqa: T201
    right_count = count_right(found)
    named_healthy = list_named_healthy(found)
    proving.figure("right_first", right_count)
    proving.holding(
        {
            f"the first finding is right in {LEAST_RIGHT} of 40": right_count >= LEAST_RIGHT,
            f"no healthy queue is named: {named_healthy}": not named_healthy,
            "there are 40 faulty and 8 healthy incidents": has_all_incidents(),
        }
    )


def prove_nothing_quickly(proving: Proving) -> None:
    """Count the incidents only: playing them takes minutes."""
    proving.holds("there are 40 faulty and 8 healthy incidents", whether=has_all_incidents())


PROOF_OF_INCIDENTS = (
    Proof(
        "incidents",
        "One scan names what is wrong with queues and functions of the local account.",
        prove_incidents,
        prove_nothing_quickly,
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table on the page")
    is_for_page = parser.parse_args().write
    table = "\n".join(list_lines(play_incidents()))
    print(table)  # noqa: T201
    if is_for_page:
        PAGE.write_text(fill_blocks({INCIDENTS_BLOCK: f"{table}\n"}, PAGE.read_text()))


if __name__ == "__main__":
    main()
