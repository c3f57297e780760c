"""The resources of recorded AWS calls, with the ARNs that the template's roles name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moto.sqs.models import sqs_backends

from mendq.probe.probe import PROBE_QUEUE_NAME
from tests.account.account import ACCOUNT as MOTO_ACCOUNT
from tests.infra.synthesized import ACCOUNT, QUEUE_ARNS, REGION, SETTINGS, template_of

Params = Mapping[str, Any]
ANYTHING = "*"
ORGANIZATION: Mapping[str, str] = SETTINGS["named"]["organization"]
TEAMS: Mapping[str, str] = SETTINGS["named"]["notifications"]["teams"]


def resources_of(service: str, operation: str, params: Params) -> list[str]:
    """Return the ARNs that a call needs permissions for, or `*` if its action has no resource."""
    return _OF_SERVICE.get(service, _any)(operation, params)


def tags_of(params: Params) -> frozenset[tuple[str, str]]:
    """Return the current tags in moto of the queue that a call names."""
    queue = sqs_backends[MOTO_ACCOUNT][REGION].queues.get(_queue_name(params) or "")
    return frozenset(queue.tags.items()) if queue else frozenset()


def table_of(params: Params) -> str:
    """Return the ARN of the called table, the case store or that of seal keys, or of its index."""
    table = _find_resource("AWS::DynamoDB::Table", params["TableName"])
    return f"{table}/index/{params['IndexName']}" if "IndexName" in params else table


def _any(*_: object) -> list[str]:
    return [ANYTHING]


def _objects(_: str, params: Params) -> list[str]:
    is_theirs = params["Bucket"] == ORGANIZATION["reportBucket"]
    theirs = f"arn:aws:s3:::{params['Bucket']}"
    bucket = theirs if is_theirs else _find_resource("AWS::S3::Bucket", params["Bucket"])
    return [f"{bucket}/{params['Key']}" if "Key" in params else bucket]


def _queue(_: str, params: Params) -> list[str]:
    name = _queue_name(params)
    if name == PROBE_QUEUE_NAME:
        return [_find_resource("AWS::SQS::Queue", "ProbeQueue")]
    return [ANYTHING if name is None else f"{QUEUE_ARNS}{name}"]


def _queue_name(params: Params) -> str | None:
    """Return the queue of a call. The handle of a move task contains its queue."""
    names = (params.get(key) for key in ("QueueUrl", "QueueName", "SourceArn", "TaskHandle"))
    return next((text.replace("/", ":").rpartition(":")[2] for text in names if text), None)


def _topic(_: str, params: Params) -> list[str]:
    if params["TopicArn"] in TEAMS.values():
        return [params["TopicArn"]]
    topic = params["TopicArn"].rpartition(":")[2]
    return [_find_resource("AWS::SNS::Topic", topic).removeprefix("arn:")]


def _bus(_: str, params: Params) -> list[str]:
    assert not any("EventBusName" in entry for entry in params["Entries"])
    return [f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"]


def _function(operation: str, params: Params) -> list[str]:
    if operation == "ListEventSourceMappings":  # knows no resource
        return [ANYTHING]
    if operation == "Invoke":
        return [_find_resource("AWS::Lambda::Function", f"{params['FunctionName']}Function")]
    name = params["FunctionName"].rpartition(":")[2]
    return [f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"]


def _key(_: str, params: Params) -> list[str]:
    return [f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{params['KeyId'].rpartition('/')[2]}"]


def _identities(_: str, params: Params) -> list[str]:
    """Return the sender's identity and those of recipients verified in this account."""
    addresses = (params["FromEmailAddress"], *params["Destination"]["ToAddresses"])
    return [f"arn:aws:ses:{REGION}:{ACCOUNT}:identity/{address}" for address in addresses]


def _application(_: str, params: Params) -> list[str]:
    application = _find_resource("AWS::EMRServerless::Application", params["applicationId"])
    return [f"{application}/jobruns/{params['jobRunId']}" if "jobRunId" in params else application]


def _calendars(_: str, params: Params) -> list[str]:
    return list(params["CalendarNames"])


def _find_resource(kind: str, name: str) -> str:
    """Return the ARN of the resource whose logical id resembles `name`."""
    wanted = name.replace("_", "").lower()
    (match,) = (
        logical_id
        for logical_id in template_of("named").all(kind)
        if logical_id.lower().startswith(wanted)
        or logical_id[:-8].lower().endswith(f"{wanted}topic")
    )
    return template_of("named").arn_of(kind, match)


_OF_SERVICE: Mapping[str, Callable[[str, Params], list[str]]] = {
    "s3": _objects,
    "sqs": _queue,
    "sns": _topic,
    "events": _bus,
    "lambda": _function,
    "kms": _key,
    "sesv2": _identities,
    "emr-serverless": _application,
    "ssm": _calendars,
}
