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

KEYS = [
    *("case_id", "queue_arn", "symptom", "state", "opened_at", "steps", "reason", "code"),
    "shared_default",
]


def test_cases_says_no_case_yet_if_there_is_none(operator: Operator) -> None:
    assert operator.run_json("cases") == []
    assert operator.read_output("cases") == "no case yet"


@pytest.fixture
def two_case_ids(operator: Operator) -> tuple[str, str]:
    """Two applied cases, the older and the newer, opened three hours apart."""
    older = operator.open_applied_case("older.fifo")
    operator.aws.later(hours=3)
    return older, operator.open_applied_case("newer.fifo")


def test_cases_lists_the_newest_case_first_with_its_state_and_steps(
    operator: Operator, two_case_ids: tuple[str, str]
) -> None:
    older, newer = two_case_ids
    cases = operator.run_json("cases")
    assert [case["case_id"] for case in cases] == [newer, older]
    assert list(cases[0]) == KEYS
    assert cases[0]["steps"] == [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}]
    assert cases[0]["state"] == "applied"
    assert cases[0]["opened_at"] > cases[1]["opened_at"]


def test_cases_lists_a_closed_case_in_its_newest_state_and_not_with_the_open_option(
    operator: Operator, two_case_ids: tuple[str, str]
) -> None:
    older, _ = two_case_ids
    move_case(operator.aws, load_newest_case(operator.aws), "closed")
    assert [case["state"] for case in operator.run_json("cases")] == ["closed", "applied"]
    assert [case["case_id"] for case in operator.run_json("cases", "--open")] == [older]


def list_case_ids(operator: Operator, *options: str) -> list[str]:
    return [case["case_id"] for case in operator.run_json("cases", *options)]


def test_cases_filters_by_queue_state_and_symptom(
    operator: Operator, two_case_ids: tuple[str, str]
) -> None:
    older, newer = two_case_ids
    assert list_case_ids(operator, "--queue", "older.fifo") == [older]
    applied = ("--state", "applied", "--symptom", "visibility_timeout_too_short")
    assert list_case_ids(operator, *applied) == [newer, older]
    assert list_case_ids(operator, "--state", "closed") == []
    assert list_case_ids(operator, "--symptom", "dlq_missing") == []


def test_cases_filters_by_time_and_limit_and_counts_the_older_cases_that_it_leaves_out(
    operator: Operator, two_case_ids: tuple[str, str]
) -> None:
    _, newer = two_case_ids
    opened_at = operator.run_json("cases", "--limit", "1")[0]["opened_at"]
    assert list_case_ids(operator, "--since", opened_at) == [newer]
    assert list_case_ids(operator, "--limit", "1") == [newer]
    assert "and 1 older" in operator.read_output("cases", "--limit", "1")


def test_cases_with_an_unknown_symptom_is_refused_and_names_a_similar_one(
    operator: Operator,
) -> None:
    misspelled = ("cases", "--symptom", "visibility_timeout_short")
    assert "visibility_timeout_too_short" in operator.read_refusal(*misspelled, code=2)


def test_cases_with_a_time_that_cannot_be_read_is_refused(operator: Operator) -> None:
    operator.read_refusal("cases", "--since", "yesterday", code=2)


def test_show_finds_the_open_case_by_queue_name_or_by_the_beginning_of_its_id(
    operator: Operator,
) -> None:
    case_id = operator.open_proposed_case()
    for named in ("orders.fifo", case_id[:-3]):
        assert operator.run_json("show", named)["case_id"] == case_id


def test_show_of_the_beginning_of_a_queue_name_finds_no_case(operator: Operator) -> None:
    operator.open_proposed_case()
    operator.read_refusal("show", "orders", code=4)


@pytest.mark.parametrize("command", ["approve", "rollback"])
def test_approve_or_rollback_with_a_queue_name_is_refused_and_prints_the_id_of_its_case(
    operator: Operator, command: str
) -> None:
    case_id = operator.open_proposed_case()
    assert case_id in operator.read_refusal(command, "orders.fifo", "--yes", code=2)
    assert operator.account.invoked == []


def test_show_of_a_beginning_that_two_cases_share_is_refused(operator: Operator) -> None:
    operator.open_proposed_case()
    operator.open_applied_case("bills.fifo")
    assert "fits 2 open cases" in operator.read_refusal("show", "visibility_timeout", code=2)


def test_cases_shows_until_when_a_proposal_can_be_approved(operator: Operator) -> None:
    operator.open_proposed_case()
    hours = timedelta(hours=operator.account.known.timing.proposal_hours)
    ends_at = load_newest_case(operator.aws).at + hours
    output = operator.read_output("cases")
    assert "not made: VisibilityTimeout: 30 s -> 45 s" in output
    assert f"until {ends_at:%Y-%m-%d %H:%M} UTC" in output


def test_cases_says_that_a_deadline_is_not_known_if_the_settings_cannot_be_read(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_id = operator.open_proposed_case()

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
def test_cases_escapes_terminal_codes_in_every_field_of_a_case_and_does_not_crash(
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
def test_show_and_cases_escape_hostile_next_steps_evidence_and_steps_and_do_not_crash(
    operator: Operator, path: str, hostile: object
) -> None:
    case_id = operator.open_proposed_case()
    _put_hostile_text(operator, case_id, path, hostile)
    for arguments in (["show", case_id], ["show", case_id, "--json"], ["cases"]):
        result = operator.run(*arguments)
        assert PLAIN.fullmatch(result.output + result.stderr), path
        assert result.exception is None or isinstance(result.exception, SystemExit), path
