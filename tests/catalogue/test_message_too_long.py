"""How far a queue's message size goes, and what its DLQ has to say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples, match
from mendq.catalogue.message_too_long import MESSAGE_TOO_LONG, plan
from mendq.model.facts import DlqFacts, Facts
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Plan, Refusal
from tests.architecture import test_documents as documents
from tests.real_records import SQS_ERRORS, sqs_errors

LIMITS = Limits()
DLQ = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
TEXT = "One or more parameters are invalid. Reason: Message must be shorter than {} bytes."
FULL = "1048576"


def queue(redrive: object = None, dead: DlqFacts | None = None, size: str = "1024") -> Facts:
    policy = (
        {}
        if redrive is None
        else {"RedrivePolicy": redrive if isinstance(redrive, str) else json.dumps(redrive)}
    )
    facts = examples.queue(queue_arn=examples.STANDARD_ARN, MaximumMessageSize=size)
    return replace(facts, attributes={**facts.attributes, **policy}, dlq=dead)


def with_dlq(attributes: dict[str, str] | None, arn: str = DLQ) -> Facts:
    return queue({"deadLetterTargetArn": arn, "maxReceiveCount": 5}, DlqFacts(arn, attributes))


def planned(facts: Facts) -> Plan:
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Plan), answer
    (step,) = answer.steps
    assert (step.before, step.after) == (facts.maximum_message_bytes, 1_048_576)
    assert step.out_of_bounds() is None
    return answer


@pytest.mark.parametrize("facts", [queue(size=FULL), with_dlq({})])
def test_a_queue_that_takes_all_is_left_alone(facts: Facts) -> None:
    raised = replace(facts, attributes={**facts.attributes, "MaximumMessageSize": FULL})
    answer = plan(raised, LIMITS)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("need_already_met", None)


@pytest.mark.parametrize(
    ("event_name", "code", "message"),
    [
        ("SendMessage", "InvalidParameterValue", TEXT.format(FULL)),
        ("SendMessage", "InvalidParameterValue", TEXT.format(2_097_152)),
        ("SendMessage", "InvalidParameterValue", TEXT.format(0)),
        ("SendMessage", "InvalidParameterValue", TEXT.format("1024") + " "),
        ("SendMessage", "InvalidParameterValue", "x" + TEXT.format("1024")),
        ("SendMessage", "InvalidParameterValue", TEXT.format("1024\n")),
        ("SendMessage", "InvalidParameterValue", TEXT.format("\u0661\u0660\u0662\u0664")),
        ("SendMessage", "MissingParameter", TEXT.format("1024")),
        ("ReceiveMessage", "InvalidParameterValue", TEXT.format("1024")),
    ],
)
def test_what_is_not_caught(event_name: str, code: str, message: str) -> None:
    assert match(examples.failed_call(event_name, code, message)) is not MESSAGE_TOO_LONG


@pytest.mark.parametrize("limit", [1, 1_024, 262_144, 1_048_575])
@pytest.mark.parametrize("code", ["InvalidParameterValue", "InvalidParameterValueException"])
def test_every_limit_below_sqs_s_is_caught(code: str, limit: int) -> None:
    call = examples.failed_call("SendMessage", code, TEXT.format(limit))
    assert match(call) is MESSAGE_TOO_LONG


@pytest.mark.parametrize(
    "facts",
    [
        queue(),
        queue(""),
        with_dlq({"MaximumMessageSize": FULL}),
        with_dlq({"VisibilityTimeout": "30"}),
    ],
)
def test_where_no_dlq_is_in_the_way_the_settings_decide(facts: Facts) -> None:
    answer = planned(facts)
    assert answer.at_most is Mode.HEAL
    assert answer.first == ()


@pytest.mark.parametrize(
    ("facts", "because", "command"),
    [
        (with_dlq({"MaximumMessageSize": "1048575"}), "takes 1,048,575 bytes", "raise"),
        (
            with_dlq(None, "arn:aws:sqs:eu-west-1:123456789012:orders-dlq"),
            "another account or region",
            "raise",
        ),
        (
            with_dlq({"MaximumMessageSize": FULL}, "arn:aws:sqs:us-east-1:210987654321:d"),
            "another account or region",
            "raise",
        ),
        (with_dlq(None), "is gone", "look"),
        (queue({"deadLetterTargetArn": DLQ}), "names no queue", "look"),
        (queue("{not json"), "names no queue", "look"),
        (queue("[]"), "names no queue", "look"),
        (queue({"deadLetterTargetArn": "arn:x; rm -rf"}), "names no queue", "look"),
        (queue({"deadLetterTargetArn": {"a": 1}}), "names no queue", "look"),
    ],
)
def test_a_dlq_in_the_way_makes_it_a_proposal(facts: Facts, because: str, command: str) -> None:
    answer = planned(facts)
    assert answer.at_most is Mode.PROPOSE
    assert because in answer.reason
    assert "rm -rf" not in answer.reason
    (first,) = answer.first
    assert ("set-queue-attributes" in first) == (command == "raise")
    documents.test_an_aws_command_exists_and_takes_these_options(first)


def test_the_dlq_s_own_raise_can_be_run_as_it_is() -> None:
    (command,) = planned(with_dlq({"MaximumMessageSize": "262144"})).first
    assert command == (
        "aws sqs set-queue-attributes --region us-east-1 "
        "--queue-url https://sqs.us-east-1.amazonaws.com/123456789012/orders-dlq "
        "--attributes MaximumMessageSize=1048576"
    )


@given(st.integers(1_024, 1_048_576), st.text(max_size=80))
def test_any_redrive_policy_gives_an_answer_within_bounds(size: int, policy: str) -> None:
    answer = plan(queue(policy, size=str(size)), LIMITS)
    assert isinstance(answer, Refusal) == (size == 1_048_576)
    if isinstance(answer, Plan):
        assert [each.after for each in answer.steps] == [1_048_576]


def test_a_reader_learns_what_consumers_may_be_built_for() -> None:
    assert "Consumers may be built for 256 KB" in planned(queue()).reason


@pytest.mark.skipif(not SQS_ERRORS.exists(), reason=f"{SQS_ERRORS.name} is not here")
def test_of_the_real_errors_only_the_lower_limit_is_caught() -> None:
    caught = {
        error["message"]
        for error in sqs_errors()
        if match(examples.failed_call("SendMessage", error["code"], error["message"]))
        is MESSAGE_TOO_LONG
    }
    assert caught == {TEXT.format(1024)}
