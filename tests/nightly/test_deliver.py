"""What a topic is told fits into what SNS takes."""

from __future__ import annotations

import pytest

from mendq.nightly.deliver import MOST_TEXT_BYTES, topic
from tests.heal.conftest import Account


@pytest.mark.parametrize("character", ["x", "ü", "\N{GRINNING FACE}", "\ud800"])
def test_a_text_beyond_what_sns_takes_is_cut_and_says_so(account: Account, character: str) -> None:
    topic_arn = account.clients.sns.create_topic(Name="info")["TopicArn"]
    topic(account.clients, "verdict", topic_arn, "Mendq", "first " + character * 300_000).send()
    ((_, said),) = account.pages("info")
    assert len(said.encode()) <= MOST_TEXT_BYTES
    assert said.startswith("first ")
    assert said.endswith("(cut here: it is longer than a topic takes)\n")


def test_a_text_that_fits_is_said_as_it_is(account: Account) -> None:
    topic_arn = account.clients.sns.create_topic(Name="info")["TopicArn"]
    text = "ü" * (MOST_TEXT_BYTES // 2)
    topic(account.clients, "verdict", topic_arn, "Mendq", text).send()
    assert account.pages("info") == [("Mendq", text)]
