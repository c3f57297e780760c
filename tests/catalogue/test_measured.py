"""Test the symptoms found in metrics: how much must be counted, and what the page says."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.catalogue.consumers.consumer_failing import CONSUMER_FAILING
from mendq.catalogue.consumers.consumer_stopped import CONSUMER_STOPPED
from mendq.catalogue.consumers.consumer_throttled import CONSUMER_THROTTLED
from mendq.catalogue.consumers.empty_receives import EMPTY_RECEIVES
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.examples import (
    DLQ_ARN,
    EXAMPLE_TIME,
    FAILING_FUNCTION,
    LAMBDA_FUNCTION,
    QUEUE_ARN,
    replace_values,
    standard_queue,
)
from mendq.catalogue.fifo.fifo_group_blocked import FIFO_GROUP_BLOCKED
from mendq.catalogue.messages.messages_about_to_expire import MESSAGES_ABOUT_TO_EXPIRE
from mendq.catalogue.symptom import Symptom
from mendq.model.facts import Facts
from mendq.model.plan import Ignore, Refuse
from mendq.model.queue import RedrivePolicy
from tests.catalogue.asking import (
    answer_to,
    detect_fault,
    expect_plan,
    expect_refusal,
    queue_examples_of,
    read_test_data,
)

REDRIVE = RedrivePolicy(DLQ_ARN, 5).text
EXAMPLE_BY_SYMPTOM = {
    entry.name: queue_examples_of(entry)[0].facts for entry in CATALOGUE if entry.detection
}
# The example without a RedrivePolicy and without Lambda consumers.
EXAMPLE_BY_SYMPTOM["dlq_missing"] = next(
    example.facts
    for example in queue_examples_of(DLQ_MISSING)
    if example.facts.dlq is None and not example.facts.lambda_consumers
)
EXPIRING = EXAMPLE_BY_SYMPTOM["messages_about_to_expire"]


def make_varied_example(symptom: str, over: dict[str, Any]) -> Facts:
    """Change an entry's example as a table's row says. `consumer` changes a failing function."""
    over = {
        name: tuple(value) if isinstance(value, list) else value for name, value in over.items()
    }
    if (consumer := over.pop("consumer", None)) is not None:
        over["lambda_consumers"] = (replace(FAILING_FUNCTION, **consumer),)
    if hours := over.pop("hours", None):
        over["since"] = EXAMPLE_TIME - timedelta(hours=hours)
    return replace_values(EXAMPLE_BY_SYMPTOM[symptom], **over)


@pytest.mark.parametrize(("symptom", "over", "finds"), read_test_data("tables")["finds"])
def test_measured_symptom_is_detected_only_if_its_counts_reach_the_thresholds(
    symptom: str, over: dict[str, Any], finds: bool
) -> None:
    entry = SYMPTOM_BY_NAME[symptom]
    assert bool(detect_fault(entry, make_varied_example(symptom, over))) is finds


@pytest.mark.parametrize(("symptom", "over", "is_possible"), read_test_data("tables")["possible"])
def test_symptom_is_possible_by_configuration_alone_and_also_on_a_queue_that_is_empty_now(
    symptom: str, over: dict[str, Any], is_possible: bool
) -> None:
    entry = SYMPTOM_BY_NAME[symptom]
    assert entry.detection is not None
    assert entry.detection.is_possible(make_varied_example(symptom, over)) is is_possible


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (CONSUMER_FAILING, "after 5 receives a message goes"),
        (CONSUMER_THROTTLED, "after 5 receives a message moves"),
        (MESSAGES_ABOUT_TO_EXPIRE, "so it has to keep"),
    ],
)
def test_page_says_what_the_dlq_means_for_messages_only_if_the_queue_has_one(
    entry: Symptom, says: str
) -> None:
    facts = replace_values(EXAMPLE_BY_SYMPTOM[entry.name], RedrivePolicy=REDRIVE)
    assert says in answer_to(entry, facts).reason
    assert says not in answer_to(entry, replace_values(facts, RedrivePolicy="")).reason


def test_expiry_page_of_a_fifo_queue_leaves_out_the_age_that_messages_keep_in_a_dlq() -> None:
    facts = replace_values(EXPIRING, RedrivePolicy=REDRIVE, queue_arn=QUEUE_ARN)
    assert "Its DLQ counts" not in expect_plan(MESSAGES_ABOUT_TO_EXPIRE, facts).reason


@pytest.mark.parametrize("version", ["", ":7", ":prod"])
def test_failing_consumer_page_has_the_command_for_the_functions_log_group(version: str) -> None:
    failing = {"function_arn": f"{FAILING_FUNCTION.function_arn}{version}"}
    facts = make_varied_example("consumer_failing", {"consumer": failing})
    words = shlex.split(expect_refusal(CONSUMER_FAILING, facts).next_command)
    assert words[words.index("--log-group-name") + 1] == "/aws/lambda/bill"


def test_failing_consumer_page_counts_messages_still_in_flight_so_that_the_figures_add_up() -> None:
    found = detect_fault(
        CONSUMER_FAILING, standard_queue(sent=120, received=1_700, in_flight_now=100)
    )
    assert found is not None
    assert "received 120 messages 1,700 times and deleted none, 100 are still held" in found.found


def test_throttled_consumer_page_names_the_most_throttled_function() -> None:
    share_by_name = {"ship": None, "bill": 0.4, "mail": 0.2}
    arn = LAMBDA_FUNCTION.function_arn.removesuffix("bill")
    consumers = tuple(
        replace(LAMBDA_FUNCTION, function_arn=f"{arn}{name}", throttled_share=share)
        for name, share in share_by_name.items()
    )
    example = EXAMPLE_BY_SYMPTOM["consumer_throttled"]
    found = detect_fault(CONSUMER_THROTTLED, replace_values(example, lambda_consumers=consumers))
    assert found is not None
    assert found.found.startswith("40 % of the invocations of bill were throttled")
    assert expect_refusal(CONSUMER_THROTTLED, found).next_command.endswith("--function-name bill")


def test_stopped_consumer_page_names_the_first_disabled_function_and_counts_the_others() -> None:
    example = EXAMPLE_BY_SYMPTOM["consumer_stopped"]
    stopped = (*example.stopped_consumers, "arn:other")
    found = detect_fault(CONSUMER_STOPPED, replace_values(example, stopped_consumers=stopped))
    assert found is not None
    assert "of bill and 1 more is disabled" in found.found


def test_empty_receives_plan_is_refused_if_calls_other_than_receives_failed() -> None:
    senders = standard_queue(event_names=("DeleteMessage", "SendMessageBatch"))
    assert isinstance(expect_refusal(EMPTY_RECEIVES, senders), Refuse)


def test_empty_receives_plan_is_ignored_without_failed_calls() -> None:
    assert isinstance(expect_refusal(EMPTY_RECEIVES, standard_queue()), Ignore)


def test_retention_is_not_raised_if_the_oldest_message_is_young_again() -> None:
    younger = replace_values(EXPIRING, oldest_age_seconds_now=60)
    assert isinstance(expect_refusal(MESSAGES_ABOUT_TO_EXPIRE, younger), Ignore)


def test_approved_dlq_plan_stays_the_same_if_only_the_counts_changed() -> None:
    """An approval is carried out minutes or hours later."""
    proposed = expect_plan(DLQ_MISSING, make_varied_example("dlq_missing", {"received": 66}))
    later = make_varied_example("dlq_missing", {"received": 40, "sent": 1, "deleted": 0})
    assert expect_plan(DLQ_MISSING, later).steps == proposed.steps


def test_fifo_group_that_moves_on_before_the_approved_plan_is_carried_out_gets_no_dlq() -> None:
    moved_on = replace_values(EXAMPLE_BY_SYMPTOM["fifo_group_blocked"], measurement=None)
    assert isinstance(expect_refusal(FIFO_GROUP_BLOCKED, moved_on), Ignore)
