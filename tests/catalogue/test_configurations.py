"""Whatever people have typed into a queue's policies, looking at it never fails."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE, examples
from mendq.catalogue.symptom import Found, Symptom
from mendq.model.facts import DlqFacts, Facts, LambdaConsumer, SourceQueue
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal

CONFIGURATIONS = [each for each in CATALOGUE if each.detection and each.detection.of_configuration]
WORDS = st.sampled_from(
    [
        *(
            "*",
            "Allow",
            "Deny",
            "sqs:*",
            "sqs:SendMessage",
            "sns.amazonaws.com",
            "false",
            "byQueue",
        ),
        *("byQueue", "denyAll", "allowAll", "aws:SecureTransport", "aws:SourceArn", "Bool", "5"),
        *(examples.QUEUE_ARN, examples.STANDARD_ARN, examples.DLQ_ARN),
        "arn:aws:sns:us-east-1:123456789012:orders",
    ]
)
KEYS = st.sampled_from(
    [
        *("Statement", "Effect", "Principal", "NotPrincipal", "Action", "Resource", "Condition"),
        *("Service", "AWS", "redrivePermission", "sourceQueueArns", "deadLetterTargetArn"),
        *("maxReceiveCount", "Bool", "ArnEquals", "aws:SecureTransport", "aws:SourceArn"),
    ]
)
JSON = st.recursive(
    WORDS | st.integers() | st.floats() | st.booleans() | st.none() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=16,
)
TEXTS = st.text(max_size=40) | JSON.map(json.dumps) | st.just("[" * 20_000)
ARNS = st.sampled_from([examples.QUEUE_ARN, examples.STANDARD_ARN, examples.DLQ_ARN])
FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 5)


@st.composite
def typed_by_people(draw: st.DrawFn) -> Facts:
    names = ("Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId")
    attributes = {name: draw(TEXTS) for name in names if draw(st.booleans())}
    there = st.dictionaries(st.sampled_from(names), TEXTS, max_size=3)
    facts = examples.queue(None, draw(ARNS), **attributes)
    queues = st.none() | st.builds(DlqFacts, ARNS | WORDS, st.none() | there)
    return replace(
        facts,
        lambda_consumers=draw(st.sampled_from([(), (FUNCTION,)])),
        dlq=draw(queues),
        dlq_namesake=draw(queues),
        dlq_sources=tuple(draw(st.lists(st.builds(SourceQueue, ARNS, there), max_size=3))),
    )


@pytest.mark.parametrize("entry", CONFIGURATIONS, ids=lambda entry: entry.name)
@given(facts=typed_by_people())
def test_no_text_makes_a_look_fail(entry: Symptom, facts: Facts) -> None:
    assert entry.detection is not None
    found = entry.detection.detect(facts)
    assert found is None or isinstance(found, Found)
    if entry.plan is None:
        return
    answer = entry.plan(replace(facts, found=found.because if found else ""), Limits())
    if isinstance(answer, Refusal):
        assert answer.reason
    else:
        assert isinstance(answer, Plan)
        assert all(step.out_of_bounds() is None for step in answer.steps), answer


def test_there_are_such_entries() -> None:
    assert len(CONFIGURATIONS) >= 9
