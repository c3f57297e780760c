"""Calls that each name another queue cost little, and keep no queue that there is from its fix."""

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
A_FLOOD = 300


@pytest.fixture(autouse=True)
def _early_in_a_listings_turn(account: Account) -> None:
    account.now = account.now.replace(minute=1, second=0)


def arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def role(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def call(account: Account, queue_arn: str, event_id: str, caller: str, **over: Any) -> str:
    identity = {"type": "AssumedRole", "sessionContext": {"sessionIssuer": {"arn": role(caller)}}}
    record = account.record(queue_arn, event_id, userIdentity=identity, **over)
    return json.dumps({"detail": record})


def junk(account: Account, names: Iterable[str], *callers: str, **over: Any) -> dict[str, str]:
    """Of each name one failed call, by the callers in turn."""
    return {
        f"junk-{name}": call(account, arn(name), name, callers[n % len(callers)], **over)
        for n, name in enumerate(names)
    }


def names(count: int, prefix: str = "junk") -> list[str]:
    return [f"{prefix}-{n}" for n in range(count)]


def looked_at(account: Account, bodies: Mapping[str, str]) -> int:
    """How many queues the batch had SQS asked about; nothing comes again."""
    made = calls_of(account)
    assert account.heal(dict(bodies)).error_by_message_id == {}
    return made.count("ListQueueTags")


@pytest.mark.parametrize("over", [{}, MISSING], ids=["late", "missing"])
@pytest.mark.parametrize("callers", [1, 100])
def test_queue_is_fixed_within_a_flood_of_calls_to_unknown_queue_names(
    account: Account, over: dict[str, str], callers: int
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    flood = junk(account, names(A_FLOOD), *names(callers, "stranger"), **over)
    assert looked_at(account, flood | account.late_deletes(queue, "1", "2", "3")) == (
        MAXIMUM_UNKNOWN_QUEUES + 1
    )
    assert account.visibility(queue) == 45
    assert {each["queue_arn"] for each in account.transitions()} == {queue}
    about = {partition for partition, _ in account.case_store_items()}
    assert about <= {"account", queue, *(each for each in about if each.startswith("case#"))}


def test_heal_reads_every_managed_queue_beyond_the_limit_for_unknown_names(
    account: Account,
) -> None:
    queues = [account.queue(f"q{n}.fifo") for n in range(MAXIMUM_UNKNOWN_QUEUES + 30)]
    bodies = {f"{n}": call(account, each, f"{n}", "worker") for n, each in enumerate(queues)}
    assert looked_at(account, bodies) == len(queues)
    assert account.pages("urgent") == []


def test_flood_by_one_caller_leaves_other_callers_queue_names_their_share(account: Account) -> None:
    """Settings name `gone`, and nothing `tagged`, which was made since the last listing."""
    account.settings = make_settings(queues=("gone",))
    account.heal(junk(account, names(A_FLOOD), "stranger"))
    queue = account.queue("tagged.fifo", VisibilityTimeout="30")
    account.later(seconds=(QUEUE_LIST_LIFETIME / 2).total_seconds())
    real = {
        **{f"t{n}": call(account, queue, f"t{n}", "worker") for n in range(3)},
        **{f"g{n}": call(account, arn("gone"), f"g{n}", "stranger", **MISSING) for n in range(3)},
    }
    assert looked_at(account, junk(account, names(A_FLOOD, "more"), "stranger") | real) == (
        MAXIMUM_UNKNOWN_QUEUES + 1
    )
    assert account.visibility(queue) == 45
    symptoms = {each["symptom"] for each in account.transitions()}
    assert symptoms == {"visibility_timeout_too_short", "queue_missing"}


def test_queue_is_read_for_its_own_caller_although_a_flooding_caller_names_it_too(
    account: Account,
) -> None:
    account.heal(junk(account, names(A_FLOOD), "stranger"))
    queue = account.queue("tagged.fifo", VisibilityTimeout="30")
    theirs = {f"s{n}": call(account, queue, f"s{n}", "stranger") for n in range(3)}
    flood = junk(account, names(A_FLOOD), "stranger") | theirs
    assert account.heal(flood).error_by_message_id == {}
    assert account.visibility(queue) == 30
    account.heal(flood | {"w": call(account, queue, "w", "worker")})
    assert account.visibility(queue) == 45


def test_skipped_queue_names_are_counted_by_caller_and_reported_once_a_day(
    account: Account,
) -> None:
    flood = junk(account, names(A_FLOOD), "stranger", "other")
    healed = account.heal(flood)
    each = (A_FLOOD - MAXIMUM_UNKNOWN_QUEUES) // 2
    assert healed.skipped_name_count_by_caller == {role("stranger"): each, role("other"): each}
    for _ in range(3):
        account.later(hours=2)
        account.heal(flood)
    ((subject, body),) = account.pages("urgent")
    assert subject == f"Mendq sees a flood of calls: {ACCOUNT} {REGION}"
    assert f"{role('other')}: {each} names" in body


@pytest.mark.parametrize("names_it", [False, True])
def test_missing_queue_that_was_never_seen_is_reported_only_if_the_settings_name_it(
    account: Account, *, names_it: bool
) -> None:
    """Anybody can call made-up names, and Mendq would report each of them as missing."""
    account.settings = make_settings(queues=("made-up",) if names_it else ("made-up-too",))
    bodies = {f"{n}": call(account, arn("made-up"), f"{n}", "worker", **MISSING) for n in range(3)}
    (outcome,) = account.heal(bodies).outcome_by_group.values()
    assert len(account.pages("urgent")) == len(account.transitions()) == int(names_it)
    if not names_it:
        assert outcome.refusal is not None
        assert outcome.refusal.code == "never_seen"
        about = {partition for partition, _ in account.case_store_items()}
        assert arn("made-up") not in about


def test_heal_reads_every_named_queue_if_the_managed_queues_cannot_be_listed(
    account: Account,
) -> None:
    deny_operation(account.clients.tagging, "GetResources")
    assert looked_at(account, junk(account, names(A_FLOOD), "stranger")) == A_FLOOD


def test_managed_queues_are_listed_every_five_minutes_during_a_flood(account: Account) -> None:
    asked: list[object] = []
    account.clients.tagging.meta.events.register("before-call", lambda **it: asked.append(it))
    for minute in range(12):
        account.heal(junk(account, names(A_FLOOD, f"m{minute}"), "stranger"))
        account.later(minutes=1)
    assert len(asked) == 3, f"at 0, 5 and 10 minutes: each is good for {QUEUE_LIST_LIFETIME}"


def test_mass_symptom_notification_names_one_queue_of_each_caller_first(account: Account) -> None:
    """Those of one stranger, earlier in the alphabet, hide no other's."""
    denied = {"eventName": "SendMessage", "errorCode": "AccessDenied", "errorMessage": ""}
    bodies: dict[str, str] = {}
    for name, caller in [*((f"a-{n}", "stranger") for n in range(15)), ("payments", "worker")]:
        queue = account.queue(name, tag="observe")
        for n in range(3):
            bodies[f"{name}-{n}"] = call(account, queue, f"{name}-{n}", caller, **denied)
    account.later(minutes=2)
    assert account.heal(bodies).error_by_message_id == {}
    ((_, body),) = account.pages("urgent")
    listed = body.partition("QUEUES\n")[2].split("\n")
    assert "  payments" in listed[:2]
    assert listed[10] == "  and 6 more"
