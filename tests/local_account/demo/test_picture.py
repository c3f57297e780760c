"""What the demo prints to be typed is what works."""

from __future__ import annotations

import shlex

import boto3
import pytest

from functions.healing.steps import SetVisibilityTimeout
from local_account.demo.picture import undo_commands
from local_account.demo.watching import Seen, configuration
from local_account.process import LocalAccount
from local_account.where import ACCESS_KEY, SECRET_KEY


@pytest.mark.account
def test_the_undo_command_undoes_the_change(account: LocalAccount) -> None:
    sqs = account.client("sqs")
    url = sqs.create_queue(QueueName="undone", Attributes={"VisibilityTimeout": "2"})["QueueUrl"]
    before = configuration(sqs, url)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "6"})
    case = {"steps": [SetVisibilityTimeout(before=2, after=6).document()]}
    seen = Seen(before["QueueArn"], url, before, configuration(sqs, url), case=case)
    (command,) = undo_commands(seen)
    _run_as_typed(command)
    assert configuration(sqs, url) == before


def _run_as_typed(command: str) -> None:
    """With nothing but what the command says, and credentials."""
    words = shlex.split(command)
    assert words[:3] == ["aws", "sqs", "set-queue-attributes"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    sqs = boto3.client(
        "sqs",
        region_name=options.pop("--region"),
        endpoint_url=options.pop("--endpoint-url"),
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    name, _, value = options.pop("--attributes").partition("=")
    sqs.set_queue_attributes(QueueUrl=options.pop("--queue-url"), Attributes={name: value})
    assert options == {}
