"""Run the batches of SQS event source mappings as AWS does: filters, throttles, partial failures.

1. A message that no filter matches is deleted before the function runs.
2. Pollers do not know the function's reserved concurrency. They receive messages, and Lambda
   refuses the run if the function has no concurrency left. The run is tried again, with growing
   pauses, until the messages' visibility timeout ends. Then the messages are visible again, and
   their receive count has grown by one. Each refused run counts in the metric Throttles. AWS does
   not document how long the pauses are.
3. With ReportBatchItemFailures, the function's answer decides which messages are deleted
   (`find_failed_ids`).

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
https://repost.aws/knowledge-center/lambda-sqs-scaling
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ministack.services import cloudwatch, lambda_svc, sqs

from local_account.hooks import replace_functions
from local_account.lambdas.mappings import DELETE_ACTION, find_role_refusal
from local_account.lambdas.undocumented import MappingChoices

LAMBDA_NAMESPACE = "AWS/Lambda"
THROTTLES_METRIC = "Throttles"
REPORT_BATCH_ITEM_FAILURES = "ReportBatchItemFailures"
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 20.0
EventSourceMapping = dict[str, Any]
Message = dict[str, Any]
Records = list[dict[str, Any]]
logger = logging.getLogger("mendq.lambda")


def install(choices: MappingChoices) -> None:
    """Make MiniStack run batches as the head of this module says. Call this once per process."""
    runner = BatchRunner(choices)
    _install_throttles()

    @replace_functions(lambda_svc, "_apply_filter_criteria")
    def filter_records(
        original_function: Any, records: Records, mapping: EventSourceMapping
    ) -> Any:
        """Return all records of an SQS queue: the runner filters them and deletes the others."""
        if ":sqs:" in mapping["EventSourceArn"]:
            return records
        return original_function(records, mapping)

    @replace_functions(lambda_svc, "_run_sqs_batch")
    def run_batch(
        _original_function: Any,
        mapping: EventSourceMapping,
        _function: Any,
        event: Mapping[str, Any],
        messages: Sequence[Message],
        queue_url: str,
        _queue_name: str,
    ) -> None:
        runner.run(mapping, event["Records"], messages, queue_url)


def _install_throttles() -> None:
    """Make pollers ignore reserved concurrency, and count each run that it refuses."""

    @replace_functions(lambda_svc, "_sqs_esm_concurrency")
    def find_batch_limit(
        original_function: Any,
        mapping: EventSourceMapping,
        _function: Any,
        _configuration: Any,
        queue: Any = None,
    ) -> Any:
        """Return how many batches of the mapping may run at once."""
        return original_function(mapping, {}, {}, queue)

    @replace_functions(lambda_svc, "_acquire_execution_slot")
    def acquire_slot(original_function: Any, function: Any, configuration: Any) -> Any:
        slot, limit = original_function(function, configuration)
        if slot is None:
            dimensions = {"FunctionName": configuration["FunctionName"]}
            cloudwatch.record_metric(LAMBDA_NAMESPACE, THROTTLES_METRIC, 1, "Count", dimensions)
        return slot, limit


@dataclass(frozen=True)
class BatchRunner:
    """Runs a function for batches that its event source mapping received."""

    choices: MappingChoices
    # MiniStack's own filter, from before `install` replaces it.
    apply_filters: Any = lambda_svc._apply_filter_criteria

    def run(
        self,
        mapping: EventSourceMapping,
        records: Records,
        messages: Sequence[Message],
        queue_url: str,
    ) -> None:
        """Filter a batch, run the function, and delete the messages that are finished.

        Messages that are not finished become visible when their visibility timeout ends.
        """
        handle_by_id = {record["messageId"]: record["receiptHandle"] for record in records}
        matching_records = self.apply_filters(records, mapping)
        matching_ids = [record["messageId"] for record in matching_records]
        self._delete(mapping, queue_url, handle_by_id, handle_by_id.keys() - set(matching_ids))
        if not matching_ids:
            return
        timeout_ends_at = min(float(message["visible_at"]) for message in messages)
        result = _run_until(mapping, {"Records": matching_records}, timeout_ends_at)
        if result is None or result.get("error"):
            _note_failure(mapping, result)
            return
        lambda_svc._esm_backoff_until.pop(mapping["UUID"], None)
        failed_ids: Collection[str] = ()
        if REPORT_BATCH_ITEM_FAILURES in (mapping.get("FunctionResponseTypes") or ()):
            failed_ids = find_failed_ids(
                result.get("body"),
                matching_ids,
                is_unknown_id_ignored=self.choices.is_unknown_id_ignored,
            )
        finished_ids = set(matching_ids).difference(failed_ids)
        self._delete(mapping, queue_url, handle_by_id, finished_ids)
        mapping["LastProcessingResult"] = f"OK - {len(finished_ids)} records"
        if len(finished_ids) < len(matching_ids):
            failed_count = len(matching_ids) - len(finished_ids)
            mapping["LastProcessingResult"] += f", {failed_count} partial failures"

    def _delete(
        self,
        mapping: EventSourceMapping,
        queue_url: str,
        handle_by_id: Mapping[str, str],
        message_ids: Collection[str],
    ) -> None:
        """Delete messages of a batch, if the function's role may delete messages."""
        queue_arn = mapping["EventSourceArn"]
        refusal = find_role_refusal(
            mapping["FunctionName"], mapping.get("Qualifier"), (DELETE_ACTION,), queue_arn
        )
        if refusal:
            logger.error("the mapping of %s deletes nothing: %s", queue_arn, refusal)
            return
        handles = {handle_by_id[message_id] for message_id in message_ids}
        sqs._delete_messages_for_esm(queue_url, handles)


def _run_until(
    mapping: EventSourceMapping, event: Mapping[str, Any], end_seconds: float
) -> Mapping[str, Any] | None:
    """Run the mapping's function, again after each throttle until `end_seconds`.

    Args:
        mapping: The event source mapping.
        event: The event for the function.
        end_seconds: When the messages become visible again, in seconds since the epoch.

    Returns:
        MiniStack's result of the run; None if each run was throttled, or if the mapping was
        disabled or the function deleted in the meantime.
    """
    pause_seconds = FIRST_PAUSE_SECONDS
    while mapping.get("Enabled", True):
        function, _ = lambda_svc._get_func_record_for_qualifier(
            mapping["FunctionName"], mapping.get("Qualifier")
        )
        if function is None:
            return None
        result: Mapping[str, Any] = lambda_svc._execute_function(function, event)
        if not result.get("throttle"):
            return result
        if time.time() + pause_seconds >= end_seconds:
            return None
        time.sleep(pause_seconds)
        pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
    return None


def _note_failure(mapping: EventSourceMapping, result: Mapping[str, Any] | None) -> None:
    """Record that a batch failed. After a failed run, let the mapping pause as MiniStack does."""
    mapping["LastProcessingResult"] = "FAILED"
    if result is None:
        return
    logger.warning("a batch of %s failed: %s", mapping["EventSourceArn"], result.get("body"))
    pause_ends_at = time.time() + lambda_svc._ESM_BACKOFF_SECONDS
    lambda_svc._esm_backoff_until[mapping["UUID"]] = pause_ends_at


def find_failed_ids(
    answer: object, message_ids: Collection[str], *, is_unknown_id_ignored: bool
) -> Collection[str]:
    """Return the ids of the messages that a function's answer reports as failed.

    As AWS documents, no message has failed if the answer is null or empty, or its list of failures
    is missing, null or empty. All messages have failed if the answer is no JSON object, or if an id
    is null, empty or missing. AWS does not document an id that names no message of the batch.

    Args:
        answer: The function's answer.
        message_ids: Ids of all messages in the batch.
        is_unknown_id_ignored: True if an id that names no message is ignored. Otherwise all
            messages have failed then.
    """
    try:
        reported_ids = _read_reported_ids(answer)
    except ValueError:
        return message_ids
    unknown_ids = reported_ids.difference(message_ids)
    if unknown_ids and not is_unknown_id_ignored:
        return message_ids
    return reported_ids - unknown_ids


def _read_reported_ids(answer: object) -> set[str]:
    """Return the ids in an answer's batchItemFailures. Raise ValueError if they are not usable."""
    if isinstance(answer, str) and answer:
        answer = json.loads(answer)
    if not answer:
        return set()
    if not isinstance(answer, dict):
        raise ValueError("the answer is no JSON object")  # noqa: TRY004 - one error for all faults
    failures = answer.get("batchItemFailures") or []
    if not isinstance(failures, list):
        raise ValueError("batchItemFailures is no list")  # noqa: TRY004
    return {_read_item_identifier(failure) for failure in failures}


def _read_item_identifier(failure: object) -> str:
    """Return the id of one failure. Raise ValueError if it is missing, null or empty."""
    message_id = failure.get("itemIdentifier") if isinstance(failure, dict) else None
    if not isinstance(message_id, str) or not message_id:
        raise ValueError("itemIdentifier is missing, null or empty")
    return message_id
