"""Test that a fault of one source does not hide messages that another source sends to the DLQ.

Anyone in the account may create a queue that names the DLQ, tag it, and let its consumer fail.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import STANDARD_ARN
from mendq.model.facts import Facts, Need
from mendq.model.mode import Mode
from mendq.model.queue import RedrivePolicy
from mendq.model.traffic import hour_number, is_sums_hour
from tests.catalogue.asking import detect_fault, queue_examples_of
from tests.scan.scanner import Scanner, deny_queue_attributes, start_next_hour

ARRIVING = SYMPTOM_BY_NAME["dlq_messages_arriving"]
FAILING = frozenset({"consumer_failing"})
OTHER_ARN = f"{STANDARD_ARN}-x"


def make_dlq_facts(**open_symptoms_by_source: frozenset[str]) -> Facts:
    """Return the facts of a DLQ in which messages arrive, with open cases by the source's name."""
    symptoms_by_source = {
        STANDARD_ARN.removesuffix("orders") + name: symptoms
        for name, symptoms in open_symptoms_by_source.items()
    }
    return replace(
        queue_examples_of(ARRIVING)[0].facts,
        open_symptoms=frozenset[str]().union(*symptoms_by_source.values()),
        open_symptoms_by_source=symptoms_by_source,
    )


def test_arrivals_are_reported_if_only_another_source_has_an_open_case() -> None:
    facts = make_dlq_facts(orders=frozenset(), x=FAILING)
    assert detect_fault(ARRIVING, facts)


def test_arrivals_are_not_reported_if_each_source_has_an_open_case() -> None:
    assert detect_fault(ARRIVING, make_dlq_facts(orders=FAILING)) is None


@pytest.mark.parametrize("field", ["unconfirmed_sources", "unread_sources"])
def test_arrivals_are_reported_if_a_source_that_was_not_read_can_have_sent_them(
    field: str,
) -> None:
    other_arns: Any = {field: (OTHER_ARN,)}
    facts = replace(make_dlq_facts(orders=FAILING), **other_arns)
    assert detect_fault(ARRIVING, facts)


def make_shared_dlq(scanner: Scanner) -> tuple[str, str, str]:
    """Make a DLQ, a healthy source, and another source of which no message is finished."""
    consent = replace(scanner.account.settings.consent, tag_may_raise_to=Mode.OBSERVE)
    scanner.account.settings = structs.replace(scanner.account.settings, consent=consent)
    dlq_arn = scanner.account.queue("orders-dlq", tag="observe", MessageRetentionPeriod="1209600")
    policy = RedrivePolicy(dlq_arn, 3).text
    source_arn = scanner.account.queue("orders", tag="observe", RedrivePolicy=policy)
    other_arn = scanner.account.queue("x", tag="observe", RedrivePolicy=policy)
    return dlq_arn, source_arn, other_arn


def test_failing_queue_of_another_person_does_not_silence_the_page_about_a_dlq(
    scanner: Scanner,
) -> None:
    dlq_arn, source_arn, other_arn = make_shared_dlq(scanner)
    scanner.account.later(hours=8)
    start_next_hour(scanner.account)
    while not is_sums_hour(hour_number(scanner.account.now)):
        start_next_hour(scanner.account)
    nothing = {"in_flight": 0}  # and the counts that SQS always reports
    times = [scanner.account.now - timedelta(minutes=minutes) for minutes in range(360, 3, -1)]
    dlq_values = [{**nothing, "visible": 6 * minutes} for minutes in range(len(times))]
    scanner.put_metric_series(dlq_arn, dict(zip(times, dlq_values, strict=True)))
    failing = {**nothing, "sent": 10, "received": 22, "deleted": 4}
    scanner.put_metric_series(other_arn, dict.fromkeys(times, failing))
    sound = {**nothing, "sent": 1, "received": 1, "deleted": 1}
    scanner.put_metric_series(source_arn, dict.fromkeys(times, sound))
    url = scanner.account.url(dlq_arn)
    scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits")
    scanner.run_due_scan()
    assert set(scanner.list_announced_faults()) >= {
        (other_arn, "consumer_failing"),
        (dlq_arn, ARRIVING.name),
    }
    scanner.heal()
    assert len(scanner.account.pages("urgent")) == 2


def test_source_that_refuses_mendq_can_have_sent_the_messages(scanner: Scanner) -> None:
    dlq_arn, source_arn, other_arn = make_shared_dlq(scanner)
    deny_queue_attributes(scanner, source_arn, words="a resource-based policy")
    reader = scanner.context().make_reader(scanner.account.now, ())
    facts = reader.read_queue(dlq_arn, {"mendq": "observe"}, {Need.QUEUE})
    facts = reader.with_needed_facts(facts, {Need.DLQ_SOURCES})
    assert facts.source_arns == (other_arn,)
    assert facts.possible_source_arns == (other_arn, source_arn)
