"""The bounds of a longer visibility timeout, beyond the entry's own examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples, match
from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT, plan
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import SetVisibilityTimeout
from tests.real_records import SQS_ERRORS, sqs_errors

LIMITS = Limits()
TAG = "mendq:max-processing-seconds"
CEILING = "mendq:max-visibility-seconds"


def consumer(timeout_seconds: int = 30, window: int = 0, **over: Any) -> LambdaConsumer:
    return replace(LambdaConsumer("arn:f", timeout_seconds, window), **over)


def queue(visibility: int, tags: dict[str, str] | None = None, **over: Any) -> Facts:
    facts = examples.queue(tags, VisibilityTimeout=str(visibility))
    attributes = {**facts.attributes, **over.pop("attributes", {})}
    return replace(facts, attributes=attributes, **over)


def refused(facts: Facts) -> str:
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Refusal), answer
    return answer.code


def raised(facts: Facts) -> int:
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Plan), answer
    (step,) = answer.steps
    assert isinstance(step, SetVisibilityTimeout)
    assert step.before == facts.visibility_seconds
    return step.after


REDRIVE = {"RedrivePolicy": '{"deadLetterTargetArn":"arn:x","maxReceiveCount":"5"}'}


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (queue(30, {TAG: "soon"}), "tag_unreadable"),
        (queue(30, {TAG: "0"}), "tag_unreadable"),
        (queue(30, {TAG: "\uff11\uff12"}), "tag_unreadable"),
        (queue(30, {CEILING: "43201"}), "tag_unreadable"),
        (queue(30, {TAG: "20"}), "need_already_met"),
        (queue(35, lambda_consumers=(consumer(30, 5),)), "need_already_met"),
        (queue(601), "over_ceiling"),
        (queue(30, {TAG: "601"}), "over_ceiling"),
        (queue(30, {TAG: "40", CEILING: "59"}), "over_ceiling"),
        (queue(30, lambda_consumers=(consumer(751),)), "over_ceiling"),
        (queue(41, person_visibility_seconds=15), "guess_too_far"),
        (queue(0), "guess_too_far"),
        (queue(30, reader_visibility_seconds=29), "readers_set_their_own"),
        (queue(30, {TAG: "20"}, reader_visibility_seconds=20), "readers_set_their_own"),
        (
            queue(35, lambda_consumers=(consumer(30, 5),), reader_visibility_seconds=20),
            "readers_set_their_own",
        ),
        (
            queue(10, lambda_consumers=(consumer(error_share=0.5, duration_p99_seconds=1.0),)),
            "consumer_failing",
        ),
        (
            queue(10, lambda_consumers=(consumer(error_share=0.5, duration_p99_seconds=26.9),)),
            "consumer_failing",
        ),
        (
            queue(30, attributes={**REDRIVE, "MessageRetentionPeriod": "449"}),
            "over_retention",
        ),
        (queue(30, {TAG: "100"}, attributes={"MessageRetentionPeriod": "299"}), "over_retention"),
        (
            queue(30, attributes={"ApproximateNumberOfMessagesNotVisible": "40001"}),
            "over_in_flight",
        ),
    ],
)
def test_what_is_refused(facts: Facts, code: str) -> None:
    assert refused(facts) == code


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [
        (queue(1), 2),
        (queue(30), 45),
        (queue(31), 47),
        (queue(600), 900),
        (queue(40, person_visibility_seconds=15), 60),
        (queue(30, {TAG: "21"}), 32),
        (queue(1, {TAG: "600"}), 900),
        (queue(30, {TAG: "700", CEILING: "1050"}), 1050),
        (queue(34, lambda_consumers=(consumer(30, 5),)), 41),
        (queue(30, {TAG: "100"}, lambda_consumers=(consumer(30, 5),)), 150),
        (queue(38, {TAG: "26"}, lambda_consumers=(consumer(30, 5),)), 39),
        (queue(30, reader_visibility_seconds=30), 45),
        (queue(30, {TAG: "120"}, reader_visibility_seconds=20), 180),
        (queue(34, lambda_consumers=(consumer(30, 5),), reader_visibility_seconds=20), 41),
        (queue(10, lambda_consumers=(consumer(error_share=0.49, duration_p99_seconds=1.0),)), 36),
        (queue(10, lambda_consumers=(consumer(error_share=0.5, duration_p99_seconds=27.0),)), 36),
        (queue(10, lambda_consumers=(consumer(error_share=1.0, duration_p99_seconds=29.0),)), 36),
        (queue(30, attributes={**REDRIVE, "MessageRetentionPeriod": "450"}), 45),
        (queue(30, {TAG: "100"}, attributes={"MessageRetentionPeriod": "300"}), 150),
        (queue(30, attributes={"RedrivePolicy": "{}"}), 45),
        (queue(30, attributes={"RedrivePolicy": '{"maxReceiveCount": "x"}'}), 45),
        (queue(30, attributes={"ApproximateNumberOfMessagesNotVisible": "40000"}), 45),
    ],
)
def test_what_is_raised_and_how_far(facts: Facts, seconds: int) -> None:
    assert raised(facts) == seconds


def test_a_lambda_consumer_gets_aws_s_advice_as_a_proposal() -> None:
    answer = plan(queue(30, lambda_consumers=(consumer(30, 5),)), LIMITS)
    assert isinstance(answer, Plan)
    assert [each.after for each in answer.proposal] == [185]
    assert answer.reason.endswith("; AWS recommends 185 s")


@pytest.mark.parametrize("facts", [queue(30), queue(30, {TAG: "21"})])
def test_without_a_lambda_consumer_aws_recommends_nothing(facts: Facts) -> None:
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Plan)
    assert answer.proposal == ()
    assert "AWS recommends" not in answer.reason


@given(
    st.integers(0, 43_200),
    st.none() | st.integers(0, 43_200),
    st.none() | st.integers(1, 43_200),
    st.lists(st.tuples(st.integers(1, 900), st.integers(0, 300)), max_size=3),
    st.integers(0, 120_000),
)
def test_a_plan_rises_and_keeps_every_bound(
    visibility: int,
    person: int | None,
    tagged: int | None,
    consumers: list[tuple[int, int]],
    in_flight: int,
) -> None:
    facts = queue(
        visibility,
        {} if tagged is None else {TAG: str(tagged)},
        person_visibility_seconds=person,
        lambda_consumers=tuple(consumer(*each) for each in consumers),
        attributes={**REDRIVE, "ApproximateNumberOfMessagesNotVisible": str(in_flight)},
    )
    answer = plan(facts, LIMITS)
    if isinstance(answer, Plan):
        (step,) = answer.steps
        assert isinstance(step, SetVisibilityTimeout)
        assert step.out_of_bounds() is None
        assert step.after <= LIMITS.visibility_ceiling_seconds
        assert in_flight * step.after <= 60_000 * max(visibility, 1)
        if tagged is None and not consumers:
            assert step.after <= 4 * (visibility if person is None else person)


@pytest.mark.skipif(not SQS_ERRORS.exists(), reason=f"{SQS_ERRORS.name} is not here")
def test_of_the_real_errors_only_the_expired_handles_match() -> None:
    for event_name in ("DeleteMessage", "ChangeMessageVisibility", "SendMessage"):
        matched = [
            error["message"]
            for error in sqs_errors()
            if match(examples.failed_call(event_name, error["code"], error["message"]))
            is VISIBILITY_TIMEOUT_TOO_SHORT
        ]
        assert len(matched) == (0 if event_name == "SendMessage" else 2)
        assert all(each.endswith("The receipt handle has expired.") for each in matched)


def test_an_extension_of_a_message_that_is_no_longer_in_flight_is_caught() -> None:
    for code in ("AWS.SimpleQueueService.MessageNotInflight", "MessageNotInflight"):
        call = examples.failed_call("ChangeMessageVisibility", code, "")
        assert match(call) is VISIBILITY_TIMEOUT_TOO_SHORT
