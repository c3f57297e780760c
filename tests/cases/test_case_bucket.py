"""The case bucket receives every transition, also after an outage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import ClientError

from mendq.follow_up.follow_up import follow_up
from tests.account.account import Account
from tests.heal.operators import OWNERS, fail_calls, list_states, make_context


def _run_follow_up(account: Account) -> None:
    assert follow_up(make_context(account), OWNERS, lambda: 60).errors == {}


@contextmanager
def _refuse_puts(account: Account, calls: list[int]) -> Iterator[None]:
    """Let the bucket refuse every put, and count the attempts in `calls`."""

    def refuse(**_: object) -> None:
        calls.append(1)
        raise ClientError({"Error": {"Code": "SlowDown"}}, "PutObject")

    events = account.clients.s3.meta.events
    events.register("before-call.s3.PutObject", refuse, "down")
    try:
        yield
    finally:
        events.unregister("before-call.s3.PutObject", unique_id="down")


def test_fix_is_made_in_a_case_bucket_outage_and_its_transitions_stored_after_it(
    account: Account,
) -> None:
    """An older case of the same queue is still unfiled when the fix is recorded."""
    queue = account.queue(tag="observe", VisibilityTimeout="30")
    account.later(minutes=5)
    with _refuse_puts(account, []):
        fail_calls(account, queue, "observed")
        account.tag(queue, mendq="heal")
        account.later(minutes=40)
        healed = account.heal(account.late_deletes(queue, "1", "2", "3"))
    assert healed.error_by_message_id == {}
    assert account.visibility(queue) == 45
    account.later(minutes=1)
    _run_follow_up(account)
    assert list_states(account) == ["observed", "applied"]
    assert make_context(account).open_cases.list_unfiled_transitions(account.now) == []


def test_follow_up_expires_cases_in_a_case_bucket_outage_and_tries_only_one_old_transition(
    account: Account,
) -> None:
    queues = [account.queue(f"{n}.fifo", "propose", VisibilityTimeout="30") for n in range(3)]
    account.later(minutes=5)
    calls: list[int] = []
    with _refuse_puts(account, calls):
        for queue in queues:
            fail_calls(account, queue, queue)
        account.later(hours=25)
        calls.clear()
        followed = follow_up(make_context(account), OWNERS, lambda: 60)
    assert [case.state for case in followed.moved_cases] == ["expired"] * 3
    assert len(followed.errors) == 1
    old_transition = 1
    assert len(calls) == old_transition + len(followed.moved_cases)
    account.later(minutes=6)
    _run_follow_up(account)
    assert sorted(list_states(account)) == ["expired"] * 3 + ["proposed"] * 3
