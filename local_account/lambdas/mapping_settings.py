"""Refuse SQS event source mappings that Lambda refuses, and store their provisioned mode.

MiniStack checks only MaximumConcurrency, and does not store ProvisionedPollerConfig. This module
checks both when a mapping is created or updated, and also the batch size, the batching window and
the two timeouts. When a mapping is created, it checks the permissions of the function's role too.
AWS does not document whether an update checks these permissions; here it does not.

The rules come from AWS's pages, not from Mendq's code. So a mistake in Mendq's settings fails here
too. The error codes and texts were not seen on AWS, except those about the timeouts and the
permission to receive, which are in public reports.

A mapping in provisioned mode polls here like any other mapping. AWS's pages do not exclude FIFO
queues from provisioned mode, so it is accepted for them too.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html
https://docs.aws.amazon.com/lambda/latest/api/API_ProvisionedPollerConfig.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ministack.core.responses import error_response_json, json_response
from ministack.services import lambda_svc, sqs
from ministack.services.cloudformation import provisioners

from local_account.hooks import replace_functions
from local_account.lambdas.mappings import POLL_ACTIONS, find_role_refusal

POLLER_CONFIG = "ProvisionedPollerConfig"
MAPPING_TYPE = "AWS::Lambda::EventSourceMapping"
FEWEST_POLLERS = 2
POLLER_DEFAULTS = {"MinimumPollers": 2, "MaximumPollers": 200}
MOST_POLLERS = {"MinimumPollers": 200, "MaximumPollers": 10_000}
# The settings that are checked together. A setting that an update leaves out keeps its value.
JUDGED_SETTINGS = (
    *("EventSourceArn", "FunctionName", "BatchSize", "MaximumBatchingWindowInSeconds"),
    *("ScalingConfig", POLLER_CONFIG),
)
MappingSettings = Mapping[str, Any]
Response = Any


class MappingRefused(Exception):
    """Raised if CloudFormation creates or updates a mapping with settings that Lambda refuses."""


def install() -> None:
    """Make MiniStack refuse SQS mappings that Lambda refuses. Call this once per process."""

    @replace_functions(lambda_svc, "_create_esm")
    def create_mapping(original_function: Any, request: MappingSettings) -> Response:
        for refusal in _list_creation_refusals(request):
            return error_response_json("InvalidParameterValueException", refusal, 400)
        return _answer_with_pollers(original_function(request), request)

    @replace_functions(lambda_svc, "_update_esm")
    def update_mapping(
        original_function: Any, mapping_id: str, request: MappingSettings
    ) -> Response:
        mapping = lambda_svc._esms.get(mapping_id) or {}
        for refusal in list_refusals(_merge_settings(mapping, request)):
            return error_response_json("InvalidParameterValueException", refusal, 400)
        return _answer_with_pollers(original_function(mapping_id, request), request)

    @replace_functions(provisioners._RESOURCE_HANDLERS[MAPPING_TYPE], "create")
    def create_resource(
        original_function: Any, logical_id: str, properties: MappingSettings, stack_name: str
    ) -> Any:
        _require_accepted(_list_creation_refusals(properties))
        mapping_id, attributes = original_function(logical_id, properties, stack_name)
        _keep_pollers(mapping_id, properties)
        return mapping_id, attributes

    @replace_functions(provisioners._RESOURCE_HANDLERS[MAPPING_TYPE], "update")
    def update_resource(
        original_function: Any,
        mapping_id: str,
        old_properties: MappingSettings,
        new_properties: MappingSettings,
        stack_name: str,
    ) -> Any:
        _require_accepted(list_refusals(new_properties))
        new_id, attributes = original_function(
            mapping_id, old_properties, new_properties, stack_name
        )
        _keep_pollers(new_id, {POLLER_CONFIG: {}, **new_properties})
        return new_id, attributes


def list_refusals(settings: MappingSettings) -> Iterator[str]:
    """Yield each reason why Lambda refuses the settings of an SQS mapping."""
    queue_arn = str(settings.get("EventSourceArn", ""))
    if ":sqs:" not in queue_arn:
        return
    is_fifo = queue_arn.endswith(".fifo")
    yield from _list_batch_refusals(settings, is_fifo=is_fifo)
    yield from _list_poller_refusals(settings)
    yield from _list_timeout_refusals(settings, queue_arn)


def _list_creation_refusals(settings: MappingSettings) -> Iterator[str]:
    """Yield each reason why Lambda refuses to create an SQS mapping."""
    yield from list_refusals(settings)
    queue_arn = str(settings.get("EventSourceArn", ""))
    function_name, qualifier = lambda_svc._resolve_name_and_qualifier(
        str(settings.get("FunctionName", ""))
    )
    function, _ = lambda_svc._get_func_record_for_qualifier(function_name, qualifier)
    if ":sqs:" not in queue_arn or function is None:
        return
    for action in POLL_ACTIONS:
        if find_role_refusal(function_name, qualifier, (action,), queue_arn):
            call = action.removeprefix("sqs:")
            yield f"The provided execution role does not have permissions to call {call} on SQS"


def _list_batch_refusals(settings: MappingSettings, *, is_fifo: bool) -> Iterator[str]:
    batch_size = int(settings.get("BatchSize") or 10)
    window_seconds = int(settings.get("MaximumBatchingWindowInSeconds") or 0)
    if not 1 <= batch_size <= (10 if is_fifo else 10_000):
        kind = "FIFO" if is_fifo else "standard"
        yield f"Unsupported BatchSize {batch_size} for a {kind} queue"
    if not 0 <= window_seconds <= 300:
        yield "MaximumBatchingWindowInSeconds must be between 0 and 300"
    if is_fifo and window_seconds:
        yield "Batching window is not supported for FIFO queues"
    if batch_size > 10 and not window_seconds:
        yield (
            "Maximum batch window in seconds must be greater than 0 if maximum batch size is "
            "greater than 10"
        )


def _list_poller_refusals(settings: MappingSettings) -> Iterator[str]:
    poller_config = settings.get(POLLER_CONFIG)
    if not poller_config:
        return
    if (settings.get("ScalingConfig") or {}).get("MaximumConcurrency") is not None:
        yield "ProvisionedPollerConfig and MaximumConcurrency cannot be used together"
    if poller_config.get("PollerGroupName"):
        yield "PollerGroupName is not supported for Amazon SQS event sources"
    numbers = {
        name: int(poller_config.get(name, default)) for name, default in POLLER_DEFAULTS.items()
    }
    for name, number in numbers.items():
        if not FEWEST_POLLERS <= number <= MOST_POLLERS[name]:
            yield f"{name} must be between {FEWEST_POLLERS} and {MOST_POLLERS[name]}"
    if numbers["MinimumPollers"] > numbers["MaximumPollers"]:
        yield "MinimumPollers must not be greater than MaximumPollers"


def _list_timeout_refusals(settings: MappingSettings, queue_arn: str) -> Iterator[str]:
    """Yield a refusal if the queue's visibility timeout is below the function's timeout."""
    _, configuration = lambda_svc._get_func_record_for_qualifier(
        *lambda_svc._resolve_name_and_qualifier(str(settings.get("FunctionName", "")))
    )
    queue_attributes = next(
        (
            queue["attributes"]
            for queue in sqs._queues.values()
            if queue["attributes"].get("QueueArn") == queue_arn
        ),
        None,
    )
    if configuration is None or queue_attributes is None:
        return
    function_seconds = int(configuration.get("Timeout", 3))
    visibility_seconds = int(queue_attributes.get("VisibilityTimeout", 30))
    if visibility_seconds < function_seconds:
        yield (
            f"Queue visibility timeout: {visibility_seconds} seconds is less than Function "
            f"timeout: {function_seconds} seconds"
        )


def _merge_settings(mapping: MappingSettings, request: MappingSettings) -> dict[str, Any]:
    """Return the settings that a mapping would have after the update in `request`."""
    settings = {name: mapping[name] for name in JUDGED_SETTINGS if name in mapping}
    settings |= {name: request[name] for name in JUDGED_SETTINGS if name in request}
    return settings


def _keep_pollers(mapping_id: str, settings: MappingSettings) -> None:
    """Store a mapping's ProvisionedPollerConfig, with Lambda's defaults. Remove it if it is empty.

    Do nothing if `settings` does not have it.
    """
    mapping = lambda_svc._esms.get(mapping_id)
    if mapping is None or POLLER_CONFIG not in settings:
        return
    mapping.pop(POLLER_CONFIG, None)
    if settings[POLLER_CONFIG]:
        given_numbers = {
            name: int(number)
            for name, number in settings[POLLER_CONFIG].items()
            if name in POLLER_DEFAULTS
        }
        mapping[POLLER_CONFIG] = {**POLLER_DEFAULTS, **given_numbers}


def _answer_with_pollers(response: Response, settings: MappingSettings) -> Response:
    """Store the mapping's ProvisionedPollerConfig, and return the response with it.

    If the call failed, only return the response.
    """
    status, _, body = response
    if status >= 300:
        return response
    mapping_id = json.loads(body)["UUID"]
    _keep_pollers(mapping_id, settings)
    return json_response(lambda_svc._esm_response(lambda_svc._esms[mapping_id]), status)


def _require_accepted(refusals: Iterator[str]) -> None:
    """Raise MappingRefused with the first refusal, if there is one."""
    for refusal in refusals:
        raise MappingRefused(refusal)
