"""What a call is about, as the template's roles name it: IAM asks for the resource too."""

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
    """The ARNs that a call takes permissions on; `*` where its action knows none."""
    return _OF_SERVICE.get(service, _any)(operation, params)


def tags_of(params: Params) -> frozenset[tuple[str, str]]:
    """The tags that the queue of a call to moto's SQS bears now."""
    queue = sqs_backends[MOTO_ACCOUNT][REGION].queues.get(_queue_name(params) or "")
    return frozenset(queue.tags.items()) if queue else frozenset()


def table_of(params: Params) -> str:
    """The case store is the one table, whatever it is called."""
    table = _made("AWS::DynamoDB::Table", "")
    return f"{table}/index/{params['IndexName']}" if "IndexName" in params else table


def _any(*_: object) -> list[str]:
    return [ANYTHING]


def _objects(_: str, params: Params) -> list[str]:
    is_theirs = params["Bucket"] == ORGANIZATION["reportBucket"]
    theirs = f"arn:aws:s3:::{params['Bucket']}"
    bucket = theirs if is_theirs else _made("AWS::S3::Bucket", params["Bucket"])
    return [f"{bucket}/{params['Key']}" if "Key" in params else bucket]


def _queue(_: str, params: Params) -> list[str]:
    name = _queue_name(params)
    if name == PROBE_QUEUE_NAME:
        return [_made("AWS::SQS::Queue", "ProbeQueue")]
    return [ANYTHING if name is None else f"{QUEUE_ARNS}{name}"]


def _queue_name(params: Params) -> str | None:
    """The handle of a move task says its queue, on AWS as in our runs."""
    said = (params.get(each) for each in ("QueueUrl", "QueueName", "SourceArn", "TaskHandle"))
    return next((each.replace("/", ":").rpartition(":")[2] for each in said if each), None)


def _topic(_: str, params: Params) -> list[str]:
    if params["TopicArn"] in TEAMS.values():
        return [params["TopicArn"]]
    topic = params["TopicArn"].rpartition(":")[2]
    return [_made("AWS::SNS::Topic", topic).removeprefix("arn:")]


def _bus(_: str, params: Params) -> list[str]:
    assert not any("EventBusName" in each for each in params["Entries"])
    return [f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"]


def _function(operation: str, params: Params) -> list[str]:
    if operation == "ListEventSourceMappings":  # knows no resource
        return [ANYTHING]
    if operation == "Invoke":
        return [_made("AWS::Lambda::Function", f"{params['FunctionName']}Function")]
    name = params["FunctionName"].rpartition(":")[2]
    return [f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"]


def _identities(_: str, params: Params) -> list[str]:
    """Of the sender, and of recipients that are verified in this account themselves."""
    addresses = (params["FromEmailAddress"], *params["Destination"]["ToAddresses"])
    return [f"arn:aws:ses:{REGION}:{ACCOUNT}:identity/{each}" for each in addresses]


def _application(_: str, params: Params) -> list[str]:
    application = _made("AWS::EMRServerless::Application", params["applicationId"])
    return [f"{application}/jobruns/{params['jobRunId']}" if "jobRunId" in params else application]


def _calendars(_: str, params: Params) -> list[str]:
    return list(params["CalendarNames"])


def _made(kind: str, name: str) -> str:
    """The resource of that kind whose logical id starts, or ends before its hash, like a name."""
    wanted = name.replace("_", "").lower()
    (found,) = (
        each
        for each in template_of("named").all(kind)
        if each.lower().startswith(wanted) or each[:-8].lower().endswith(f"{wanted}topic")
    )
    return template_of("named").arn_of(kind, found)


_OF_SERVICE: Mapping[str, Callable[[str, Params], list[str]]] = {
    "s3": _objects,
    "sqs": _queue,
    "sns": _topic,
    "events": _bus,
    "lambda": _function,
    "sesv2": _identities,
    "emr-serverless": _application,
    "ssm": _calendars,
}
