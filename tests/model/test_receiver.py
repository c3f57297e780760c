"""Which existing queue may receive another queue's messages, by its record in the case store."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import QueueFacts
from mendq.model.receiver import (
    Receiver,
    can_have_several_sources,
    find_difference_from_new_queue,
    find_other_queue_objection,
    find_receiver_objection,
    find_source_access_change,
    find_source_objection,
)

ARN = "arn:aws:sqs:us-east-1:123456789012:orders-quarantine"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ATTRIBUTES = {
    "CreatedTimestamp": str(int(NOW.timestamp())),
    "MessageRetentionPeriod": "1209600",
    "SqsManagedSseEnabled": "true",
}
TAGS = {"team": "orders"}


def make_queue(**attributes: str) -> QueueFacts:
    return QueueFacts(ARN, {**ATTRIBUTES, **attributes}, TAGS)


RECEIVER = Receiver.of_queue(
    make_queue(), recorded_at=NOW, recorded_by="redrive", is_made_by_mendq=True
)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"ApproximateNumberOfMessages": "7"},
        {"VisibilityTimeout": "600"},
        {"LastModifiedTimestamp": "1"},
        {"Policy": ""},
    ],
)
def test_recorded_queue_is_used_if_nothing_changed_by_which_others_reach_its_messages(
    attributes: dict[str, str],
) -> None:
    assert find_receiver_objection(RECEIVER, make_queue(**attributes)) is None


@pytest.mark.parametrize(
    ("attributes", "changed"),
    [
        ({"Policy": '{"Statement":[]}'}, "policy"),
        ({"KmsMasterKeyId": "alias/theirs"}, "KMS key and encryption"),
        ({"SqsManagedSseEnabled": "false"}, "encryption"),
        ({"RedrivePolicy": "{}"}, "RedrivePolicy"),
        ({"RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'}, "RedriveAllowPolicy"),
    ],
)
def test_recorded_queue_is_refused_after_a_change_of_policy_key_or_dlq(
    attributes: dict[str, str], changed: str
) -> None:
    objection = find_receiver_objection(RECEIVER, make_queue(**attributes))
    assert objection == f"its {changed} changed since Mendq made it"


@pytest.mark.parametrize("tags", [{}, {"team": "others"}, {**TAGS, "access": "others"}])
def test_recorded_queue_is_refused_after_a_change_of_its_tags(tags: dict[str, str]) -> None:
    """IAM policies may grant access by a tag."""
    queue = QueueFacts(ARN, ATTRIBUTES, tags)
    assert find_receiver_objection(RECEIVER, queue) == "its tags changed since Mendq made it"


def test_recorded_receiver_is_used_if_only_tags_that_aws_writes_were_added() -> None:
    queue = QueueFacts(ARN, ATTRIBUTES, {**TAGS, "aws:cloudformation:stack-name": "orders"})
    assert find_receiver_objection(RECEIVER, queue) is None


@pytest.mark.parametrize("seconds", [-1, 1, 86_400])
def test_recorded_queue_with_another_creation_time_is_refused_as_deleted_and_created_again(
    seconds: int,
) -> None:
    created_at = NOW + timedelta(seconds=seconds)
    queue = make_queue(CreatedTimestamp=str(int(created_at.timestamp())))
    expected = "it was deleted and created again since Mendq made it"
    assert find_receiver_objection(RECEIVER, queue) == expected
    assert find_other_queue_objection(RECEIVER, queue) == expected


@pytest.mark.parametrize("receiver", [None, Receiver(ARN, NOW, "redrive")])
def test_queue_with_no_record_or_one_only_begun_may_not_receive_messages(
    receiver: Receiver | None,
) -> None:
    objection = find_receiver_objection(receiver, make_queue())
    assert objection == "nothing records that Mendq made it or that a person confirmed it"


def test_note_that_mendq_is_making_a_queue_ends_after_half_an_hour_or_once_it_is_made() -> None:
    note = Receiver(ARN, NOW, "redrive")
    assert note.is_creation_noted(NOW + timedelta(minutes=30))
    assert not note.is_creation_noted(NOW + timedelta(minutes=30, seconds=1))
    assert not RECEIVER.is_creation_noted(NOW), "it is finished"


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"Policy": '{"Statement":[]}'}, "policy"),
        ({"KmsMasterKeyId": "alias/theirs"}, "KMS key"),
        ({"RedrivePolicy": "{}"}, "RedrivePolicy"),
        ({"MessageRetentionPeriod": "60"}, "MessageRetentionPeriod"),
    ],
)
def test_difference_of_a_queue_from_what_mendq_sets_on_a_new_queue_is_named(
    attributes: dict[str, str], name: str
) -> None:
    new_queue_attributes = {
        "MessageRetentionPeriod": "1209600",
        "SqsManagedSseEnabled": "true",
    }
    assert find_difference_from_new_queue(make_queue(), new_queue_attributes) is None
    difference = find_difference_from_new_queue(make_queue(**attributes), new_queue_attributes)
    assert difference == f"its {name} is not what Mendq sets on a new queue"


def test_redrive_allow_policy_in_another_spelling_is_no_difference() -> None:
    planned = {"redrivePermission": "byQueue", "sourceQueueArns": [ARN]}
    new_queue_attributes = {"RedriveAllowPolicy": json.dumps(planned)}
    respelled = json.dumps(dict(reversed(planned.items())), indent=1)
    queue = QueueFacts(ARN, {"CreatedTimestamp": "1", "RedriveAllowPolicy": respelled})
    assert find_difference_from_new_queue(queue, new_queue_attributes) is None


SOURCE = ARN.replace("orders-quarantine", "orders")
# The quarantine of these two sources has the same name, because the first one is cut.
LONG_SOURCE = ARN.replace("orders-quarantine", "x" * 75)
LONG_QUARANTINE = arn_of_quarantine(LONG_SOURCE)
SHORTER_SOURCE = LONG_QUARANTINE.removesuffix("-quarantine")


def make_record(queue_arn: str, source_arn: str) -> Receiver:
    return replace(RECEIVER, queue_arn=queue_arn, source_arn=source_arn)


def test_quarantine_name_that_was_cut_may_belong_to_several_sources() -> None:
    assert arn_of_quarantine(SHORTER_SOURCE) == LONG_QUARANTINE
    assert can_have_several_sources(LONG_QUARANTINE.rpartition(":")[2])


@pytest.mark.parametrize("source_arn", [LONG_SOURCE, ""])
def test_quarantine_gets_messages_of_its_recorded_source_and_if_no_source_is_given(
    source_arn: str,
) -> None:
    assert find_source_objection(make_record(LONG_QUARANTINE, LONG_SOURCE), source_arn) is None


def test_quarantine_of_another_source_gets_no_message() -> None:
    record = make_record(LONG_QUARANTINE, LONG_SOURCE)
    queue = QueueFacts(LONG_QUARANTINE, ATTRIBUTES, TAGS)
    objection = find_receiver_objection(record, queue, SHORTER_SOURCE)
    assert objection is not None
    assert objection.startswith(f"it is recorded as the quarantine of {'x' * 75}, not of xxx")
    assert find_receiver_objection(record, queue, LONG_SOURCE) is None


def test_record_without_a_source_counts_only_if_the_quarantines_name_tells_the_source() -> None:
    """Versions before this field wrote such records."""
    assert find_source_objection(make_record(ARN, ""), SOURCE) is None
    objection = find_source_objection(make_record(LONG_QUARANTINE, ""), LONG_SOURCE)
    assert objection is not None
    assert "its name was cut" in objection


@pytest.mark.parametrize(
    ("queue", "change"),
    [
        (QueueFacts(ARN, {}), "it was deleted"),
        (make_queue(CreatedTimestamp="1700000000"), "it was deleted and created again"),
        (make_queue(Policy="{}"), "its policy changed"),
        (make_queue(MessageRetentionPeriod="60"), None),
    ],
)
def test_change_of_who_may_read_a_source_is_told_and_other_changes_are_not(
    queue: QueueFacts, change: str | None
) -> None:
    assert find_source_access_change(make_queue(), queue) == change
