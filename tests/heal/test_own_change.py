"""Failed calls after a change by Mendq: the case names it, and a fix waits for a person."""

from __future__ import annotations

from msgspec import structs

from mendq.model.mode import Mode
from tests.account.account import Account
from tests.heal.operators import fail_calls, roll_back

FASTER = "fifo_throttled"
KMS = "kms_throttled"


def made_faster(account: Account) -> tuple[str, str]:
    """An encrypted FIFO queue that Mendq gave high throughput: its ARN, and the case."""
    autonomy = {FASTER: Mode.HEAL, KMS: Mode.HEAL}
    account.settings = structs.replace(account.settings, autonomy=autonomy)
    queue = account.queue(
        "orders.fifo", KmsMasterKeyId="alias/orders", KmsDataKeyReusePeriodSeconds="300"
    )
    account.later(hours=1)
    throttled = {"eventName": "SendMessage", "errorMessage": "Rate exceeded"}
    fail_calls(account, queue, "fifo", errorCode="ThrottlingException", **throttled)
    (case,) = account.transitions()
    assert (case["symptom"], case["to"]) == (FASTER, "applied")
    return queue, str(case["case_id"])


def throttled_by_kms(account: Account, queue: str) -> dict[str, object]:
    """The newest case after calls failed because KMS throttles."""
    fail_calls(account, queue, "kms", eventName="SendMessage", errorCode="KMS.ThrottlingException")
    return account.transitions()[-1]


def test_fix_of_failed_calls_after_mendqs_own_change_names_that_change_and_needs_approval(
    account: Account,
) -> None:
    queue, case_id = made_faster(account)
    account.later(minutes=20)
    case = throttled_by_kms(account, queue)
    assert (case["symptom"], case["to"]) == (KMS, "proposed")
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
    queue, case_id = made_faster(account)
    assert roll_back(account, case_id)["state"] == "rolled_back"
    account.later(minutes=20)
    case = throttled_by_kms(account, queue)
    assert (case["symptom"], case["to"]) == (KMS, "applied")
    assert case_id not in str(case["reason"])


def test_failed_calls_after_the_watch_time_of_mendqs_change_are_fixed_automatically(
    account: Account,
) -> None:
    queue, case_id = made_faster(account)
    account.later(hours=account.settings.timing.watch_hours, minutes=1)
    case = throttled_by_kms(account, queue)
    assert account.attributes(queue)["FifoThroughputLimit"] == "perMessageGroupId"
    assert (case["symptom"], case["to"]) == (KMS, "applied")
    assert case_id not in str(case["reason"])
