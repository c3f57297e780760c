"""The label of every error that the real SQS was recorded giving; the file is not ours to keep."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest

from mendq.catalogue import examples, match
from mendq.model.failed_call import FailedCall
from tests.real_records import SQS_ERRORS, sqs_errors

pytestmark = pytest.mark.skipif(not SQS_ERRORS.exists(), reason=f"{SQS_ERRORS.name} is not here")


class Labelled(NamedTuple):
    """A recorded test, the part of the message that SQS does not fill in, its call and label."""

    test: str
    says: str
    event_name: str
    label: str = "invalid_request"


LABELLED = (
    Labelled("test_source_needs_redrive_policy", "Source queue must be", "StartMessageMoveTask"),
    Labelled(
        "test_cancel_with_invalid_task_handle", "parameter TaskHandle", "CancelMessageMoveTask"
    ),
    Labelled(
        "test_cancel_with_invalid_source_arn_in_task_handle",
        "the SourceArn parameter",
        "CancelMessageMoveTask",
    ),
    Labelled(
        "test_cancel_with_invalid_task_id_in_task_handle",
        "Task does not exist.",
        "CancelMessageMoveTask",
    ),
    Labelled(
        "test_destination_needs_to_exist", "the DestinationArn parameter", "StartMessageMoveTask"
    ),
    Labelled("test_start_multiple_move_tasks", "There is already a task", "StartMessageMoveTask"),
    Labelled(
        "test_send_receive_max_number_of_messages",
        "for parameter MaxNumberOfMessages",
        "ReceiveMessage",
    ),
    Labelled("test_send_oversized_message", "shorter than 1048576 bytes.", "SendMessage"),
    Labelled(
        "test_send_message_with_updated_maximum_message_size",
        "shorter than 1024 bytes.",
        "SendMessage",
        "message_too_long",
    ),
    Labelled(
        "test_send_message_batch_with_oversized_contents",
        "Batch requests cannot be longer",
        "SendMessageBatch",
    ),
    Labelled(
        "test_create_fifo_queue_with_different_attributes_raises_error",
        "A queue already exists",
        "CreateQueue",
    ),
    Labelled(
        "test_create_queue_with_different_attributes_raises_exception",
        "A queue already exists",
        "CreateQueue",
    ),
    Labelled(
        "test_fifo_queue_send_message_with_delay_seconds_fails",
        "for parameter DelaySeconds",
        "SendMessage",
    ),
    Labelled(
        "test_too_many_entries_in_batch_request", "Maximum number of entries", "SendMessageBatch"
    ),
    Labelled("test_invalid_batch_id", "A batch entry id", "SendMessageBatch"),
    Labelled(
        "test_send_batch_missing_deduplication_id_for_fifo_queue",
        "ContentBasedDeduplication enabled",
        "SendMessageBatch",
        "dedup_id_missing",
    ),
    Labelled(
        "test_send_batch_missing_message_group_id_for_fifo_queue",
        "the parameter MessageGroupId.",
        "SendMessageBatch",
    ),
    Labelled("test_delete_message_batch_invalid_msg_id", "A batch entry id", "DeleteMessageBatch"),
    Labelled(
        "test_delete_message_batch_with_too_large_batch",
        "Maximum number of entries",
        "DeleteMessageBatch",
    ),
    Labelled(
        "test_change_message_visibility_batch_with_too_large_batch",
        "Maximum number of entries",
        "ChangeMessageVisibilityBatch",
    ),
    Labelled(
        "test_send_message_with_empty_string_attribute", "Message (user) attribute", "SendMessage"
    ),
    Labelled("test_set_unsupported_attribute_fifo", "Unknown Attribute", "SetQueueAttributes"),
    Labelled("test_set_unsupported_attribute_fifo", "Modifying queue type", "SetQueueAttributes"),
    Labelled(
        "test_posting_to_fifo_requires_deduplicationid_group_id",
        "ContentBasedDeduplication enabled",
        "SendMessage",
        "dedup_id_missing",
    ),
    Labelled(
        "test_posting_to_fifo_requires_deduplicationid_group_id",
        "the parameter MessageGroupId.",
        "SendMessage",
    ),
    Labelled("test_successive_purge_calls_fail", "Only one PurgeQueue operation", "PurgeQueue"),
    Labelled("test_sqs_permission_lifecycle", "Reason: Already exists.", "AddPermission"),
    Labelled("test_sqs_permission_lifecycle", "Reason: can't find label.", "RemovePermission"),
    Labelled(
        "test_non_existent_queue", "The specified queue does not", "SendMessage", "queue_missing"
    ),
    Labelled("test_set_unsupported_attribute_standard", "Unknown Attribute", "SetQueueAttributes"),
    *(
        Labelled("test_create_standard_queue_with_fifo_attribute_raises_error", says, "CreateQueue")
        for says in (
            "Unknown Attribute FifoQueue.",
            "Unknown Attribute ContentBasedDeduplication.",
            "specify the DeduplicationScope only",
            "specify the FifoThroughputLimit only",
        )
    ),
    Labelled(
        "test_send_receive_wait_time_seconds", "for parameter WaitTimeSeconds", "ReceiveMessage"
    ),
    Labelled("test_send_empty_message", "the parameter MessageBody.", "SendMessage"),
    Labelled(
        "test_fifo_delete_after_visibility_timeout",
        "Reason: The receipt handle has expired.",
        "DeleteMessage",
        "visibility_timeout_too_short",
    ),
    Labelled(
        "test_send_message_to_standard_queue_with_invalid_message_group_id",
        "for parameter MessageGroupId",
        "SendMessage",
    ),
    Labelled(
        "test_message_deduplication_id_invalid",
        "for parameter MessageDeduplicationId",
        "SendMessage",
    ),
)


def _of(error: dict[str, Any]) -> Labelled:
    test = error["test"].partition("[")[0]
    (labelled,) = (each for each in LABELLED if each.test == test and each.says in error["message"])
    return labelled


def _calls(error: dict[str, Any], event_name: str) -> list[FailedCall]:
    """In either protocol's spelling, on a queue of the kind that the recorded test used."""
    fifo = "fifo" in error["test"] or "dedup" in error["test"]
    queue_arn = examples.QUEUE_ARN if fifo else examples.STANDARD_ARN
    spellings = [each for each in (error["code"], error["query"]) if each]
    return [
        examples.failed_call(event_name, each, error["message"], queue_arn) for each in spellings
    ]


def test_every_real_error_has_its_label() -> None:
    errors = sqs_errors()
    assert len(errors) == 89
    for error in errors:
        labelled = _of(error)
        for call in _calls(error, labelled.event_name):
            symptom = match(call)
            assert symptom is not None
            assert symptom.name == labelled.label, error["test"]


def test_what_is_labelled_here_was_recorded() -> None:
    recorded = Counter(_of(each) for each in sqs_errors())
    assert set(recorded) == set(LABELLED)
    assert sum(recorded.values()) == 89
