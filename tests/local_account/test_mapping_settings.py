"""The local account refuses the settings of an event source mapping that Lambda refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.process import LocalAccount
from tests.local_account.callers import Function, allow, new_function
from tests.local_account.queues import Queue, new_queue

pytestmark = pytest.mark.account

REFUSED = "InvalidParameterValueException"
POLLERS = {"MinimumPollers": 2, "MaximumPollers": 10}


@pytest.fixture
def function(tiny: LocalAccount) -> Function:
    return new_function(tiny, allow("sqs:*", "*"), Timeout=20)


@pytest.fixture
def standard_queue(tiny: LocalAccount) -> Queue:
    return new_queue(tiny)


@pytest.fixture
def mapping_id(function: Function, standard_queue: Queue) -> Iterator[str]:
    """A mapping of a standard queue in provisioned mode."""
    mapping = create_mapping(function, standard_queue, ProvisionedPollerConfig=POLLERS)
    yield mapping["UUID"]
    function.client.delete_event_source_mapping(UUID=mapping["UUID"])


def create_mapping(function: Function, queue: Queue, **settings: Any) -> dict[str, Any]:
    """Create a mapping that does not poll."""
    answer: dict[str, Any] = function.client.create_event_source_mapping(
        FunctionName=function.name, EventSourceArn=queue.arn, Enabled=False, **settings
    )
    return answer


def read_mapping(function: Function, mapping_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = function.client.get_event_source_mapping(UUID=mapping_id)
    return answer


@pytest.mark.parametrize(
    "settings",
    [
        {"ProvisionedPollerConfig": POLLERS, "ScalingConfig": {"MaximumConcurrency": 5}},
        {"ProvisionedPollerConfig": {"MinimumPollers": 11, "MaximumPollers": 10}},
        {"ProvisionedPollerConfig": {"MinimumPollers": 1}},
        {"ProvisionedPollerConfig": {"MaximumPollers": 1}},
        {"ProvisionedPollerConfig": {**POLLERS, "PollerGroupName": "ours"}},
        {"BatchSize": 11},
    ],
    ids=str,
)
def test_settings_that_lambda_refuses_make_no_mapping(
    settings: dict[str, Any], function: Function, standard_queue: Queue
) -> None:
    with pytest.raises(ClientError, match=REFUSED):
        create_mapping(function, standard_queue, **settings)
    listed = function.client.list_event_source_mappings(EventSourceArn=standard_queue.arn)
    assert listed["EventSourceMappings"] == []


@pytest.mark.parametrize(
    "settings", [{"BatchSize": 11}, {"MaximumBatchingWindowInSeconds": 1}], ids=str
)
def test_mapping_of_a_fifo_queue_takes_batches_up_to_10_and_no_batching_window(
    settings: dict[str, Any], function: Function, tiny: LocalAccount
) -> None:
    fifo_queue = new_queue(tiny, fifo=True)
    with pytest.raises(ClientError, match=REFUSED):
        create_mapping(function, fifo_queue, **settings)
    mapping = create_mapping(function, fifo_queue, BatchSize=10)
    assert mapping["BatchSize"] == 10
    function.client.delete_event_source_mapping(UUID=mapping["UUID"])


def test_mapping_of_a_fifo_queue_takes_provisioned_pollers(
    function: Function, tiny: LocalAccount
) -> None:
    fifo_queue = new_queue(tiny, fifo=True)
    mapping = create_mapping(function, fifo_queue, ProvisionedPollerConfig=POLLERS)
    assert mapping["ProvisionedPollerConfig"] == POLLERS
    function.client.delete_event_source_mapping(UUID=mapping["UUID"])


def test_numbers_of_pollers_that_are_left_out_are_lambdas_defaults(
    function: Function, standard_queue: Queue
) -> None:
    config = {"MaximumPollers": 10_000}
    mapping = create_mapping(function, standard_queue, ProvisionedPollerConfig=config)
    expected = {"MinimumPollers": 2, "MaximumPollers": 10_000}
    assert read_mapping(function, mapping["UUID"])["ProvisionedPollerConfig"] == expected
    function.client.delete_event_source_mapping(UUID=mapping["UUID"])


def test_maximum_concurrency_is_refused_while_a_mapping_is_in_provisioned_mode(
    function: Function, mapping_id: str
) -> None:
    scaling = {"ScalingConfig": {"MaximumConcurrency": 5}}
    with pytest.raises(ClientError, match=REFUSED):
        function.client.update_event_source_mapping(UUID=mapping_id, **scaling)
    assert "ScalingConfig" not in read_mapping(function, mapping_id)
    function.client.update_event_source_mapping(UUID=mapping_id, ProvisionedPollerConfig={})
    assert "ProvisionedPollerConfig" not in read_mapping(function, mapping_id)
    function.client.update_event_source_mapping(UUID=mapping_id, **scaling)
    assert read_mapping(function, mapping_id)["ScalingConfig"] == {"MaximumConcurrency": 5}


def test_change_of_a_mapping_is_refused_while_its_function_outlasts_the_visibility_timeout(
    function: Function, standard_queue: Queue, mapping_id: str
) -> None:
    set_timeout = standard_queue.sqs.set_queue_attributes
    set_timeout(QueueUrl=standard_queue.url, Attributes={"VisibilityTimeout": "19"})
    with pytest.raises(ClientError, match="visibility timeout: 19 seconds is less than Function"):
        function.client.update_event_source_mapping(UUID=mapping_id, BatchSize=1)
    assert read_mapping(function, mapping_id)["BatchSize"] == 10
    set_timeout(QueueUrl=standard_queue.url, Attributes={"VisibilityTimeout": "20"})
    function.client.update_event_source_mapping(UUID=mapping_id, BatchSize=1)
    assert read_mapping(function, mapping_id)["BatchSize"] == 1
