"""Failed calls that begin after a change by Mendq."""

from __future__ import annotations

from msgspec import structs

from mendq.model.mode import Mode
from tests.account.account import Account
from tests.heal.operators import fail_calls, roll_back

FIFO_THROTTLED = "fifo_throttled"
KMS_THROTTLED = "kms_throttled"


def make_queue_with_high_throughput(account: Account) -> tuple[str, str]:
    """Make a FIFO queue that Mendq gave high throughput. Return its ARN and the case id."""
    autonomy = {FIFO_THROTTLED: Mode.HEAL, KMS_THROTTLED: Mode.HEAL}
    account.settings = structs.replace(account.settings, autonomy=autonomy)
    queue = account.queue(
        "orders.fifo", KmsMasterKeyId="alias/orders", KmsDataKeyReusePeriodSeconds="300"
    )
    account.later(hours=1)
    throttled = {"eventName": "SendMessage", "errorMessage": "Rate exceeded"}
    fail_calls(account, queue, "fifo", errorCode="ThrottlingException", **throttled)
    (case,) = account.transitions()
    assert (case["symptom"], case["to"]) == (FIFO_THROTTLED, "applied")
    return queue, str(case["case_id"])


def fail_calls_by_kms_throttling(account: Account, queue: str) -> dict[str, object]:
    """Let calls fail because KMS throttles. Return the newest case."""
    fail_calls(account, queue, "kms", eventName="SendMessage", errorCode="KMS.ThrottlingException")
    return account.transitions()[-1]


def test_fix_of_failed_calls_after_mendqs_own_change_names_that_change_and_needs_approval(
    account: Account,
) -> None:
    queue, case_id = make_queue_with_high_throughput(account)
    account.later(minutes=20)
    case = fail_calls_by_kms_throttling(account, queue)
    assert (case["symptom"], case["to"]) == (KMS_THROTTLED, "proposed")
    assert str(case["reason"]).startswith(
        f"Mendq set FifoThroughputLimit of orders.fifo to perMessageGroupId 20 min ago (case "
        f"{case_id}): more messages a second reach its consumers. To take the change back: "
        f"mendq rollback {case_id} --region us-east-1. KMS throttles SQS"
    )
    assert account.attributes(queue)["KmsDataKeyReusePeriodSeconds"] == "300", "nothing written"
    (page,) = [body for _, body in account.pages("info")]
    assert f"FIRST\n  decide first: To take the change back:\n  mendq rollback {case_id}" in page


def test_failed_calls_after_a_rollback_of_mendqs_change_are_fixed_automatically(
    account: Account,
) -> None:
    queue, case_id = make_queue_with_high_throughput(account)
    assert roll_back(account, case_id)["state"] == "rolled_back"
    account.later(minutes=20)
    case = fail_calls_by_kms_throttling(account, queue)
    assert (case["symptom"], case["to"]) == (KMS_THROTTLED, "applied")
    assert case_id not in str(case["reason"])


def test_failed_calls_after_the_watch_time_of_mendqs_change_are_fixed_automatically(
    account: Account,
) -> None:
    queue, case_id = make_queue_with_high_throughput(account)
    account.later(hours=account.settings.timing.watch_hours, minutes=1)
    case = fail_calls_by_kms_throttling(account, queue)
    assert account.attributes(queue)["FifoThroughputLimit"] == "perMessageGroupId"
    assert (case["symptom"], case["to"]) == (KMS_THROTTLED, "applied")
    assert case_id not in str(case["reason"])
