"""Sets a story up in an account: its queues, who calls them, what fails on demand."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from botocore.config import Config

from local_account.demo.story import BadQueue, Story
from local_account.demo.traffic import Caller, Running
from local_account.demo.watching import Seen, Watch, configuration
from local_account.process import LocalAccount

# A client would try a throttled call again by itself: then one failure is several records.
ONCE = Config(retries={"total_max_attempts": 1})


def set_up(story: Story, watch: Watch, account: LocalAccount) -> list[Running]:
    """Make the queues, and the calls to each, ready to start, in the story's order."""
    identities = {bad.name: _identity(bad, account) for bad in story.queues}
    for bad in story.queues:
        watch.queues[bad.name] = _make_queue(bad, account)
    account.switch_sqs_errors(
        [
            {"error": bad.on_demand, "queues": [bad.name]}
            for bad in story.queues
            if bad.on_demand is not None
        ]
    )
    return [_calls(bad, watch, account, identities[bad.name]) for bad in story.queues]


def _make_queue(bad: BadQueue, account: LocalAccount) -> Seen:
    sqs = account.client("sqs")
    answer = sqs.create_queue(QueueName=bad.name, Attributes=bad.created_with, tags=bad.tags)
    before = configuration(sqs, answer["QueueUrl"])
    return Seen(before["QueueArn"], answer["QueueUrl"], before, before)


def _calls(bad: BadQueue, watch: Watch, account: LocalAccount, identity: dict[str, str]) -> Running:
    sqs = account.client("sqs", config=ONCE, **identity)
    tell = partial(watch.heard, bad.name)
    return Running(bad.traffic, Caller(sqs, watch.queues[bad.name].queue_url, tell))


def _identity(bad: BadQueue, account: LocalAccount) -> dict[str, str]:
    """Credentials of the IAM user who calls; none where the account itself does."""
    if bad.caller is None:
        return {}
    iam = account.client("iam")
    iam.create_user(UserName=bad.caller)
    statement: dict[str, Any] = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=bad.caller, PolicyName="send", PolicyDocument=policy)
    key = iam.create_access_key(UserName=bad.caller)["AccessKey"]
    return {
        "aws_access_key_id": key["AccessKeyId"],
        "aws_secret_access_key": key["SecretAccessKey"],
    }
