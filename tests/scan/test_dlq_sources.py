"""Test which source queues of a DLQ Mendq trusts, so that an untrusted queue cannot cause harm.

Any queue may name any other queue of its account as its DLQ.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from mendq.aws.dlqs import MOST_LISTED_SOURCES
from mendq.cases.pins import Pins
from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.dlq_messages_waiting import DLQ_MESSAGES_WAITING
from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.catalogue.examples import (
    EXAMPLE_TIME,
    STANDARD_ARN,
    dlq_with_messages,
    queue,
    replace_values,
    sources,
)
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.visibility.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.heal.decide import RecordTransition, WriteFix, decide
from mendq.model.consent import Consent
from mendq.model.dlq import select_confirmed_sources
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Need
from mendq.model.mode import Mode
from mendq.model.plan import Refuse
from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy, make_public_queue_url
from mendq.model.state import State
from tests.account.answers import answer_instead
from tests.catalogue.asking import answer_to, detect_fault, facts_of, queue_examples_of
from tests.heal.operators import list_states, send_decision
from tests.heal.situations import make_read_situation
from tests.scan.scanner import Scanner, start_next_hour

A_DAY = 86_400
UNTRUSTED_ARN = f"{STANDARD_ARN}-of-a-stranger"
NAME = DLQ_RETENTION_TOO_SHORT.name
UNCONFIRMED = "dlq_source_unconfirmed"


def make_named_pair(scanner: Scanner, tag: str | None = None, **over: str) -> tuple[str, str]:
    """Make payments, which keeps messages for a minute, and a queue that names it as its DLQ."""
    named = scanner.account.queue("payments", MessageRetentionPeriod="60", **over)
    policy = RedrivePolicy(named, 5).text
    naming = scanner.account.queue("anybody", tag=tag, RedrivePolicy=policy)
    scanner.account.later(minutes=5)
    return named, naming


def scan_and_heal_queue(scanner: Scanner, queue_arn: str) -> tuple[str, set[str], list[str]]:
    """Scan and heal. Return the queue's retention, its findings and the states of all cases."""
    start_next_hour(scanner.account)
    scanner.scan()
    findings = scanner.read_findings()["findings"]
    for healed in scanner.heal():
        assert healed.error_by_message_id == {}
    symptoms = {finding["symptom"] for finding in findings if finding["queue_arn"] == queue_arn}
    retention = scanner.account.attributes(queue_arn)["MessageRetentionPeriod"]
    return retention, {NAME, UNCONFIRMED} & symptoms, list_states(scanner.account)


def test_unconfirmed_source_queue_does_not_raise_the_retention_of_its_dlq_and_is_reported(
    scanner: Scanner,
) -> None:
    """The queue's tag is no proof: everyone who may create a queue may tag it."""
    consent = Consent(mode=Mode.HEAL, queues=("payments",))
    scanner.account.settings = structs.replace(scanner.account.settings, consent=consent)
    live, _ = make_named_pair(scanner, "heal")
    for _ in range(2):
        assert scan_and_heal_queue(scanner, live) == ("60", {UNCONFIRMED}, [])
    findings = scanner.read_findings()["findings"]
    (finding,) = [finding for finding in findings if finding["symptom"] == UNCONFIRMED]
    assert ":anybody, and Mendq goes by none" in finding["because"]


def test_source_queue_that_the_dlqs_redrive_allow_policy_lists_is_trusted(scanner: Scanner) -> None:
    allowed = RedriveAllowPolicy("byQueue", ("arn:aws:sqs:us-east-1:123456789012:anybody",)).text
    dead, naming = make_named_pair(scanner, RedriveAllowPolicy=allowed)
    assert naming in allowed
    assert scan_and_heal_queue(scanner, dead) == ("60", {NAME}, ["proposed"])


def test_queue_that_producers_send_to_is_unchanged_although_named_as_a_dlq(
    scanner: Scanner,
) -> None:
    """For example a staging queue that names a production queue, both managed by Mendq."""
    live, _ = make_named_pair(scanner, "heal")
    scanner.account.later(hours=7)
    scanner.put_metrics(live, scanner.account.now - timedelta(minutes=30), sent=1)
    retention, _, cases = scan_and_heal_queue(scanner, live)
    assert (retention, cases) == ("60", [])


def approve_source(scanner: Scanner) -> tuple[str, str]:
    """Propose and approve a DLQ's longer retention. Return the ARNs of the DLQ and its source."""
    dlq_arn, source_arn = make_named_pair(scanner, "heal")
    scan_and_heal_queue(scanner, dlq_arn)
    case_id = scanner.account.transitions()[-1]["case_id"]
    assert send_decision(scanner.account, "approve", case_id)["state"] == "approved"
    return dlq_arn, source_arn


def load_pins(scanner: Scanner) -> Pins:
    return Pins(scanner.account.clients.dynamodb, "case_store")


def test_declined_proposal_does_not_make_the_source_queue_trusted(scanner: Scanner) -> None:
    dlq_arn, _ = make_named_pair(scanner, "heal")
    assert scan_and_heal_queue(scanner, dlq_arn) == ("60", {NAME}, ["proposed"])
    send_decision(scanner.account, "decline", scanner.account.transitions()[-1]["case_id"])
    assert load_pins(scanner).load_approved_sources(dlq_arn) == frozenset()


def test_approved_proposal_makes_the_source_queue_trusted_until_it_is_revoked(
    scanner: Scanner,
) -> None:
    dlq_arn, source_arn = approve_source(scanner)
    pins = load_pins(scanner)
    assert pins.load_approved_sources(dlq_arn) == {source_arn}
    assert not pins.revoke_source(dlq_arn, f"{source_arn}-2")
    assert pins.revoke_source(dlq_arn, source_arn)
    assert pins.load_approved_sources(dlq_arn) == frozenset()


def test_approved_source_queue_is_not_trusted_by_another_dlq(scanner: Scanner) -> None:
    _, source_arn = approve_source(scanner)
    other_arn = scanner.account.queue("other-dlq", MessageRetentionPeriod="60")
    scanner.account.set(source_arn, RedrivePolicy=RedrivePolicy(other_arn, 5).text)
    _, _, case_states = scan_and_heal_queue(scanner, other_arn)
    assert case_states[-1] == "proposed"


LIVE_QUEUE_EXAMPLES = [
    (entry, example)
    for entry in CATALOGUE
    for example in queue_examples_of(entry)
    if example.facts.dlq_sources == () and example.facts.is_sent_to
]


@pytest.mark.parametrize(
    ("entry", "example"),
    LIVE_QUEUE_EXAMPLES,
    ids=[f"{entry.name}: {example.title}" for entry, example in LIVE_QUEUE_EXAMPLES],
)
def test_detection_on_a_live_queue_is_the_same_if_an_untrusted_queue_names_it_as_dlq(
    entry: Symptom, example: Any
) -> None:
    believed = replace(example.facts, dlq_sources=sources(UNTRUSTED_ARN))
    strange = replace(example.facts, unconfirmed_sources=(UNTRUSTED_ARN,))
    for facts in (believed, strange):
        assert detect_fault(entry, facts) == replace(facts, found=facts_of(entry, example).found), (
            example.title
        )


def test_fix_of_a_queue_that_may_also_be_a_dlq_is_proposed_instead_of_written() -> None:
    """DLQ messages look like a consumer race in the counters, and applications may park some."""
    entry = VISIBILITY_TIMEOUT_TOO_SHORT
    facts = facts_of(entry, queue_examples_of(entry)[0])
    seen = Evidence((Sighting.from_scan(EXAMPLE_TIME),))
    given = make_read_situation(
        symptom=entry, facts=facts, evidence=seen, fresh_sightings=seen.sightings, now=EXAMPLE_TIME
    )
    written = decide(given)
    assert isinstance(written, WriteFix)
    believed = replace(facts, dlq_sources=sources(UNTRUSTED_ARN))
    asked = decide(structs.replace(given, facts=believed))
    assert isinstance(asked, RecordTransition)
    assert (asked.case.state, asked.case.steps) == (State.PROPOSED, written.case.steps)
    assert f"the DLQ of {UNTRUSTED_ARN}" in asked.case.reason


def test_redrive_is_refused_if_producers_send_to_the_dlq() -> None:
    """Some messages never failed: a producer sent them there on purpose."""
    refused = answer_to(DLQ_MESSAGES_WAITING, replace_values(dlq_with_messages(), sent=1))
    assert isinstance(refused, Refuse)
    assert refused.code == "sent_to"


ALLOWED = RedriveAllowPolicy("byQueue", (STANDARD_ARN,)).text
OTHER_SOURCE_ALLOWED = RedriveAllowPolicy(
    "byQueue", (STANDARD_ARN.replace("orders", "billing"),)
).text
DLQ_IN_SETTINGS: dict[str, Any] = {"queues": ("dead",)}
HEAL, OBSERVE, PROPOSE = Mode.HEAL, Mode.OBSERVE, Mode.PROPOSE


HEAL_TAG = {"mendq": "heal"}
OFF_TAG = {"mendq": "off"}
SOURCE_IN_SETTINGS: dict[str, Any] = {"queues": ("ord*",)}
ALLOW_ALL = RedriveAllowPolicy("allowAll").text
DENY_ALL = RedriveAllowPolicy("denyAll").text
DENY_ALL_WITH_A_SOURCE = RedriveAllowPolicy("denyAll", (STANDARD_ARN,)).text


def is_source_confirmed(
    tags: dict[str, str], consent: dict[str, Any], redrive_allow_policy: str | None = None
) -> bool:
    """Return True if a source with these tags is confirmed for a DLQ with this policy."""
    dlq = {} if redrive_allow_policy is None else {"RedriveAllowPolicy": redrive_allow_policy}
    facts = replace_values(queue(queue_arn=STANDARD_ARN.replace("orders", "dead")), **dlq)
    confirmed = select_confirmed_sources([STANDARD_ARN], facts, Consent(**consent), lambda _: tags)
    return bool(confirmed)


@pytest.mark.parametrize(
    ("tags", "consent", "redrive_allow_policy"),
    [
        ({}, {}, ALLOWED),
        (OFF_TAG, {}, ALLOWED),
        ({}, SOURCE_IN_SETTINGS, None),
        ({}, SOURCE_IN_SETTINGS, OTHER_SOURCE_ALLOWED),
        (HEAL_TAG, {}, None),
        (HEAL_TAG, {}, ALLOW_ALL),
    ],
)
def test_source_queue_is_confirmed_by_settings_its_tag_or_the_dlqs_redrive_allow_policy(
    tags: dict[str, str], consent: dict[str, Any], redrive_allow_policy: str | None
) -> None:
    assert is_source_confirmed(tags, consent, redrive_allow_policy)


@pytest.mark.parametrize(
    ("tags", "consent", "redrive_allow_policy"),
    [
        ({}, {}, None),
        ({}, {}, ALLOW_ALL),
        ({}, {}, DENY_ALL),
        ({}, {}, DENY_ALL_WITH_A_SOURCE),
        ({}, {}, "{"),
        (OFF_TAG, SOURCE_IN_SETTINGS, None),
    ],
)
def test_source_queue_that_is_neither_managed_nor_listed_by_the_dlq_is_unconfirmed(
    tags: dict[str, str], consent: dict[str, Any], redrive_allow_policy: str | None
) -> None:
    assert not is_source_confirmed(tags, consent, redrive_allow_policy)


@pytest.mark.parametrize("redrive_allow_policy", [DENY_ALL, OTHER_SOURCE_ALLOWED])
def test_tag_of_a_source_queue_confirms_nothing_if_the_dlq_denies_that_source(
    redrive_allow_policy: str,
) -> None:
    assert not is_source_confirmed(HEAL_TAG, {}, redrive_allow_policy)


@pytest.mark.parametrize(
    ("tags", "consent", "is_confirmed"),
    [
        (HEAL_TAG, {"mode": HEAL}, False),
        (HEAL_TAG, {"mode": OBSERVE}, True),
        (HEAL_TAG, {"mode": PROPOSE, "tag_may_raise_to": PROPOSE}, True),
        ({"mendq": "what"}, {"mode": HEAL, "tag_may_raise_to": PROPOSE}, False),
    ],
)
def test_tag_confirms_the_source_of_a_dlq_in_settings_only_if_a_tag_can_give_the_dlqs_mode(
    tags: dict[str, str], consent: dict[str, Any], *, is_confirmed: bool
) -> None:
    assert is_source_confirmed(tags, {**DLQ_IN_SETTINGS, **consent}) is is_confirmed


def test_tags_of_source_queues_outside_the_settings_are_not_read() -> None:
    """An attacker's thousand queues must not cost a call each."""
    facts = queue(queue_arn=f"{STANDARD_ARN}-dlq")
    consent = Consent(mode=HEAL, queues=("orders-dlq", "orders"))

    def read_tags(queue_arn: str) -> dict[str, str]:
        assert queue_arn == STANDARD_ARN, "the only source that the settings name"
        return {}

    source_arns = (UNTRUSTED_ARN, STANDARD_ARN)
    assert select_confirmed_sources(source_arns, facts, consent, read_tags) == (STANDARD_ARN,)


def _list_queues_that_name_the_dlq(scanner: Scanner, source_count: int) -> tuple[str, str]:
    """Let `source_count` queues name a managed DLQ; the settings name one of them.

    Return the ARNs of the DLQ and of that queue.
    """
    dlq_arn, named_arn = make_named_pair(scanner, "heal")
    other_urls = [make_public_queue_url(f"{STANDARD_ARN}-{n}") for n in range(source_count - 1)]
    listed = {"queueUrls": [*other_urls, make_public_queue_url(named_arn)]}
    answer_instead(scanner.account.clients.sqs, listed, ".sqs.ListDeadLetterSourceQueues")
    consent = Consent(mode=Mode.HEAL, queues=("payments", "anybody"))
    scanner.account.settings = structs.replace(scanner.account.settings, consent=consent)
    return dlq_arn, named_arn


def test_dlq_that_1000_queues_name_has_only_the_one_in_the_settings_as_its_source(
    scanner: Scanner,
) -> None:
    dlq_arn, named_arn = _list_queues_that_name_the_dlq(scanner, MOST_LISTED_SOURCES)
    reader = scanner.context().make_reader(scanner.account.now, ())
    facts = reader.read_queue(dlq_arn, {}, {Need.QUEUE})
    facts = reader.with_needed_facts(facts, {Need.DLQ_SOURCES})
    assert facts.source_arns == (named_arn,)
    assert len(facts.unconfirmed_sources) == MOST_LISTED_SOURCES - 1


def test_scan_reports_an_error_and_no_finding_for_a_dlq_of_more_than_1000_source_queues(
    scanner: Scanner,
) -> None:
    """SQS lists up to 1,000 source queues at once. With more, Mendq concludes nothing."""
    dlq_arn, _ = _list_queues_that_name_the_dlq(scanner, MOST_LISTED_SOURCES + 1)
    scanner.account.later(hours=1)
    result = scanner.run_due_scan()
    assert f"more than 1,000 queues name {dlq_arn}" in str(result.error_by_target[dlq_arn])
    assert scanner.list_announced_faults() == []
