"""A queue that names another as its DLQ: who is believed, and what strangers cannot do by it."""

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
STRANGER = f"{STANDARD_ARN}-of-a-stranger"
NAME = DLQ_RETENTION_TOO_SHORT.name
UNCONFIRMED = "dlq_source_unconfirmed"


def named(scanner: Scanner, tag: str | None = None, **over: str) -> tuple[str, str]:
    """A queue of a minute's retention, and another one that calls it its DLQ."""
    named = scanner.account.queue("payments", MessageRetentionPeriod="60", **over)
    names_it = RedrivePolicy(named, 5).text
    naming = scanner.account.queue("anybody", tag=tag, RedrivePolicy=names_it)
    scanner.account.later(minutes=5)
    return named, naming


def after_a_round(scanner: Scanner, queue_arn: str) -> tuple[str, set[str], list[str]]:
    """Its retention, what the round found there, and the states of all cases."""
    start_next_hour(scanner.account)
    scanner.scan()
    found = scanner.read_findings()["findings"]
    for healed in scanner.heal():
        assert healed.error_by_message_id == {}
    there = {each["symptom"] for each in found if each["queue_arn"] == queue_arn}
    about = {NAME, UNCONFIRMED} & there
    retention = scanner.account.attributes(queue_arn)["MessageRetentionPeriod"]
    return retention, about, list_states(scanner.account)


def test_a_stranger_s_queue_raises_nothing_and_is_reported(scanner: Scanner) -> None:
    """Tagged, where settings name the other: anybody may tag his own."""
    consent = Consent(mode=Mode.HEAL, queues=("payments",))
    scanner.account.settings = structs.replace(scanner.account.settings, consent=consent)
    live, _ = named(scanner, "heal")
    for _ in range(2):
        assert after_a_round(scanner, live) == ("60", {UNCONFIRMED}, [])
    (finding,) = (e for e in scanner.read_findings()["findings"] if e["symptom"] == UNCONFIRMED)
    assert ":anybody, and Mendq goes by none" in finding["because"]


def test_the_redrive_allow_policy_of_the_dlq_is_believed(scanner: Scanner) -> None:
    allowed = RedriveAllowPolicy("byQueue", ("arn:aws:sqs:us-east-1:123456789012:anybody",)).text
    dead, naming = named(scanner, RedriveAllowPolicy=allowed)
    assert naming in allowed
    assert after_a_round(scanner, dead) == ("60", {NAME}, ["proposed"])


def test_a_queue_that_producers_send_to_is_no_dlq_whoever_says_so(scanner: Scanner) -> None:
    """A staging queue that names a production queue, both managed."""
    live, _ = named(scanner, "heal")
    scanner.account.later(hours=7)
    scanner.put_metrics(live, scanner.account.now - timedelta(minutes=30), sent=1)
    retention, _, cases = after_a_round(scanner, live)
    assert (retention, cases) == ("60", [])


def test_an_approved_source_heals_from_then_on_until_it_is_revoked(scanner: Scanner) -> None:
    dead, naming = named(scanner, "heal")
    pins = Pins(scanner.account.clients.dynamodb, "case_store")
    assert after_a_round(scanner, dead) == ("60", {NAME}, ["proposed"])
    send_decision(scanner.account, "decline", scanner.account.transitions()[-1]["case_id"])
    assert pins.load_approved_sources(dead) == frozenset()
    scanner.account.later(days=8)
    after_a_round(scanner, dead)
    case_id = scanner.account.transitions()[-1]["case_id"]
    assert send_decision(scanner.account, "approve", case_id)["state"] == "approved"
    assert pins.load_approved_sources(dead) == {naming}
    other = scanner.account.queue("other-dlq", MessageRetentionPeriod="60")
    scanner.account.set(naming, RedrivePolicy=RedrivePolicy(other, 5).text)
    *_, (_, _, newest) = (after_a_round(scanner, other),)
    assert newest[-1] == "proposed", "another pair is another question"
    assert not pins.revoke_source(dead, other)
    assert pins.revoke_source(dead, naming)
    assert pins.load_approved_sources(dead) == frozenset()


LIVE = [
    (entry, each)
    for entry in CATALOGUE
    for each in queue_examples_of(entry)
    if each.facts.dlq_sources == () and each.facts.is_sent_to
]


@pytest.mark.parametrize(("entry", "example"), LIVE, ids=[f"{e.name}: {x.title}" for e, x in LIVE])
def test_nobody_blinds_the_catalogue_on_a_live_queue(entry: Symptom, example: Any) -> None:
    believed = replace(example.facts, dlq_sources=sources(STRANGER))
    strange = replace(example.facts, unconfirmed_sources=(STRANGER,))
    for facts in (believed, strange):
        assert detect_fault(entry, facts) == replace(facts, found=facts_of(entry, example).found), (
            example.title
        )


def test_what_may_be_a_dlq_too_is_changed_by_nobody_but_a_person() -> None:
    """DLQ messages count like those of a race, and an application may park its own there."""
    entry = VISIBILITY_TIMEOUT_TOO_SHORT
    facts = facts_of(entry, queue_examples_of(entry)[0])
    seen = Evidence((Sighting.from_scan(EXAMPLE_TIME),))
    given = make_read_situation(
        symptom=entry, facts=facts, evidence=seen, fresh_sightings=seen.sightings, now=EXAMPLE_TIME
    )
    written = decide(given)
    assert isinstance(written, WriteFix)
    believed = replace(facts, dlq_sources=sources(STRANGER))
    asked = decide(structs.replace(given, facts=believed))
    assert isinstance(asked, RecordTransition)
    assert (asked.case.state, asked.case.steps) == (State.PROPOSED, written.case.steps)
    assert f"the DLQ of {STRANGER}" in asked.case.reason


def test_messages_are_not_sent_back_out_of_what_producers_send_to() -> None:
    """Some of them died nowhere, and whoever put them there may wait for them."""
    refused = answer_to(DLQ_MESSAGES_WAITING, replace_values(dlq_with_messages(), sent=1))
    assert isinstance(refused, Refuse)
    assert refused.code == "sent_to"


ALLOWED = RedriveAllowPolicy("byQueue", (STANDARD_ARN,)).text
OTHERS_ALLOWED = RedriveAllowPolicy("byQueue", (STANDARD_ARN.replace("orders", "billing"),)).text
DEAD: dict[str, Any] = {"queues": ("dead",)}
HEAL, OBSERVE, PROPOSE = Mode.HEAL, Mode.OBSERVE, Mode.PROPOSE


@pytest.mark.parametrize(
    ("tags", "given", "dlq", "is_believed"),
    [
        ({}, {}, {}, False),
        ({}, {}, {"RedriveAllowPolicy": ALLOWED}, True),
        ({"mendq": "off"}, {}, {"RedriveAllowPolicy": ALLOWED}, True),
        ({}, {}, {"RedriveAllowPolicy": RedriveAllowPolicy("allowAll").text}, False),
        ({}, {}, {"RedriveAllowPolicy": RedriveAllowPolicy("denyAll").text}, False),
        (
            {},
            {},
            {"RedriveAllowPolicy": RedriveAllowPolicy("denyAll", (STANDARD_ARN,)).text},
            False,
        ),
        ({}, {}, {"RedriveAllowPolicy": "{"}, False),
        ({}, {"queues": ("ord*",)}, {}, True),
        ({"mendq": "off"}, {"queues": ("ord*",)}, {}, False),
        ({"mendq": "heal"}, {}, {}, True),
        ({"mendq": "heal"}, {}, {"RedriveAllowPolicy": RedriveAllowPolicy("allowAll").text}, True),
        ({"mendq": "heal"}, {}, {"RedriveAllowPolicy": RedriveAllowPolicy("denyAll").text}, False),
        ({"mendq": "heal"}, {}, {"RedriveAllowPolicy": OTHERS_ALLOWED}, False),
        ({}, {"queues": ("ord*",)}, {"RedriveAllowPolicy": OTHERS_ALLOWED}, True),
        ({"mendq": "heal"}, {**DEAD, "mode": HEAL}, {}, False),
        ({"mendq": "heal"}, {**DEAD, "mode": OBSERVE}, {}, True),
        ({"mendq": "heal"}, {**DEAD, "mode": PROPOSE, "tag_may_raise_to": PROPOSE}, {}, True),
        ({"mendq": "what"}, {**DEAD, "mode": HEAL, "tag_may_raise_to": PROPOSE}, {}, False),
    ],
)
def test_who_is_believed(
    tags: dict[str, str], given: dict[str, Any], dlq: dict[str, str], *, is_believed: bool
) -> None:
    facts = replace_values(queue(queue_arn=STANDARD_ARN.replace("orders", "dead")), **dlq)
    found = select_confirmed_sources([STANDARD_ARN], facts, Consent(**given), lambda _: tags)
    assert bool(found) is is_believed


def test_of_strangers_no_more_is_asked_than_their_names() -> None:
    """A thousand queues that anybody makes cost no call each where tags say nothing."""
    facts, told = queue(queue_arn=f"{STANDARD_ARN}-dlq"), {STANDARD_ARN: dict[str, str]()}
    named_by, queues = (STRANGER, STANDARD_ARN), ("orders-dlq", "orders")
    consent, told_by = Consent(mode=HEAL, queues=queues), told.__getitem__
    assert select_confirmed_sources(named_by, facts, consent, told_by) == (STANDARD_ARN,)


@pytest.mark.parametrize("more", [0, 1])
def test_strangers_queues_crowd_no_real_source_out(scanner: Scanner, more: int) -> None:
    """All that SQS lists at once are looked at; where there are more, nothing is concluded."""
    dead, real = named(scanner, "heal")
    urls = [
        make_public_queue_url(f"{STANDARD_ARN}-{n}") for n in range(MOST_LISTED_SOURCES - 1 + more)
    ]
    listed = {"queueUrls": [*urls, make_public_queue_url(real)]}
    answer_instead(scanner.account.clients.sqs, listed, ".sqs.ListDeadLetterSourceQueues")
    consent = Consent(mode=Mode.HEAL, queues=("payments", "anybody"))
    scanner.account.settings = structs.replace(scanner.account.settings, consent=consent)
    if not more:
        reader = scanner.context().make_reader(scanner.account.now, ())
        facts = reader.read_queue(dead, {}, {Need.QUEUE})
        found = reader.with_needed_facts(facts, {Need.DLQ_SOURCES})
        assert found.source_arns == (real,)
        assert len(found.unconfirmed_sources) == MOST_LISTED_SOURCES - 1
        return
    scanner.account.later(hours=1)
    done = scanner.run_due_scan()
    assert f"more than 1,000 queues name {dead}" in str(done.error_by_target[dead])
    assert scanner.list_announced_faults() == []
