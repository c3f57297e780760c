"""A Lambda function's messages become DLQ messages after one or two tries; reported.

Lambda gives a message back when it is throttled as well: such tries say nothing about the message.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.facts import Facts, LambdaConsumer, Need
from mendq.model.queue import FEWEST_RECEIVES, MAX_RECEIVE_COUNT, Redrive
from mendq.notifications.text import counted


def detect(facts: Facts) -> Found | None:
    receives = facts.max_receive_count
    if receives is None or receives >= FEWEST_RECEIVES or not facts.lambda_consumers:
        return None
    return Found(
        f"after {counted(receives, 'receive')} a message that "
        f"{facts.lambda_consumers[0].function_arn} did not finish is a DLQ message; AWS advises "
        f"{MAX_RECEIVE_COUNT} or more, because a throttled try counts as well"
    )


_FUNCTION = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:bill", 30, 5)


def _queue(receives: int, *consumers: LambdaConsumer) -> Facts:
    redrive = Redrive(examples.DLQ_ARN, receives)
    facts = examples.queue(queue_arn=examples.STANDARD_ARN, RedrivePolicy=redrive.text)
    return replace(facts, lambda_consumers=consumers)


MAX_RECEIVE_COUNT_TOO_LOW = Symptom(
    name="max_receive_count_too_low",
    sentence="A Lambda function's messages become DLQ messages after one or two tries.",
    plan_in_words="Report it; how often to try is for the function's owner to say.",
    aws_page="https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html",
    detection=Detection(
        detect, needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}), of_configuration=True
    ),
    detected=(
        Detected("one try", _queue(1, _FUNCTION)),
        Detected("two tries", _queue(2, _FUNCTION)),
    ),
    near_misses=(
        NearMiss("three tries", NOT_FOUND, facts=_queue(3, _FUNCTION)),
        NearMiss("no Lambda function reads it", NOT_FOUND, facts=_queue(1)),
        NearMiss(
            "no DLQ",
            NOT_FOUND,
            facts=replace(examples.queue(), lambda_consumers=(_FUNCTION,)),
        ),
    ),
)
