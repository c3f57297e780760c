"""Facts about a queue as AWS reports them now, and the IAM actions that reading them takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Literal

from mendq.model.case import Case
from mendq.model.failed_call import RefusedBy
from mendq.model.limits import Mode
from mendq.model.metrics import Measurement
from mendq.model.own_change import OwnChange
from mendq.model.policy import CheckedPin
from mendq.model.queue import number_in, parse_json_object, parse_redrive_policy, parts_of

AWS_MANAGED_ALIAS = "alias/aws/sqs"


def is_aws_managed(key: str) -> bool:
    return key.endswith(AWS_MANAGED_ALIAS)


def is_of_another_account(facts: Facts, key: str) -> bool:
    """Known where the key is spelled as an ARN."""
    parts = key.split(":")
    return len(parts) == 6 and parts[4] != parts_of(facts.queue_arn).account


@dataclass(frozen=True)
class SoleSource:
    """`mode` None where it is not managed; `deletes_per_second` of the last hour.

    `soak_factor` is the account's `timing.soakFactor`, by which its messages are waited for.
    """

    queue_arn: str
    tags: Mapping[str, str]
    mode: Mode | None
    deletes_per_second: float
    soak_factor: float


def parse_epoch_seconds(epoch_seconds: str | None) -> datetime | None:
    """A time as SQS spells it in its attributes."""
    return datetime.fromtimestamp(int(float(epoch_seconds)), UTC) if epoch_seconds else None


# Within it SQS drops a FIFO message that is sent again.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
DEDUPLICATION_INTERVAL_SECONDS = 300
# A consumer that fails in half of its runs fails; near its timeout it runs long instead.
FAILING_SHARE = 0.5
RUNS_LONG_SHARE = 0.9
# Of a mapping that sets none.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html
BATCH_SIZE = 10


def function_name(function_arn: str) -> str:
    """The function's own name, which its metrics and its log bear, whatever version is meant."""
    parts = function_arn.split(":")
    return parts[6] if len(parts) > 6 else function_arn


@dataclass(frozen=True)
class ReadAction:
    """An IAM action that looking takes, and what it is asked of."""

    iam_action: str
    resource: Literal["queue", "function", "any"]


_TAGS = ReadAction("sqs:ListQueueTags", "queue")
QUEUE_READS = (ReadAction("sqs:GetQueueAttributes", "queue"), _TAGS)
_METRICS = ReadAction("cloudwatch:GetMetricData", "any")
_ALARMS = ReadAction("cloudwatch:DescribeAlarms", "any")
# Which queues have series that not every queue has.
_LISTED_METRICS = ReadAction("cloudwatch:ListMetrics", "any")
_LAST_CHANGE = ReadAction("cloudtrail:LookupEvents", "any")

_MAPPINGS = ReadAction("lambda:ListEventSourceMappings", "any")
_FUNCTION = ReadAction("lambda:GetFunctionConfiguration", "function")
_CONCURRENCY = ReadAction("lambda:GetFunctionConcurrency", "function")
_MOVE_TASKS = ReadAction("sqs:ListMessageMoveTasks", "queue")
_SOURCES = ReadAction("sqs:ListDeadLetterSourceQueues", "queue")


class Need(Enum):
    """What an entry of the catalogue asks to be gathered: fields of Facts, and what reading takes.

    Fields that no need names come from failed calls or from the case store.
    """

    QUEUE = ("attributes",), QUEUE_READS
    DLQ = ("dlq",), QUEUE_READS
    LAMBDA_CONSUMERS = (("lambda_consumers", "stopped_consumers"), (_MAPPINGS, _FUNCTION, _METRICS))
    RESERVED_CONCURRENCY = ("lambda_consumers",), (_CONCURRENCY,)
    MEASUREMENTS = ("measurement",), (_METRICS, _LISTED_METRICS)
    ALARMS = ("alarmed",), (_ALARMS,)
    MOVE_TASKS = ("move_task_running",), (_MOVE_TASKS,)
    DLQ_SOURCES = ("dlq_sources", "unconfirmed_sources"), (_SOURCES, *QUEUE_READS)
    DLQ_NAMESAKE = ("dlq_namesake",), QUEUE_READS
    # Of the case store, which every Lambda that asks for it may read.
    OPEN_CASES = ("open_symptoms",), ()
    SOURCE_CASES = ("source_cases",), ()
    APPROVED_SOURCES = ("approved_sources",), ()
    SOLE_SOURCE = ("sole_source",), (_SOURCES, _TAGS, _METRICS)
    PIN = ("pin",), (_LAST_CHANGE,)

    def __init__(self, answers: tuple[str, ...], reads: tuple[ReadAction, ...]) -> None:
        self.answers, self.reads = answers, reads


@dataclass(frozen=True)
class LambdaConsumer:
    """A function that an enabled event source mapping feeds from the queue.

    Durations, shares and `invocations` are those of the last hour. A duration is that of a whole
    invocation, which handles a batch. `mapping_id`, `batch_size` and `maximum_concurrency` belong
    to the mapping; `maximum_concurrency` is None if the mapping sets none. `reserved_concurrency`
    is None if it was not read or the function has none. `modified_at` is when the mapping was last
    changed, or None if Lambda does not say.
    """

    function_arn: str
    timeout_seconds: int
    batching_window_seconds: int
    duration_p99_seconds: float | None = None
    error_share: float | None = None
    throttled_share: float | None = None
    duration_p50_seconds: float | None = None
    invocations: int = 0
    mapping_id: str = ""
    batch_size: int = BATCH_SIZE
    reports_item_failures: bool = False
    maximum_concurrency: int | None = None
    reserved_concurrency: int | None = None
    modified_at: datetime | None = None

    @property
    def name(self) -> str:
        return function_name(self.function_arn)

    @property
    def is_near_timeout(self) -> bool:
        """Whether runs last nearly as long as they may."""
        return (self.duration_p99_seconds or 0) >= RUNS_LONG_SHARE * self.timeout_seconds

    @property
    def is_failing_fast(self) -> bool:
        """Whether it fails rather than runs long: a longer visibility timeout would only slow its
        retries.
        """
        return (self.error_share or 0) >= FAILING_SHARE and not self.is_near_timeout


@dataclass(frozen=True)
class QueueFacts:
    """A queue as SQS describes it, in its spelling; both mappings are empty where there is none.

    And what its failed calls said of themselves, where anybody asked: who called, what, which
    policy refused.
    `reader_visibility_seconds` is the visibility timeout that the readers themselves asked for in
    every failed call, None unless all of them did. `alarmed` are the metrics of the queue that an
    alarm watches, None where nobody asked.
    """

    queue_arn: str
    attributes: Mapping[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)
    reader_visibility_seconds: int | None = None
    principals: tuple[str, ...] = ()
    event_names: tuple[str, ...] = ()
    refused_by: frozenset[RefusedBy] = frozenset()
    alarmed: frozenset[str] | None = None

    @property
    def exists(self) -> bool:
        return bool(self.attributes)

    @property
    def name(self) -> str:
        return parts_of(self.queue_arn).name

    @property
    def is_fifo(self) -> bool:
        return self.queue_arn.endswith(".fifo")

    @property
    def visibility_seconds(self) -> int:
        return number_in(self.attributes, "VisibilityTimeout")

    @property
    def can_outlast_deduplication(self) -> bool:
        """Whether a message may be at work for longer than SQS knows a repeated send by its id."""
        return self.is_fifo and self.visibility_seconds > DEDUPLICATION_INTERVAL_SECONDS

    @property
    def kms_key(self) -> str | None:
        """None where the queue is not encrypted with a KMS key."""
        return self.attributes.get("KmsMasterKeyId") or None

    @property
    def dlq_arn(self) -> str | None:
        """None where no RedrivePolicy names one; it may be any text of a person's."""
        redrive = parse_json_object(self.attributes.get("RedrivePolicy")) or {}
        named = redrive.get("deadLetterTargetArn")
        return named if isinstance(named, str) else None

    @property
    def retention_seconds(self) -> int:
        return number_in(self.attributes, "MessageRetentionPeriod")

    @property
    def maximum_message_bytes(self) -> int:
        return number_in(self.attributes, "MaximumMessageSize")

    @property
    def visible(self) -> int:
        return int(self.attributes.get("ApproximateNumberOfMessages", "0"))

    @property
    def in_flight(self) -> int:
        return int(self.attributes.get("ApproximateNumberOfMessagesNotVisible", "0"))

    @property
    def max_receive_count(self) -> int | None:
        """None where no RedrivePolicy counts."""
        redrive = parse_redrive_policy(self.attributes.get("RedrivePolicy", ""))
        return redrive.max_receive_count if redrive and redrive.max_receive_count > 0 else None

    @property
    def modified_at(self) -> datetime | None:
        """When the queue was last changed, by anybody, to the second."""
        return parse_epoch_seconds(self.attributes.get("LastModifiedTimestamp"))

    @property
    def created_at(self) -> datetime | None:
        return parse_epoch_seconds(self.attributes.get("CreatedTimestamp"))

    def is_created_after(self, moment: datetime | None) -> bool:
        """Whether it is another queue than the one of its name at that moment."""
        return bool(self.created_at and moment and self.created_at > moment)

    def settled_at(self, propagation_seconds: int, *, after_the_timeout: bool) -> datetime | None:
        """From when on a failed call speaks about the queue as it is now.

        A change takes `propagation_seconds` to arrive, and messages in flight keep the visibility
        timeout they were received with; a queue that was never changed has always been as it is.
        """
        if self.modified_at is None or self.modified_at == self.created_at:
            return self.created_at
        needed_seconds = self.visibility_seconds if after_the_timeout else 0
        return self.modified_at + timedelta(seconds=propagation_seconds + needed_seconds)


@dataclass(frozen=True)
class Facts(QueueFacts):
    """A queue and what was gathered about it.

    `person_visibility_seconds` is the visibility timeout that a person chose last (ours are not
    counted), `stopped_consumers` are the functions behind disabled mappings, `measurement` is
    None where nobody asked or CloudWatch knew nothing, `move_task_running` whether a redrive moves
    messages into or out of it, `dlq_sources` the queues that name it as their DLQ and are believed
    (`select_confirmed_sources` in `mendq/model/dlq.py`), None where nobody asked,
    `unconfirmed_sources`
    those that are not, `approved_sources` those that a person approved a plan for, `dlq_namesake`
    what stands under the name that Mendq would give to a DLQ of this one, None where nobody asked,
    `open_symptoms` what cases are open about this queue and, of a DLQ, about its sources;
    `source_cases` are the newest cases about those, one of each symptom, over or not, `sole_source`
    is the only one, None where there are more or none; `found` is what a scan found, in a sentence,
    and empty where failed calls speak. `pin` is the policy that a person called good, if one did.
    `own_change` is the newest change by Mendq that can have caused the symptom in question; None if
    no change can, or if it was not checked.
    """

    lambda_consumers: tuple[LambdaConsumer, ...] = ()
    dlq: QueueFacts | None = None
    person_visibility_seconds: int | None = None
    stopped_consumers: tuple[str, ...] = ()
    measurement: Measurement | None = None
    move_task_running: bool = False
    dlq_sources: tuple[QueueFacts, ...] | None = None
    unconfirmed_sources: tuple[str, ...] = ()
    approved_sources: frozenset[str] = frozenset()
    dlq_namesake: QueueFacts | None = None
    open_symptoms: frozenset[str] = frozenset()
    source_cases: tuple[Case, ...] = ()
    sole_source: SoleSource | None = None
    found: str = ""
    pin: CheckedPin | None = None
    own_change: OwnChange | None = None

    @property
    def source_arns(self) -> tuple[str, ...]:
        """The queues whose DLQ messages come here, as far as anybody asked."""
        return tuple(each.queue_arn for each in self.dlq_sources or ())

    @property
    def is_short_polled(self) -> bool:
        """Whether SQS answers its readers at once; Lambda polls long by itself."""
        waits = number_in(self.attributes, "ReceiveMessageWaitTimeSeconds") > 0
        return not waits and not self.lambda_consumers

    @property
    def is_sent_to(self) -> bool:
        """Whether producers send here; what SQS moves to a DLQ is not counted as sent.

        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
        """
        return self.measurement is not None and self.measurement.sent > 0

    @property
    def receives_only_dlq_messages(self) -> bool:
        """Whether another queue's DLQ messages alone come here, or nobody could tell."""
        return self.dlq_sources is None or bool(self.dlq_sources and not self.is_sent_to)


_DELAYING = frozenset(
    {"consumer_failing", "consumer_stopped", "consumer_throttled", "fifo_group_blocked"}
)
_OF_A_DLQ = frozenset({"dlq_messages_arriving", "dlq_messages_waiting"})


def count_affected_messages(symptom: str, facts: Facts) -> dict[str, int]:
    """How many messages a symptom has hit, as far as the facts tell; what they do not is left out.

    A delete too many is a message that was handled twice, which is an estimate.
    """
    found = {
        "delayed": facts.visible if symptom in _DELAYING else 0,
        "dead": facts.visible if symptom in _OF_A_DLQ else 0,
    }
    if symptom == "visibility_timeout_too_short" and (measured := facts.measurement):
        found["handled_twice"] = measured.surplus_deletes if measured.has_race else 0
        found["dead"] = measured.count_dead_messages(facts.max_receive_count or 0)
    return {name: messages for name, messages in found.items() if messages > 0}


# Counting the managed queues, for the stop at a mass symptom; and who changed one last, for a page.
ACCOUNT_READS = (
    ReadAction("tag:GetResources", "any"),
    ReadAction("sqs:ListQueues", "any"),
    _LAST_CHANGE,
)

# Whether messages were deleted since, and what a page shows.
FOLLOW_UP_READS = (*QUEUE_READS, _METRICS, _LAST_CHANGE)

# What AWS makes of a policy before it is written; they take no narrower resource.
POLICY_CHECKS = (ReadAction("access-analyzer:CheckNoPublicAccess", "any"),)

# What stands there now, and what a page shows of a write that came between.
ROLLBACK_READS = (*QUEUE_READS, _LAST_CHANGE)


def read_actions(needs: Iterable[Need]) -> frozenset[ReadAction]:
    """The IAM actions that gathering these facts takes, and looking at the account."""
    return frozenset(ACCOUNT_READS).union(*(need.reads for need in needs))


def scan_read_actions(needs: Iterable[Need]) -> frozenset[ReadAction]:
    """The same where nobody is paged."""
    return read_actions(needs) - {_LAST_CHANGE}
