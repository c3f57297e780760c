"""Read which queues the functions of a `serverless.yml` send to, as CloudFormation resources.

Read are `onError` and `destinations` of a function, the `deadLetterQueueArn` of an `eventBridge`
event, and the `redrivePolicy` of an `sns` event that names a resource of the file. What the
framework grants by itself is read too: the policy of an `sns` event's DLQ, and the function's right
to send to its destinations.

https://www.serverless.com/framework/docs/providers/aws/guide/functions
https://www.serverless.com/framework/docs/providers/aws/events/event-bridge
https://www.serverless.com/framework/docs/providers/aws/events/sns
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mendq.lint.template import get_mapping
from mendq.lint.values import ROLE_TYPE, RULE_TYPE, TOPIC_TYPE
from mendq.model.message_calls import SEND_MESSAGE_ACTION

_NOT_ALPHANUMERIC_REGEX = re.compile(r"[^A-Za-z0-9]")
EVENT_TYPES_WITH_DLQ = frozenset({"eventBridge", "sns"})
# Properties of `DestinationConfig` by the settings of `destinations`.
_DESTINATION_BY_SETTING = {"onFailure": "OnFailure", "onSuccess": "OnSuccess"}


class GeneratedResource(NamedTuple):
    """A resource that the framework makes: its logical ID, type and properties."""

    logical_id: str
    type: str
    properties: dict[str, Any]


def list_destinations(function_id: str, destinations: Any) -> Iterator[GeneratedResource]:
    """Yield what makes a function send to the queues among its `destinations`.

    The role that may send to them stands for the function's role.
    """
    destinations = get_mapping(destinations) or {}
    target_by_name = {
        name: target
        for setting, name in _DESTINATION_BY_SETTING.items()
        if (target := _read_destination(destinations.get(setting))) is not None
    }
    if not target_by_name:
        return
    statement = {
        "Effect": "Allow",
        "Action": SEND_MESSAGE_ACTION,
        "Resource": [*target_by_name.values()],
    }
    policy = {"PolicyName": "destinations", "PolicyDocument": {"Statement": [statement]}}
    yield GeneratedResource(f"{function_id}Role", ROLE_TYPE, {"Policies": [policy]})
    destination_config = {name: {"Destination": target} for name, target in target_by_name.items()}
    yield GeneratedResource(
        f"{function_id}EvConf",
        "AWS::Lambda::EventInvokeConfig",
        {"FunctionName": {"Ref": function_id}, "DestinationConfig": destination_config},
    )


def _read_destination(destination: Any) -> Any:
    """Return the ARN of a destination. None if it is not set, or is another function's name."""
    if isinstance(destination, dict) and "arn" in destination:
        return destination["arn"]
    is_function_name = isinstance(destination, str) and not destination.startswith(("arn:", "${"))
    return None if is_function_name else destination


def list_event_producers(
    function_id: str, number: int, event_type: str, settings: Any
) -> Iterator[GeneratedResource]:
    """Yield what sends to the DLQ of an `eventBridge` or `sns` event.

    Args:
        function_id: The logical ID of the event's function.
        number: The number of the event, for unique logical IDs.
        event_type: One of EVENT_TYPES_WITH_DLQ.
        settings: The settings of the event, with their variables replaced.
    """
    settings = get_mapping(settings) or {}
    if event_type == "eventBridge" and "deadLetterQueueArn" in settings:
        target = {
            "Arn": {"Fn::GetAtt": [function_id, "Arn"]},
            "DeadLetterConfig": {"Arn": settings["deadLetterQueueArn"]},
        }
        rule: dict[str, Any] = {"Targets": [target]}
        if "eventBus" in settings:
            rule["EventBusName"] = settings["eventBus"]
        yield GeneratedResource(f"{function_id}EventBridge{number}", RULE_TYPE, rule)
    dlq_id = (get_mapping(settings, "redrivePolicy") or {}).get("deadLetterTargetRef")
    if event_type == "sns" and isinstance(dlq_id, str):
        yield from _list_subscription(function_id, number, settings, dlq_id)


def _list_subscription(
    function_id: str, number: int, topic_settings: Mapping[str, Any], dlq_id: str
) -> Iterator[GeneratedResource]:
    """Yield the subscription of an `sns` event, its topic, and the policy of its DLQ."""
    topic_node = topic_settings.get("arn")
    if topic_node is None:
        topic_name = topic_settings.get("topicName")
        topic_id = f"SNSTopic{_NOT_ALPHANUMERIC_REGEX.sub('', str(topic_name))}"
        topic_node = {"Ref": topic_id}
        yield GeneratedResource(topic_id, TOPIC_TYPE, {"TopicName": topic_name})
    queue_arn = {"Fn::GetAtt": [dlq_id, "Arn"]}
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": SEND_MESSAGE_ACTION,
        "Resource": queue_arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic_node}},
    }
    policy = {"Queues": [{"Ref": dlq_id}], "PolicyDocument": {"Statement": [statement]}}
    subscription = {
        "TopicArn": topic_node,
        "Protocol": "lambda",
        "Endpoint": {"Fn::GetAtt": [function_id, "Arn"]},
        "RedrivePolicy": {"deadLetterTargetArn": queue_arn},
    }
    subscription_id = f"{function_id}Sns{number}"
    yield GeneratedResource(f"{subscription_id}Policy", "AWS::SQS::QueuePolicy", policy)
    yield GeneratedResource(subscription_id, "AWS::SNS::Subscription", subscription)
