"""Heal answers an event source mapping that Lambda refused because of the two timeouts."""

from __future__ import annotations

import json

import pytest

from mendq.model.mode import Mode
from tests.account.account import ACCOUNT, REGION, Account, make_settings
from tests.heal.operators import Heal, load_newest_case, send_decision

SENTENCE = "Queue visibility timeout: 30 seconds is less than Function timeout: {} seconds"
GONE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:rolled-back"


def refuse_mapping(account: Account, queue_arn: str, function_seconds: int = 60) -> dict[str, str]:
    """Return the intake message about a mapping that Lambda refused."""
    record = account.record(
        queue_arn,
        "mapping-1",
        eventSource="lambda.amazonaws.com",
        eventName="CreateEventSourceMapping20150331",
        errorMessage=SENTENCE.format(function_seconds),
        requestParameters={"eventSourceArn": queue_arn, "functionName": "bill"},
        resources=None,
    )
    return {"m-1": json.dumps({"detail": record})}


def test_refused_mapping_of_a_queue_that_is_not_managed_changes_and_records_nothing(
    account: Account,
) -> None:
    queue = account.queue("orders", tag=None)
    before = account.attributes(queue)
    (outcome,) = account.heal(refuse_mapping(account, queue)).outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "not_managed"
    assert account.attributes(queue) == before
    assert account.transitions() == []


def test_refused_mapping_is_ignored_if_the_timeout_was_raised_meanwhile(account: Account) -> None:
    queue = account.queue("orders", VisibilityTimeout="90")
    account.heal(refuse_mapping(account, queue))
    assert account.visibility(queue) == 90
    assert account.pages("urgent") == []


def test_refused_mapping_is_proposed_and_not_changed_even_in_mode_heal(account: Account) -> None:
    account.settings = make_settings(autonomy={"mapping_refused": Mode.HEAL})
    queue = account.queue("orders")
    account.heal(refuse_mapping(account, queue))
    case = load_newest_case(account)
    assert case.state == "proposed"
    assert case.steps[0]["after"] == "360"
    assert account.visibility(queue) == 30


def test_approved_timeout_of_a_refused_mapping_is_set_once(account: Account) -> None:
    account.settings = make_settings(tag_may_raise_to=Mode.PROPOSE)
    Heal(account)
    queue = account.queue("orders", "propose")
    account.heal(refuse_mapping(account, queue))
    account.later(minutes=1)
    send_decision(account, "approve", load_newest_case(account).case_id)
    assert account.visibility(queue) == 360


def test_mapping_of_a_slow_function_is_refused_if_its_timeout_is_over_the_ceiling(
    account: Account,
) -> None:
    queue = account.queue("orders")
    (outcome,) = account.heal(
        refuse_mapping(account, queue, function_seconds=900)
    ).outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "over_ceiling"
    assert account.visibility(queue) == 30


def test_refused_mapping_changes_nothing_if_the_ceiling_tag_is_no_number(account: Account) -> None:
    queue = account.queue("orders")
    account.tag(queue, **{"mendq:max-visibility-seconds": "an hour"})
    (outcome,) = account.heal(refuse_mapping(account, queue)).outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "tag_unreadable"
    assert account.visibility(queue) == 30


@pytest.mark.parametrize("pattern", ["rolled-back", "rolled-*"])
def test_refused_mapping_of_a_queue_that_is_gone_names_the_value_for_its_template(
    account: Account, pattern: str
) -> None:
    """No scan can have seen a queue that CloudFormation deleted after a minute."""
    account.settings = make_settings(queues=(pattern,))
    (outcome,) = account.heal(refuse_mapping(account, GONE_ARN)).outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "queue_rolled_back"
    assert "to at least 60; AWS advises 360" in outcome.refusal.reason


def test_refused_mapping_of_a_gone_queue_without_a_mode_by_name_is_not_reported(
    account: Account,
) -> None:
    (outcome,) = account.heal(refuse_mapping(account, GONE_ARN)).outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "not_managed"
    assert account.transitions() == []
