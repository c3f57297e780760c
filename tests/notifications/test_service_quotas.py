from __future__ import annotations

import pytest

from mendq.catalogue import examples
from mendq.notifications.commands import quotas_command
from tests.architecture import test_documents as documents


def test_an_arn_that_is_none_gives_no_command() -> None:
    with pytest.raises(ValueError, match="not the ARN of a queue"):
        quotas_command("sqs", "arn:aws:sqs:us-east-1; reboot")


@pytest.mark.parametrize(
    ("named", "query"),
    [
        ("", '"Quotas[].[QuotaName, Value]"'),
        ("rate", "\"Quotas[?contains(QuotaName, 'rate')].[QuotaName, Value]\""),
    ],
)
def test_the_quotas_of_the_queue_s_region_are_listed(named: str, query: str) -> None:
    command = quotas_command("kms", examples.QUEUE_ARN, named)
    assert query in command
    assert "--region us-east-1" in command
    documents.test_an_aws_command_exists_and_takes_these_options(command)
