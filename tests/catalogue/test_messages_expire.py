"""Test the advice of `messages_expire`: a longer retention period must not lose messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import QUEUE_ARN, queue_with_dlq, replace_values, standard_queue
from mendq.model.facts import Facts
from mendq.model.plan import Escalate, Refuse
from tests.catalogue.asking import answer_to

EXPIRE = SYMPTOM_BY_NAME["messages_expire"]
FIRST_THE_DLQ = "First set MessageRetentionPeriod of its DLQ to 1209600"
COUNTS = {"sent": 2_280, "received": 1_719, "deleted": 1_719}


def give_advice(facts: Facts) -> str:
    answer = answer_to(EXPIRE, replace(replace_values(facts, **COUNTS), found="messages expired"))
    assert isinstance(answer, Escalate)
    return answer.reason


def test_advice_on_a_standard_queue_with_a_dlq_raises_the_retention_of_the_dlq_first() -> None:
    assert FIRST_THE_DLQ in give_advice(queue_with_dlq())


@pytest.mark.parametrize(
    "facts",
    [standard_queue(), queue_with_dlq(queue_arn=QUEUE_ARN, dlq_arn=f"{QUEUE_ARN[:-5]}-dlq.fifo")],
    ids=["no DLQ", "FIFO: the age begins anew in the DLQ"],
)
def test_advice_does_not_name_a_dlq_that_needs_no_change(facts: Facts) -> None:
    assert "DLQ" not in give_advice(facts)


def test_archive_that_nobody_reads_is_no_page_if_its_messages_expire() -> None:
    archive = standard_queue(sent=961, received=0, deleted=0)
    answer = answer_to(EXPIRE, replace(archive, found="messages expired"))
    assert isinstance(answer, Refuse)
    assert not isinstance(answer, Escalate)
