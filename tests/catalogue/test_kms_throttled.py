"""How far a data key's use is stretched, beyond the entry's own examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples, match
from mendq.catalogue.kms_throttled import KMS_THROTTLED, plan
from mendq.model.case import State
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from tests.architecture import test_documents as documents

LIMITS = Limits()


def queue(reuse_seconds: int | None = None, key: str = "alias/orders") -> Facts:
    period = {} if reuse_seconds is None else {"KmsDataKeyReusePeriodSeconds": str(reuse_seconds)}
    facts = examples.queue(KmsMasterKeyId=key)
    return Facts(facts.queue_arn, {**facts.attributes, **period}, {})


@pytest.mark.parametrize(
    ("facts", "code", "becomes"),
    [
        (queue(60, key=""), "not_encrypted_with_kms", State.REFUSED),
        (examples.queue(SqsManagedSseEnabled="true"), "not_encrypted_with_kms", State.REFUSED),
        (queue(3600), "reuse_at_maximum", State.ESCALATED),
        (queue(86_400), "reuse_at_maximum", State.ESCALATED),
    ],
)
def test_what_is_refused(facts: Facts, code: str, becomes: State) -> None:
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == (code, becomes)


@pytest.mark.parametrize(
    ("seconds", "raised"),
    [
        (60, 300),
        (299, 300),
        (300, 600),
        (None, 600),
        (301, 602),
        (1800, 3600),
        (1801, 3600),
        (3599, 3600),
    ],
)
def test_what_is_raised_and_how_far(seconds: int | None, raised: int) -> None:
    answer = plan(queue(seconds), LIMITS)
    assert isinstance(answer, Plan)
    assert [each.after for each in answer.steps] == [raised]


@given(st.integers(60, 86_400))
def test_a_plan_rises_and_ends_at_an_hour(seconds: int) -> None:
    answer = plan(queue(seconds), LIMITS)
    if isinstance(answer, Refusal):
        assert seconds >= 3600
        return
    (step,) = answer.steps
    assert step.out_of_bounds() is None
    assert (step.before, step.after) == (seconds, min(3600, max(300, step.after)))


def test_a_reader_learns_what_a_revoked_key_does() -> None:
    answer = plan(queue(300), LIMITS)
    assert "revoked then keeps working for up to 600 s" in answer.reason


def test_the_page_leads_to_kms_s_quota() -> None:
    answer = plan(queue(3600), LIMITS)
    assert isinstance(answer, Refusal)
    assert "--service-code kms" in answer.next_command
    assert "--region us-east-1" in answer.next_command
    documents.test_an_aws_command_exists_and_takes_these_options(answer.next_command)


def test_many_queues_at_once_lead_to_kms_s_quota_as_well() -> None:
    command = KMS_THROTTLED.mass_look(examples.STANDARD_ARN)
    assert "--service-code kms" in command
    documents.test_an_aws_command_exists_and_takes_these_options(command)


@pytest.mark.parametrize(
    "code", ["KmsThrottled", "KMS.ThrottlingException", "KmsThrottledException", "KMS.Throttling"]
)
def test_kms_s_throttling_is_caught_in_every_spelling(code: str) -> None:
    for event_name in ("SendMessage", "SendMessageBatch", "ReceiveMessage"):
        assert match(examples.failed_call(event_name, code)) is KMS_THROTTLED
