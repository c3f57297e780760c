"""Test `mendq cases`, which lists cases, and how `mendq show` finds one."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any, cast

import pytest

from mendq.cli.exit_codes import CommandError
from tests.cli.builders import FakeDeployedAccount, Operator
from tests.heal.operators import load_newest_case, move_case

KEYS = ["case_id", "queue_arn", "symptom", "state", "opened_at", "steps", "reason", "code"]


def test_cases_lists_newest_first_with_the_newest_transition_of_each_case(
    operator: Operator,
) -> None:
    assert operator.run_json("cases") == []
    assert operator.read_output("cases") == "no case yet"
    older = operator.open_applied_case("older.fifo")
    operator.aws.later(minutes=5)
    newer = operator.open_applied_case("newer.fifo")
    cases = operator.run_json("cases")
    assert [case["case_id"] for case in cases] == [newer, older]
    assert list(cases[0]) == KEYS
    assert cases[0]["steps"] == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]
    assert cases[0]["state"] == "applied"
    assert cases[0]["opened_at"] > cases[1]["opened_at"]
    move_case(operator.aws, load_newest_case(operator.aws), "closed")
    assert [case["state"] for case in operator.run_json("cases")] == ["closed", "applied"]
    assert [case["case_id"] for case in operator.run_json("cases", "--open")] == [older]


def test_cases_filters_by_queue_state_symptom_time_and_limit(operator: Operator) -> None:
    older = operator.open_applied_case("older.fifo")
    operator.aws.later(hours=3)
    newer = operator.open_applied_case("newer.fifo")

    def ids(*asked: str) -> list[str]:
        return [case["case_id"] for case in operator.run_json("cases", *asked)]

    assert ids("--queue", "older.fifo") == [older]
    assert ids("--state", "applied", "--symptom", "visibility_timeout_too_short") == [newer, older]
    assert ids("--state", "closed") == ids("--symptom", "dlq_missing") == []
    opened_at = operator.run_json("cases", "--limit", "1")[0]["opened_at"]
    assert ids("--since", opened_at) == ids("--limit", "1") == [newer]
    assert "and 1 older" in operator.read_output("cases", "--limit", "1")
    assert "visibility_timeout_too_short" in operator.read_refusal(
        "cases", "--symptom", "visibility_timeout_short", code=2
    )
    operator.read_refusal("cases", "--since", "yesterday", code=2)


def test_show_finds_the_open_case_by_queue_name_or_by_the_beginning_of_its_id(
    operator: Operator,
) -> None:
    case_id = operator.open_proposed_case()
    for named in ("orders.fifo", case_id[:-3]):
        assert operator.run_json("show", named)["case_id"] == case_id
    operator.read_refusal("show", "orders", code=4)
    for words in (("approve",), ("rollback",)):
        assert case_id in operator.read_refusal(*words, "orders.fifo", "--yes", code=2)
    assert operator.account.invoked == []
    operator.open_applied_case("bills.fifo")
    assert "fits 2 open cases" in operator.read_refusal("show", "visibility_timeout", code=2)


def test_cases_shows_the_approval_deadline_of_a_proposal_or_that_the_deadline_is_not_known(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_id = operator.open_proposed_case()
    hours = timedelta(hours=operator.account.known.timing.proposal_hours)
    ends_at = load_newest_case(operator.aws).at + hours
    output = operator.read_output("cases")
    assert "not made: VisibilityTimeout: 30 s -> 45 s" in output
    assert f"until {ends_at:%Y-%m-%d %H:%M} UTC" in output

    def unreadable(_: FakeDeployedAccount) -> None:
        raise CommandError("no settings")

    monkeypatch.setattr(FakeDeployedAccount, "settings", property(unreadable))
    output = operator.read_output("cases")
    assert case_id in output
    assert "until when is not known" in output


HOSTILE = "x\x1b[2J\x9b\r\n\N{RIGHT-TO-LEFT OVERRIDE}[red]/"
PLAIN = re.compile(r"[\n -~]*")


def _put_hostile_text(
    operator: Operator, case_id: str, path: str, hostile: object = HOSTILE
) -> None:
    """Put hostile text into one field of a stored transition, as anyone with write access could."""
    key = {"pk": {"S": f"case#{case_id}"}, "sk": {"S": "000001"}}
    dynamodb = operator.aws.clients.dynamodb
    item: Any = dynamodb.get_item(TableName="case_store", Key=cast("Any", key))["Item"]
    document = json.loads(item["document"]["S"])
    if path in ("code", "opened_at"):
        item[path] = {"S": hostile}
    elif "." in path:
        whole, name = path.split(".")
        (document[whole][0] if whole == "steps" else document[whole])[name] = hostile
    else:
        document[path] = hostile
    item["document"] = {"S": json.dumps(document)}
    dynamodb.put_item(TableName="case_store", Item=item)


@pytest.mark.parametrize(
    "path",
    [
        *("case_id", "queue_arn", "symptom", "reason", "actor", "at", "to", "from", "n", "code"),
        *("opened_at", "evidence", "steps", "steps.attribute", "steps.before", "steps.after"),
    ],
)
def test_cases_escapes_terminal_codes_in_every_field_of_a_case(
    operator: Operator, path: str
) -> None:
    _put_hostile_text(operator, operator.open_proposed_case(), path)
    for arguments in (["cases"], ["cases", "--open"], ["cases", "--json"]):
        result = operator.run(*arguments)
        assert PLAIN.fullmatch(result.output + result.stderr), path
        assert result.exception is None or isinstance(result.exception, SystemExit), path


@pytest.mark.parametrize(
    ("path", "hostile"),
    [
        *(("next_step", {name: HOSTILE}) for name in ("sentence", "command", "runbook")),
        ("next_step", {"sentence": 5, "command": [HOSTILE], "runbook": None}),
        *(("evidence.first_at", value) for value in (HOSTILE, 10**30, "2026-11-09T14:02:11")),
        *(("at", f"{day}T23:59:59{zone}") for day in ("0001-01-01", "9999-12-31") for zone in "Z "),
        (
            "evidence.needs",
            [{"what": HOSTILE, "seconds": seconds_needed} for seconds_needed in (5, 10**30, None)],
        ),
        ("evidence.messages", {"delayed": 10**30, HOSTILE: HOSTILE}),
        *(("evidence.lowered_by", value) for value in (HOSTILE * 500, [HOSTILE])),
        *(("steps.before", value) for value in (5, None, [HOSTILE], "9" * 300)),
    ],
)
def test_show_escapes_terminal_codes_in_next_step_evidence_and_steps(
    operator: Operator, path: str, hostile: object
) -> None:
    case_id = operator.open_proposed_case()
    _put_hostile_text(operator, case_id, path, hostile)
    for arguments in (["show", case_id], ["show", case_id, "--json"], ["cases"]):
        result = operator.run(*arguments)
        assert PLAIN.fullmatch(result.output + result.stderr), path
        assert result.exception is None or isinstance(result.exception, SystemExit), path
