"""Test how a scan finds queues whose KMS key nobody can use."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from mendq.catalogue.keys.kms_key_unusable import KMS_KEY_UNUSABLE
from mendq.model.facts import Facts
from tests.scan.scanner import Scanner, deny_operation, make_slow_symptom, start_sums_hour

AWS_MANAGED_KEY = "alias/aws/sqs"
FOUND = ["kms_key_unusable"]
# Symptoms that a measurement could show make a queue a candidate.
SYMPTOMS = [KMS_KEY_UNUSABLE, make_slow_symptom("slow")]


@pytest.fixture
def asked_keys(scanner: Scanner) -> list[str]:
    """The keys that KMS was asked for."""
    keys = list[str]()

    def note(params: Any, **_: Any) -> None:
        keys.append(params["KeyId"])

    scanner.account.clients.kms.meta.events.register_first(
        "before-parameter-build.kms.DescribeKey", note
    )
    return keys


def make_key(scanner: Scanner, *, is_disabled: bool = True) -> str:
    key = str(scanner.account.clients.kms.create_key()["KeyMetadata"]["KeyId"])
    if is_disabled:
        scanner.account.clients.kms.disable_key(KeyId=key)
    return key


def make_queue(scanner: Scanner, name: str, key: str, messages: int = 0) -> str:
    queue_arn = scanner.account.queue(name, KmsMasterKeyId=key)
    for _ in range(messages):
        scanner.account.clients.sqs.send_message(
            QueueUrl=scanner.account.url(queue_arn), MessageBody="waits"
        )
    return queue_arn


def wait_until_settled(scanner: Scanner, *queue_arns: str) -> None:
    """Wait until queues can be measured. `queue_arns` are sent messages that nobody deletes."""
    scanner.account.later(hours=2)
    start_sums_hour(scanner)
    at = scanner.account.now - timedelta(minutes=30)
    for queue_arn in queue_arns:
        scanner.put_metrics(queue_arn, at, sent=9, received=9, deleted=0, visible=9)


def list_symptoms(scanner: Scanner) -> list[str]:
    done = scanner.run_due_scan(SYMPTOMS)
    assert done.error_by_target == {}
    return [finding.symptom for finding in done.findings if finding.symptom != "slow"]


def test_disabled_key_of_a_queue_that_was_changed_lately_is_found_and_heal_opens_a_case(
    scanner: Scanner,
) -> None:
    make_queue(scanner, "orders", make_key(scanner), messages=2)
    assert list_symptoms(scanner) == FOUND
    (healed,) = scanner.heal()
    assert healed.error_by_message_id == {}
    assert any("is disabled" in str(transition) for transition in scanner.account.transitions())


def test_disabled_key_of_a_queue_on_which_nothing_happens_any_more_is_found(
    scanner: Scanner,
) -> None:
    make_queue(scanner, "orders", make_key(scanner))
    wait_until_settled(scanner)
    assert list_symptoms(scanner) == FOUND


@pytest.mark.parametrize("is_silent", [True, False])
def test_disabled_key_is_found_although_the_check_of_another_symptom_raises(
    scanner: Scanner, *, is_silent: bool
) -> None:
    """On a queue on which nothing happens any more, and on one that cannot be measured now."""
    queue_arn = make_queue(scanner, "orders", make_key(scanner), messages=0 if is_silent else 2)
    wait_until_settled(scanner)
    if not is_silent:
        spent_metrics = scanner.settings().limits.scan_metrics_per_day
        scanner.context().scan_store.note_spent_metrics(spent_metrics, scanner.account.now)
    defect = ValueError("a defect")

    def fail(_facts: Facts) -> None:
        raise defect

    broken = make_slow_symptom("broken", detect=fail, is_left_to_suspects=True)
    done = scanner.run_due_scan([broken, *SYMPTOMS])
    assert [finding.symptom for finding in done.findings] == FOUND
    assert done.error_by_target == {queue_arn: defect}
    assert done.measured == 0


def test_disabled_key_of_a_measured_suspect_is_found(scanner: Scanner) -> None:
    make_queue(scanner, "orders", make_key(scanner), messages=2)
    wait_until_settled(scanner)
    done = scanner.run_due_scan(SYMPTOMS)
    assert done.measured == 1
    assert "kms_key_unusable" in {finding.symptom for finding in done.findings}


def test_deletion_of_a_key_is_urgent_if_the_queue_holds_messages_that_are_lost_with_it(
    scanner: Scanner,
) -> None:
    key = make_key(scanner, is_disabled=False)
    make_queue(scanner, "orders", key, messages=1)
    make_queue(scanner, "unused", key)
    scanner.account.clients.kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    wait_until_settled(scanner)
    done = scanner.run_due_scan(SYMPTOMS)
    seconds_left_by_queue = {
        finding.queue_arn.rpartition(":")[2]: finding.seconds_left
        for finding in done.findings
        if finding.symptom == "kms_key_unusable"
    }
    assert seconds_left_by_queue.keys() == {"orders", "unused"}
    assert seconds_left_by_queue["unused"] is None
    assert seconds_left_by_queue["orders"] is not None


def test_each_key_is_asked_for_once_in_a_scan_and_a_usable_one_is_no_finding(
    scanner: Scanner, asked_keys: list[str]
) -> None:
    key = make_key(scanner, is_disabled=False)
    for name in ("a", "b", "c"):
        make_queue(scanner, name, key, messages=1)
    assert list_symptoms(scanner) == []
    assert asked_keys == [key]


def test_key_of_aws_and_keys_of_unused_queues_are_not_asked_for(
    scanner: Scanner, asked_keys: list[str]
) -> None:
    """KMS bills each call, and a queue without its own key has none that could be disabled."""
    make_queue(scanner, "aws", AWS_MANAGED_KEY, messages=1)
    make_queue(scanner, "unused", make_key(scanner))
    wait_until_settled(scanner)
    list_symptoms(scanner)
    scanner.heal_requests.clear()
    asked_keys.clear()
    for _ in range(13):
        scanner.account.later(hours=2)
        list_symptoms(scanner)
    assert asked_keys == []


def test_key_that_mendq_may_not_read_costs_one_symptom_and_is_named_with_the_reason(
    scanner: Scanner,
) -> None:
    queue_arn = make_queue(scanner, "orders", make_key(scanner), messages=2)
    deny_operation(scanner.account.clients.kms, "DescribeKey")
    wait_until_settled(scanner, queue_arn)
    done = scanner.run_due_scan(SYMPTOMS)
    assert done.error_by_target == {}
    assert [finding.symptom for finding in done.findings] == ["slow"]
    assert done.configuration_by_arn.keys() == {queue_arn}, "nothing else failed"
    assert scanner.read_findings()["not_judged"] == {
        "kms_key_unusable": "kms:DescribeKey is denied for 1 key"
    }


def test_kms_that_does_not_answer_is_asked_twice_and_other_symptoms_are_judged(
    scanner: Scanner, asked_keys: list[str]
) -> None:
    queue_arns = [make_queue(scanner, f"q-{n}", make_key(scanner)) for n in range(4)]
    deny_operation(
        scanner.account.clients.kms,
        "DescribeKey",
        unreachable=ReadTimeoutError(endpoint_url="https://kms"),
    )
    wait_until_settled(scanner, *queue_arns)
    done = scanner.run_due_scan(SYMPTOMS)
    assert done.error_by_target == {}
    assert [finding.symptom for finding in done.findings] == ["slow"] * 4
    assert len(asked_keys) == 2
    assert "KMS gives no answer" in done.unjudged_reason_by_symptom["kms_key_unusable"]
