"""The `aws` commands by which people write what Mendq writes, or take it back.

https://docs.aws.amazon.com/cli/latest/reference/sqs/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from shlex import quote

from functions.healing.plain_text import exact_json
from functions.healing.queue_names import parts_of, public_url

_WORD = re.compile(r"[A-Za-z0-9]{1,64}")


def set_command(queue_arn: str, values: Mapping[str, str], queue_url: str = "") -> str:
    """The `aws` command that sets attributes; raises ValueError where `queue_arn` is none.

    JSON escapes keep every value exact and every character visible. `queue_url` is for a queue that
    has another one than AWS would give it. A policy is quoted twice, for the shell and as the CLI's
    JSON, whose short form splits at commas:
    https://docs.aws.amazon.com/cli/latest/userguide/cli-usage-shorthand.html
    """
    words = all(_WORD.fullmatch(each) for pair in values.items() for each in pair)
    shorthand = ",".join(f"{name}={text}" for name, text in values.items())
    given = shorthand if words else exact_json(dict(values))
    return (
        f"aws sqs set-queue-attributes --region {parts_of(queue_arn).region}"
        f" --queue-url {quote(queue_url or public_url(queue_arn))} --attributes {quote(given)}"
    )


def create_queue_command(queue_arn: str, attributes: Mapping[str, str]) -> str:
    """The `aws` command that makes a queue; raises ValueError where `queue_arn` is none."""
    queue = parts_of(queue_arn)
    return (
        f"aws sqs create-queue --region {queue.region} --queue-name {queue.name}"
        f" --attributes {quote(exact_json(dict(attributes)))}"
    )


def delete_queue_command(queue_arn: str) -> str:
    """The `aws` command that deletes a queue with all that is in it; ValueError for no queue."""
    url = quote(public_url(queue_arn))
    return f"aws sqs delete-queue --region {parts_of(queue_arn).region} --queue-url {url}"
