"""Run hourly scans in a moto account, and make the queues, metrics and symptoms that they find."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from mendq.cases.finding import ScanResult
from mendq.cases.pins import Pins
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import DetectedFault, Detection, NotifiedSymptom, Symptom
from mendq.heal.batch import BatchResult, heal_findings
from mendq.model.facts import Need
from mendq.model.metrics import select_series
from mendq.model.plan import Escalate
from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy
from mendq.model.settings import ScanSettings
from mendq.model.traffic import hour_number, is_sums_hour
from mendq.scan.hourly import ScanContext, scan_hourly
from mendq.scan.reader import Paces
from tests.account.account import STARTS_AT, Account, moto_account

A_DAY_SECONDS = 86_400
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
_MOST_VALUES_PER_CALL = 1_000
# The metrics that SQS reports in each minute in which a queue is active.
STEADY_SERIES = ("sent", "received", "deleted", "visible")


class _Answer:
    status_code = 200


@dataclass
class Scanner:
    """Scans in a moto account.

    `heal_requests` holds the requests that the scans sent to heal, and `move_tasks` the message
    move tasks of each DLQ, which moto does not emulate.
    """

    account: Account
    heal_requests: list[dict[str, Any]] = field(default_factory=list)
    move_tasks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    is_heal_unreachable: bool = False
    remaining_seconds: Callable[[], float] = lambda: 900.0

    def settings(self) -> ScanSettings:
        settings = self.account.settings
        return ScanSettings(
            account=settings.account,
            case_table=settings.case_table,
            case_bucket=settings.case_bucket,
            limits=settings.limits,
            timing=settings.timing,
            consent=settings.consent,
            heal_function="heal",
            mutes=settings.mutes,
        )

    def context(self) -> ScanContext:
        account = self.account
        account.deliveries += 1
        return ScanContext(
            clients=account.clients,
            settings=self.settings(),
            owner=f"scan-{account.deliveries}",
            now=account.now,
            remaining_seconds=self.remaining_seconds,
            paces=Paces(),
        )

    def scan(self, symptoms: Sequence[Symptom] = CATALOGUE) -> ScanResult | None:
        return scan_hourly(self.context(), symptoms)

    def run_due_scan(self, symptoms: Sequence[Symptom] = CATALOGUE) -> ScanResult:
        """Run a scan that must be due."""
        result = self.scan(symptoms)
        assert result is not None
        return result

    def list_announced_faults(self) -> list[tuple[str, str]]:
        """Return queue and symptom of each finding that was sent to heal."""
        return [
            (finding["queue_arn"], finding["symptom"])
            for request in self.heal_requests
            for finding in request["found"]
        ]

    def heal(self) -> list[BatchResult]:
        """Let heal handle the requests so far, once."""
        requests = self.heal_requests
        self.heal_requests = []
        return [heal_findings(request, self.account.run()) for request in requests]

    def put_metrics(self, queue_arn: str, at: datetime, **values: float) -> None:
        """Send one minute's metrics of a queue to CloudWatch, by the names of Mendq's series.

        SQS reports counts of 0 and 0 visible messages as well.
        """
        self.put_metric_series(queue_arn, {at: values})

    def put_metric_series(
        self, queue_arn: str, values_by_time: Mapping[datetime, Mapping[str, float]]
    ) -> None:
        """Send metrics of many minutes, by time and by the names of Mendq's series.

        moto takes about as long for a call with one value as for one with a thousand.
        """
        names = {key: name for key, (name, *_) in select_series(["every queue", "FIFO"]).items()}
        dimensions: Any = [{"Name": "QueueName", "Value": queue_arn.rpartition(":")[2]}]
        metric_data: list[Any] = [
            {"MetricName": names[key], "Dimensions": dimensions, "Timestamp": at, "Value": value}
            for at, values in values_by_time.items()
            for key, value in {**dict.fromkeys(STEADY_SERIES, 0), **values}.items()
        ]
        for first in range(0, len(metric_data), _MOST_VALUES_PER_CALL):
            self.account.clients.cloudwatch.put_metric_data(
                Namespace="AWS/SQS", MetricData=metric_data[first : first + _MOST_VALUES_PER_CALL]
            )

    def put_metrics_of_returning_message(self, queue_arn: str) -> None:
        """Send metrics of two hours in which one message was received again and never deleted."""
        values_by_time = {
            self.account.now - timedelta(minutes=minutes): {
                "received": 1,
                "visible": 1,
                "sent": int(minutes == 120),
            }
            for minutes in range(60, 125, 5)
        }
        self.put_metric_series(queue_arn, values_by_time)

    def read_findings(self, at: datetime | None = None) -> dict[str, Any]:
        """Return the findings document of this hour's scan from the case bucket."""
        hour = (at or self.account.now).strftime("dt=%Y-%m-%d/%H")
        answer = self.account.clients.s3.get_object(Bucket="cases", Key=f"findings/{hour}.json")
        document: dict[str, Any] = json.loads(answer["Body"].read())
        return document

    def answer_call(self, params: Any, model: Any, **_: Any) -> tuple[_Answer, Any] | None:
        """Answer the calls that moto does not emulate."""
        if model.name == "Invoke":
            if self.is_heal_unreachable:
                raise EndpointConnectionError(endpoint_url="lambda")
            self.heal_requests.append(json.loads(params["body"]))
            return _Answer(), {"StatusCode": 202}
        if model.name == "ListMessageMoveTasks":
            source = json.loads(params["body"])["SourceArn"]
            return _Answer(), {"Results": self.move_tasks.get(source, [])}
        return None


def start_next_hour(account: Account) -> datetime:
    """Set the clock to the beginning of the next hour."""
    account.now = (account.now + timedelta(hours=1)).replace(minute=0, second=0)
    return account.now


def start_sums_hour(scanner: Scanner) -> None:
    """Set the clock to the beginning of the next hour in which a scan asks for sums."""
    start_next_hour(scanner.account)
    while not is_sums_hour(hour_number(scanner.account.now)):
        start_next_hour(scanner.account)


def make_faulty_dlq(scanner: Scanner) -> str:
    """Make orders-dlq, which keeps messages for a shorter time than its source. Return its ARN."""
    dlq_arn = scanner.account.queue("orders-dlq", MessageRetentionPeriod=str(A_DAY_SECONDS))
    policy = RedrivePolicy(dlq_arn, 5).text
    source = {"MessageRetentionPeriod": str(4 * A_DAY_SECONDS), "RedrivePolicy": policy}
    scanner.account.queue("orders", **source)
    scanner.account.later(hours=2)
    start_next_hour(scanner.account)
    return dlq_arn


def attach_lambda_consumer(
    scanner: Scanner, queue_arn: str, *, reserved_concurrency: int | None = None, **over: Any
) -> None:
    """Answer as if a Lambda function consumed the queue. `over` changes its event source mapping.

    With a real mapping, moto would run the function.
    """
    arn = "arn:aws:lambda:us-east-1:123456789012:function:bill"
    mapping = {"EventSourceArn": queue_arn, "FunctionArn": arn, "State": "Enabled", **over}
    answers: dict[str, dict[str, Any]] = {
        "ListEventSourceMappings": {"EventSourceMappings": [mapping]},
        "GetFunctionConfiguration": {"Timeout": 30},
        "GetFunctionConcurrency": {}
        if reserved_concurrency is None
        else {"ReservedConcurrentExecutions": reserved_concurrency},
    }

    def answer(model: Any, **_: Any) -> tuple[_Answer, dict[str, Any]] | None:
        if model.name not in answers:
            return None
        return _Answer(), answers[model.name]

    events = scanner.account.clients.functions.meta.events
    events.register_first("before-call", cast("Callable[..., None]", answer))


def deny_operation(
    client: Any,
    operation: str,
    urls: Collection[str] = (),
    words: str = "a service control policy",
    unreachable: Exception | None = None,
) -> Callable[[], None]:
    """Make AWS deny an operation on these queues, or on all. Call the result to end it.

    With `unreachable`, the operation fails with this error instead.
    """

    def refuse(params: Any, **_: Any) -> None:
        if not urls or json.loads(params["body"])["QueueUrl"] in urls:
            message = (
                "User: arn:aws:sts::123456789012:assumed-role/mendq-scan/scan is not authorized "
                f"to perform: sqs:{operation.lower()} with an explicit deny in {words}"
            )
            denial: Any = {"Error": {"Code": "AccessDenied", "Message": message}}
            raise unreachable or ClientError(denial, operation)

    events = client.meta.events
    name = f"before-call.*.{operation}"
    events.register_first(name, refuse)
    return lambda: events.unregister(name, refuse)


def deny_queue_attributes(
    scanner: Scanner, *queue_arns: str, words: str = "a service control policy"
) -> Callable[[], None]:
    """Deny reading the attributes of these queues, or of all. Call the result to end it."""
    urls = [scanner.account.url(queue_arn) for queue_arn in queue_arns]
    return deny_operation(scanner.account.clients.sqs, "GetQueueAttributes", urls, words)


@contextmanager
def open_scanner() -> Iterator[Scanner]:
    """Yield a scanner in an account whose clock starts at STARTS_AT."""
    with moto_account() as account:
        account.now = STARTS_AT
        scanner = Scanner(account)
        # A handler's return value is the answer to the call, which the stubs' types do not allow.
        answer_call = cast("Callable[..., None]", scanner.answer_call)
        account.clients.functions.meta.events.register("before-call", answer_call)
        account.clients.sqs.meta.events.register("before-call", answer_call)
        yield scanner


@pytest.fixture
def scanner() -> Iterator[Scanner]:
    with open_scanner() as opened_scanner:
        yield opened_scanner


def make_short_retention_dlq(
    scanner: Scanner, name: str = "orders", tag: str | None = "heal"
) -> str:
    """Make a DLQ that keeps messages shorter than its source queue does. Return its ARN.

    A person has approved the source queue.
    """
    dlq_arn = scanner.account.queue(
        f"{name}-dlq", tag=tag, MessageRetentionPeriod=str(A_DAY_SECONDS)
    )
    source_arn = dlq_arn.removesuffix("-dlq")
    scanner.account.set(
        dlq_arn, RedriveAllowPolicy=RedriveAllowPolicy("byQueue", (source_arn,)).text
    )
    Pins(scanner.account.clients.dynamodb, "case_store").approve_source(dlq_arn, source_arn)
    policy = json.dumps({"deadLetterTargetArn": dlq_arn, "maxReceiveCount": 5})
    source = {"MessageRetentionPeriod": str(4 * A_DAY_SECONDS), "RedrivePolicy": policy}
    scanner.account.queue(name, tag=None, **source)
    scanner.account.later(minutes=5)
    return dlq_arn


def make_slow_symptom(
    name: str = "slow", *, is_fault_of_configuration: bool = False, **over: Any
) -> NotifiedSymptom:
    """Make a symptom that every queue with measurements shows, or every queue at all.

    Args:
        name: The symptom's name.
        is_fault_of_configuration: True if every queue shows the symptom, also without measurements.
        over: Fields of the symptom's `Detection`.
    """
    detection = Detection(
        lambda facts: (
            DetectedFault("it is slow") if is_fault_of_configuration or facts.measurement else None
        ),
        frozenset({Need.QUEUE} if is_fault_of_configuration else {Need.QUEUE, Need.MEASUREMENTS}),
        is_of_configuration=is_fault_of_configuration,
    )
    return NotifiedSymptom(
        name=name,
        sentence="It is slow.",
        plan_in_words="Page.",
        first_step="Look at it.",
        aws_page="",
        examples=tuple,
        plan=lambda facts, _limits: Escalate("slow", facts.found),
        detection=replace(detection, **over),
    )


def make_measured_queues(scanner: Scanner, how_many: int) -> list[str]:
    """Make queues that were unchanged for two days and have metrics. Return their ARNs."""
    queues = [scanner.account.queue(f"slow-{n:02}") for n in range(how_many)]
    scanner.account.now = (scanner.account.now + timedelta(days=2)).replace(hour=0, minute=30)
    for queue in queues:
        scanner.put_metrics(queue, scanner.account.now - timedelta(minutes=30), sent=9)
    return queues


def make_failing_queue(scanner: Scanner, name: str = "failing") -> str:
    """Make a queue whose messages are received and never deleted, at the start of a sums hour."""
    queue_arn = scanner.account.queue(name, tag="observe")
    scanner.account.later(hours=8)
    start_sums_hour(scanner)
    values = {"sent": 4, "received": 12, "deleted": 0, "visible": 40, "in_flight": 4, "age": 3000}
    times = [scanner.account.now - timedelta(minutes=minutes) for minutes in range(30, 240, 5)]
    scanner.put_metric_series(queue_arn, dict.fromkeys(times, values))
    return queue_arn
