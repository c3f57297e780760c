"""Looks at a queue and at who consumes it; reads only.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html
https://docs.aws.amazon.com/lambda/latest/api/API_ListEventSourceMappings.html
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from botocore.exceptions import ClientError

from functions.aws.clients import Clients
from functions.aws.errors import QueueGone, code_of, looking
from functions.healing.error_codes import canonical
from functions.healing.facts import DeadLetterQueue, Facts, LambdaConsumer, Need
from functions.healing.queue_names import arn_of, parts_of

METRICS_WINDOW = timedelta(hours=1)
METRICS_PERIOD_SECONDS = 3600


def queue_url(clients: Clients, queue_arn: str) -> str:
    """The queue's URL at our own endpoint; an event's URL is never used."""
    queue = parts_of(queue_arn)
    return f"{clients.sqs.meta.endpoint_url}/{queue.account}/{queue.name}"


def tags_of(clients: Clients, queue_arn: str) -> Mapping[str, str] | None:
    """The queue's tags; None where there is no such queue. Raises FactsUnavailable."""
    with looking(f"tags of {queue_arn}"):
        try:
            answer = clients.sqs.list_queue_tags(QueueUrl=queue_url(clients, queue_arn))
        except ClientError as error:
            if canonical(code_of(error)) == "NonExistentQueue":
                return None
            raise
    return answer.get("Tags", {})


def attributes_of(clients: Clients, queue_arn: str) -> Mapping[str, str]:
    """The queue's attributes as SQS spells them. Raises QueueGone or FactsUnavailable."""
    with looking(f"attributes of {queue_arn}"):
        try:
            answer = clients.sqs.get_queue_attributes(
                QueueUrl=queue_url(clients, queue_arn), AttributeNames=["All"]
            )
        except ClientError as error:
            if canonical(code_of(error)) == "NonExistentQueue":
                raise QueueGone(queue_arn) from error
            raise
    return {str(name): value for name, value in answer.get("Attributes", {}).items()}


def gather(
    clients: Clients,
    queue_arn: str,
    tags: Mapping[str, str],
    needs: Collection[Need],
    now: datetime,
) -> Facts:
    """The facts that `needs` names, and no more. Raises FactsUnavailable."""
    consumers: tuple[LambdaConsumer, ...] = ()
    if Need.LAMBDA_CONSUMERS in needs:
        consumers = lambda_consumers_of(clients, queue_arn, now)
    facts = Facts(queue_arn, _attributes(clients, queue_arn, needs), tags, consumers)
    if Need.DEAD_LETTER_QUEUE in needs and facts.dead_letter_arn is not None:
        facts = replace(facts, dead_letter_queue=_dead_letter_queue(clients, facts))
    return facts


def _attributes(clients: Clients, queue_arn: str, needs: Collection[Need]) -> Mapping[str, str]:
    """None where the queue is gone and nothing of it is needed: that may be the fact."""
    try:
        return attributes_of(clients, queue_arn)
    except QueueGone:
        if needs:
            raise
        return {}


def _dead_letter_queue(clients: Clients, facts: Facts) -> DeadLetterQueue | None:
    """A RedrivePolicy is a person's text: what is no queue of this account is not asked about."""
    named = arn_of(facts.dead_letter_arn)
    if named is None or parts_of(named)[:3] != parts_of(facts.queue_arn)[:3]:
        return DeadLetterQueue(str(facts.dead_letter_arn), None)
    try:
        return DeadLetterQueue(named, attributes_of(clients, named))
    except QueueGone:
        return DeadLetterQueue(named, None)


def lambda_consumers_of(
    clients: Clients, queue_arn: str, now: datetime
) -> tuple[LambdaConsumer, ...]:
    """The functions behind enabled mappings. Raises FactsUnavailable."""
    with looking(f"Lambda consumers of {queue_arn}"):
        pages = clients.functions.get_paginator("list_event_source_mappings").paginate(
            EventSourceArn=queue_arn
        )
        mappings = [each for page in pages for each in page["EventSourceMappings"]]
        consumers = (
            _consumer(
                clients, each["FunctionArn"], each.get("MaximumBatchingWindowInSeconds", 0), now
            )
            for each in mappings
            if each.get("State") in ("Enabled", "Enabling", "Updating", "Creating")
        )
        return tuple(each for each in consumers if each is not None)


def _consumer(
    clients: Clients, function_arn: str, batching_window_seconds: int, now: datetime
) -> LambdaConsumer | None:
    """None where the function behind a mapping is gone: it consumes nothing."""
    try:
        configuration = clients.functions.get_function_configuration(FunctionName=function_arn)
    except clients.functions.exceptions.ResourceNotFoundException:
        return None
    name = configuration["FunctionName"]
    duration_p99_ms, errors, invocations = _metrics_of(clients, name, now)
    return LambdaConsumer(
        function_arn=function_arn,
        timeout_seconds=configuration["Timeout"],
        batching_window_seconds=batching_window_seconds,
        duration_p99_seconds=None if duration_p99_ms is None else duration_p99_ms / 1000,
        error_share=errors / invocations if errors is not None and invocations else None,
    )


def _metrics_of(
    clients: Clients, function_name: str, now: datetime
) -> tuple[float | None, float | None, float | None]:
    """Duration p99 in ms, errors and invocations of the last hour; None where nothing ran."""
    asked = (("Duration", "p99"), ("Errors", "Sum"), ("Invocations", "Sum"))
    answer = clients.cloudwatch.get_metric_data(
        StartTime=now - METRICS_WINDOW,
        EndTime=now,
        MetricDataQueries=[
            {
                "Id": metric.lower(),
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/Lambda",
                        "MetricName": metric,
                        "Dimensions": [{"Name": "FunctionName", "Value": function_name}],
                    },
                    "Period": METRICS_PERIOD_SECONDS,
                    "Stat": statistic,
                },
            }
            for metric, statistic in asked
        ],
    )
    values = {each["Id"]: each.get("Values", []) for each in answer["MetricDataResults"]}
    p99, errors, invocations = (values.get(metric.lower(), []) for metric, _ in asked)
    return (
        max(p99) if p99 else None,
        sum(errors) if errors else None,
        sum(invocations) if invocations else None,
    )
