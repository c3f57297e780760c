"""A flood of calls to made-up queue names costs little and delays no fix of a real queue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from mendq.heal.batch import MAXIMUM_UNKNOWN_QUEUES, QUEUE_LIST_LIFETIME
from tests.account.account import ACCOUNT, REGION, Account, make_settings
from tests.account.faults import calls_of
from tests.scan.scanner import deny_operation

MISSING = {"eventName": "SendMessage", "errorCode": "AWS.SimpleQueueService.NonExistentQueue"}
FLOOD_SIZE = 300


@pytest.fixture(autouse=True)
def _start_of_hour(account: Account) -> None:
    account.now = account.now.replace(minute=1, second=0)


def make_queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def make_role_arn(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def make_call(account: Account, queue_arn: str, event_id: str, caller: str, **over: Any) -> str:
    identity = {
        "type": "AssumedRole",
        "sessionContext": {"sessionIssuer": {"arn": make_role_arn(caller)}},
    }
    record = account.record(queue_arn, event_id, userIdentity=identity, **over)
    return json.dumps({"detail": record})


def make_flood(
    account: Account, queue_names: Iterable[str], *callers: str, **over: Any
) -> dict[str, str]:
    """Return one failed call to each name, by the callers in turn."""
    return {
        f"junk-{name}": make_call(
            account, make_queue_arn(name), name, callers[n % len(callers)], **over
        )
        for n, name in enumerate(queue_names)
    }


def make_names(count: int, prefix: str = "junk") -> list[str]:
    return [f"{prefix}-{n}" for n in range(count)]


def count_queues_read(account: Account, bodies: Mapping[str, str]) -> int:
    """Let heal handle the batch. Return the number of queues that it read."""
    made = calls_of(account)
    assert account.heal(dict(bodies)).error_by_message_id == {}
    return made.count("ListQueueTags")


@pytest.mark.parametrize("over", [{}, MISSING], ids=["late", "missing"])
@pytest.mark.parametrize("callers", [1, 100])
def test_queue_is_fixed_in_a_flood_of_unknown_names_of_which_50_are_read_and_none_is_stored(
    account: Account, over: dict[str, str], callers: int
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    flood = make_flood(account, make_names(FLOOD_SIZE), *make_names(callers, "stranger"), **over)
    assert MAXIMUM_UNKNOWN_QUEUES == 50
    assert count_queues_read(account, flood | account.late_deletes(queue, "1", "2", "3")) == (
        MAXIMUM_UNKNOWN_QUEUES + 1
    )
    assert account.visibility(queue) == 45
    assert {transition["queue_arn"] for transition in account.transitions()} == {queue}
    about = {partition for partition, _ in account.case_store_items()}
    assert about <= {
        "account",
        queue,
        *(partition for partition in about if partition.startswith("case#")),
    }


def test_heal_reads_every_managed_queue_beyond_the_limit_for_unknown_names(
    account: Account,
) -> None:
    queues = [account.queue(f"q{n}.fifo") for n in range(MAXIMUM_UNKNOWN_QUEUES + 30)]
    bodies = {f"{n}": make_call(account, queue, f"{n}", "worker") for n, queue in enumerate(queues)}
    assert count_queues_read(account, bodies) == len(queues)
    assert account.pages("urgent") == []


def test_flood_by_one_caller_hides_no_other_callers_queue_and_no_queue_named_by_settings(
    account: Account,
) -> None:
    """The settings name `gone`. The queue `tagged` was created after the last listing."""
    account.settings = make_settings(queues=("gone",))
    account.heal(make_flood(account, make_names(FLOOD_SIZE), "stranger"))
    queue = account.queue("tagged.fifo", VisibilityTimeout="30")
    account.later(seconds=(QUEUE_LIST_LIFETIME / 2).total_seconds())
    real = {
        **{f"t{n}": make_call(account, queue, f"t{n}", "worker") for n in range(3)},
        **{
            f"g{n}": make_call(account, make_queue_arn("gone"), f"g{n}", "stranger", **MISSING)
            for n in range(3)
        },
    }
    assert count_queues_read(
        account, make_flood(account, make_names(FLOOD_SIZE, "more"), "stranger") | real
    ) == (MAXIMUM_UNKNOWN_QUEUES + 1)
    assert account.visibility(queue) == 45
    symptoms = {transition["symptom"] for transition in account.transitions()}
    assert symptoms == {"visibility_timeout_too_short", "queue_missing"}


def test_queue_that_only_a_flooding_caller_names_is_fixed_once_another_caller_names_it(
    account: Account,
) -> None:
    account.heal(make_flood(account, make_names(FLOOD_SIZE), "stranger"))
    queue = account.queue("tagged.fifo", VisibilityTimeout="30")
    theirs = {f"s{n}": make_call(account, queue, f"s{n}", "stranger") for n in range(3)}
    flood = make_flood(account, make_names(FLOOD_SIZE), "stranger") | theirs
    assert account.heal(flood).error_by_message_id == {}
    assert account.visibility(queue) == 30
    account.heal(flood | {"w": make_call(account, queue, "w", "worker")})
    assert account.visibility(queue) == 45


SKIPPED_NAMES_OF_EACH_OF_TWO_CALLERS = (FLOOD_SIZE - MAXIMUM_UNKNOWN_QUEUES) // 2


def make_flood_of_two_callers(account: Account) -> dict[str, str]:
    return make_flood(account, make_names(FLOOD_SIZE), "stranger", "other")


def test_skipped_queue_names_are_counted_by_caller(account: Account) -> None:
    healed = account.heal(make_flood_of_two_callers(account))
    assert healed.skipped_name_count_by_caller == {
        make_role_arn("stranger"): SKIPPED_NAMES_OF_EACH_OF_TWO_CALLERS,
        make_role_arn("other"): SKIPPED_NAMES_OF_EACH_OF_TWO_CALLERS,
    }


def test_flood_that_lasts_is_reported_once_a_day_with_its_callers(account: Account) -> None:
    flood = make_flood_of_two_callers(account)
    for _ in range(4):
        account.heal(flood)
        account.later(hours=6)
    ((subject, body),) = account.pages("urgent")
    assert subject == f"Mendq sees a flood of calls: {ACCOUNT} {REGION}"
    assert f"{make_role_arn('other')}: {SKIPPED_NAMES_OF_EACH_OF_TWO_CALLERS} names" in body
    account.heal(flood)
    assert len(account.pages("urgent")) == 2


@pytest.mark.parametrize("is_named_by_settings", [False, True])
def test_missing_queue_that_was_never_seen_is_reported_only_if_the_settings_name_it(
    account: Account, *, is_named_by_settings: bool
) -> None:
    """Any caller can invent names. Without this rule Mendq would report each as missing."""
    account.settings = make_settings(
        queues=("made-up",) if is_named_by_settings else ("made-up-too",)
    )
    bodies = {
        f"{n}": make_call(account, make_queue_arn("made-up"), f"{n}", "worker", **MISSING)
        for n in range(3)
    }
    (outcome,) = account.heal(bodies).outcome_by_group.values()
    assert len(account.pages("urgent")) == len(account.transitions()) == int(is_named_by_settings)
    if not is_named_by_settings:
        assert outcome.refusal is not None
        assert outcome.refusal.code == "never_seen"
        about = {partition for partition, _ in account.case_store_items()}
        assert make_queue_arn("made-up") not in about


def test_heal_reads_every_named_queue_if_the_managed_queues_cannot_be_listed(
    account: Account,
) -> None:
    deny_operation(account.clients.tagging, "GetResources")
    assert (
        count_queues_read(account, make_flood(account, make_names(FLOOD_SIZE), "stranger"))
        == FLOOD_SIZE
    )


def test_managed_queues_are_listed_every_five_minutes_during_a_flood(account: Account) -> None:
    asked: list[object] = []
    account.clients.tagging.meta.events.register(
        "before-call", lambda **arguments: asked.append(arguments)
    )
    for minute in range(12):
        account.heal(make_flood(account, make_names(FLOOD_SIZE, f"m{minute}"), "stranger"))
        account.later(minutes=1)
    assert len(asked) == 3, f"at 0, 5 and 10 minutes: each list is used for {QUEUE_LIST_LIFETIME}"


def test_mass_symptom_notification_lists_ten_queues_beginning_with_one_of_each_caller(
    account: Account,
) -> None:
    """One caller's queues come earlier in the alphabet and must not hide another caller's queue."""
    denied = {"eventName": "SendMessage", "errorCode": "AccessDenied", "errorMessage": ""}
    bodies: dict[str, str] = {}
    for name, caller in [*((f"a-{n}", "stranger") for n in range(15)), ("payments", "worker")]:
        queue = account.queue(name, tag="observe")
        for n in range(3):
            bodies[f"{name}-{n}"] = make_call(account, queue, f"{name}-{n}", caller, **denied)
    account.later(minutes=2)
    assert account.heal(bodies).error_by_message_id == {}
    ((_, body),) = account.pages("urgent")
    listed = body.partition("QUEUES\n")[2].split("\n")
    assert "  payments" in listed[:2]
    assert listed[10] == "  and 6 more"
