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
def test_redrive_by_hand_claims_the_dlq_if_the_clock_is_within_30_s_or_unknown(
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


@pytest.mark.parametrize("error", [RuntimeError("proxy"), MemoryError("full")], ids=repr)
def test_redrive_by_hand_keeps_its_claim_after_an_error_that_boto3_does_not_define(
    quick_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    answered = Event()
    _fail_claims(monkeypatch, error, 3, answered)
    faults: list[str] = []
    with _hold(quick_queues, faults) as dlq_hold:
        assert answered.wait(10), "the thread tries again"
        assert dlq_hold.may_send_batch()
    assert faults == []


def test_redrive_by_hand_is_stopped_with_the_reason_if_an_error_outside_boto3_lasts(
    quick_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold, "CLAIM_SECONDS", 0.05)
    _fail_claims(monkeypatch, RuntimeError("the proxy broke"), 1_000_000, Event())
    faults: list[str] = []
    stop = Event()
    with _hold(quick_queues, faults, stop) as dlq_hold:
        assert stop.wait(10)
        assert not dlq_hold.may_send_batch()
    (fault,) = faults
    assert fault.endswith("the proxy broke")


def test_redrive_by_hand_that_cannot_release_its_claim_raises_no_error(
    quick_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator must still hear what was moved."""

    def fail(*_: object) -> None:
        raise RuntimeError("the proxy broke")

    with _hold(quick_queues, []):
        monkeypatch.setattr(RedriveStore, "release", fail)
    assert not quick_queues.claim_dlq(), "it ends after 90 seconds"


class _SleepingMachine:
    """A clock that counts sleep, as the claim reads it. The renewal thread sleeps too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(hold, "read_sleep_counting_clock", lambda: self.now)
        monkeypatch.setattr(hold, "CLAIM_RENEWAL_SECONDS", 30)


def _claim_dlq_for_another_run(queues: OrdersQueues) -> None:
    """Let the claim of the command be over, and another run claim the DLQ."""
    assert queues.claim_dlq(later=91)


def test_redrive_by_hand_sends_no_batch_after_the_machine_slept_and_another_run_has_the_dlq(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _SleepingMachine(monkeypatch)
    faults: list[str] = []
    stop = Event()
    with _hold(queues, faults, stop) as dlq_hold:
        assert dlq_hold.may_send_batch()
        machine.now += 91
        _claim_dlq_for_another_run(queues)
        assert not dlq_hold.may_send_batch()
        assert stop.is_set()
    (fault,) = faults
    assert "another run is at work" in fault


def test_redrive_by_hand_renews_its_claim_before_a_batch_after_the_machine_slept(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _SleepingMachine(monkeypatch)
    faults: list[str] = []
    with _hold(queues, faults) as dlq_hold:
        machine.now += 91
        assert dlq_hold.may_send_batch()
        assert not queues.claim_dlq()
    assert faults == []


def test_redrive_by_hand_does_not_renew_a_fresh_claim_before_a_batch(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _SleepingMachine(monkeypatch)
    with _hold(queues, []) as dlq_hold:
        items = queues.account.case_store_items()
        machine.now += 59
        assert dlq_hold.may_send_batch()
        assert queues.account.case_store_items() == items


def test_redrive_by_hand_stops_if_the_machine_sleeps_during_each_renewal(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _SleepingMachine(monkeypatch)
    claim = RedriveStore.claim

    def claim_and_sleep(redrives: RedriveStore, *arguments: Any) -> Any:
        redrive_claim = claim(redrives, *arguments)
        machine.now += 61
        return redrive_claim

    faults: list[str] = []
    with _hold(queues, faults) as dlq_hold:
        monkeypatch.setattr(RedriveStore, "claim", claim_and_sleep)
        machine.now += 61
        assert not dlq_hold.may_send_batch()
    (fault,) = faults
    assert "could not be renewed in time" in fault


def test_redrive_moves_only_its_first_batch_if_another_run_claims_the_dlq_while_the_machine_sleeps(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _SleepingMachine(monkeypatch)
    for number in range(25):
        queues.write({"n": number})
    sqs = queues.operator.account.clients.sqs
    sent_counts = list[int]()

    def sleep_after_first_batch(parsed: dict[str, Any], **_: Any) -> None:
        sent_counts.append(len(parsed["Successful"]))
        if len(sent_counts) == 1:
            machine.now += 91
            _claim_dlq_for_another_run(queues)

    sqs.meta.events.register("after-call.sqs.SendMessageBatch", sleep_after_first_batch)
    output = queues.read_output("redrive", "orders", "--all", "--yes", code=1)
    assert "another run is at work" in output
    assert sent_counts == [10]
    assert len(queues.read_messages(queues.messages)) == 15


@pytest.mark.parametrize(("seconds", "direction"), [(31, "31 s ahead of"), (-3_600, "3,600 s beh")])
def test_redrive_by_hand_stops_before_a_renewal_if_the_clock_became_wrong(
    quick_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch, seconds: int, direction: str
) -> None:
    faults: list[str] = []
    stop = Event()

    def read_service_time(*_: object) -> datetime:
        return datetime.now(UTC) - timedelta(seconds=seconds)

    with _hold(quick_queues, faults, stop) as dlq_hold:
        monkeypatch.setattr(RedriveStore, "read_service_time", read_service_time)
        items = quick_queues.account.case_store_items()
        assert stop.wait(10)
        assert not dlq_hold.may_send_batch()
        assert quick_queues.account.case_store_items() == items, "nothing was written"
    (fault,) = faults
    assert direction in fault
    assert "The claim was not renewed" in fault


@pytest.mark.parametrize("seconds", [30, -29, None])
def test_redrive_by_hand_renews_if_the_clock_is_right_within_30_seconds_or_not_known(
    quick_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch, seconds: int | None
) -> None:
    def read_service_time(*_: object) -> datetime | None:
        return None if seconds is None else datetime.now(UTC) - timedelta(seconds=seconds - 1)

    monkeypatch.setattr(RedriveStore, "read_service_time", read_service_time)
    answered = Event()
    _fail_claims(monkeypatch, CaseStoreUnavailable("never"), 0, answered)
    faults: list[str] = []
    with _hold(quick_queues, faults) as dlq_hold:
        assert answered.wait(10)
        assert dlq_hold.may_send_batch()
    assert faults == []


@pytest.mark.parametrize("date_header", ["Sun, 29 Nov 2026 12:00:00 GMT", None])
def test_case_store_time_is_the_date_header_of_a_read_or_unknown_without_one(
    queues: OrdersQueues, date_header: str | None
) -> None:
    def set_date(parsed: dict[str, Any], **_: Any) -> None:
        headers = {} if date_header is None else {"date": date_header}
        parsed["ResponseMetadata"]["HTTPHeaders"] = headers

    store = queues.redrive_store
    store.client.meta.events.register("after-call.dynamodb.GetItem", set_date)
    expected = date_header and datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
    assert store.read_service_time(queues.dlq) == expected


def test_show_of_a_redrive_case_has_no_redrive_before_it_began_and_none_of_another_case(
    operator: Operator,
) -> None:
    case_id = operator.open_applied_case("orders-dlq.fifo")
    messages = f"{DEAD}.fifo"
    change_cases(operator.aws, steps=[STEP])
    assert operator.run_json("show", case_id)["redrive"] is None
    redrives = RedriveStore(operator.aws.clients.dynamodb, "case_store")
    assert redrives.claim(messages, "me", datetime.now(UTC))
    queues = RedriveQueues(messages, SOURCE)
    redrives.save(RedriveProgress.start("case-7", queues, size=5, now=NOW), "me")
    assert operator.run_json("show", case_id)["redrive"] is None


def test_show_of_a_redrive_case_has_the_stage_counts_and_rate_of_the_redrive(
    operator: Operator,
) -> None:
    case_id = operator.open_applied_case("orders-dlq.fifo")
    messages = f"{DEAD}.fifo"
    client = operator.aws.clients.dynamodb
    change_cases(operator.aws, steps=[STEP])
    redrives = RedriveStore(client, "case_store")
    assert redrives.claim(messages, "me", datetime.now(UTC))
    queues = RedriveQueues(messages, SOURCE)
    before = redrives.save(RedriveProgress.start(case_id, queues, size=5, now=NOW), "me")
    current = StageProgress(NOW, 80, 2, 80, soak_ends_at=NOW + timedelta(minutes=3))
    over = {"stage": Stage.SOAK, "current": current, "moved": 105, "returned": 3}
    over |= {"quarantined": 2, "rate_per_second": 2.5, "because": "it soaks"}
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
