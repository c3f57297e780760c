from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any, cast

import pytest

from mendq.cli.exit_codes import Stopped
from tests.cli.conftest import Operator, StandIn
from tests.heal.operators import case_of, move

KEYS = ["case_id", "queue_arn", "symptom", "state", "opened_at", "steps", "reason", "code"]


def test_cases_come_newest_first_each_by_its_newest_transition(operator: Operator) -> None:
    assert operator.json("cases") == []
    assert operator.shown("cases") == "no case yet"
    older = operator.applied("older.fifo")
    operator.aws.later(minutes=5)
    newer = operator.applied("newer.fifo")
    found = operator.json("cases")
    assert [each["case_id"] for each in found] == [newer, older]
    assert list(found[0]) == KEYS
    assert found[0]["steps"] == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]
    assert found[0]["state"] == "applied"
    assert found[0]["opened_at"] > found[1]["opened_at"]
    move(operator.aws, case_of(operator.aws), "closed")
    assert [each["state"] for each in operator.json("cases")] == ["closed", "applied"]
    assert [each["case_id"] for each in operator.json("cases", "--open")] == [older]


def test_people_get_whole_names_and_the_whole_reason(operator: Operator) -> None:
    queue = f"{'orders-of-the-whole-company-' * 2}eu.fifo"
    case_id = operator.applied(queue)
    shown = operator.mendq("cases").stdout
    assert f" {queue}\n" in shown
    assert "        VisibilityTimeout: 30 s -> 45 s" in shown
    assert max(map(len, shown.splitlines())) <= 80
    for said in (case_id, case_of(operator.aws).reason):
        assert said in operator.shown("cases")


def test_a_proposal_says_until_when_it_can_be_approved_where_settings_can_be_read(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_id = operator.proposed()
    hours = timedelta(hours=operator.account.known.timing.proposal_hours)
    ends_at, shown = case_of(operator.aws).at + hours, operator.shown("cases")
    assert "not made: VisibilityTimeout: 30 s -> 45 s" in shown
    assert f"until {ends_at:%Y-%m-%d %H:%M} UTC" in shown

    def unreadable(_: StandIn) -> None:
        raise Stopped("no settings")

    monkeypatch.setattr(StandIn, "settings", property(unreadable))
    shown = operator.shown("cases")
    assert case_id in shown
    assert "until when is not known" in shown


HOSTILE = "x\x1b[2J\x9b\r\n\N{RIGHT-TO-LEFT OVERRIDE}[red]/"
PLAIN = re.compile(r"[\n -~]*")


def _with_hostile_text(operator: Operator, case_id: str, path: str) -> None:
    """In one place of the case's newest transition, as whoever may write the table can put it."""
    key = {"pk": {"S": f"case#{case_id}"}, "sk": {"S": "000001"}}
    dynamodb = operator.aws.clients.dynamodb
    item: Any = dynamodb.get_item(TableName="case_store", Key=cast("Any", key))["Item"]
    document = json.loads(item["document"]["S"])
    if path in ("code", "opened_at"):
        item[path] = {"S": HOSTILE}
    elif path.startswith("steps."):
        document["steps"][0][path.removeprefix("steps.")] = HOSTILE
    else:
        document[path] = HOSTILE
    item["document"] = {"S": json.dumps(document)}
    dynamodb.put_item(TableName="case_store", Item=item)


@pytest.mark.parametrize(
    "path",
    [
        *("case_id", "queue_arn", "symptom", "reason", "actor", "at", "to", "from", "n", "code"),
        *("opened_at", "evidence", "steps", "steps.attribute", "steps.before", "steps.after"),
    ],
)
def test_no_field_of_a_case_does_anything_to_the_terminal(operator: Operator, path: str) -> None:
    _with_hostile_text(operator, operator.proposed(), path)
    for arguments in (["cases"], ["cases", "--open"], ["cases", "--json"]):
        result = operator.mendq(*arguments)
        assert PLAIN.fullmatch(result.output + result.stderr), path
        assert result.exception is None or isinstance(result.exception, SystemExit), path
