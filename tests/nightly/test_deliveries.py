"""Delivery claims: one run at a time sends a week's report on a channel."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from infra.lambdas.rows import DELIVER_REPORT_TIMEOUT_SECONDS
from mendq.nightly.deliveries import CLAIM_SECONDS, ClaimHeldByAnotherRun, DeliveryClaims
from tests.account.account import Account

# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
LAMBDA_RETRIES_AFTER_SECONDS = (60, 120)
KEY = "report/week=2026-W46/delivered/verdict.json"


def make_claims(account: Account, owner: str = "run-1") -> DeliveryClaims:
    return DeliveryClaims(account.clients.s3, "cases", "2026-W46", owner, lambda: account.now)


def read_claim(account: Account) -> dict[str, Any]:
    found = account.clients.s3.get_object(Bucket="cases", Key=KEY)["Body"].read()
    read: dict[str, Any] = json.loads(found)
    return read


def test_delivery_claim_of_another_run_blocks_the_channel_until_the_claim_expires(
    account: Account,
) -> None:
    assert make_claims(account).claim_channel("verdict")
    before = read_claim(account)
    assert before["until"] == (account.now + timedelta(seconds=CLAIM_SECONDS)).isoformat()
    for seconds in (0, CLAIM_SECONDS - 1):
        account.later(seconds=seconds)
        with pytest.raises(ClaimHeldByAnotherRun):
            make_claims(account, "run-2").claim_channel("verdict")
    assert read_claim(account) == before
    account.later(seconds=1)
    assert make_claims(account, "run-2").claim_channel("verdict")


def test_delivery_claim_outlasts_the_lambda_timeout_and_expires_before_lambdas_last_retry() -> None:
    assert DELIVER_REPORT_TIMEOUT_SECONDS < CLAIM_SECONDS < sum(LAMBDA_RETRIES_AFTER_SECONDS)


def test_failed_delivery_may_be_claimed_again_at_once_by_another_run(account: Account) -> None:
    taken = make_claims(account).claim_channel("verdict") or ""
    make_claims(account).record_outcome("verdict", taken, "MessageRejected")
    assert read_claim(account)["why"] == "MessageRejected"
    assert make_claims(account, "run-2").claim_channel("verdict")


def test_expired_delivery_claim_is_taken_by_only_one_of_two_racing_runs(account: Account) -> None:
    """Run 3 takes the claim between run 2's read and its write."""
    assert make_claims(account).claim_channel("verdict")
    account.later(seconds=CLAIM_SECONDS)
    raced: list[bool] = []

    def race(**_: Any) -> None:
        if not raced:
            raced.append(True)
            assert make_claims(account, "run-3").claim_channel("verdict")

    account.clients.s3.meta.events.register("after-call.s3.GetObject", race)
    with pytest.raises(ClaimHeldByAnotherRun):
        make_claims(account, "run-2").claim_channel("verdict")
    assert read_claim(account)["owner"] == "run-3"


def test_delivery_claim_sends_its_conditions_in_headers_that_every_botocore_lets_through(
    account: Account,
) -> None:
    """The botocore of a Lambda runtime may be too old for PutObject's parameter IfMatch."""
    parameters: list[set[str]] = []
    headers: list[dict[str, str]] = []
    events = account.clients.s3.meta.events
    events.register(
        "provide-client-params.s3.PutObject", lambda params, **_: parameters.append({*params})
    )
    events.register_last(
        "before-send.s3.PutObject", lambda request, **_: headers.append({**request.headers})
    )
    taken = make_claims(account).claim_channel("verdict") or ""
    make_claims(account).record_outcome("verdict", taken)
    account.clients.s3.put_object(Bucket="cases", Key="other", Body=b"")
    assert not {"IfMatch", "IfNoneMatch"} & {name for names in parameters for name in names}
    conditions = [(sent.get("If-None-Match"), sent.get("If-Match")) for sent in headers]
    assert conditions == [(b"*", None), (None, taken.encode()), (None, None)]


def _make_claim_document(until: object) -> bytes:
    return json.dumps({"state": "taken", "owner": "run-0", "until": until}).encode()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"\xff", b'"taken"', b'{"state": "held"}', b"[" * 100_000]
)
def test_unreadable_delivery_claim_is_kept_and_the_report_is_not_sent(
    account: Account, body: bytes
) -> None:
    account.clients.s3.put_object(Bucket="cases", Key=KEY, Body=body)
    assert make_claims(account).claim_channel("verdict") is None
    assert account.clients.s3.get_object(Bucket="cases", Key=KEY)["Body"].read() == body


@pytest.mark.parametrize("until", [None, 5, "soon", "2026-11-09T06:00:00"])
def test_delivery_claim_of_another_run_without_a_valid_expiry_time_is_taken_over(
    account: Account, until: object
) -> None:
    account.clients.s3.put_object(Bucket="cases", Key=KEY, Body=_make_claim_document(until))
    assert make_claims(account).claim_channel("verdict")
    assert read_claim(account)["owner"] == "run-1"
