"""Test the claim on a DLQ during a redrive by hand, and how `mendq show` prints a redrive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from msgspec import structs

from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable
from mendq.cli.exit_codes import CommandError
from mendq.cli.redrive import hold
from mendq.cli.redrive.hold import hold_dlq
from mendq.redrive.progress import RedriveProgress, RedriveQueues, Stage, StageProgress
from mendq.redrive.store import RedriveStore, make_redrive_key
from tests.cli.builders import Operator, change_cases
from tests.cli.redrive.builders import OrdersQueues
from tests.redrive.toy import DEAD, NOW, SOURCE

STEP = {"attribute": "Dlq", "before": "held", "after": SOURCE}


@pytest.fixture
def quick_queues(queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch) -> OrdersQueues:
    monkeypatch.setattr(hold, "CLAIM_RENEWAL_SECONDS", 0.01)
    return queues


def _hold(queues: OrdersQueues, faults: list[str], stop: Event | None = None) -> Any:
    return hold_dlq(queues.operator.account, queues.dlq, stop or Event(), faults)


def test_redrive_by_hand_claims_the_dlq_while_it_runs_and_releases_it_afterwards(
    quick_queues: OrdersQueues,
) -> None:
    with _hold(quick_queues, []):
        assert not quick_queues.claim_dlq()
    assert quick_queues.claim_dlq()


def test_redrive_by_hand_that_fails_releases_the_dlq(quick_queues: OrdersQueues) -> None:
    with pytest.raises(CommandError, match="no"), _hold(quick_queues, []):
        raise CommandError("no")
    assert quick_queues.claim_dlq()


def test_redrive_by_hand_from_a_queue_without_a_dlq_claims_nothing(
    quick_queues: OrdersQueues,
) -> None:
    before = quick_queues.account.case_store_items()
    faults = list[str]()
    with hold_dlq(quick_queues.operator.account, "", Event(), faults):
        assert quick_queues.account.case_store_items() == before
    assert faults == []


def test_redrive_by_hand_is_refused_during_a_redrive_by_mendq_with_the_rollback_command(
    quick_queues: OrdersQueues,
) -> None:
    quick_queues.set_redrive_stage(Stage.RAMP)
    with pytest.raises(CommandError, match="mendq rollback case-7"), _hold(quick_queues, []):
        pytest.fail("it goes first")


@pytest.mark.parametrize("stage", [Stage.DONE, Stage.HALTED])
def test_redrive_by_hand_is_possible_after_a_redrive_by_mendq_ended(
    quick_queues: OrdersQueues, stage: Stage
) -> None:
    quick_queues.set_redrive_stage(stage)
    with _hold(quick_queues, []):
        assert not quick_queues.claim_dlq()


def test_redrive_by_hand_is_refused_if_the_stored_redrive_cannot_be_read(
    quick_queues: OrdersQueues,
) -> None:
    quick_queues.set_redrive_stage(Stage.DONE)
    quick_queues.redrive_store.client.update_item(
        TableName="case_store",
        Key=make_redrive_key(quick_queues.dlq),
        UpdateExpression="SET document = :document",
        ExpressionAttributeValues={":document": {"S": "[]"}},
    )
    with pytest.raises(CaseStoreUnreadable), _hold(quick_queues, []):
        pytest.fail("who knows what it is")
    assert quick_queues.claim_dlq(), "the refusal leaves no claim behind"


@pytest.mark.parametrize(
    ("seconds", "direction"), [(31, "31 s ahead of"), (-31, "31 s behind"), (3_600, "3,600 s")]
)
def test_redrive_by_hand_with_a_wrong_clock_is_refused_before_the_claim(
    quick_queues: OrdersQueues, seconds: int, direction: str
) -> None:
    items = quick_queues.account.case_store_items()
    account = structs.replace(quick_queues.operator.account, clock_ahead=timedelta(seconds=seconds))
    with (
        pytest.raises(CommandError, match=direction) as refusal,
        hold_dlq(account, quick_queues.dlq, Event(), []),
    ):
        pytest.fail("it goes first")
    assert refusal.value.error_code == "clock_wrong"
    assert quick_queues.account.case_store_items() == items


@pytest.mark.parametrize("seconds", [30, -30, None])
def test_redrive_by_hand_claims_the_dlq_if_the_clock_is_right_within_30_seconds_or_not_known(
    quick_queues: OrdersQueues, seconds: int | None
) -> None:
    clock_ahead = None if seconds is None else timedelta(seconds=seconds)
    account = structs.replace(quick_queues.operator.account, clock_ahead=clock_ahead)
    with hold_dlq(account, quick_queues.dlq, Event(), []):
        assert not quick_queues.claim_dlq()


def _fail_claims(
    monkeypatch: pytest.MonkeyPatch, error: Exception, times: int, answered: Event
) -> None:
    """Let the claims after the first fail `times` times."""
    claim = RedriveStore.claim
    calls: list[int] = []

    def fail(redrives: RedriveStore, *arguments: Any) -> Any:
        calls.append(1)
        if 1 < len(calls) <= times + 1:
            raise error
        if len(calls) > times + 1:
            answered.set()
        return claim(redrives, *arguments)

    monkeypatch.setattr(RedriveStore, "claim", fail)


@pytest.mark.parametrize(
    "error",
    [
        error_type("silent")
        for error_type in (CaseStoreUnavailable, CaseStoreUnreadable, CommandError)
    ],
    ids=lambda error: type(error).__name__,
)
def test_redrive_by_hand_is_stopped_if_its_claim_on_the_dlq_cannot_be_renewed(
    quick_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(hold, "CLAIM_SECONDS", 0.05)
    _fail_claims(monkeypatch, error, 1_000_000, Event())
    faults: list[str] = []
    stop = Event()
    with _hold(quick_queues, faults, stop):
        assert stop.wait(10)
    assert [fault.rpartition(" ")[2] for fault in faults] == ["silent"]


def test_show_of_a_redrive_case_has_the_stage_counts_and_rate_of_the_redrive(
    operator: Operator,
) -> None:
    case_id = operator.open_applied_case("orders-dlq.fifo")
    messages = f"{DEAD}.fifo"
    client = operator.aws.clients.dynamodb
    change_cases(operator.aws, steps=[STEP])
    assert operator.run_json("show", case_id)["redrive"] is None
    redrives = RedriveStore(client, "case_store")
    assert redrives.claim(messages, "me", datetime.now(UTC))
    queues = RedriveQueues(messages, SOURCE)
    before = redrives.save(RedriveProgress.start("case-7", queues, size=5, now=NOW), "me")
    assert operator.run_json("show", case_id)["redrive"] is None, "it is another's"
    current = StageProgress(NOW, 80, 2, 80, soak_ends_at=NOW + timedelta(minutes=3))
    over = {"stage": Stage.SOAK, "current": current, "moved": 105, "returned": 3}
    over |= {"case_id": case_id, "quarantined": 2, "rate_per_second": 2.5, "because": "it soaks"}
    redrives.save(structs.replace(before, **over), "me")
    assert operator.run_json("show", case_id)["redrive"]["moved"] == 105
    output = operator.run("show", case_id).output
    for says in (
        "Redrive\n",
        "orders-dlq.fifo -> orders\n",
        "soak since 2026-11-21 12:00 UTC",
        "until 2026-11-21 12:03 UTC",
        "105 messages sent back in 3 stages, 80 of at most 80 in this",
        "3, 2 are in quarantine",
        "2.50 a second",
        "because    it soaks",
        "planned because",
        "Different now",  # the queue's attributes differ from the case's facts
    ):
        assert says in output
    operator.aws.set_visibility(messages, 30)
    assert "Different now" not in operator.run("show", case_id).output
