"""The account that redrives stand in: SQS, CloudWatch and the course's item are in memory.

The rest of the case store, the case bucket and the topics are moto's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import boto3

from mendq.aws.clients import Clients
from tests.heal.conftest import REGION, Account, moto_account
from tests.prove.memory_sqs import MemorySqs, Refuses, method_of
from tests.prove.proof import BEGINS_AT
from tests.prove.quick_case_store import quick_case_store
from tests.prove.redrive_table import ConditionFailed, RedriveTable
from tests.prove.struck_calls import StruckCalls


@dataclass
class Cloud:
    """The account that one world after another stands in."""

    account: Account
    courses: RedriveTable
    calls: StruckCalls
    sqs: MemorySqs = field(default_factory=lambda: MemorySqs(random.Random(0), 0.0))  # noqa: S311
    deletes_per_second: float = 0.0
    worlds: int = 0

    def answer(self, operation: str, asked: Mapping[str, Any]) -> Any:
        """None where moto is to answer."""
        try:
            if operation == "GetMetricData":
                seconds = (asked["EndTime"] - asked["StartTime"]).total_seconds()
                answer: Any = {
                    "MetricDataResults": [
                        {"Id": "deleted", "Values": [seconds * self.deletes_per_second]}
                    ]
                }
            elif hasattr(self.sqs, method_of(operation)):
                answer = self.sqs.answer(operation, asked)
            else:
                answer = self.courses.answer(operation, asked)
        except Refuses as error:
            return _refusal(error.code, str(error))
        except ConditionFailed:
            return _refusal("ConditionalCheckFailedException", "The conditional request failed")
        return None if answer is None else (SimpleNamespace(status_code=200), answer)


def _refusal(code: str, message: str) -> Any:
    return SimpleNamespace(status_code=400), {"Error": {"Code": code, "Message": message}}


@contextmanager
def cloud() -> Iterator[Cloud]:
    """With clients of its own: every call of theirs is listened to for as long as they live."""
    clients = Clients(boto3.Session(region_name=REGION))
    # Spelling out who calls takes botocore longer than a call takes here.
    nobody = patch("botocore.useragent.UserAgentString.to_string", lambda _: "nobody")
    with moto_account(clients) as account, quick_case_store(), nobody:
        account.now = BEGINS_AT
        made = Cloud(account, RedriveTable(), StruckCalls(lambda *_: None))
        made.calls.answers = made.answer
        made.calls.listen(account.clients)
        yield made
