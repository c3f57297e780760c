"""Test `mendq history`, which lists the changes and cases of a queue."""

from __future__ import annotations

from mendq.cases.baselines import Baselines
from mendq.model.facts import Facts
from mendq.model.queue import make_public_queue_url
from mendq.notifications.queue_lines import describe_configuration
from tests.cli.builders import Operator
from tests.heal.policy_events import ALICE, make_policy_event


def _store_baseline(operator: Operator, arn: str, **tags: str) -> None:
    aws = operator.aws
    facts = Facts(arn, aws.attributes(arn), {"mendq": "heal", **tags})
    Baselines(aws.clients.dynamodb, "case_store").put(arn, describe_configuration(facts), aws.now)


def test_history_lists_the_case_baselines_and_changes_of_a_queue_newest_first(
    operator: Operator,
) -> None:
    aws = operator.aws
    arn = aws.queue("orders.fifo", VisibilityTimeout="90")
    _store_baseline(operator, arn)
    aws.later(days=1)
    aws.set_visibility(arn, 60)
    asked = {"queueUrl": make_public_queue_url(arn), "attributes": {"VisibilityTimeout": "60"}}
    aws.history = [make_policy_event(aws, arn, requestParameters=asked)]
    aws.later(hours=1)
    _store_baseline(operator, arn)
    aws.later(days=1)
    aws.heal(aws.late_deletes(arn, "a", "b", "c"))
    history = operator.run_json("history", "orders.fifo")
    assert [event["kind"] for event in history["events"]] == [
        "case",
        "baseline",
        "change",
        "baseline",
    ]
    case, newer, change, first = history["events"]
    assert case["symptom"] == "visibility_timeout_too_short"
    assert newer["says"] == ["a scan found it well with:", "VisibilityTimeout: 90 -> 60"]
    assert (change["principal_arn"], change["attributes"]) == (ALICE, ["VisibilityTimeout"])
    assert "VisibilityTimeout: not set -> 90" in first["says"]
    assert history["changed_since_baseline"] == ["VisibilityTimeout: 60 -> 90"]
    assert history["changes_not_known"] is None
    output = operator.run("history", arn).stdout
    for words in ("differs now in:", "VisibilityTimeout: 90 -> 60", f"by {ALICE}"):
        assert words in output


def test_history_says_that_a_queue_has_no_baseline(operator: Operator) -> None:
    arn = operator.aws.queue("orders", tag="heal")
    assert operator.run_json("history", arn)["changed_since_baseline"] is None
    assert "no baseline" in operator.read_output("history", arn)


def test_history_says_that_a_queue_has_not_changed_since_its_baseline(operator: Operator) -> None:
    arn = operator.aws.queue("orders", tag="heal")
    _store_baseline(operator, arn)
    assert operator.run_json("history", arn)["changed_since_baseline"] == []
    assert "nothing differs now" in operator.read_output("history", arn)


def test_history_of_a_deleted_queue_is_still_shown(operator: Operator) -> None:
    arn = operator.aws.queue("orders")
    _store_baseline(operator, arn)
    operator.aws.clients.sqs.delete_queue(QueueUrl=operator.aws.url(arn))
    history = operator.run_json("history", arn)
    assert (history["queue_exists"], len(history["events"])) == (False, 1)
    assert "the queue is gone" in operator.read_output("history", arn)


def test_history_escapes_terminal_codes_in_queue_tags(operator: Operator) -> None:
    arn = operator.aws.queue("orders")
    _store_baseline(operator, arn, **{"team\x1b[2J": "\x1b[2J[bold]"})
    output = operator.run("history", arn).stdout
    assert "\x1b" not in output
    assert "[bold]" in output
