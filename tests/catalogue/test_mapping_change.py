"""No symptom prints a command for an event source mapping that Lambda would refuse."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.catalogue.consumers.mapping_wastes_receives import detect
from mendq.catalogue.dlq.moved_along import make_good_messages_section
from mendq.catalogue.examples import LAMBDA_FUNCTION, queue, standard_queue
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.mapping import ProvisionedPollers
from tests.architecture.aws_commands import find_mistake, list_commands_in
from tests.source_files import ROOT

UPDATE = "lambda update-event-source-mapping"
TRAFFIC = {"sent": 1_000, "received": 1_500, "deleted": 1_000}
MAPPING = replace(LAMBDA_FUNCTION, mapping_id="91eaeb7e-c976", batching_window_seconds=0)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def make_facts(consumer: LambdaConsumer, *, is_fifo: bool = False, visibility: int = 180) -> Facts:
    values: dict[str, Any] = {"VisibilityTimeout": visibility, "lambda_consumers": (consumer,)}
    values |= {"ApproximateNumberOfMessages": 40, **TRAFFIC}
    return queue(**values) if is_fifo else standard_queue(**values)


def list_printed_commands(facts: Facts) -> Iterator[str]:
    """Yield each `aws` command that the catalogue prints about the queue's mappings."""
    fault = detect(facts)
    if fault is not None:
        yield from list_commands_in(fault.because)
    if facts.is_fifo:
        for section in make_good_messages_section(facts):
            for line in section.lines:
                yield from list_commands_in(line)


def apply_command(command: str, consumer: LambdaConsumer) -> Mapping[str, int | None]:
    """Return the mapping's settings after the command, by the command line's own option names."""
    words = shlex.split(command)
    pollers = consumer.provisioned_pollers
    after: dict[str, int | None] = {
        "batch-size": consumer.batch_size,
        "maximum-batching-window-in-seconds": consumer.batching_window_seconds,
        "MaximumConcurrency": consumer.maximum_concurrency,
        "MinimumPollers": pollers.minimum if pollers else None,
        "MaximumPollers": pollers.maximum if pollers else None,
    }
    for option, value in pairwise(words):
        if option in ("--scaling-config", "--provisioned-poller-config"):
            for pair in value.split(","):
                name, _, number = pair.partition("=")
                after[name] = int(number)
        elif option.removeprefix("--") in after:
            after[option.removeprefix("--")] = int(value)
    return after


def assert_lambda_takes(command: str, facts: Facts) -> None:
    """Check the command by AWS's pages, without the product's own rules.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    assert find_mistake(command) == ""
    if not command.startswith(f"aws {UPDATE}"):
        return
    (consumer,) = facts.lambda_consumers
    after = apply_command(command, consumer)
    batch_size, window = after["batch-size"], after["maximum-batching-window-in-seconds"]
    assert batch_size is not None
    assert window is not None
    assert 1 <= batch_size <= (10 if facts.is_fifo else 10_000)
    assert 0 <= window <= (0 if facts.is_fifo else 300)
    assert batch_size <= 10 or window >= 1
    assert consumer.timeout_seconds <= facts.visibility_seconds
    concurrency, least, most = (
        after[name] for name in ("MaximumConcurrency", "MinimumPollers", "MaximumPollers")
    )
    assert concurrency is None or (least, most) == (None, None)
    assert concurrency is None or 2 <= concurrency <= 1_000
    assert (least is None) == (most is None)
    if least is not None and most is not None:
        assert 2 <= least <= 200
        assert least <= most <= 10_000


def get_only_command(facts: Facts) -> str:
    (command,) = list_printed_commands(facts)
    assert_lambda_takes(command, facts)
    return command.partition("91eaeb7e-c976 ")[2] or command


def test_maximum_concurrency_above_the_reserved_concurrency_is_lowered_to_the_reserved_one() -> (
    None
):
    mapping = replace(MAPPING, maximum_concurrency=20, reserved_concurrency=5)
    assert get_only_command(make_facts(mapping)) == "--scaling-config MaximumConcurrency=5"


def test_mapping_in_provisioned_mode_gets_fewer_pollers_and_no_maximum_concurrency() -> None:
    pollers = ProvisionedPollers(minimum=5, maximum=50)
    mapping = replace(MAPPING, provisioned_pollers=pollers, reserved_concurrency=79)
    command = get_only_command(make_facts(mapping))
    assert command == "--provisioned-poller-config MinimumPollers=5,MaximumPollers=7"


def test_minimum_of_pollers_is_lowered_with_a_maximum_below_it() -> None:
    pollers = ProvisionedPollers(minimum=30, maximum=50)
    mapping = replace(MAPPING, provisioned_pollers=pollers, reserved_concurrency=29)
    command = get_only_command(make_facts(mapping))
    assert command == "--provisioned-poller-config MinimumPollers=2,MaximumPollers=2"


@pytest.mark.parametrize("reserved_concurrency", [1, 19])
def test_mapping_whose_fewest_pollers_are_too_many_gets_advice_and_no_command_to_change_it(
    reserved_concurrency: int,
) -> None:
    pollers = ProvisionedPollers(minimum=2, maximum=50)
    mapping = replace(
        MAPPING, provisioned_pollers=pollers, reserved_concurrency=reserved_concurrency
    )
    facts = make_facts(mapping)
    assert get_only_command(facts) == "aws lambda get-account-settings --region us-east-1"
    fault = detect(facts)
    assert fault is not None
    assert "so reserve 20 for the function, or leave provisioned mode" in fault.because


def test_pollers_on_a_fifo_queue_are_lowered_as_on_a_standard_queue() -> None:
    pollers = ProvisionedPollers(minimum=2, maximum=50)
    mapping = replace(
        MAPPING,
        provisioned_pollers=pollers,
        reserved_concurrency=30,
        reports_item_failures=True,
    )
    commands = list(list_printed_commands(make_facts(mapping, is_fifo=True)))
    assert "--provisioned-poller-config MinimumPollers=2,MaximumPollers=3" in commands[0]
    for command in commands:
        assert_lambda_takes(command, make_facts(mapping, is_fifo=True))


def test_long_window_of_large_batches_is_shortened_to_one_second_and_not_to_none() -> None:
    """Lambda refuses a batch of more than 10 messages without a batching window."""
    mapping = replace(MAPPING, batch_size=500, batching_window_seconds=180, timeout_seconds=30)
    command = get_only_command(make_facts(mapping))
    assert command == "--maximum-batching-window-in-seconds 1"


def test_large_batches_become_10_without_a_window_if_the_visibility_timeout_is_1_second() -> None:
    mapping = replace(MAPPING, batch_size=500, batching_window_seconds=5, timeout_seconds=1)
    command = get_only_command(make_facts(mapping, visibility=1))
    assert command == "--batch-size 10 --maximum-batching-window-in-seconds 0"


def test_mapping_without_a_window_is_no_fault_if_the_visibility_timeout_is_0() -> None:
    mapping = replace(MAPPING, batch_size=1)
    assert detect(make_facts(mapping, visibility=0)) is None


def test_mapping_gets_no_change_command_while_its_function_outlasts_the_visibility_timeout() -> (
    None
):
    """Lambda compares both timeouts at every change of a mapping."""
    mapping = replace(MAPPING, timeout_seconds=60, maximum_concurrency=20, reserved_concurrency=5)
    facts = make_facts(mapping, visibility=59)
    assert get_only_command(facts).startswith("aws lambda list-event-source-mappings")
    fault = detect(facts)
    assert fault is not None
    assert "visibility timeout of 59 s must first be at least" in fault.because
    with_equal_timeouts = make_facts(mapping, visibility=60)
    assert "--scaling-config" in get_only_command(with_equal_timeouts)


def test_page_about_a_blocked_group_offers_no_batch_size_that_lambda_would_refuse() -> None:
    mapping = replace(MAPPING, timeout_seconds=60, modified_at=LONG_AGO)
    (section,) = make_good_messages_section(make_facts(mapping, is_fifo=True, visibility=59))
    assert not any(UPDATE in line for line in section.lines)
    assert any(line.startswith("Lambda refuses that for bill:") for line in section.lines)


def test_limit_that_aws_has_raised_since_does_not_hide_a_command() -> None:
    """Lambda took the mapping's settings, so only those that the command changes are judged."""
    pollers = ProvisionedPollers(minimum=2, maximum=20_000)
    mapping = replace(MAPPING, provisioned_pollers=pollers, error_share=0.5)
    (command,) = list_printed_commands(make_facts(mapping))
    assert command.endswith("--function-response-types ReportBatchItemFailures")


POLLERS = st.builds(
    lambda least, more: ProvisionedPollers(least, min(10_000, least + more)),
    st.integers(2, 200),
    st.integers(0, 9_999),
)
# A mapping limits the runs in one way at most.
SCALING: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({}),
    st.fixed_dictionaries({"maximum_concurrency": st.integers(2, 1_000)}),
    st.fixed_dictionaries({"provisioned_pollers": POLLERS}),
)
# Lambda takes each of these pairs of batch size and batching window on a standard queue.
BATCHES = st.one_of(
    st.tuples(st.integers(1, 10), st.integers(0, 300)),
    st.tuples(st.integers(11, 10_000), st.integers(1, 300)),
)


@st.composite
def consumed_queues(draw: st.DrawFn) -> Facts:
    """A queue whose mapping has any settings that Lambda takes, and whose function often fails."""
    is_fifo = draw(st.booleans())
    batch_size, window = draw(BATCHES)
    mapping = replace(
        MAPPING,
        timeout_seconds=draw(st.integers(1, 900)),
        batch_size=min(batch_size, 10) if is_fifo else batch_size,
        batching_window_seconds=0 if is_fifo else window,
        error_share=0.5,
        reserved_concurrency=draw(st.none() | st.integers(0, 3_000)),
        reports_item_failures=draw(st.booleans()),
        **draw(SCALING),
    )
    visibility = draw(st.sampled_from([0, 1, 2, 30, 180, 900, 5_400, 43_200]))
    return make_facts(mapping, is_fifo=is_fifo, visibility=visibility)


@settings(max_examples=300)
@given(consumed_queues())
def test_every_command_about_any_mapping_is_one_that_lambda_takes(facts: Facts) -> None:
    for command in list_printed_commands(facts):
        assert_lambda_takes(command, facts)


def test_only_the_mapping_change_module_and_the_doctor_write_commands_that_change_mappings() -> (
    None
):
    """The doctor's own command enables Mendq's mapping, and changes nothing else."""
    writers = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "mendq").rglob("*.py"))
        if "update-event-source-mapping" in path.read_text()
    ]
    assert writers == [
        "mendq/catalogue/consumers/mapping_change.py",
        "mendq/cli/doctor/deployment.py",
    ]
