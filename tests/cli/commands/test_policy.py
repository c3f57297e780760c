"""Test `mendq policy`, which pins, shows and unpins queue policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from mendq.cases.pins import Pins
from mendq.cli.account import Account
from mendq.cli.decide import policy as command
from mendq.model.policy import Pin, digest_of_policy
from tests.account.account import WORKER
from tests.cli.builders import Operator
from tests.heal.policy_events import DEPLOYS, cloudformation_fields
from tests.heal.restoring import EMPTIED, GRANTS, QUEUE, make_policy, set_policy


@pytest.fixture
def queue(operator: Operator) -> str:
    """A queue whose policy was set an hour ago."""
    aws = operator.aws
    aws.later(hours=-1)
    queue_arn = aws.queue("orders", Policy=GRANTS)
    aws.later(hours=1)
    return queue_arn


def _load_pin(operator: Operator) -> Pin:
    pin = Pins(operator.aws.clients.dynamodb, "case_store").load(QUEUE)
    assert pin is not None
    return pin


def test_policy_pin_shows_the_whole_policy_and_stores_its_exact_text(
    operator: Operator, queue: str
) -> None:
    result = operator.run("policy", "pin", queue, "--yes")
    output = "".join(result.output.split())
    for line in json.dumps(json.loads(GRANTS), indent=2).splitlines():
        assert "".join(line.split()) in output
    pin = _load_pin(operator)
    assert (pin.policy, pin.digest, pin.generation) == (GRANTS, digest_of_policy(GRANTS), 1)
    assert pin.digest in output
    assert pin.pinned_by.startswith("arn:aws:")
    attributes = operator.aws.attributes(queue)
    assert pin.queue_created_at.timestamp() == float(attributes["CreatedTimestamp"])
    assert pin.queue_modified_at.timestamp() == float(attributes["LastModifiedTimestamp"])


def test_policy_pin_refuses_a_queue_without_a_policy_and_stores_nothing(
    operator: Operator,
) -> None:
    operator.aws.later(hours=-1)
    operator.aws.queue("orders")
    operator.aws.later(hours=1)
    assert "no policy" in operator.read_refusal("policy", "pin", "orders", "--yes", code=1)
    assert operator.aws.case_store_items() == {}


@pytest.mark.usefixtures("queue")
def test_policy_pin_refuses_a_policy_that_was_changed_just_now_and_stores_nothing(
    operator: Operator,
) -> None:
    set_policy(operator.aws, QUEUE, EMPTIED)
    assert "changed just now" in operator.read_refusal("policy", "pin", "orders", "--yes", code=1)
    assert operator.aws.case_store_items() == {}


@pytest.mark.usefixtures("queue")
def test_policy_pin_refuses_a_just_changed_policy_even_if_this_machines_clock_is_an_hour_ahead(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = structs.replace(operator.account, clock_ahead=timedelta(hours=1))
    monkeypatch.setattr(Account, "from_options", lambda *_: account)
    refusal = operator.read_refusal("policy", "pin", "orders", "--yes", code=1)
    assert "changed just now" in refusal
    assert operator.aws.case_store_items() == {}


@pytest.mark.usefixtures("queue")
def test_policy_pin_is_refused_if_the_pin_or_the_policy_changed_during_the_question(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: Any, **__: Any) -> None:
        monkeypatch.undo()
        monkeypatch.setattr("mendq.cli.account.Account.from_options", lambda *_: operator.account)
        operator.run_json("policy", "pin", "orders", "--yes", "--automation", DEPLOYS)

    def change(*_: Any, **__: Any) -> None:
        set_policy(operator.aws, QUEUE, EMPTIED)

    for meanwhile, says in ((look, "somebody else"), (change, "while you looked")):
        monkeypatch.setattr(command, "confirm", meanwhile)
        assert says in operator.read_refusal("policy", "pin", "orders", code=1)
    assert (_load_pin(operator).generation, _load_pin(operator).automation) == (1, (DEPLOYS,))


@pytest.mark.usefixtures("queue")
def test_policy_pin_again_shows_the_difference_and_counts_the_next_generation(
    operator: Operator,
) -> None:
    operator.run_json("policy", "pin", "orders", "--yes")
    operator.aws.later(hours=-1)
    set_policy(operator.aws, QUEUE, make_policy(WORKER, DEPLOYS, "*"))
    operator.aws.later(hours=1)
    output = operator.read_output("policy", "pin", "orders", "--yes", "--automation", DEPLOYS)
    for text in ("it may let everybody in", "Different from generation 1", "is new"):
        assert text in output
    assert (_load_pin(operator).generation, _load_pin(operator).automation) == (2, (DEPLOYS,))


@pytest.mark.usefixtures("queue")
def test_policy_unpin_without_yes_is_refused_and_keeps_the_pin(operator: Operator) -> None:
    operator.run_json("policy", "pin", "orders", "--yes")
    assert operator.read_refusal("policy", "unpin", "orders", code=2).startswith("not confirmed")
    assert _load_pin(operator).generation == 1


@pytest.mark.usefixtures("queue")
def test_policy_unpin_removes_the_pin_and_a_new_pin_never_reuses_its_generation_number(
    operator: Operator,
) -> None:
    operator.run_json("policy", "pin", "orders", "--yes")
    document = operator.run_json("policy", "unpin", "orders", "--yes")
    assert document["removed"]["generation"] == 1
    operator.run_json("policy", "show", "orders", code=4)
    assert operator.run_json("policy", "pin", "orders", "--yes")["generation"] == 2


def _change_policy(operator: Operator, minutes_ago: int, policy: str, **over: Any) -> Any:
    """Change the policy `minutes_ago`. Return what `policy show` says now."""
    operator.aws.later(minutes=-minutes_ago)
    set_policy(operator.aws, QUEUE, policy, **over)
    operator.aws.later(minutes=minutes_ago)
    return operator.run_json("policy", "show", "orders")


@pytest.fixture
def pinned_queue(operator: Operator, queue: str) -> str:
    """A queue whose policy is pinned."""
    operator.run_json("policy", "pin", "orders", "--yes")
    return queue


@pytest.mark.usefixtures("pinned_queue")
def test_policy_show_says_that_the_pinned_policy_is_in_force(operator: Operator) -> None:
    document = operator.run_json("policy", "show", "orders")
    assert (document["stands"], document["good"], document["doubt"]) == (True, True, "")
    assert document["policy"] == GRANTS


@pytest.mark.usefixtures("pinned_queue")
def test_policy_show_names_cloudformation_if_a_deployment_overwrote_the_policy(
    operator: Operator,
) -> None:
    document = _change_policy(operator, 25, EMPTIED, **cloudformation_fields())
    assert (document["stands"], document["good"]) == (False, True)
    assert document["overwritten_by"] == "CloudFormation"


@pytest.mark.usefixtures("pinned_queue")
def test_policy_show_of_an_overwritten_pin_shows_the_difference_before_the_advice(
    operator: Operator,
) -> None:
    document = _change_policy(operator, 8, make_policy(DEPLOYS))
    assert (document["stands"], document["good"], document["passes"]) == (False, False, False)
    assert "has changed it since" in document["doubt"]
    output = operator.read_output("policy", "show", "orders")
    for line in document["different"]:
        assert " ".join(line.split()) in output
    assert output.index("Different now") < output.index("If somebody meant the difference above")


@pytest.mark.usefixtures("pinned_queue")
def test_policy_show_says_to_wait_if_cloudtrail_has_not_delivered_the_change_yet(
    operator: Operator,
) -> None:
    _change_policy(operator, 2, EMPTIED)
    operator.aws.history.clear()
    document = operator.run_json("policy", "show", "orders")
    assert (document["good"], document["passes"]) == (False, True)
    assert document["different"]
    output = operator.read_output("policy", "show", "orders")
    assert "wait: CloudTrail tells late" in output
    assert "`mendq policy pin`" not in output


def test_policy_with_duplicate_keys_is_shown_as_escaped_raw_text() -> None:
    twice = '{"Statement": [], "Statement": [{"Effect": "Allow"}], "Id": "\u202e\x1b"}'
    (line,) = command.list_policy_lines(twice)
    assert json.loads(line) == twice
    assert line.isascii()
    assert line.isprintable()


_UNREADABLE = json.loads(Path(__file__).with_name("unreadable_pins.json").read_text())
_KEY = {"pk": {"S": QUEUE}, "sk": {"S": "pin"}}


def _put_pin_item(operator: Operator, attributes: Mapping[str, Any]) -> dict[str, Any]:
    item = {**_KEY, **attributes}
    operator.aws.clients.dynamodb.put_item(TableName="case_store", Item=item)
    return item


def _read_pin_item(operator: Operator) -> dict[str, Any]:
    return dict(operator.aws.clients.dynamodb.get_item(TableName="case_store", Key=_KEY)["Item"])


@pytest.mark.parametrize("attributes", _UNREADABLE)
@pytest.mark.parametrize("command_words", [("show", "orders"), ("pin", "orders", "--yes")])
@pytest.mark.usefixtures("queue")
def test_policy_show_and_pin_refuse_an_unreadable_pin_name_unpin_and_change_nothing(
    operator: Operator, attributes: dict[str, Any], command_words: tuple[str, ...]
) -> None:
    item = _put_pin_item(operator, attributes)
    message = operator.read_refusal("policy", *command_words, code=1)
    assert "cannot be read" in message
    assert "policy unpin" in message
    assert _read_pin_item(operator) == item


@pytest.mark.parametrize("attributes", _UNREADABLE)
@pytest.mark.usefixtures("queue")
def test_policy_unpin_removes_an_unreadable_pin_only_with_yes(
    operator: Operator, attributes: dict[str, Any]
) -> None:
    item = _put_pin_item(operator, attributes)
    assert "not confirmed" in operator.read_refusal("policy", "unpin", "orders", code=2)
    assert _read_pin_item(operator) == item
    operator.run_json("policy", "unpin", "orders", "--yes")
    operator.run_json("policy", "show", "orders", code=4)


@pytest.mark.parametrize("attributes", _UNREADABLE)
@pytest.mark.usefixtures("queue")
def test_policy_pin_after_an_unreadable_pin_counts_on_from_its_generation_or_else_from_1(
    operator: Operator, attributes: dict[str, Any]
) -> None:
    _put_pin_item(operator, attributes)
    operator.run_json("policy", "unpin", "orders", "--yes")
    number = 4 if attributes.get("generation") == {"N": "3"} else 1
    assert operator.run_json("policy", "pin", "orders", "--yes")["generation"] == number


@pytest.mark.usefixtures("queue")
def test_policy_unpin_keeps_an_unreadable_pin_that_was_repaired_during_the_question(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.run_json("policy", "pin", "orders", "--yes")
    good = _read_pin_item(operator)
    _put_pin_item(operator, {"pin": {"S": "{}"}, "generation": good["generation"]})
    monkeypatch.setattr(command, "confirm", lambda *_, **__: _put_pin_item(operator, good))
    assert "somebody else" in operator.read_refusal("policy", "unpin", "orders", code=1)
    assert _read_pin_item(operator) == good


def test_policy_show_lists_the_approved_sources_of_a_dlq_and_unpin_removes_one_source(
    operator: Operator,
) -> None:
    dead = operator.aws.queue("orders-dlq")
    source = operator.aws.queue("orders")
    assert operator.read_refusal("policy", "unpin", dead, "--source", source, "--yes", code=4)
    pins = Pins(operator.aws.clients.dynamodb, "case_store")
    pins.approve_source(dead, source)
    assert operator.run_json("policy", "show", dead) == {"approved_sources": [source]}
    assert "a person approved that once" in operator.read_output("policy", "show", dead)
    removed = operator.run_json("policy", "unpin", dead, "--source", "orders", "--yes")
    assert removed == {"removed": source}
    assert pins.load_approved_sources(dead) == frozenset()
    assert "has no pin" in operator.read_refusal("policy", "show", dead, code=4)


def test_policy_unpin_with_an_empty_source_is_refused_and_keeps_the_pin(
    operator: Operator, queue: str
) -> None:
    """An unset shell variable names no source. It must not stand for the whole pin."""
    operator.run_json("policy", "pin", "orders", "--yes")
    arguments = ("policy", "unpin", queue, "--source", "", "--yes")
    assert "is not a queue's name" in operator.read_refusal(*arguments, code=2)
    assert operator.run_json("policy", "show", "orders")["generation"] == 1
