"""The commands by which people look at a queue and at who reads it; none of them changes anything.

https://docs.aws.amazon.com/cli/latest/reference/sqs/
"""

from __future__ import annotations

from shlex import quote

from functions.healing.queue_names import parts_of, public_url


def get_attributes(queue_arn: str, *names: str) -> str:
    """What SQS says of the queue; raises ValueError where `queue_arn` is none."""
    return (
        f"aws sqs get-queue-attributes --region {parts_of(queue_arn).region} "
        f"--queue-url {quote(public_url(queue_arn))} --attribute-names {' '.join(names)}"
    )


def consumers_of(queue_arn: str) -> str:
    """Which functions read the queue; raises ValueError where `queue_arn` is none."""
    region = parts_of(queue_arn).region
    return (
        f"aws lambda list-event-source-mappings --region {region} "
        f"--event-source-arn {quote(queue_arn)}"
    )


def redrive_preview(source_arn: str) -> str:
    """Which of a source's letters a person would send back; raises ValueError as the others."""
    source = parts_of(source_arn)
    return f"mendq redrive {source.name} --all --dry-run --region {source.region}"
