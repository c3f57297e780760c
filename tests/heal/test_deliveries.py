"""A channel of a week is one run's at a time, and sends once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from infra.lambdas.rows import DELIVER_SECONDS, LAMBDA_RETRIES_AFTER_SECONDS
from mendq.nightly.deliveries import CLAIM_SECONDS, DeliveryClaims, HeldByAnother
from tests.heal.conftest import Account

WEEK = "2026-W46"


def marked(account: Account, owner: str = "run-1", week: str = WEEK) -> DeliveryClaims:
    return DeliveryClaims(account.clients.s3, "cases", week, owner, lambda: account.now)


def mark(account: Account, channel: str = "verdict") -> dict[str, Any]:
    key = f"report/week={WEEK}/delivered/{channel}.json"
    found = account.clients.s3.get_object(Bucket="cases", Key=key)["Body"].read()
    read: dict[str, Any] = json.loads(found)
    return read


def test_what_another_run_has_taken_is_not_ours(account: Account) -> None:
    assert marked(account).take("verdict")
    before = mark(account)
    with pytest.raises(HeldByAnother):
        marked(account, "run-2").take("verdict")
    assert mark(account) == before


def test_what_a_dead_run_had_taken_is_ours_once_its_visibility_ends(account: Account) -> None:
    assert marked(account).take("verdict")
    account.later(seconds=CLAIM_SECONDS - 1)
    with pytest.raises(HeldByAnother):
        marked(account, "run-2").take("verdict")
    account.later(seconds=1)
    assert marked(account, "run-2").take("verdict")


def test_a_retry_of_the_run_that_took_it_need_not_wait(account: Account) -> None:
    """Lambda tries an event again under the same request id, and only once the run has ended."""
    assert marked(account).take("verdict")
    assert marked(account).take("verdict")


def test_the_visibility_fits_between_an_invocation_and_lambdas_last_try() -> None:
    assert DELIVER_SECONDS < CLAIM_SECONDS < sum(LAMBDA_RETRIES_AFTER_SECONDS)


def test_what_went_out_never_goes_out_again(account: Account) -> None:
    taken = marked(account).take("verdict")
    assert taken
    marked(account).note_sent(taken)
    account.later(days=400)
    assert marked(account).take("verdict") is None
    assert marked(account, "run-2").take("verdict") is None
    assert marked(account, "run-2").take("another")
    assert marked(account, "run-2", "2026-W47").take("verdict")


def test_what_failed_may_be_tried_at_once_by_anybody(account: Account) -> None:
    taken = marked(account).take("verdict")
    assert taken
    marked(account).note_failed(taken, "MessageRejected")
    assert mark(account)["why"] == "MessageRejected"
    assert marked(account, "run-2").take("verdict")


def test_two_that_find_a_visibility_over_do_not_both_take_it(account: Account) -> None:
    """The other one takes it between this one's look and its write."""
    assert marked(account).take("verdict")
    account.later(seconds=CLAIM_SECONDS)
    raced: list[bool] = []

    def race(**_: Any) -> None:
        if not raced:
            raced.append(True)
            assert marked(account, "run-3").take("verdict")

    account.clients.s3.meta.events.register("after-call.s3.GetObject", race)
    with pytest.raises(HeldByAnother):
        marked(account, "run-2").take("verdict")
    assert mark(account)["owner"] == "run-3"


def test_a_late_note_does_not_undo_what_another_run_noted(account: Account) -> None:
    slow = marked(account).take("verdict")
    account.later(seconds=CLAIM_SECONDS)
    quick = marked(account, "run-2").take("verdict")
    assert slow
    assert quick
    marked(account, "run-2").note_sent(quick)
    marked(account).note_failed(slow, "too late")
    assert mark(account)["state"] == "sent"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"\xff", b'"taken"', b'{"state": "held"}', b"[" * 100_000]
)
def test_a_mark_that_is_none_of_ours_stops_the_channel(account: Account, body: bytes) -> None:
    key = f"report/week={WEEK}/delivered/verdict.json"
    account.clients.s3.put_object(Bucket="cases", Key=key, Body=body)
    assert marked(account).take("verdict") is None


@pytest.mark.parametrize("until", [None, 5, "soon", "2026-11-09T06:00:00"])
def test_a_visibility_without_a_readable_end_has_ended(account: Account, until: object) -> None:
    key = f"report/week={WEEK}/delivered/verdict.json"
    body = json.dumps({"state": "taken", "owner": "run-0", "until": until})
    account.clients.s3.put_object(Bucket="cases", Key=key, Body=body.encode())
    assert marked(account).take("verdict")


def test_a_mark_says_how_long_it_holds(account: Account) -> None:
    taken = marked(account).take("verdict")
    assert taken
    assert mark(account)["until"] == (account.now + timedelta(seconds=CLAIM_SECONDS)).isoformat()
