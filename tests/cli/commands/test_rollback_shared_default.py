"""Test `mendq rollback --all`, which undoes the fixes of all queues that share a default."""

from __future__ import annotations

import json

from tests.account.account import Account
from tests.cli.builders import Operator
from tests.heal.operators import fail_calls, list_states

NAMES = ("first.fifo", "second.fifo", "third.fifo")


def share_default(aws: Account, first_case_id: str) -> None:
    """Store in every case that all queues belong to one shared default."""
    shared_default = {
        "first_case_id": first_case_id,
        "attribute": "VisibilityTimeout",
        "queue_arns": [f"arn:aws:sqs:us-east-1:123456789012:{name}" for name in NAMES],
        "left_out": [],
    }
    client = aws.clients.dynamodb
    for item in client.scan(TableName="case_store")["Items"]:
        if "document" in item:
            document = json.loads(item["document"]["S"])
            document["evidence"]["shared_default"] = shared_default
            stored_document = {"S": json.dumps(document)}
            client.put_item(TableName="case_store", Item={**item, "document": stored_document})


def make_two_fixed_queues_and_a_proposed_one(operator: Operator) -> list[str]:
    """Return the ids of the cases of two fixed queues and of one that waits."""
    case_ids = [operator.open_applied_case(name) for name in NAMES[:2]]
    queue_arn = operator.aws.queue(NAMES[2], "propose", VisibilityTimeout="30")
    operator.aws.later(seconds=200)
    fail_calls(operator.aws, queue_arn, "third")
    case_ids.append(operator.aws.transitions()[-1]["case_id"])
    share_default(operator.aws, case_ids[0])
    operator.connect_lambdas()
    return case_ids


def read_visibilities(operator: Operator) -> list[int]:
    return [operator.aws.visibility(f"arn:aws:sqs:us-east-1:123456789012:{name}") for name in NAMES]


def test_rollback_all_undoes_every_fix_of_the_shared_default_and_declines_the_waiting_case(
    operator: Operator,
) -> None:
    case_ids = make_two_fixed_queues_and_a_proposed_one(operator)
    assert read_visibilities(operator) == [45, 45, 30]
    answers = operator.run_json("rollback", case_ids[1], "--all", "--yes")
    assert {answer["case_id"]: answer["state"] for answer in answers} == {
        case_ids[0]: "rolled_back",
        case_ids[1]: "rolled_back",
        case_ids[2]: "declined",
    }
    assert read_visibilities(operator) == [30, 30, 30]
    decisions = [output for output, event in operator.account.invoked if not event.get("dry_run")]
    assert decisions[0] == "ApproveFunction", "nothing may be written during the rollback"


def test_rollback_all_dry_run_names_every_case_and_changes_nothing(operator: Operator) -> None:
    case_ids = make_two_fixed_queues_and_a_proposed_one(operator)
    states_before = list_states(operator.aws)
    output = operator.read_output("rollback", case_ids[0], "--all", "--dry-run")
    assert case_ids[0] in output
    assert case_ids[1] in output
    assert "1 case not written yet: Mendq declines them first" in output
    assert read_visibilities(operator) == [45, 45, 30]
    assert list_states(operator.aws) == states_before


def test_rollback_without_all_undoes_only_the_named_fix(operator: Operator) -> None:
    case_ids = make_two_fixed_queues_and_a_proposed_one(operator)
    operator.run_json("rollback", case_ids[0], "--yes")
    assert read_visibilities(operator) == [30, 45, 30]


def test_rollback_all_of_a_case_without_a_shared_default_is_refused(operator: Operator) -> None:
    case_id = operator.open_applied_case()
    refusal = operator.read_refusal("rollback", case_id, "--all", "--yes", code=2)
    assert "belongs to no shared default" in refusal
    assert operator.aws.visibility("arn:aws:sqs:us-east-1:123456789012:orders.fifo") == 45


def test_show_and_cases_say_which_case_of_a_shared_default_goes_first(operator: Operator) -> None:
    case_ids = make_two_fixed_queues_and_a_proposed_one(operator)
    assert "goes first of 3 queues with the same VisibilityTimeout" in operator.read_output(
        "show", case_ids[0]
    )
    output = operator.read_output("cases")
    assert f"one of 3 queues with the same VisibilityTimeout; {case_ids[0]} goes first" in output
