"""The commands to look with name the queue and change nothing."""

from __future__ import annotations

import shlex

import pytest

from mendq.catalogue.examples import QUEUE_ARN
from mendq.notifications.commands import consumers_of, get_attributes


def test_the_attributes_that_are_named() -> None:
    assert shlex.split(get_attributes(QUEUE_ARN, "Policy", "KmsMasterKeyId")) == [
        *("aws", "sqs", "get-queue-attributes", "--region", "us-east-1", "--queue-url"),
        "https://sqs.us-east-1.amazonaws.com/123456789012/orders.fifo",
        *("--attribute-names", "Policy", "KmsMasterKeyId"),
    ]


def test_the_functions_that_read_it() -> None:
    *command, arn = shlex.split(consumers_of(QUEUE_ARN))
    assert command[:3] == ["aws", "lambda", "list-event-source-mappings"]
    assert arn == QUEUE_ARN


@pytest.mark.parametrize("command", [get_attributes, consumers_of])
def test_no_other_text_gets_into_a_command(command: object) -> None:
    assert callable(command)
    with pytest.raises(ValueError, match="not the ARN"):
        command(f"{QUEUE_ARN}; ls")
