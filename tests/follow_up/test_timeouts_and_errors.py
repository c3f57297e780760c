"""With too little time or no answer from AWS, a case waits for the next run; others continue."""

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


def answer_error(code: str, status: int) -> Callable[[], Any]:
    error = {"Error": {"Code": code, "Message": "no"}}
    return lambda: (SimpleNamespace(status_code=status), error)


def raising(error: Exception) -> Callable[[], Any]:
    def fail_at_once() -> Any:
        raise error

    return fail_at_once


# Ways in which AWS gives no answer, or an error that explains nothing.
SILENCE: dict[str, Callable[[], Any]] = {
    "slow": raising(ReadTimeoutError(endpoint_url="aws")),
    "unreachable": raising(ConnectTimeoutError(endpoint_url="aws")),
    "broken": answer_error("InternalError", 500),
    "busy": answer_error("ServiceUnavailable", 503),
    "throttled": answer_error("ThrottlingException", 400),
    "forbidden": answer_error("AccessDenied", 403),
}


@contextmanager
def silent(client: Any, call: str, how: str, about: str = "") -> Iterator[list[str]]:
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


def follow(account: Account, seconds: Callable[[], float] = lambda: 60) -> FollowUpResult:
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


def cases_in_store(account: Account) -> dict[tuple[str, str], Any]:
    items = account.case_store_items()
    return {key: item for key, item in items.items() if key[1].startswith("case#")}


def test_follow_up_with_too_little_time_leaves_every_case_for_the_next_run(
    account: Account,
) -> None:
    make_escalated_cases(account)
    before = account.case_store_items()
    followed = follow(account, lambda: LONGEST_SECONDS_PER_CASE - 1)
    assert (followed.moved_cases, followed.errors) == ([], {})
    assert len(followed.open_cases) == 3, "the alarms still hear how many are open"
    assert account.case_store_items() == before
    followed = follow(account)
    assert (len(followed.moved_cases), followed.errors) == (3, {})
    assert count_closed_cases(account) == 3


def test_follow_up_that_runs_out_of_time_leaves_the_remaining_cases_unchanged(
    account: Account,
) -> None:
    """No case is begun that there may be no time to finish."""
    make_escalated_cases(account)
    before = cases_in_store(account)
    left = iter([60.0, 60.0])
    followed = follow(account, lambda: next(left, LONGEST_SECONDS_PER_CASE - 1))
    assert (len(followed.moved_cases), followed.errors) == (1, {})
    changed = [key for key, item in cases_in_store(account).items() if item != before[key]]
    assert len(changed) == 1
    assert follow(account).errors == {}
    assert count_closed_cases(account) == 3


@pytest.mark.parametrize("how", SILENCE)
def test_follow_up_moves_the_other_cases_if_one_case_cannot_be_read(
    account: Account, how: str
) -> None:
    first, *_ = make_escalated_cases(account)
    look = "dynamodb.TransactGetItems"
    with silent(account.clients.dynamodb, look, how, about=first.queue_arn):
        followed = follow(account)
    assert [*followed.errors] == [first.case_id]
    assert {each.queue_arn for each in followed.moved_cases}.isdisjoint({first.queue_arn})
    assert count_closed_cases(account) == 2
    account.later(minutes=6)
    assert follow(account).errors == {}
    assert count_closed_cases(account) == 3


def test_follow_up_retries_a_case_in_the_next_minute_if_it_can_be_neither_read_nor_postponed(
    account: Account,
) -> None:
    first, *_ = make_escalated_cases(account)
    before = cases_in_store(account)
    dynamodb = account.clients.dynamodb
    with (
        silent(dynamodb, "dynamodb.TransactGetItems", "slow", about=first.queue_arn),
        silent(dynamodb, "dynamodb.UpdateItem", "slow", about=first.queue_arn),
    ):
        followed = follow(account)
    assert [*followed.errors] == [first.case_id]
    key = first.queue_arn, f"case#{SYMPTOM}"
    assert cases_in_store(account)[key] == before[key]
    assert count_closed_cases(account) == 2
    assert follow(account).errors == {}
    assert count_closed_cases(account) == 3, "the next minute finds it"


@pytest.mark.parametrize("how", SILENCE)
def test_follow_up_raises_case_store_unavailable_if_the_open_cases_cannot_be_listed(
    account: Account, how: str
) -> None:
    make_escalated_cases(account)
    before = account.case_store_items()
    with (
        silent(account.clients.dynamodb, "dynamodb.Query", how),
        pytest.raises(CaseStoreUnavailable),
    ):
        follow(account)
    assert account.case_store_items() == before
    assert count_closed_cases(account) == 0


class Deletes:
    """CloudWatch counts messages that were deleted."""

    def __init__(self, account: Account) -> None:
        self.account = account
        metrics: Any = account.clients.cloudwatch.meta.events
        metrics.register("before-call.cloudwatch.GetMetricData", self._answer)

    def _answer(self, **_: Any) -> Any:
        deleted = {"Id": "deleted", "Values": [7.0], "Timestamps": [self.account.now]}
        return SimpleNamespace(status_code=200), {"MetricDataResults": [deleted]}


def two_fixed(account: Account) -> list[str]:
    """Two queues that were fixed, and whose fixes can be verified by now."""
    queues = []
    for name in NAMES[:2]:
        queue = account.queue(name, VisibilityTimeout="30")
        fail_calls(account, queue, name)
        queues.append(queue)
    account.later(minutes=20)
    Deletes(account)
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
    """It waits for an answer, and meanwhile the other queue's fix is verified."""
    dark, seen = two_fixed(account)
    service, call = CALLS[what]
    about = dark.rpartition(":")[2]
    with silent(getattr(account.clients, service), call, how, about):
        followed = follow(account)
    assert followed.errors == {}
    verified = {each.queue_arn for each in followed.moved_cases if each.state is State.VERIFIED}
    assert verified == {seen}
    account.later(hours=1)
    assert dark in {each.queue_arn for each in follow(account).moved_cases}
    assert account.visibility(dark) == 45


def not_filed(account: Account) -> list[str]:
    """Two cases whose transitions are missing in the bucket, because writes to it failed."""
    queues = []
    with silent(account.clients.s3, "s3.PutObject", "broken"):
        for name in NAMES[:2]:
            queue = account.queue(name, VisibilityTimeout="30")
            fail_calls(account, queue, name)
            queues.append(queue)
    account.later(minutes=3)
    assert account.transitions() == []
    return queues


def test_follow_up_with_too_little_time_files_transitions_in_the_next_run(account: Account) -> None:
    not_filed(account)
    left = iter([60.0])
    before = account.case_store_items()
    assert follow(account, lambda: next(left, LONGEST_SECONDS_PER_CASE - 1)).errors == {}
    assert account.transitions() == []
    assert account.case_store_items() == before
    assert follow(account).errors == {}
    assert list_states(account) == ["applied", "applied"]


@pytest.mark.parametrize("how", SILENCE)
def test_follow_up_tries_a_failing_case_bucket_once_and_files_transitions_later(
    account: Account, how: str
) -> None:
    not_filed(account)
    with silent(account.clients.s3, "s3.PutObject", how) as unanswered:
        followed = follow(account)
    assert [each[:6] for each in followed.errors] == ["filing"]
    assert len(unanswered) == 1
    account.later(minutes=6)
    assert follow(account).errors == {}
    assert list_states(account) == ["applied", "applied"]


@pytest.mark.parametrize("unfiled", NAMES[:2])
def test_follow_up_files_the_other_transitions_if_the_bucket_refuses_one(
    account: Account, unfiled: str
) -> None:
    """The bucket refuses one key every time: it makes way, wherever it is in the order."""
    not_filed(account)
    items = cases_in_store(account).items()
    (case_id,) = (item["case_id"]["S"] for (queue, _), item in items if queue.endswith(unfiled))
    with silent(account.clients.s3, "s3.PutObject", "forbidden", about=case_id):
        for _ in range(2):
            assert [each[:6] for each in follow(account).errors] in ([], ["filing"])
            account.later(minutes=1)
    (filed,) = account.transitions()
    assert unfiled not in filed["queue_arn"]
    account.later(minutes=6)
    assert follow(account).errors == {}
    assert list_states(account) == ["applied", "applied"]


def test_follow_up_reports_an_error_if_unfiled_transitions_cannot_be_listed(
    account: Account,
) -> None:
    """The cases themselves were moved before."""
    make_escalated_cases(account)
    with silent(
        account.clients.dynamodb, "dynamodb.Query", "slow", about=UNFILED_TRANSITION_PARTITION
    ):
        followed = follow(account)
    assert [*followed.errors] == ["filing"]
    assert isinstance(followed.errors["filing"], CaseStoreUnavailable)
    assert count_closed_cases(account) == 3


def test_follow_up_does_not_change_a_case_that_another_run_has_just_claimed(
    account: Account,
) -> None:
    """It was due when it was listed; by the time it is read, heal is about to write."""
    queue = make_failing_queue(account, "propose")
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=10)
    assert follow_and_file(account) == ["proposed", "approved"]
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
    followed = follow(account)
    assert (followed.moved_cases, followed.cases_with_called_owner, followed.errors) == ([], [], {})
    assert "claim_owner" in account.attribute_item(queue), "heal still holds it"
    assert "intent" in account.attribute_item(queue)
    assert account.visibility(queue) == 30


def follow_and_file(account: Account) -> list[str]:
    """A minute of follow_up in which heal is not there; the states of the case."""
    followed = follow(account)
    assert {type(error) for error in followed.errors.values()} <= {OwnerUnavailable}
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


def dead(account: Account) -> str:
    """A queue for which a fix was written by a run that died before it could say so."""
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


def claims(account: Account) -> dict[tuple[str, str], Any]:
    items = account.case_store_items()
    return {key: item for key, item in items.items() if "claim_owner" in item}


@pytest.mark.parametrize("how", [each for each in SILENCE if each != "forbidden"])
def test_write_of_a_run_that_died_is_not_recorded_until_sqs_answers(
    account: Account, how: str
) -> None:
    """Only SQS can say whether the dead run wrote. No Lambda function may guess it."""
    dead(account)
    before = claims(account)
    items = cases_in_store(account)
    case = load_newest_case(account)
    calls = calls_of(account)
    bodies = account.late_deletes(case.queue_arn, "7", "8", "9")
    with silent(account.clients.sqs, "sqs.GetQueueAttributes", how):
        healed = account.heal(bodies)
        with pytest.raises(FactsUnavailable):
            continue_case(make_owner_request(case), account.run())
        assert cases_in_store(account) == items
        followed = follow(account)
    assert {type(error) for error in healed.error_by_message_id.values()} == {FactsUnavailable}
    assert [*map(type, followed.errors.values())] == [FactsUnavailable]
    assert claims(account).keys() == before.keys()
    assert "SetQueueAttributes" not in calls
    assert list_states(account) == ["proposed", "approved"]
    account.later(minutes=6)
    assert follow(account).errors == {}
    assert list_states(account) == ["proposed", "approved", "applied"]
    assert claims(account) == {}


def test_write_of_a_run_that_died_is_not_recorded_with_too_little_time(account: Account) -> None:
    queue = dead(account)
    before = account.case_store_items()
    calls = calls_of(account)
    bodies = account.late_deletes(queue, "7", "8", "9")
    healed = account.heal(bodies, remaining_seconds=10)
    assert {type(error) for error in healed.error_by_message_id.values()} == {RetryLater}
    assert follow(account, lambda: LONGEST_SECONDS_PER_CASE - 1).errors == {}
    assert account.case_store_items() == before
    assert "GetQueueAttributes" not in calls
    assert account.heal(bodies).error_by_message_id == {}
    assert list_states(account) == ["proposed", "approved", "applied"]
    assert account.visibility(queue) == 45


def test_claim_of_a_run_that_died_on_an_unknown_symptom_waits_for_a_version_that_knows_it(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer Mendq's case, while an older one is deployed again."""
    dead(account)
    before = claims(account)
    known = SYMPTOM_BY_NAME[SYMPTOM]
    monkeypatch.delitem(SYMPTOM_BY_NAME, SYMPTOM)
    followed = follow(account)
    assert [each.symptom for each in followed.cases_of_unknown_symptoms] == [SYMPTOM]
    assert claims(account).keys() == before.keys()
    monkeypatch.setitem(SYMPTOM_BY_NAME, SYMPTOM, known)
    account.later(hours=1.1)
    assert follow(account).errors == {}
    assert list_states(account) == ["proposed", "approved", "applied"]


def rewrite_intent(account: Account, queue: str, **over: Any) -> None:
    """What the dead run had set out to do is another thing."""
    key = {"pk": {"S": queue}, "sk": {"S": "attribute#VisibilityTimeout"}}
    intent = json.loads(account.attribute_item(queue)["intent"]["S"])
    account.clients.dynamodb.update_item(
        TableName=account.settings.case_table,
        Key=key,
        UpdateExpression="SET intent = :intent",
        ExpressionAttributeValues={":intent": {"S": json.dumps({**intent, **over})}},
    )


def test_claim_without_a_step_is_refused_as_unreadable_and_writes_nothing(account: Account) -> None:
    """As somebody with access to the table can write one."""
    queue = dead(account)
    rewrite_intent(account, queue, steps=[])
    healed = account.heal(account.late_deletes(queue, "7", "8", "9"))
    (outcome,) = healed.outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "case_store_unreadable"
    assert [*map(type, follow(account).errors.values())] == [CaseStoreUnreadable]
    assert account.visibility(queue) == 45
    assert list_states(account) == ["proposed", "approved"]


def test_claim_for_an_unknown_symptom_is_kept_and_nothing_is_written(
    account: Account,
) -> None:
    queue = dead(account)
    rewrite_intent(account, queue, symptom="from_a_newer_mendq")
    before = claims(account)
    calls = calls_of(account)
    healed = account.heal(account.late_deletes(queue, "7", "8", "9"))
    assert {type(error) for error in healed.error_by_message_id.values()} == {CaseStoreUnavailable}
    (error,) = follow(account).errors.values()
    assert "no symptom of ours" in str(error)
    assert claims(account).keys() == before.keys()
    assert "SetQueueAttributes" not in calls


def test_claim_for_another_symptom_of_the_queue_is_recorded_as_that_symptoms_case(
    account: Account,
) -> None:
    """Two symptoms are fixed by one attribute: whichever comes by next records the write."""
    queue = dead(account)
    other = "visibility_timeout_default"
    rewrite_intent(account, queue, symptom=other, case_id=f"{other}-0123456789ab")
    healed = account.heal(account.late_deletes(queue, "7", "8", "9"))
    assert healed.error_by_message_id == {}
    settled = [each for each in account.transitions() if each["symptom"] == other]
    assert [each["to"] for each in settled] == ["applied"]
    assert account.visibility(queue) == 45, "nothing is written on top"
    assert "intent" not in account.attribute_item(queue)


@pytest.mark.parametrize("what", ["tags", "attributes"])
def test_value_that_a_person_set_is_never_recorded_as_a_verified_fix(
    account: Account, what: str
) -> None:
    """Messages are deleted again, because of what the person did, and SQS does not answer."""
    queue, _ = two_fixed(account)
    account.set_visibility(queue, 600)
    service, call = CALLS[what]
    with silent(getattr(account.clients, service), call, "slow", queue.rpartition(":")[2]):
        follow(account)
    about = [each["to"] for each in account.transitions() if each["queue_arn"] == queue]
    assert "verified" not in about
    account.later(hours=2)
    follow(account)
    about = [each["to"] for each in account.transitions() if each["queue_arn"] == queue]
    assert about[-1] == "overridden"
    assert account.visibility(queue) == 600
