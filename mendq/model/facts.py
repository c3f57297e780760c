"""Facts about a queue, and the IAM actions that Mendq needs to read them from AWS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Literal

from mendq.model.case import Case
from mendq.model.failed_call import RefusedBy
from mendq.model.key_state import KeyState
from mendq.model.mapping import DEFAULT_BATCH_SIZE, ProvisionedPollers
from mendq.model.metrics import DaysOfTraffic, Measurement
from mendq.model.mode import Mode
from mendq.model.own_change import OwnChange
from mendq.model.policy import CheckedPin
from mendq.model.producers import KeyOfQueue, Producer
from mendq.model.queue import (
    parse_json_object,
    parse_queue_arn,
    parse_redrive_policy,
    read_number_attribute,
)
from mendq.model.redrives import Redrives

AWS_MANAGED_KEY_ALIAS = "alias/aws/sqs"


def is_aws_managed_key(kms_key: str) -> bool:
    """Return True if the KMS key is the key that AWS manages for SQS, named by its alias."""
    return kms_key.endswith(AWS_MANAGED_KEY_ALIAS)


def has_customer_key(facts: QueueFacts) -> bool:
    """Return True if a KMS key encrypts the queue's messages, and AWS does not manage that key."""
    return facts.kms_key is not None and not is_aws_managed_key(facts.kms_key)


def is_key_of_another_account(facts: Facts, kms_key: str) -> bool:
    """Return True if the KMS key belongs to another account than the queue.

    `kms_key` may be an ARN, an id or an alias. An id or an alias gives False, because only an ARN
    contains the key's account.
    """
    arn_parts = kms_key.split(":")
    return len(arn_parts) == 6 and arn_parts[4] != parse_queue_arn(facts.queue_arn).account


# Messages go round if they came back from the DLQ at least this often, and at least this many of
# them each time. Fewer rounds are redrives after a repair that did not help.
ROUNDS_OF_LOOP = 3
MESSAGES_OF_ROUND = 3
# Messages that came back failed again if there were at least this share of the receives after which
# SQS moves them to the DLQ. Counters are not exact, and messages may come back in the next round.
LEAST_FAILED_SHARE_OF_RECEIVES = 0.5
# A job sends back what it deletes from the DLQ if at least this share was sent as new messages.
LEAST_RESENT_SHARE = 0.5

# The most sources of a DLQ that Mendq redrives. Each source costs a call to CloudWatch.
MOST_REDRIVE_SOURCES = 10


@dataclass(frozen=True)
class RedriveSource:
    """A confirmed source of a DLQ, with the facts that a redrive to it needs.

    Attributes:
        queue_arn: The source queue.
        tags: The tags of the source queue.
        mode: The mode of the source queue; None if Mendq does not manage it.
        deletes_per_second: The mean number of messages that the source's consumers deleted per
            second in the last hour.
        soak_factor: The account's setting `timing.soakFactor`, by which a redrive multiplies its
            waiting time.
    """

    queue_arn: str
    tags: Mapping[str, str]
    mode: Mode | None
    deletes_per_second: float
    soak_factor: float


def parse_epoch_seconds(epoch_seconds: str | None) -> datetime | None:
    """Return the time (UTC, whole seconds) in the value of an SQS attribute.

    The value is a text with the number of seconds since 1970. Return None if it is None or empty.
    """
    return datetime.fromtimestamp(int(float(epoch_seconds)), UTC) if epoch_seconds else None


# SQS drops a FIFO message that is sent a second time within this interval.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
DEDUPLICATION_INTERVAL_SECONDS = 300
# A Lambda consumer is failing if at least this share of its invocations end with an error. But if
# its slowest invocations take at least NEAR_TIMEOUT_SHARE of its timeout, it counts as slow and not
# as failing, because the timeout is then the error.
FAILING_CONSUMER_ERROR_SHARE = 0.5
NEAR_TIMEOUT_SHARE = 0.9
# Lambda stops a run at its timeout and counts it as failed. CloudWatch's percentiles
# are exact to about 1 %, so a duration from this share of the timeout on is one of a stopped run.
STOPPED_RUN_SHARE = 0.98
# From this share of failed runs on, all runs that were as long as the p99 may be failed ones.
LEAST_ERROR_SHARE_THAT_BLURS = 0.01


def function_name(function_arn: str) -> str:
    """Return the name in a Lambda function's ARN, without version and alias.

    Metrics and logs use this name. If the text is too short for such an ARN, return it unchanged.
    """
    arn_parts = function_arn.split(":")
    return arn_parts[6] if len(arn_parts) > 6 else function_arn


@dataclass(frozen=True)
class ReadAction:
    """An IAM action that Mendq needs for a read, and the kind of resource that the policy names."""

    iam_action: str
    resource: Literal["queue", "function", "key", "any"]


_TAGS_READ_ACTION = ReadAction("sqs:ListQueueTags", "queue")
QUEUE_READ_ACTIONS = (ReadAction("sqs:GetQueueAttributes", "queue"), _TAGS_READ_ACTION)
_METRICS_READ_ACTION = ReadAction("cloudwatch:GetMetricData", "any")
_ALARMS_READ_ACTION = ReadAction("cloudwatch:DescribeAlarms", "any")
# ListMetrics finds the queues that have optional metrics.
_METRIC_LIST_READ_ACTION = ReadAction("cloudwatch:ListMetrics", "any")
_LAST_CHANGE_READ_ACTION = ReadAction("cloudtrail:LookupEvents", "any")

_MAPPINGS_READ_ACTION = ReadAction("lambda:ListEventSourceMappings", "any")
_FUNCTION_READ_ACTION = ReadAction("lambda:GetFunctionConfiguration", "function")
_CONCURRENCY_READ_ACTION = ReadAction("lambda:GetFunctionConcurrency", "function")
_KEY_READ_ACTION = ReadAction("kms:DescribeKey", "key")
_MOVE_TASKS_READ_ACTION = ReadAction("sqs:ListMessageMoveTasks", "queue")
_DLQ_SOURCES_READ_ACTION = ReadAction("sqs:ListDeadLetterSourceQueues", "queue")


class Need(Enum):
    """The kinds of facts that a symptom can need.

    Each kind has the fields of `Facts` that Mendq reads for it (`fact_fields`), and the IAM actions
    that these reads need (`reads`). The other fields of `Facts` come from failed calls, a scan, the
    case store, or the queue's tags.
    """

    QUEUE = ("attributes",), QUEUE_READ_ACTIONS
    DLQ = ("dlq",), QUEUE_READ_ACTIONS
    LAMBDA_CONSUMERS = (
        ("lambda_consumers", "stopped_consumers", "mappings_disabled_at"),
        (_MAPPINGS_READ_ACTION, _FUNCTION_READ_ACTION, _METRICS_READ_ACTION),
    )
    RESERVED_CONCURRENCY = ("lambda_consumers",), (_CONCURRENCY_READ_ACTION,)
    # The reserved concurrency of functions that were throttled or did not run, by their metrics. A
    # scan reads it only for suspects.
    SWITCHED_OFF_FUNCTIONS = (
        ("lambda_consumers",),
        (_CONCURRENCY_READ_ACTION, _METRICS_READ_ACTION),
    )
    # The state of the customer managed KMS key. A scan reads it only for suspects, and for queues
    # in use whose sums are all 0.
    KMS_KEY = ("kms_key_state",), (_KEY_READ_ACTION,)
    MEASUREMENTS = ("measurement",), (_METRICS_READ_ACTION, _METRIC_LIST_READ_ACTION)
    # Receives and deletes of four days, by hour. A scan reads them only after a first finding.
    DAYS_OF_TRAFFIC = ("days_of_traffic",), (_METRICS_READ_ACTION,)
    ALARMS = ("alarmed_metrics",), (_ALARMS_READ_ACTION,)
    MOVE_TASKS = ("move_task_running",), (_MOVE_TASKS_READ_ACTION,)
    # The DLQ's redrives and deletes. They are read only if messages may go round
    # (`Facts.may_messages_go_round`).
    REDRIVES = ("redrives",), (_MOVE_TASKS_READ_ACTION, _METRICS_READ_ACTION)
    DLQ_SOURCES = (
        ("dlq_sources", "unconfirmed_sources", "unread_sources"),
        (_DLQ_SOURCES_READ_ACTION, *QUEUE_READ_ACTIONS),
    )
    DLQ_NAMESAKE = ("dlq_namesake", "dlq_namesake_objection"), QUEUE_READ_ACTIONS
    # Facts from the case store, which need no further IAM action.
    OPEN_CASES = ("open_symptoms", "open_symptoms_by_source", "refused_symptoms"), ()
    SOURCE_CASES = ("source_cases", "redrive_case"), ()
    APPROVED_SOURCES = ("approved_sources",), ()
    REDRIVE_SOURCES = (
        ("redrive_sources",),
        (_DLQ_SOURCES_READ_ACTION, _TAGS_READ_ACTION, _METRICS_READ_ACTION),
    )
    PIN = ("pin",), (_LAST_CHANGE_READ_ACTION,)
    # Facts of a template, which `mendq lint` reads. A scan has none of them.
    PRODUCERS = ("producers", "key_of_queue"), ()

    def __init__(self, fact_fields: tuple[str, ...], reads: tuple[ReadAction, ...]) -> None:
        self.fact_fields = fact_fields
        self.reads = reads


@dataclass(frozen=True)
class FailedStretch:
    """A time within the last hours in which runs of a function failed.

    It begins with the first five minutes in which a run failed, and ends with the last, if they are
    less than half an hour apart.

    Attributes:
        begins_at: The start of the stretch.
        ends_at: Its end.
        invocations: The runs that began in it.
        failed_runs: Those of them that failed.
        failed_run_seconds: How long the failed runs took: the median of all runs in the clock hours
            of the stretch if at least half of these failed, otherwise their 99th percentile. None
            if it is not known.
        invocations_of_all_hours: The runs in all hours that were read.
    """

    begins_at: datetime
    ends_at: datetime
    invocations: int
    failed_runs: int
    failed_run_seconds: float | None
    invocations_of_all_hours: int


@dataclass(frozen=True)
class LambdaConsumer:
    """A Lambda function that receives from the queue through an enabled event source mapping.

    All measured values but `failed_stretch` cover the last hour. An invocation handles a batch of
    messages.

    Attributes:
        function_arn: The function.
        timeout_seconds: The function's timeout.
        batching_window_seconds: How long Lambda collects messages for a batch.
        duration_p99_seconds: The 99th percentile of the invocations' durations; None if the metrics
            were not read, or if the function did not run.
        error_share: Failed invocations divided by all invocations; None in the same cases.
        throttled_share: Throttled requests divided by all requests, so 1 if every request was
            throttled; None if the metrics were not read, or if there were no requests.
        duration_p50_seconds: The median of the invocations' durations; None in the same cases.
        invocations: The number of invocations.
        mapping_id: The id of the event source mapping.
        batch_size: The most messages in a batch.
        reports_item_failures: True if the function reports which messages of a batch failed.
        maximum_concurrency: The mapping's limit; None if it sets none.
        provisioned_pollers: The mapping's pollers; None if it is not in provisioned mode, or if the
            installed botocore does not know that mode.
        reserved_concurrency: The function's reserved concurrency; None if it was not read or there
            is none.
        modified_at: When the mapping was last changed; None if Lambda does not report it.
        failed_stretch: The stretch of the last six hours with the most failed runs; None if none
            failed or if the metrics were not read.
        filters: The patterns of the mapping's filter criteria. Lambda deletes a message that none
            of them matches; empty if there are none.
        runs_of_earlier_mappings: The concurrent invocations that the function's earlier mappings in
            the template allow; 0 in a scan, which looks at one queue at a time.
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
    batch_size: int = DEFAULT_BATCH_SIZE
    reports_item_failures: bool = False
    maximum_concurrency: int | None = None
    provisioned_pollers: ProvisionedPollers | None = None
    reserved_concurrency: int | None = None
    modified_at: datetime | None = None
    failed_stretch: FailedStretch | None = None
    filters: tuple[str, ...] = ()
    runs_of_earlier_mappings: int = 0

    @property
    def name(self) -> str:
        """The function's name."""
        return function_name(self.function_arn)

    @property
    def most_runs(self) -> int | None:
        """The most concurrent invocations that the mapping allows; None if it sets no limit."""
        if self.provisioned_pollers is not None:
            return self.provisioned_pollers.most_runs
        return self.maximum_concurrency

    @property
    def is_switched_off(self) -> bool:
        """True if the function may not run: its reserved concurrency is 0."""
        return self.reserved_concurrency == 0

    @property
    def may_be_switched_off(self) -> bool:
        """True if it did not run in the last hour or was throttled, or if that was not read."""
        return self.invocations == 0 or (self.throttled_share or 0) > 0

    @property
    def failed_runs(self) -> int:
        """The number of runs that ended with an error or at the timeout; 0 if it is not known."""
        return round((self.error_share or 0) * self.invocations)

    @property
    def are_durations_of_finished_runs(self) -> bool:
        """True if runs that did not fail took as long as the median and the p99 say.

        Lambda's metrics do not tell the durations of failed runs from those of other runs. A run
        that fails may be shorter than its work, and a run that Lambda stops is as long as the
        timeout, however long its work takes. If fewer than 1 of 100 runs failed, other runs reached
        the p99 too. False if it is not known how many failed.
        """
        return self.error_share is not None and self.error_share < LEAST_ERROR_SHARE_THAT_BLURS

    @property
    def do_runs_time_out(self) -> bool:
        """True if failed runs are as long as the function's timeout, so Lambda stopped them.

        If at least half of the runs fail, their duration is the median. If fewer fail, it is the
        duration of the slowest runs (p99).
        """
        stopped_run_seconds = STOPPED_RUN_SHARE * self.timeout_seconds
        if (self.error_share or 0) >= FAILING_CONSUMER_ERROR_SHARE:
            return (self.duration_p50_seconds or 0) >= stopped_run_seconds
        return self.failed_runs > 0 and (self.duration_p99_seconds or 0) >= stopped_run_seconds

    @property
    def is_near_timeout(self) -> bool:
        """True if the slowest invocations take nearly as long as the function's timeout."""
        return (self.duration_p99_seconds or 0) >= NEAR_TIMEOUT_SHARE * self.timeout_seconds

    @property
    def is_failing_fast(self) -> bool:
        """True if at least half of the invocations fail, and not because of the timeout.

        For such a function, a longer visibility timeout would only delay the retries.
        """
        return (self.error_share or 0) >= FAILING_CONSUMER_ERROR_SHARE and not self.is_near_timeout


@dataclass(frozen=True)
class SourceCheck:
    """What a scan knows about a source of a DLQ in which messages arrive.

    Attributes:
        queue_arn: The source queue.
        symptoms: The symptoms of its traffic and consumers that the scan found, worst first.
        is_measured: True if the scan measured the source and no check of it failed. Only then
            empty `symptoms` mean that the source shows no fault.
    """

    queue_arn: str
    symptoms: tuple[str, ...] = ()
    is_measured: bool = False


@dataclass(frozen=True)
class QueueFacts:
    """The facts about a queue that SQS reports, its alarms, and facts from its failed calls.

    Attributes:
        queue_arn: The queue.
        attributes: The queue's attributes in SQS's spelling; empty if there is no such queue or
            they were not read.
        tags: The queue's tags; empty if there is no such queue or they were not read.
        smallest_requested_visibility_seconds: The smallest visibility timeout that the failed calls
            themselves requested; None unless every failed call requested one.
        delete_interval_seconds: The shortest mean time between successive failed deletes of one
            caller; None if no caller made enough (`Evidence.shortest_delete_interval_seconds`).
        refused_function_seconds: The longest timeout, in seconds, of a Lambda function for which an
            event source mapping of the queue was refused; None if none was.
        principals: The callers of the failed calls.
        event_names: The failed calls by name, such as `SendMessage`.
        refused_by: The policies that refused the failed calls.
        alarmed_metrics: The queue's metrics that an alarm watches; None if alarms were not read.
    """

    queue_arn: str
    attributes: Mapping[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)
    smallest_requested_visibility_seconds: int | None = None
    delete_interval_seconds: float | None = None
    refused_function_seconds: int | None = None
    principals: tuple[str, ...] = ()
    event_names: tuple[str, ...] = ()
    refused_by: frozenset[RefusedBy] = frozenset()
    alarmed_metrics: frozenset[str] | None = None

    @property
    def exists(self) -> bool:
        """True if the queue exists, and its attributes were read."""
        return bool(self.attributes)

    @property
    def name(self) -> str:
        """The queue's name."""
        return parse_queue_arn(self.queue_arn).name

    @property
    def is_fifo(self) -> bool:
        """True if the queue is a FIFO queue."""
        return self.queue_arn.endswith(".fifo")

    @property
    def visibility_seconds(self) -> int:
        """The visibility timeout in seconds."""
        return read_number_attribute(self.attributes, "VisibilityTimeout")

    @property
    def has_late_deletes_of_batch(self) -> bool:
        """True if one caller's late deletes follow each other faster than the visibility timeout.

        Such a consumer holds several messages, for example a batch on which it works one message
        after another. A consumer of single messages cannot do that, because each of its messages
        took longer than the timeout.
        """
        interval_seconds = self.delete_interval_seconds
        return interval_seconds is not None and interval_seconds < self.visibility_seconds

    @property
    def can_outlast_deduplication(self) -> bool:
        """True if a FIFO queue's visibility timeout is longer than the deduplication interval.

        A message can then be in flight for so long that SQS no longer drops a second send of it.
        """
        return self.is_fifo and self.visibility_seconds > DEDUPLICATION_INTERVAL_SECONDS

    @property
    def kms_key(self) -> str | None:
        """The queue's KMS key as an ARN, an id or an alias; None if the queue has no KMS key."""
        return self.attributes.get("KmsMasterKeyId") or None

    @property
    def dlq_arn(self) -> str | None:
        """The DLQ that the queue's RedrivePolicy names; None if it names none or is unreadable.

        The text is not checked. It may be no ARN, or the ARN of another account's queue.
        """
        redrive_policy = parse_json_object(self.attributes.get("RedrivePolicy")) or {}
        dlq_arn = redrive_policy.get("deadLetterTargetArn")
        return dlq_arn if isinstance(dlq_arn, str) else None

    @property
    def retention_seconds(self) -> int:
        """The retention period in seconds."""
        return read_number_attribute(self.attributes, "MessageRetentionPeriod")

    @property
    def maximum_message_bytes(self) -> int:
        """The queue's MaximumMessageSize in bytes."""
        return read_number_attribute(self.attributes, "MaximumMessageSize")

    @property
    def visible(self) -> int:
        """The approximate number of visible messages."""
        return int(self.attributes.get("ApproximateNumberOfMessages", "0"))

    @property
    def in_flight(self) -> int:
        """The approximate number of messages in flight."""
        return int(self.attributes.get("ApproximateNumberOfMessagesNotVisible", "0"))

    @property
    def max_receive_count(self) -> int | None:
        """The number of receives after which SQS moves a message to the DLQ.

        It is None if the queue has no valid RedrivePolicy, or if the number is below 1.
        """
        redrive_policy = parse_redrive_policy(self.attributes.get("RedrivePolicy", ""))
        return (
            redrive_policy.max_receive_count
            if redrive_policy and redrive_policy.max_receive_count > 0
            else None
        )

    @property
    def modified_at(self) -> datetime | None:
        """The time of the queue's last change by any caller; None if SQS does not report it.

        SQS reports whole seconds.
        """
        return parse_epoch_seconds(self.attributes.get("LastModifiedTimestamp"))

    @property
    def created_at(self) -> datetime | None:
        """The time of the queue's creation; None if SQS does not report it."""
        return parse_epoch_seconds(self.attributes.get("CreatedTimestamp"))

    def is_created_after(self, moment: datetime | None) -> bool:
        """Return True if the queue was created after `moment`; False if one of the times is None.

        If the result is True, what was known at `moment` is about an earlier queue of that name.
        """
        return bool(self.created_at and moment and self.created_at > moment)

    def settled_at(self, propagation_seconds: int, *, after_the_timeout: bool) -> datetime | None:
        """Return the time from which failed calls describe the queue's present configuration.

        For a queue without a reported change, this is its creation. Otherwise it is the last change
        plus `propagation_seconds`, the time that a change takes to reach all of SQS. With
        `after_the_timeout`, add the visibility timeout, because messages that were in flight at the
        change keep their old timeout. Return None if SQS reports no times.
        """
        if self.modified_at is None or self.modified_at == self.created_at:
            return self.created_at
        visibility_wait_seconds = self.visibility_seconds if after_the_timeout else 0
        return self.modified_at + timedelta(seconds=propagation_seconds + visibility_wait_seconds)


# The default objection to an existing queue with the name of a new DLQ. Mendq sends nothing to a
# queue if it does not know who made it.
RECORD_NOT_READ_OBJECTION = "the case store was not asked if Mendq made it or a person confirmed it"


@dataclass(frozen=True)
class Facts(QueueFacts):
    """All facts about a queue: those of `QueueFacts`, and facts about consumers, DLQ and metrics.

    Attributes:
        lambda_consumers: The Lambda functions that receive from the queue.
        dlq: The queue that the RedrivePolicy names; None if there is none or it was not read.
        visibility_seconds_set_by_person: The visibility timeout that a person set last, even if
            Mendq has changed it since; None if it was not read.
        stopped_consumers: The ARNs of functions whose event source mapping is disabled, or that
            were deleted.
        consumers_error: Why a scan could not read the consumers, which then look as if there were
            none; empty if it could. Symptoms that need the consumers must not be judged then.
        mappings_disabled_at: When each disabled event source mapping was last changed; None for a
            mapping of which it is not known. A mapping to a deleted function has no entry.
        kms_key_state: The state of the queue's KMS key; None if it was not read, or if the queue
            has no customer managed key.
        measurement: The queue's metrics; None if they were not read or CloudWatch has no data.
        days_of_traffic: When the queue was read in the last four days; None if that was not asked.
        move_task_running: True if SQS's own redrive (a message movement task) moves messages into
            this queue, or out of this queue or its DLQ, or may have done so in the measured time.
        redrives: What is known about messages that left the DLQ; None if it was not read, or if
            Mendq itself sent messages back in the measured time.
        dlq_sources: The confirmed queues that name this queue as their DLQ
            (`select_confirmed_sources` in `mendq/model/dlq.py`); None if they were not read.
        unconfirmed_sources: The ARNs of other queues that name this queue as their DLQ.
        unread_sources: The ARNs of confirmed sources that refuse Mendq.
        approved_sources: The ARNs of sources for which a person approved a plan about this DLQ.
        dlq_namesake: The queue with the name that Mendq would give to a new DLQ of this queue; None
            if it was not read.
        dlq_namesake_objection: Why `dlq_namesake` must not receive messages, by the case store's
            record of it (`mendq/model/receiver.py`); empty if it may, or if it does not exist.
        open_symptoms: The symptoms with an open case about this queue or about its sources.
        open_symptoms_by_source: The symptoms with an open case by the ARN of each confirmed source;
            None if they were not read.
        refused_symptoms: The symptoms of a FIFO queue whose newest case was opened by failed calls
            and refused within LONGEST_WINDOW. Empty for a standard queue.
        source_cases: The newest case of each symptom about the queue's sources, open or ended.
        redrive_case: The newest case with a redrive of this DLQ, running or ended. None if there is
            none, or if the DLQ has fewer than two sources.
        redrive_sources: The confirmed sources of this queue; empty if it has none or more than
            MOST_REDRIVE_SOURCES, or if they were not read.
        found: A scan's finding as a sentence; empty if failed calls are the evidence.
        pin: The policy that a person pinned as good; None if there is none or it was not read.
        source_checks: What the scan that found the symptom knows about the queue's sources; empty
            if no scan found it, or if the queue has no sources.
        own_change: Mendq's newest change that can have caused the symptom; None if there is no such
            change or it was not checked.
        producers: The resources of a template that send to the queue; empty for a deployed queue.
        key_of_queue: The queue's customer managed key in a template; None if it has none, if the
            template does not declare it, and for a deployed queue.
        pipes: The names of the EventBridge pipes of a template that read the queue; empty for a
            deployed queue.
        filters_by_pipe: The patterns of the filter criteria of these pipes.
    """

    lambda_consumers: tuple[LambdaConsumer, ...] = ()
    dlq: QueueFacts | None = None
    visibility_seconds_set_by_person: int | None = None
    stopped_consumers: tuple[str, ...] = ()
    consumers_error: str = ""
    mappings_disabled_at: tuple[datetime | None, ...] = ()
    kms_key_state: KeyState | None = None
    measurement: Measurement | None = None
    days_of_traffic: DaysOfTraffic | None = None
    move_task_running: bool = False
    redrives: Redrives | None = None
    dlq_sources: tuple[QueueFacts, ...] | None = None
    unconfirmed_sources: tuple[str, ...] = ()
    unread_sources: tuple[str, ...] = ()
    approved_sources: frozenset[str] = frozenset()
    dlq_namesake: QueueFacts | None = None
    dlq_namesake_objection: str = RECORD_NOT_READ_OBJECTION
    open_symptoms: frozenset[str] = frozenset()
    open_symptoms_by_source: Mapping[str, frozenset[str]] | None = None
    refused_symptoms: frozenset[str] = frozenset()
    source_cases: tuple[Case, ...] = ()
    redrive_case: Case | None = None
    redrive_sources: tuple[RedriveSource, ...] = ()
    found: str = ""
    pin: CheckedPin | None = None
    own_change: OwnChange | None = None
    source_checks: tuple[SourceCheck, ...] = ()
    producers: tuple[Producer, ...] = ()
    key_of_queue: KeyOfQueue | None = None
    pipes: tuple[str, ...] = ()
    filters_by_pipe: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def source_arns(self) -> tuple[str, ...]:
        """The ARNs of this DLQ's confirmed sources; empty if they were not read."""
        return tuple(source.queue_arn for source in self.dlq_sources or ())

    @property
    def possible_source_arns(self) -> tuple[str, ...]:
        """The ARNs of all queues that name this queue as their DLQ, confirmed or not."""
        return (*self.source_arns, *self.unread_sources, *self.unconfirmed_sources)

    @property
    def is_short_polled(self) -> bool:
        """True if a receive from the empty queue returns at once (short polling).

        A receive that sets its own wait time is not considered. It is False for a queue with Lambda
        consumers, because Lambda always uses long polling, and for one whose consumers are unknown.
        """
        has_wait_time = read_number_attribute(self.attributes, "ReceiveMessageWaitTimeSeconds") > 0
        return not (has_wait_time or self.lambda_consumers or self.consumers_error)

    @property
    def is_sent_to(self) -> bool:
        """True if the measurement shows that producers send to the queue.

        SQS does not count a move to a DLQ as a send.

        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
        """
        return self.measurement is not None and self.measurement.sent > 0

    @property
    def may_messages_go_round(self) -> bool:
        """True if so many receives failed that messages may come back from the DLQ and fail again.

        The queue has a DLQ, and in the measured time at least ROUNDS_OF_LOOP times
        MESSAGES_OF_ROUND messages can have been received `maxReceiveCount` times without a delete.
        """
        measurement = self.measurement
        if measurement is None or not self.dlq_arn or self.max_receive_count is None:
            return False
        failed_receives = measurement.received - measurement.deleted
        return failed_receives >= LEAST_FAILED_SHARE_OF_RECEIVES * self.max_receive_count * (
            ROUNDS_OF_LOOP * MESSAGES_OF_ROUND
        )

    @property
    def may_job_send_messages_back(self) -> bool:
        """True if messages go round and a job may send them: it sends them as new messages.

        SQS counts these sends. A message movement task causes no sends.
        """
        measurement = self.measurement
        return (
            measurement is not None
            and self.may_messages_go_round
            and measurement.sent_minus_deleted
            >= LEAST_RESENT_SHARE * ROUNDS_OF_LOOP * MESSAGES_OF_ROUND
        )

    @property
    def receives_only_dlq_messages(self) -> bool:
        """True if all messages of the queue came from source queues whose DLQ it is.

        This is so if the queue has confirmed sources, and no measurement shows sends to it. It is
        also True if the sources were not read.
        """
        return self.dlq_sources is None or bool(self.dlq_sources and not self.is_sent_to)


_SYMPTOMS_THAT_DELAY_MESSAGES = frozenset(
    {
        "backlog_grows",
        "consumer_failing",
        "consumer_stopped",
        "consumer_throttled",
        "fifo_group_blocked",
        "function_errors",
        "function_times_out",
    }
)
_SYMPTOMS_OF_DLQS = frozenset({"dlq_messages_arriving", "dlq_messages_waiting"})


def count_affected_messages(symptom: str, facts: Facts) -> dict[str, int]:
    """Return how many messages a symptom has affected, by kind of effect. Zeros are left out.

    The kinds are `delayed`, `dead` (moved to a DLQ) and `handled_twice` (estimated from surplus
    deletes). Only effects that the facts can show are counted.
    """
    message_count_by_effect = {
        "delayed": facts.visible if symptom in _SYMPTOMS_THAT_DELAY_MESSAGES else 0,
        "dead": facts.visible if symptom in _SYMPTOMS_OF_DLQS else 0,
    }
    measurement = facts.measurement
    if symptom == "visibility_timeout_too_short" and measurement is not None:
        message_count_by_effect["handled_twice"] = (
            measurement.surplus_deletes if measurement.has_consumer_race else 0
        )
        message_count_by_effect["dead"] = measurement.count_dead_messages(
            facts.max_receive_count or 0
        )
    return {
        effect: message_count
        for effect, message_count in message_count_by_effect.items()
        if message_count > 0
    }


# The actions to count the managed queues, which recognizes a mass symptom, and to find out for a
# notification who changed a queue last.
ACCOUNT_READ_ACTIONS = (
    ReadAction("tag:GetResources", "any"),
    ReadAction("sqs:ListQueues", "any"),
    _LAST_CHANGE_READ_ACTION,
)

# The actions to see if messages were deleted since a fix, and who changed the queue last.
FOLLOW_UP_READ_ACTIONS = (*QUEUE_READ_ACTIONS, _METRICS_READ_ACTION, _LAST_CHANGE_READ_ACTION)

# The action to let AWS check a policy before Mendq writes it. IAM cannot limit it to one resource.
POLICY_CHECK_ACTIONS = (ReadAction("access-analyzer:CheckNoPublicAccess", "any"),)

# The actions to read the present value, and to find a write by someone else since the fix.
ROLLBACK_READ_ACTIONS = (*QUEUE_READ_ACTIONS, _LAST_CHANGE_READ_ACTION)


def list_read_actions(needs: Iterable[Need]) -> frozenset[ReadAction]:
    """Return the IAM actions to read these facts and to count the managed queues.

    They include the action to find out who changed a queue last.
    """
    return frozenset(ACCOUNT_READ_ACTIONS).union(*(need.reads for need in needs))


def list_scan_read_actions(needs: Iterable[Need]) -> frozenset[ReadAction]:
    """Return the IAM actions that a scan needs to read these facts.

    These are the actions of `list_read_actions`, except the one to find out who changed a queue
    last, because a scan sends no notifications.
    """
    return list_read_actions(needs) - {_LAST_CHANGE_READ_ACTION}
