"""With too little time or no answer from AWS, a case waits for the next run and the others
continue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    FactsUnavailable,
    OwnerUnavailable,
    RetryLater,
)
from mendq.cases.open_case_index import UNFILED_TRANSITION_PARTITION
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.follow_up.follow_up import LONGEST_SECONDS_PER_CASE, FollowUpResult, follow_up
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from mendq.model.case import Case
from mendq.model.state import State
from tests.account.account import Account
from tests.account.calm_metrics import CalmMetrics
from tests.account.faults import Killed, calls_of, come_between
from tests.heal.operators import (
    OWNERS,
    fail_calls,
    list_states,
    load_newest_case,
    make_context,
    make_failing_queue,
    move_case,
)

NAMES = ("a.fifo", "b.fifo", "c.fifo")
SYMPTOM = "visibility_timeout_too_short"


def make_error_answer(code: str, status: int) -> Callable[[], Any]:
    error = {"Error": {"Code": code, "Message": "no"}}
    return lambda: (SimpleNamespace(status_code=status), error)


def make_raiser(error: Exception) -> Callable[[], Any]:
    def fail_at_once() -> Any:
        raise error

    return fail_at_once


# Ways in which AWS gives no answer, or an error that explains nothing.
SILENCE: dict[str, Callable[[], Any]] = {
    "slow": make_raiser(ReadTimeoutError(endpoint_url="aws")),
    "unreachable": make_raiser(ConnectTimeoutError(endpoint_url="aws")),
    "broken": make_error_answer("InternalError", 500),
    "busy": make_error_answer("ServiceUnavailable", 503),
    "throttled": make_error_answer("ThrottlingException", 400),
    "forbidden": make_error_answer("AccessDenied", 403),
}


@contextmanager
def fail_calls_of(client: Any, call: str, how: str, about: str = "") -> Iterator[list[str]]:
    """Let calls fail in one way of SILENCE if their request contains `about`. Yield these calls."""
    unanswered: list[str] = []

    def answer(params: dict[str, Any], **_: Any) -> Any:
        if about not in f"{params['url_path']} {params['body']}":
            return None
        unanswered.append(call)
        return SILENCE[how]()

    event = f"before-call.{call}"
    client.meta.events.register_first(event, answer)
    yield unanswered
    client.meta.events.unregister(event, answer)


def run_follow_up(account: Account, seconds: Callable[[], float] = lambda: 60) -> FollowUpResult:
    return follow_up(make_context(account), OWNERS, seconds)


def make_escalated_cases(account: Account) -> list[Case]:
    """Make three escalated cases whose queues were deleted, so that follow_up closes them."""
    cases = []
    for name in NAMES:
        queue = account.queue(name, VisibilityTimeout="30")
        fail_calls(account, queue, name)
        move_case(account, load_newest_case(account), "escalated")
        cases.append(load_newest_case(account))
        account.later(seconds=1)
        account.clients.sqs.delete_queue(QueueUrl=account.url(queue))
    account.later(hours=2)
    return cases


def count_closed_cases(account: Account) -> int:
    return list_states(account).count("closed")


def read_case_items(account: Account) -> dict[tuple[str, str], Any]:
    items = account.case_store_items()
    return {key: item for key, item in items.items() if key[1].startswith("case#")}


# What the timer of a Lambda function returns: enough time, or too little for one more case.
ENOUGH_SECONDS = 60.0
TOO_FEW_SECONDS = LONGEST_SECONDS_PER_CASE - 1


def make_timer(*, reads_with_enough_time: int) -> Callable[[], float]:
    """Return a timer that shows enough time so many times, and then too little."""
    reads = iter([ENOUGH_SECONDS] * reads_with_enough_time)
    return lambda: next(reads, TOO_FEW_SECONDS)


def test_follow_up_with_too_little_time_leaves_every_case_for_the_next_run(
    account: Account,
) -> None:
    make_escalated_cases(account)
    before = account.case_store_items()
    result = run_follow_up(account, make_timer(reads_with_enough_time=0))
    assert (result.moved_cases, result.errors) == ([], {})
    assert len(result.open_cases) == 3, "the alarms still hear how many are open"
    assert account.case_store_items() == before
    result = run_follow_up(account)
    assert (len(result.moved_cases), result.errors) == (3, {})
    assert count_closed_cases(account) == 3


def test_follow_up_that_runs_out_of_time_leaves_the_remaining_cases_unchanged(
    account: Account,
) -> None:
    """No case is begun that there may be no time to finish."""
    make_escalated_cases(account)
    before = read_case_items(account)
    result = run_follow_up(account, make_timer(reads_with_enough_time=2))
    assert (len(result.moved_cases), result.errors) == (1, {})
    changed = [key for key, item in read_case_items(account).items() if item != before[key]]
    assert len(changed) == 1
    assert run_follow_up(account).errors == {}
    assert count_closed_cases(account) == 3


@pytest.mark.parametrize("how", SILENCE)
def test_follow_up_closes_the_other_cases_if_one_cannot_be_read_and_that_one_later(
    account: Account, how: str
) -> None:
    first, *_ = make_escalated_cases(account)
    look = "dynamodb.TransactGetItems"
    with fail_calls_of(account.clients.dynamodb, look, how, about=first.queue_arn):
        result = run_follow_up(account)
    assert [*result.errors] == [first.case_id]
    assert {case.queue_arn for case in result.moved_cases}.isdisjoint({first.queue_arn})
    assert count_closed_cases(account) == 2
    account.later(minutes=6)
    assert run_follow_up(account).errors == {}
    assert count_closed_cases(account) == 3


def test_follow_up_retries_a_case_that_it_can_neither_read_nor_postpone(
    account: Account,
) -> None:
    first, *_ = make_escalated_cases(account)
    before = read_case_items(account)
    dynamodb = account.clients.dynamodb
    with (
        fail_calls_of(dynamodb, "dynamodb.TransactGetItems", "slow", about=first.queue_arn),
        fail_calls_of(dynamodb, "dynamodb.UpdateItem", "slow", about=first.queue_arn),
    ):
        result = run_follow_up(account)
    assert [*result.errors] == [first.case_id]
    key = first.queue_arn, f"case#{SYMPTOM}"
    assert read_case_items(account)[key] == before[key]
    assert count_closed_cases(account) == 2
    assert run_follow_up(account).errors == {}
    assert count_closed_cases(account) == 3, "the next minute finds it"


@pytest.mark.parametrize("how", SILENCE)
def test_follow_up_raises_case_store_unavailable_if_the_open_cases_cannot_be_listed(
    account: Account, how: str
) -> None:
    make_escalated_cases(account)
    before = account.case_store_items()
    with (
        fail_calls_of(account.clients.dynamodb, "dynamodb.Query", how),
        pytest.raises(CaseStoreUnavailable),
    ):
        run_follow_up(account)
    assert account.case_store_items() == before
    assert count_closed_cases(account) == 0


def make_two_fixed_queues(account: Account) -> list[str]:
    """Make two fixed queues whose fixes can be verified now."""
    queues = []
    for name in NAMES[:2]:
        queue = account.queue(name, VisibilityTimeout="30")
        fail_calls(account, queue, name)
        queues.append(queue)
    account.later(minutes=20)
    CalmMetrics(account.clients, delete_count=7)
    return queues


CALLS = {
    "tags": ("sqs", "sqs.ListQueueTags"),
    "attributes": ("sqs", "sqs.GetQueueAttributes"),
    "deletes": ("cloudwatch", "cloudwatch.GetMetricData"),
}


@pytest.mark.parametrize("how", SILENCE)
@pytest.mark.parametrize("what", CALLS)
def test_follow_up_does_not_verify_a_fix_whose_queue_or_metrics_cannot_be_read(
    account: Account, what: str, how: str
) -> None:
    """The case waits for an answer, and the other queue's fix is verified meanwhile."""
    dark, seen = make_two_fixed_queues(account)
    service, call = CALLS[what]
    about = dark.rpartition(":")[2]
    with fail_calls_of(getattr(account.clients, service), call, how, about):
        result = run_follow_up(account)
    assert result.errors == {}
    verified = {case.queue_arn for case in result.moved_cases if case.state is State.VERIFIED}
    assert verified == {seen}
    account.later(hours=1)
    assert dark in {case.queue_arn for case in run_follow_up(account).moved_cases}
    assert account.visibility(dark) == 45


def make_unfiled_cases(account: Account) -> list[str]:
    """Make two cases whose transitions are missing in the bucket, because writes failed."""
    queues = []
    with fail_calls_of(account.clients.s3, "s3.PutObject", "broken"):
        for name in NAMES[:2]:
            queue = account.queue(name, VisibilityTimeout="30")
            fail_calls(account, queue, name)
            queues.append(queue)
    account.later(minutes=3)
    assert account.transitions() == []
    return queues


def test_follow_up_with_too_little_time_files_transitions_in_the_next_run(account: Account) -> None:
    make_unfiled_cases(account)
    before = account.case_store_items()
    assert run_follow_up(account, make_timer(reads_with_enough_time=1)).errors == {}
    assert account.transitions() == []
    assert account.case_store_items() == before
    assert run_follow_up(account).errors == {}
    assert list_states(account) == ["applied", "applied"]


@pytest.mark.parametrize("how", SILENCE)
def test_follow_up_tries_a_failing_case_bucket_once_and_files_transitions_later(
    account: Account, how: str
) -> None:
    make_unfiled_cases(account)
    with fail_calls_of(account.clients.s3, "s3.PutObject", how) as unanswered:
        result = run_follow_up(account)
    assert [error[:6] for error in result.errors] == ["filing"]
    assert len(unanswered) == 1
    account.later(minutes=6)
    assert run_follow_up(account).errors == {}
    assert list_states(account) == ["applied", "applied"]


@pytest.mark.parametrize("unfiled", NAMES[:2])
def test_follow_up_files_the_other_transitions_if_the_bucket_refuses_one_and_that_one_later(
    account: Account, unfiled: str
) -> None:
    """The bucket refuses one key every time, first or last in the order."""
    make_unfiled_cases(account)
    items = read_case_items(account).items()
    (case_id,) = (item["case_id"]["S"] for (queue, _), item in items if queue.endswith(unfiled))
    with fail_calls_of(account.clients.s3, "s3.PutObject", "forbidden", about=case_id):
        for _ in range(2):
            assert [error[:6] for error in run_follow_up(account).errors] in ([], ["filing"])
            account.later(minutes=1)
    (filed,) = account.transitions()
    assert unfiled not in filed["queue_arn"]
    account.later(minutes=6)
    assert run_follow_up(account).errors == {}
    assert list_states(account) == ["applied", "applied"]


def test_follow_up_closes_cases_and_reports_an_error_if_unfiled_transitions_cannot_be_listed(
    account: Account,
) -> None:
    make_escalated_cases(account)
    with fail_calls_of(
        account.clients.dynamodb, "dynamodb.Query", "slow", about=UNFILED_TRANSITION_PARTITION
    ):
        result = run_follow_up(account)
    assert [*result.errors] == ["filing"]
    assert isinstance(result.errors["filing"], CaseStoreUnavailable)
    assert count_closed_cases(account) == 3


def test_follow_up_does_not_change_a_case_that_another_run_has_just_claimed(
    account: Account,
) -> None:
    """The case was due when it was listed. When follow_up reads it, heal is about to write."""
    queue = make_failing_queue(account, "propose")
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=10)
    assert follow_up_and_list_states(account) == ["proposed", "approved"]
    account.later(minutes=10)
    request = make_owner_request(load_newest_case(account))

    def heal_claims_it() -> None:
        die_after(
            account,
            account.clients.dynamodb,
            "dynamodb.TransactWriteItems",
            lambda: continue_case(request, account.run()),
        )

    come_between(account, "dynamodb.TransactGetItems", heal_claims_it)
    result = run_follow_up(account)
    assert (result.moved_cases, result.cases_with_called_owner, result.errors) == ([], [], {})
    assert "claim_owner" in account.attribute_item(queue), "heal still holds it"
    assert "intent" in account.attribute_item(queue)
    assert account.visibility(queue) == 30


def follow_up_and_list_states(account: Account) -> list[str]:
    """Run a minute of follow_up while heal cannot be called. Return the states."""
    result = run_follow_up(account)
    assert {type(error) for error in result.errors.values()} <= {OwnerUnavailable}
    return list_states(account)


def die_after(account: Account, client: Any, call: str, act: Callable[[], object]) -> None:
    """Kill the process once after such a call."""

    def kill(**_: Any) -> None:
        raise Killed

    events = client.meta.events
    events.register(f"after-call.{call}", kill)
    with pytest.raises(Killed):
        act()
    events.unregister(f"after-call.{call}", kill)


def make_case_of_dead_run(account: Account) -> str:
    """Make a queue to which a run wrote a fix and then died before it recorded the write."""
    queue = make_failing_queue(account, "propose")
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=6)
    request = make_owner_request(load_newest_case(account))
    die_after(
        account,
        account.clients.sqs_for_writing,
        "sqs.SetQueueAttributes",
        lambda: continue_case(request, account.run()),
    )
    assert account.visibility(queue) == 45
    assert list_states(account) == ["proposed", "approved"]
    account.later(minutes=6)
    return queue


def read_claims(account: Account) -> dict[tuple[str, str], Any]:
    items = account.case_store_items()
    return {key: item for key, item in items.items() if "claim_owner" in item}


@pytest.mark.parametrize("how", [how for how in SILENCE if how != "forbidden"])
def test_write_of_a_run_that_died_is_not_recorded_until_sqs_answers(
    account: Account, how: str
) -> None:
    """Only SQS can say whether the dead run wrote. No Lambda function may guess it."""
    make_case_of_dead_run(account)
    before = read_claims(account)
    items = read_case_items(account)
    case = load_newest_case(account)
    calls = calls_of(account)
    bodies = account.late_deletes(case.queue_arn, "7", "8", "9")
    with fail_calls_of(account.clients.sqs, "sqs.GetQueueAttributes", how):
        healed = account.heal(bodies)
        with pytest.raises(FactsUnavailable):
            continue_case(make_owner_request(case), account.run())
        assert read_case_items(account) == items
        result = run_follow_up(account)
    assert {type(error) for error in healed.error_by_message_id.values()} == {FactsUnavailable}
    assert [*map(type, result.errors.values())] == [FactsUnavailable]
    assert read_claims(account).keys() == before.keys()
    assert "SetQueueAttributes" not in calls
    assert list_states(account) == ["proposed", "approved"]
    account.later(minutes=6)
    assert run_follow_up(account).errors == {}
    assert list_states(account) == ["proposed", "approved", "applied"]
    assert read_claims(account) == {}


def test_write_of_a_run_that_died_is_recorded_only_by_a_run_with_enough_time(
    account: Account,
) -> None:
    queue = make_case_of_dead_run(account)
    before = account.case_store_items()
    calls = calls_of(account)
    bodies = account.late_deletes(queue, "7", "8", "9")
    healed = account.heal(bodies, remaining_seconds=10)
    assert {type(error) for error in healed.error_by_message_id.values()} == {RetryLater}
    assert run_follow_up(account, make_timer(reads_with_enough_time=0)).errors == {}
    assert account.case_store_items() == before
    assert "GetQueueAttributes" not in calls
    assert account.heal(bodies).error_by_message_id == {}
    assert list_states(account) == ["proposed", "approved", "applied"]
    assert account.visibility(queue) == 45


def test_claim_of_a_run_that_died_on_an_unknown_symptom_waits_for_a_version_that_knows_it(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer version of Mendq opened the case, and an older one is deployed again."""
    make_case_of_dead_run(account)
    before = read_claims(account)
    known = SYMPTOM_BY_NAME[SYMPTOM]
    monkeypatch.delitem(SYMPTOM_BY_NAME, SYMPTOM)
    result = run_follow_up(account)
    assert [case.symptom for case in result.cases_of_unknown_symptoms] == [SYMPTOM]
    assert read_claims(account).keys() == before.keys()
    monkeypatch.setitem(SYMPTOM_BY_NAME, SYMPTOM, known)
    account.later(hours=1.1)
    assert run_follow_up(account).errors == {}
    assert list_states(account) == ["proposed", "approved", "applied"]


def rewrite_intent(account: Account, queue: str, **over: Any) -> None:
    """Replace fields of the intent that the dead run stored."""
    key = {"pk": {"S": queue}, "sk": {"S": "attribute#VisibilityTimeout"}}
    intent = json.loads(account.attribute_item(queue)["intent"]["S"])
    account.clients.dynamodb.update_item(
        TableName=account.settings.case_table,
        Key=key,
        UpdateExpression="SET intent = :intent",
        ExpressionAttributeValues={":intent": {"S": json.dumps({**intent, **over})}},
    )


def test_claim_without_a_step_is_refused_as_unreadable_and_writes_nothing(account: Account) -> None:
    """A person with access to the table can write such a claim."""
    queue = make_case_of_dead_run(account)
    rewrite_intent(account, queue, steps=[])
    healed = account.heal(account.late_deletes(queue, "7", "8", "9"))
    (outcome,) = healed.outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "case_store_unreadable"
    assert [*map(type, run_follow_up(account).errors.values())] == [CaseStoreUnreadable]
    assert account.visibility(queue) == 45
    assert list_states(account) == ["proposed", "approved"]


def test_claim_for_an_unknown_symptom_is_kept_and_nothing_is_written(
    account: Account,
) -> None:
    queue = make_case_of_dead_run(account)
    rewrite_intent(account, queue, symptom="from_a_newer_mendq")
    before = read_claims(account)
    calls = calls_of(account)
    healed = account.heal(account.late_deletes(queue, "7", "8", "9"))
    assert {type(error) for error in healed.error_by_message_id.values()} == {CaseStoreUnavailable}
    (error,) = run_follow_up(account).errors.values()
    assert "no symptom of ours" in str(error)
    assert read_claims(account).keys() == before.keys()
    assert "SetQueueAttributes" not in calls


def test_claim_for_another_symptom_of_the_queue_is_recorded_as_that_symptoms_case(
    account: Account,
) -> None:
    """Two symptoms have the same attribute. The next run for the queue records the write."""
    queue = make_case_of_dead_run(account)
    other = "visibility_timeout_default"
    rewrite_intent(account, queue, symptom=other, case_id=f"{other}-0123456789ab")
    healed = account.heal(account.late_deletes(queue, "7", "8", "9"))
    assert healed.error_by_message_id == {}
    settled = [transition for transition in account.transitions() if transition["symptom"] == other]
    assert [transition["to"] for transition in settled] == ["applied"]
    assert account.visibility(queue) == 45, "nothing is written on top"
    assert "intent" not in account.attribute_item(queue)


@pytest.mark.parametrize("what", ["tags", "attributes"])
def test_value_that_a_person_set_is_recorded_as_overridden_and_never_as_a_verified_fix(
    account: Account, what: str
) -> None:
    """Messages are deleted again because of the person's change, while SQS does not answer."""
    queue, _ = make_two_fixed_queues(account)
    account.set_visibility(queue, 600)
    service, call = CALLS[what]
    with fail_calls_of(getattr(account.clients, service), call, "slow", queue.rpartition(":")[2]):
        run_follow_up(account)
    about = [
        transition["to"] for transition in account.transitions() if transition["queue_arn"] == queue
    ]
    assert "verified" not in about
    account.later(hours=2)
    run_follow_up(account)
    about = [
        transition["to"] for transition in account.transitions() if transition["queue_arn"] == queue
    ]
    assert about[-1] == "overridden"
    assert account.visibility(queue) == 600
