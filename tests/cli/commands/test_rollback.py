"""Test `mendq rollback`, which puts the values from before a fix back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mendq.cli.undo.rollback import parse_time_option
from tests.cli.builders import Operator
from tests.heal.operators import ALICE, fail_calls, load_newest_case, move_case

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def _make_answer(case_id: str, outcome: str, **over: Any) -> dict[str, Any]:
    attribute = {"attribute": "VisibilityTimeout", "outcome": outcome, "before": "30"}
    attribute |= {"after": "45", "now": "45", "command": "", **over}
    return {"case_id": case_id, "state": "applied", "attributes": [attribute]}


def test_rollback_since_option_accepts_ages_utc_times_and_times_with_an_offset() -> None:
    minutes = {"2h": 120, "3d": 4_320, "30min": 30, "2026-11-16T11:00Z": 60}
    minutes |= {"2026-11-16T11:00": 60, "2026-11-16T12:00+01:00": 60}
    for text, ago in minutes.items():
        assert parse_time_option(text, NOW) == NOW - timedelta(minutes=ago), text


@pytest.mark.parametrize(
    ("options", "code", "asked"),
    [((), 2, [True]), (("--dry-run", "--yes"), 0, [True]), (("--yes",), 0, [True, False])],
    ids=["no option", "--dry-run --yes", "--yes"],
)
def test_rollback_undoes_a_change_only_with_yes_and_without_dry_run(
    operator: Operator, options: tuple[str, ...], code: int, asked: list[bool]
) -> None:
    case_id = operator.open_applied_case()
    operator.set_lambda_answers("RollbackFunction", *[_make_answer(case_id, "undone")] * 2)
    assert operator.run("rollback", case_id, *options).exit_code == code
    assert [event["dry_run"] for _, event in operator.account.invoked] == asked


def test_rollback_prints_the_redrive_command_before_the_command_that_deletes_the_dlq(
    operator: Operator,
) -> None:
    """An operator who pastes the commands in their order must lose no message."""
    case_id = operator.open_applied_case("orders.fifo")
    dlq_arn = "arn:aws:sqs:us-east-1:123456789012:orders-dlq.fifo"
    command = "aws sqs delete-queue --region us-east-1 --queue-url URL"
    over = {"attribute": "DeadLetterQueue", "before": "", "after": dlq_arn, "command": command}
    operator.set_lambda_answers("RollbackFunction", _make_answer(case_id, "printed", **over))
    output = operator.run("rollback", case_id, "--dry-run").stdout
    back = "mendq redrive orders-dlq.fifo --to orders.fifo --from orders.fifo --all --dry-run"
    warning = "deleting the queue deletes its messages"
    assert "orders-dlq.fifo stays, with its messages" in output
    assert output.index(back) < output.index(warning) < output.index(command)


def test_rollback_since_undoes_the_newest_case_first_and_skips_older_cases(
    operator: Operator,
) -> None:
    operator.aws.now -= timedelta(hours=5)
    operator.open_applied_case("old.fifo")
    operator.aws.later(hours=4)
    first = operator.open_applied_case("first.fifo")
    operator.aws.later(minutes=10)
    second = operator.open_applied_case("second.fifo")
    operator.set_lambda_answers(
        "RollbackFunction", *(_make_answer(case_id, "undone") for case_id in (second, first) * 2)
    )
    assert operator.run_json("rollback", "--since", "1min", "--yes") == []
    answers = operator.run_json("rollback", "--since", "3h", "--yes")
    assert [case["case_id"] for case in answers] == [second, first]


def _fix_queue_twice(operator: Operator, last: str) -> tuple[str, str, str]:
    """Let two cases raise one queue's timeout. Return its ARN and the ids, earlier first."""
    operator.aws.now -= timedelta(hours=3)
    earlier = operator.open_applied_case()
    first = load_newest_case(operator.aws)
    move_case(operator.aws, first, "closed")
    operator.aws.later(hours=1)
    fail_calls(operator.aws, first.queue_arn, "again")
    later = load_newest_case(operator.aws)
    assert (str(later.state), later.steps[0]["before"]) == ("applied", first.steps[0]["after"])
    if last != later.state:
        move_case(operator.aws, later, last)
    operator.connect_lambdas()
    return first.queue_arn, earlier, later.case_id


def _list_undone_attributes(answers: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Return case id, outcome, old and new value of each attribute, in the order of the answers."""
    attributes = (
        (answer["case_id"], attribute) for answer in answers for attribute in answer["attributes"]
    )
    return [
        (case_id, attribute["outcome"], attribute["after"], attribute["before"])
        for case_id, attribute in attributes
    ]


@pytest.mark.parametrize("last", ["applied", "closed"])
def test_rollback_dry_run_of_two_fixes_on_one_queue_announces_what_rollback_does(
    operator: Operator, last: str
) -> None:
    queue, earlier, later = _fix_queue_twice(operator, last)
    preview = _list_undone_attributes(operator.run_json("rollback", "--since", "5h", "--dry-run"))
    done = _list_undone_attributes(operator.run_json("rollback", "--since", "5h", "--yes"))
    assert preview == done
    assert [announcement[:2] for announcement in done] == [(later, "undone"), (earlier, "undone")]
    assert operator.aws.visibility(queue) == 30


@pytest.mark.parametrize("last", ["applied", "closed"])
def test_rollback_dry_run_of_two_fixes_prints_the_later_one_first_and_changes_nothing(
    operator: Operator, last: str
) -> None:
    queue, earlier, later = _fix_queue_twice(operator, last)
    value_before = operator.aws.visibility(queue)
    preview = operator.run_json("rollback", "--since", "5h", "--dry-run")
    assert [answer.get("once_undone", []) for answer in preview] == [[], [later]]
    ((first,), (second,)) = (answer["attributes"] for answer in preview)
    assert first["now"] == first["after"]
    assert "now" not in second, "the value between the two fixes cannot be read"
    output = operator.read_output("rollback", "--since", "5h", "--dry-run")
    assert output.index(later) < output.index("-> 45 s") < output.index(earlier)
    assert output.index(earlier) < output.index("45 s -> 30 s")
    assert "not done" not in output
    assert operator.aws.visibility(queue) == value_before


@pytest.mark.parametrize(("stood", "outcome", "code"), [("40", "kept", 3), ("30", "nothing", 0)])
def test_rollback_dry_run_judges_an_earlier_fix_by_the_value_before_the_later_fix(
    operator: Operator, stood: str, outcome: str, code: int
) -> None:
    _, earlier, later = _fix_queue_twice(operator, "closed")
    hidden = _make_answer(earlier, "kept", now="90")
    undone = _make_answer(later, "undone", before=stood, after="90", now="90")
    operator.set_lambda_answers("RollbackFunction", undone, hidden)
    preview = operator.run_json("rollback", "--since", "5h", "--dry-run", code=code)
    (attribute,) = preview[1]["attributes"]
    assert (attribute["outcome"], attribute["now"]) == (outcome, stood)
    assert preview[1]["once_undone"] == [later]


def test_rollback_keeps_a_persons_value_and_undoes_a_later_fix_of_another_attribute(
    operator: Operator,
) -> None:
    """Fixes: visibility timeout 30 -> 45, key reuse 300 -> 600. A person sets timeout 99."""
    operator.aws.now -= timedelta(hours=3)
    key = {"KmsMasterKeyId": "alias/orders", "KmsDataKeyReusePeriodSeconds": "300"}
    queue = operator.aws.queue("orders.fifo", VisibilityTimeout="30", **key)
    operator.aws.later(seconds=200)
    fail_calls(operator.aws, queue)
    visibility = load_newest_case(operator.aws).case_id
    operator.aws.later(hours=1)
    throttled = {"eventName": "SendMessage", "errorCode": "KMS.ThrottlingException"}
    fail_calls(operator.aws, queue, "kms", **throttled, errorMessage="Rate exceeded")
    reuse = load_newest_case(operator.aws)
    assert (str(reuse.state), reuse.steps[0]["after"]) == ("applied", "600")
    operator.set_visibility_by_hand(99)
    operator.connect_lambdas()
    preview = operator.run_json("rollback", "--since", "5h", "--dry-run", code=3)
    assert [answer["case_id"] for answer in preview] == [reuse.case_id, visibility]
    ((first,), (second,)) = (answer["attributes"] for answer in preview)
    assert (first["outcome"], first["before"], first["now"]) == ("undone", "300", "600")
    expected = {"attribute": "VisibilityTimeout", "outcome": "kept", "before": "30", "after": "45"}
    assert second == {**expected, "now": "99", "command": "", "later_case": None}
    done = operator.run_json("rollback", "--since", "5h", "--yes", code=3)
    assert _list_undone_attributes(done) == _list_undone_attributes(preview)
    assert operator.aws.visibility(queue) == 99


def test_rollback_undoes_no_earlier_fix_if_a_person_changed_the_value_of_the_later_fix(
    operator: Operator,
) -> None:
    queue, earlier, later = _fix_queue_twice(operator, "applied")
    operator.set_visibility_by_hand(99)
    preview = operator.run_json("rollback", "--since", "5h", "--dry-run", code=1)
    assert preview[0]["attributes"][0]["outcome"] == "kept"
    assert (preview[1]["case_id"], preview[1]["error"]["code"]) == (earlier, "wrong_state")
    assert later in preview[1]["error"]["message"]
    move_case(operator.aws, load_newest_case(operator.aws), "closed")
    done = operator.run_json("rollback", "--since", "5h", "--yes", code=3)
    assert [answer["attributes"][0]["later_case"] for answer in done] == [None, None]
    assert operator.aws.visibility(queue) == 99


@pytest.fixture
def rolled_back_case_id(operator: Operator) -> str:
    case_id = operator.open_applied_case()
    operator.connect_lambdas()
    operator.run("rollback", case_id, "--yes")
    operator.account.invoked.clear()
    return case_id


def test_rollback_of_a_rolled_back_case_says_what_was_undone_and_by_whom(
    operator: Operator, rolled_back_case_id: str
) -> None:
    again = operator.read_output("rollback", rolled_back_case_id)
    for text in ("Rolled back already", "undone VisibilityTimeout: 45 s -> 30 s", ALICE):
        assert text in again
    assert "Would be" not in again
    assert [event["dry_run"] for _, event in operator.account.invoked] == [True]


def test_rollback_of_a_rolled_back_case_keeps_a_value_that_a_person_has_set_since(
    operator: Operator, rolled_back_case_id: str
) -> None:
    operator.set_visibility_by_hand(77)
    announced = operator.read_output("rollback", rolled_back_case_id, "--yes", code=3)
    assert "kept VisibilityTimeout: 77 s, set since by somebody else" in announced
    assert [event["dry_run"] for _, event in operator.account.invoked] == [True]
    assert operator.aws.visibility("orders.fifo") == 77


def test_rollback_that_aws_denies_prints_the_command_to_run_by_hand(operator: Operator) -> None:
    """This happens after a change back to observe mode, in which no role may write."""
    case_id = operator.open_applied_case()
    command = "aws sqs set-queue-attributes --attributes VisibilityTimeout=30"
    refused = {"error": "aws_refused", "reason": "AWS refused the change: AccessDenied"}
    by_person = _make_answer(case_id, "printed", now="45", command=command)
    answers = _make_answer(case_id, "undone", now="45"), {**by_person, **refused}
    operator.set_lambda_answers("RollbackFunction", *answers, *answers)
    announced = operator.read_output("rollback", case_id, "--yes", code=1)
    assert "AccessDenied" in announced
    assert f"AWS did not let Mendq write VisibilityTimeout; by hand: {command}" in announced
    done = operator.run_json("rollback", case_id, "--yes", code=1)
    assert done["error"]["code"] == "aws_refused"
    assert [attribute["command"] for attribute in done["attributes"]] == [command]


@pytest.mark.parametrize(
    ("errors", "code"),
    [(("queue_gone", "queue_gone"), 4), (("queue_gone", "claimed"), 1), (("claimed", ""), 1)],
    ids=["both queues deleted", "one deleted, one claimed", "one claimed"],
)
def test_rollback_exits_with_4_if_all_queues_were_deleted_and_with_1_if_another_case_failed(
    operator: Operator, errors: tuple[str, str], code: int
) -> None:
    by_case = {
        operator.open_applied_case(f"{n}.fifo"): {"error": error, "reason": "because"}
        for n, error in enumerate(errors)
        if error
    }
    operator.account.lambdas["RollbackFunction"] = lambda event: by_case[event["case_id"]]
    assert "not done because" in operator.read_output(
        "rollback", "--since", "1h", "--yes", code=code
    )
