from __future__ import annotations

from tests.cli.conftest import Operator


def test_a_case_that_is_not_there(operator: Operator) -> None:
    result = operator.mendq("show", "nothing-like-it")
    assert result.exit_code == 4
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "mendq cases" in result.stderr


def test_a_case_nobody_has_changed_since(operator: Operator) -> None:
    case_id = operator.applied()
    found = operator.json("show", case_id)
    assert found["facts"]["VisibilityTimeout"] == "30"
    assert found["difference"] == ["VisibilityTimeout: 30 -> 45"]
    assert [each["to"] for each in found["transitions"]] == ["applied"]
    assert found["evidence"]["failed_calls"] == 3
    (undo,) = found["undo"]
    assert "VisibilityTimeout=30" in undo


def test_a_queue_that_is_gone(operator: Operator) -> None:
    case_id = operator.applied()
    arn = operator.json("show", case_id)["queue_arn"]
    operator.aws.clients.sqs.delete_queue(QueueUrl=operator.aws.url(arn))
    found = operator.json("show", case_id)
    assert found["queue_exists"] is False
    assert found["difference"] == []
    assert "is gone" in operator.mendq("show", case_id).stdout


def test_what_people_see(operator: Operator) -> None:
    case_id = operator.applied()
    shown = operator.mendq("show", case_id).stdout
    for words in ("Timeline", "Evidence", "Plan", "30 s -> 45 s", f"mendq roll-back {case_id}"):
        assert words in shown


def test_a_reason_from_outside_cannot_steer_the_terminal(operator: Operator) -> None:
    operator.applied()
    table = operator.account.output("LedgerTable")
    client = operator.aws.clients.dynamodb
    for item in client.scan(TableName=table)["Items"]:
        if item["pk"]["S"].startswith("case#"):
            spoilt = item["document"]["S"].replace('"reason": "', '"reason": "\\u001b[2J[bold]')
            assert spoilt != item["document"]["S"]
            client.put_item(TableName=table, Item={**item, "document": {"S": spoilt}})
    for command in (("cases",), ("show", item["pk"]["S"].removeprefix("case#"))):
        assert "\x1b[2J" not in operator.mendq(*command).stdout
