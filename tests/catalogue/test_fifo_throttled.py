"""What high throughput takes, beyond the entry's own examples."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples, match
from mendq.catalogue.fifo_throttled import FIFO_THROTTLED, plan
from mendq.model.case import State
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import DeduplicateByGroup, LimitThroughputByGroup
from tests.architecture import test_documents as documents

LIMITS = Limits()
SCOPE = DeduplicateByGroup("queue", "messageGroup")
LIMIT = LimitThroughputByGroup("perQueue", "perMessageGroupId")


def queue(scope: str | None, limit: str | None) -> Facts:
    facts = examples.queue()
    pair = {"DeduplicationScope": scope, "FifoThroughputLimit": limit}
    standing = {name: value for name, value in pair.items() if value is not None}
    return replace(facts, attributes={**facts.attributes, **standing})


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (queue("messageGroup", "perMessageGroupId"), "high_throughput_already"),
        (queue("tenant", "perMessageGroupId"), "high_throughput_unknown"),
        (queue("tenant", None), "high_throughput_unknown"),
        (queue("messageGroup", "perTenant"), "high_throughput_unknown"),
        (queue("", "perQueue"), "high_throughput_unknown"),
    ],
)
def test_what_is_refused_pages_with_the_quotas(facts: Facts, code: str) -> None:
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == (code, State.ESCALATED)
    assert "--service-code sqs" in answer.next_command
    documents.test_an_aws_command_exists_and_takes_these_options(answer.next_command)


@pytest.mark.parametrize(
    ("facts", "steps"),
    [
        (queue("queue", "perQueue"), (SCOPE, LIMIT)),
        (queue(None, None), (SCOPE, LIMIT)),
        (queue("queue", None), (SCOPE, LIMIT)),
        (queue("messageGroup", None), (LIMIT,)),
        (queue("messageGroup", "perQueue"), (LIMIT,)),
        (queue("queue", "perMessageGroupId"), (SCOPE,)),
    ],
)
def test_what_is_missing_is_turned_on_in_the_order_sqs_wants(
    facts: Facts, steps: tuple[DeduplicateByGroup | LimitThroughputByGroup, ...]
) -> None:
    answer = plan(facts, LIMITS)
    assert isinstance(answer, Plan)
    assert answer.steps == steps
    assert "Deduplication then looks at each group alone" in answer.reason
    assert "only where there are many" in answer.reason


WORDS = st.sampled_from(["queue", "messageGroup", "perQueue", "perMessageGroupId"])


@given(st.none() | WORDS | st.text(max_size=20), st.none() | WORDS | st.text(max_size=20))
def test_a_plan_writes_over_nothing_but_what_sqs_ships(
    scope: str | None, limit: str | None
) -> None:
    answer = plan(queue(scope, limit), LIMITS)
    if isinstance(answer, Plan):
        assert answer.steps
        assert {scope, limit} <= {None, "queue", "messageGroup", "perQueue", "perMessageGroupId"}
        assert all(each.out_of_bounds() is None for each in answer.steps)


@pytest.mark.parametrize("code", ["RequestThrottled", "ThrottlingException", "Throttling"])
@pytest.mark.parametrize("name", ["orders", "orders-fifo", "fifo"])
def test_no_other_queue_is_caught(code: str, name: str) -> None:
    arn = f"arn:aws:sqs:us-east-1:123456789012:{name}"
    assert match(examples.failed_call("SendMessage", code, queue_arn=arn)) is not FIFO_THROTTLED


@pytest.mark.parametrize("code", ["RequestThrottled", "ThrottlingException", "Throttling"])
def test_every_throttled_call_on_fifo_has_the_label(code: str) -> None:
    for event_name in ("SendMessage", "DeleteMessageBatch", "GetQueueAttributes"):
        assert match(examples.failed_call(event_name, code)) is FIFO_THROTTLED


@pytest.mark.parametrize("event_name", ["GetQueueAttributes", "SetQueueAttributes", "ListQueues"])
def test_calls_without_messages_are_no_evidence(event_name: str) -> None:
    assert not FIFO_THROTTLED.speaks(examples.failed_call(event_name, "RequestThrottled"))


@pytest.mark.parametrize("event_name", ["SendMessage", "ReceiveMessage", "DeleteMessageBatch"])
def test_message_traffic_is_evidence(event_name: str) -> None:
    assert FIFO_THROTTLED.speaks(examples.failed_call(event_name, "RequestThrottled"))
