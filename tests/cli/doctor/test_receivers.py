"""Test the doctor's check of quarantines and DLQs that nobody confirmed, or that changed since."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mendq.aws.queue import queue_url
from mendq.cases import items
from mendq.cases.attribute_record import AttributeRecord
from mendq.cli.doctor.check import Check, Command, Status, run_checks
from mendq.cli.doctor.receivers import RECEIVERS_CHECK_NAME, check_receivers
from mendq.model.dlq import arn_of_quarantine
from mendq.model.receiver import Receiver
from mendq.model.state import State
from mendq.model.steps import CreateDlq
from tests.account.receivers import confirm_receiver, open_receivers
from tests.cli.builders import Operator
from tests.redrive.world import record_case
from tests.scan.scanner import deny_operation

NOT_RECORDED = "nothing records that Mendq made it or that a person confirmed it"


def check(operator: Operator, *source_arns: str) -> Check:
    """Run the check for these managed queues."""
    (found_check,) = run_checks(
        RECEIVERS_CHECK_NAME,
        lambda: check_receivers(operator.account, list(source_arns), operator.aws.now),
    )
    return found_check


def make_queue(operator: Operator, name: str) -> str:
    return operator.aws.queue(name, tag=None)


def record_made_dlq(operator: Operator, source_arn: str, dlq_arn: str) -> None:
    """Record the write by which Mendq made the DLQ."""
    record = AttributeRecord().add_write("", dlq_arn, operator.aws.now)
    item: Any = {
        **items.attribute_key(source_arn, CreateDlq.attribute),
        **items.make_record_attributes(record),
    }
    table = operator.account.settings.case_table
    operator.aws.clients.dynamodb.put_item(TableName=table, Item=item)


def open_case(operator: Operator, source_arn: str, symptom: str) -> None:
    step = CreateDlq("", f"{source_arn}-dlq")
    record_case(operator.aws, [State.PROPOSED], (step,), queue_arn=source_arn, symptom=symptom)


def test_doctor_names_an_unconfirmed_quarantine_and_the_command_that_confirms_it(
    operator: Operator,
) -> None:
    source = make_queue(operator, "orders")
    make_queue(operator, "orders-quarantine")
    found_check = check(operator, source)
    assert found_check.status is Status.WARN
    assert found_check.sentence == f"Mendq does not use orders-quarantine: {NOT_RECORDED}"
    assert found_check.remedy == "mendq confirm orders-quarantine --region us-east-1"
    assert isinstance(found_check.remedy, Command)


def test_doctor_is_content_with_a_confirmed_quarantine_until_it_changes(
    operator: Operator,
) -> None:
    source = make_queue(operator, "orders")
    quarantine = make_queue(operator, "orders-quarantine")
    confirm_receiver(operator.aws, quarantine)
    assert check(operator, source).status is Status.OK
    operator.aws.tag(quarantine, team="others")
    found_check = check(operator, source)
    assert found_check.status is Status.WARN
    assert "its tags changed since" in found_check.sentence


def test_doctor_names_a_dlq_of_any_name_that_mendq_made_and_that_changed_since(
    operator: Operator,
) -> None:
    source = make_queue(operator, "orders")
    dlq = make_queue(operator, "named-by-a-person")
    record_made_dlq(operator, source, dlq)
    confirm_receiver(operator.aws, dlq)
    assert check(operator, source).status is Status.OK
    operator.aws.tag(dlq, team="others")
    found_check = check(operator, source)
    assert "Mendq does not use named-by-a-person: its tags changed" in found_check.sentence
    assert found_check.remedy == "mendq confirm named-by-a-person --region us-east-1"


def test_doctor_names_a_confirmed_queue_with_the_default_dlq_name_whose_tags_changed(
    operator: Operator,
) -> None:
    source = make_queue(operator, "orders")
    dlq = make_queue(operator, "orders-dlq")
    confirm_receiver(operator.aws, dlq)
    operator.aws.tag(dlq, team="others")
    assert "Mendq does not use orders-dlq: its tags" in check(operator, source).sentence


@pytest.mark.parametrize(
    ("symptom", "status"),
    [("dlq_missing", Status.WARN), ("consumer_failing", Status.OK)],
)
def test_doctor_names_an_unrecorded_dlq_only_if_an_open_case_needs_one(
    operator: Operator, symptom: str, status: Status
) -> None:
    source = make_queue(operator, "orders")
    make_queue(operator, "orders-dlq")
    assert check(operator, source).status is Status.OK, "it is the operator's own"
    open_case(operator, source, symptom)
    assert check(operator, source).status is status


def test_doctor_names_several_queues_in_one_check_with_the_first_ones_command(
    operator: Operator,
) -> None:
    sources = [make_queue(operator, name) for name in ("a", "b", "c", "d", "e")]
    for source in sources:
        make_queue(operator, arn_of_quarantine(source).rpartition(":")[2])
    confirm_receiver(operator.aws, arn_of_quarantine(sources[4]))
    found_check = check(operator, *sources)
    expected = "4 are not confirmed or changed since: a-quarantine, b-quarantine, c-quarantine and"
    assert found_check.sentence.startswith(f"{expected} 1 more")
    assert found_check.remedy == "mendq confirm a-quarantine --region us-east-1"


def test_doctor_names_the_source_in_the_command_if_the_quarantines_name_was_cut(
    operator: Operator,
) -> None:
    source = make_queue(operator, "o" * 79)
    make_queue(operator, arn_of_quarantine(source).rpartition(":")[2])
    assert f"--source {'o' * 79}" in check(operator, source).remedy


def test_doctor_warns_of_a_quarantine_that_a_run_is_making_only_after_an_hour(
    operator: Operator,
) -> None:
    source = make_queue(operator, "orders")
    quarantine = make_queue(operator, "orders-quarantine")
    open_receivers(operator.aws).put(Receiver(quarantine, operator.aws.now, "redrive"))
    assert check(operator, source).status is Status.OK
    operator.aws.now += timedelta(hours=1)
    assert check(operator, source).status is Status.WARN


def test_doctor_names_a_quarantine_whose_policy_keeps_mendq_out(operator: Operator) -> None:
    source = make_queue(operator, "orders")
    quarantine = make_queue(operator, "orders-quarantine")
    clients = operator.account.clients
    url = queue_url(clients, quarantine)
    deny_operation(clients.sqs, "GetQueueAttributes", [url], "a resource-based policy")
    found_check = check(operator, source)
    assert found_check.status is Status.WARN
    assert "Mendq does not use orders-quarantine: it cannot be read" in found_check.sentence


def test_doctor_does_not_check_quarantines_if_no_queue_is_managed(operator: Operator) -> None:
    make_queue(operator, "orders-quarantine")
    assert list(check_receivers(operator.account, [], datetime.now(UTC))) == []


def test_doctor_is_content_if_no_managed_queue_has_a_quarantine(operator: Operator) -> None:
    source = make_queue(operator, "orders")
    found_check = check(operator, source)
    assert (found_check.status, found_check.sentence[:8]) == (Status.OK, "0 queues")
