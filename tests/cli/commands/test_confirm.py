"""Test `mendq confirm`, which lets Mendq use a queue that it did not make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mendq.cli.decide import confirm as command
from mendq.cli.doctor.check import Status
from mendq.cli.doctor.receivers import check_receivers
from mendq.model.dlq import arn_of_quarantine
from tests.account.receivers import open_receivers
from tests.cli.builders import Operator

FIT = {"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true"}
ROLE = "arn:aws:iam::123456789012:role/other-team"
ROLE_POLICY = json.dumps(
    {
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": ROLE},
                "Action": "sqs:*",
                "Resource": "*",
            }
        ]
    }
)
EVERYBODY_POLICY = ROLE_POLICY.replace(ROLE, "arn:aws:iam::444455556666:root")


@pytest.fixture
def quarantine(operator: Operator) -> str:
    """The queue `orders-quarantine` of another team, beside the queue `orders`."""
    operator.aws.queue("orders", tag=None, **FIT)
    arn = operator.aws.queue("orders-quarantine", tag=None, Policy=ROLE_POLICY, **FIT)
    operator.aws.tag(arn, team="others")
    return arn


def test_confirm_shows_who_can_read_the_queue_and_records_it_as_it_is(
    operator: Operator, quarantine: str
) -> None:
    output = operator.read_output("confirm", "orders-quarantine", "--yes")
    assert ROLE in output
    assert '"team": "others"' in output
    assert "Mendq sends nothing there now: nothing records that Mendq made it" in output
    receiver = open_receivers(operator.aws).load(quarantine)
    assert receiver is not None
    attributes = operator.aws.attributes(quarantine)
    assert receiver.created_at is not None
    assert receiver.created_at.timestamp() == float(attributes["CreatedTimestamp"])
    assert receiver.access["Policy"] == ROLE_POLICY
    assert receiver.tags == {"team": "others"}
    assert receiver.recorded_by.startswith("arn:aws:")
    assert not receiver.is_made_by_mendq


def test_confirm_shows_the_last_statement_of_a_long_policy_and_the_last_of_many_tags(
    operator: Operator, quarantine: str
) -> None:
    statement = json.loads(ROLE_POLICY)["Statement"][0]
    harmless_role = ROLE.replace("other-team", "harmless")
    harmless = {**statement, "Principal": {"AWS": harmless_role}}
    last = {**statement, "Principal": {"AWS": ROLE.replace("other-team", "evil-role")}}
    operator.aws.set(quarantine, Policy=json.dumps({"Statement": [*[harmless] * 40, last]}))
    long_tags = {f"tag-{number:02}": "x" * 250 for number in range(10)}
    operator.aws.tag(quarantine, **long_tags, zone="evil-tag")
    output = operator.read_output("confirm", "orders-quarantine", "--yes")
    assert "evil-role" in output
    assert "evil-tag" in output


def test_confirm_records_nothing_without_a_yes(operator: Operator, quarantine: str) -> None:
    operator.run_json("confirm", "orders-quarantine", code=2)
    assert open_receivers(operator.aws).load(quarantine) is None


def test_confirm_records_nothing_if_the_queue_changed_during_the_question(
    operator: Operator, quarantine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(*_: Any, **__: Any) -> None:
        operator.aws.tag(quarantine, team="attackers")

    monkeypatch.setattr(command, "confirm", change)
    refusal = operator.read_refusal("confirm", "orders-quarantine", code=1)
    assert "was changed while you looked, so nothing was recorded" in refusal
    assert open_receivers(operator.aws).load(quarantine) is None


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"Policy": EVERYBODY_POLICY}, "which is not of this account"),
        ({"MessageRetentionPeriod": "60"}, "less than 1209600 seconds"),
    ],
)
def test_confirm_refuses_a_quarantine_open_to_another_account_or_with_too_short_retention(
    operator: Operator, quarantine: str, attributes: dict[str, str], says: str
) -> None:
    operator.aws.set(quarantine, **attributes)
    refusal = operator.read_refusal("confirm", "orders-quarantine", "--yes", code=1)
    assert says in refusal
    assert open_receivers(operator.aws).load(quarantine) is None


def test_confirm_revoke_removes_the_confirmation_and_exits_with_4_the_second_time(
    operator: Operator, quarantine: str
) -> None:
    operator.run_json("confirm", "orders-quarantine", "--yes")
    operator.run_json("confirm", "orders-quarantine", "--revoke", "--yes")
    assert open_receivers(operator.aws).load(quarantine) is None
    refusal = operator.read_refusal("confirm", "orders-quarantine", "--revoke", "--yes", code=4)
    assert "nothing was changed" in refusal


def test_confirm_refuses_a_queue_that_does_not_exist(operator: Operator) -> None:
    refusal = operator.read_refusal("confirm", "orders-dlq", "--yes", code=4)
    assert "there is no queue" in refusal


LONG_NAME = "x" * 75


@pytest.fixture
def long_quarantine(operator: Operator) -> str:
    """The quarantine of a queue whose name is cut for it. Another source has the same one."""
    source = operator.aws.queue(LONG_NAME, tag=None, **FIT)
    quarantine_name = arn_of_quarantine(source).rpartition(":")[2]
    operator.aws.queue(quarantine_name.removesuffix("-quarantine"), tag=None, **FIT)
    return operator.aws.queue(quarantine_name, tag=None, **FIT)


def test_confirm_records_the_source_that_the_quarantines_name_tells(
    operator: Operator, quarantine: str
) -> None:
    operator.run_json("confirm", "orders-quarantine", "--yes")
    receiver = open_receivers(operator.aws).load(quarantine)
    assert receiver is not None
    assert receiver.source_arn == quarantine.removesuffix("-quarantine")


def test_confirm_of_a_quarantine_with_a_shortened_name_is_refused_without_its_source(
    operator: Operator, long_quarantine: str
) -> None:
    name = long_quarantine.rpartition(":")[2]
    refusal = operator.read_refusal("confirm", name, "--yes", code=2)
    assert "add --source SOURCE" in refusal
    assert open_receivers(operator.aws).load(long_quarantine) is None
    operator.run_json("confirm", name, "--source", LONG_NAME, "--yes")
    receiver = open_receivers(operator.aws).load(long_quarantine)
    assert receiver is not None
    assert receiver.source_arn.rpartition(":")[2] == LONG_NAME


def test_confirm_again_needs_no_source_for_a_shortened_name_that_is_recorded(
    operator: Operator, long_quarantine: str
) -> None:
    name = long_quarantine.rpartition(":")[2]
    operator.run_json("confirm", name, "--source", LONG_NAME, "--yes")
    output = operator.read_output("confirm", name, "--yes")
    assert f"quarantine of {LONG_NAME}" in output


@pytest.mark.parametrize("name", ["orders-quarantine", "orders-dlq"])
def test_confirm_refuses_a_source_whose_quarantine_has_another_name(
    operator: Operator, quarantine: str, name: str
) -> None:
    operator.aws.queue("orders-dlq", tag=None, **FIT)
    refusal = operator.read_refusal("confirm", name, "--source", "refunds", "--yes", code=2)
    assert "nothing was recorded" in refusal
    assert open_receivers(operator.aws).load(quarantine) is None


def test_quarantine_return_and_drop_refuse_a_quarantine_that_is_recorded_for_another_source(
    operator: Operator, long_quarantine: str, tmp_path: Path
) -> None:
    name = long_quarantine.rpartition(":")[2]
    operator.run_json("confirm", name, "--source", LONG_NAME, "--yes")
    url = operator.aws.url(long_quarantine)
    operator.aws.clients.sqs.send_message(QueueUrl=url, MessageBody="one")
    shorter = name.removesuffix("-quarantine")
    kept = str(tmp_path / "kept.jsonl")
    # The account's clock stands still, so a long poll would never end if the command received.
    operator.account.clients.sqs.meta.events.register(
        "before-parameter-build.sqs.ReceiveMessage",
        lambda params, **_: params.update(WaitTimeSeconds=0),
    )
    for words in (("return", shorter), ("drop", shorter, "--file", kept)):
        error = operator.run_json("quarantine", *words, "--all", "--yes", code=1)["error"]
        assert error["code"] == "receiver_unconfirmed"
        assert f"the quarantine of {LONG_NAME}, not of {shorter}" in error["message"]
        assert "mendq confirm" not in error["message"], "it would take it from its source"
    assert operator.aws.attributes(long_quarantine)["ApproximateNumberOfMessages"] == "1"


def test_quarantine_list_and_doctor_print_no_confirm_command_for_another_sources_quarantine(
    operator: Operator, long_quarantine: str
) -> None:
    """Anyone who may create queues can choose the name of the other source.

    So a printed command could confirm an attacker's queue.
    """
    name = long_quarantine.rpartition(":")[2]
    other_source = long_quarantine.removesuffix("-quarantine")
    operator.aws.tag(other_source, mendq="observe")
    assert f"mendq confirm {name}" in operator.read_output("quarantine", "list")
    operator.run_json("confirm", name, "--source", LONG_NAME, "--yes")
    output = operator.read_output("quarantine", "list")
    assert "mendq confirm" not in output
    assert "Leave the quarantine to that source" in output
    (document,) = operator.run_json("quarantine", "list")
    assert f"not of {other_source.rpartition(':')[2]}" in document["objection"]
    (check,) = check_receivers(operator.account, [other_source], operator.aws.now)
    assert check.status is Status.WARN
    assert "Leave the quarantine to that source" in check.sentence
    assert "mendq confirm" not in f"{check.sentence} {check.remedy}"


def test_quarantine_return_by_the_quarantines_name_fails_if_the_recorded_source_was_deleted(
    operator: Operator, long_quarantine: str
) -> None:
    """The name alone tells the other source."""
    name = long_quarantine.rpartition(":")[2]
    operator.run_json("confirm", name, "--source", LONG_NAME, "--yes")
    source = long_quarantine.replace(name, LONG_NAME)
    operator.aws.clients.sqs.delete_queue(QueueUrl=operator.aws.url(source))
    error = operator.run_json("quarantine", "return", name, "--all", "--yes", code=4)["error"]
    assert f"there is no queue {source}" in error["message"]
