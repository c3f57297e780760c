"""One round after another: what is found, who is told, and how often."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from msgspec import structs

from mendq.aws.queue import ManagedQueue, QueueListing
from mendq.cases.finding import MAXIMUM_FINDINGS_PER_CALL, findings_key, start_of_hour
from mendq.cases.pins import Pins
from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.catalogue.symptom import DetectedFault, Detection, NotifiedSymptom
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate
from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy
from mendq.scan.selection import MAXIMUM_NEW_FAULTS_PER_DAY
from tests.scan.scanning import Scanning, an_hour_on, denied, refusing

A_DAY = 86_400


def dlq(scanned: Scanning, name: str = "orders", tag: str | None = "heal") -> str:
    """A DLQ that keeps messages no longer than its source, which a person approved; its ARN."""
    arn = scanned.account.queue(f"{name}-dlq", tag=tag, MessageRetentionPeriod=str(A_DAY))
    naming = arn.removesuffix("-dlq")
    scanned.account.set(arn, RedriveAllowPolicy=RedriveAllowPolicy("byQueue", (naming,)).text)
    Pins(scanned.account.clients.dynamodb, "case_store").approve_source(arn, naming)
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
    source = {"MessageRetentionPeriod": str(4 * A_DAY), "RedrivePolicy": policy}
    scanned.account.queue(name, tag=None, **source)
    scanned.account.later(minutes=5)
    return arn


def slow(name: str = "slow", *, of_configuration: bool = False, **over: Any) -> NotifiedSymptom:
    """Seen on every queue that was measured, or on every one; `over` is its detection's."""
    detection = Detection(
        lambda facts: (
            DetectedFault("it is slow") if of_configuration or facts.measurement else None
        ),
        frozenset({Need.QUEUE, *([] if of_configuration else [Need.MEASUREMENTS])}),
        is_of_configuration=of_configuration,
    )
    return NotifiedSymptom(
        name=name,
        sentence="It is slow.",
        plan_in_words="Page.",
        aws_page="",
        examples=tuple,
        plan=lambda facts, _limits: Escalate("slow", facts.found),
        detection=replace(detection, **over),
    )


def measured_queues(scanned: Scanning, how_many: int) -> list[str]:
    """Queues that were as they are for a day, of which CloudWatch knows something."""
    queues = [scanned.account.queue(f"slow-{n:02}") for n in range(how_many)]
    scanned.account.now = (scanned.account.now + timedelta(days=2)).replace(hour=0, minute=30)
    for each in queues:
        scanned.count(each, scanned.account.now - timedelta(minutes=30), sent=1)
    return queues


def test_what_is_found_is_reported_to_heal_and_healed(scanned: Scanning) -> None:
    queue = dlq(scanned)
    before = scanned.account.attributes(queue)
    done = scanned.done([DLQ_RETENTION_TOO_SHORT])
    assert (done.queues_scanned, done.error_by_target) == (1, {}), "its source is not managed"
    assert scanned.account.attributes(queue) == before, "a scan itself changes nothing"
    assert not [each for _, each in scanned.account.case_store_items() if each.startswith("case#")]
    assert scanned.named() == [(queue, "dlq_retention_too_short")]
    (healed,) = scanned.heal()
    assert healed.error_by_message_id == {}
    assert scanned.account.attributes(queue)["MessageRetentionPeriod"] == str(14 * A_DAY)
    (transition,) = scanned.account.transitions()
    evidence = transition["evidence"]
    assert (evidence["failed_calls"], evidence["principals"]) == (0, [])
    assert transition["to"] == "applied"


def test_a_round_is_made_once_an_hour_and_by_one_scan(scanned: Scanning) -> None:
    dlq(scanned)
    an_hour_on(scanned.account)
    assert scanned.scan() is not None
    scanned.account.later(seconds=1)
    assert scanned.scan() is None
    an_hour_on(scanned.account)
    assert scanned.scan() is not None
    an_hour_on(scanned.account)
    assert scanned.context().scan_store.claim_stretch(scanned.account.now)
    assert scanned.scan() is None
    scanned.account.later(minutes=16)
    assert scanned.scan() is not None, "it has died"


def make_cut_off_scan(scanned: Scanning, monkeypatch: pytest.MonkeyPatch) -> list[NotifiedSymptom]:
    """Scan five queues until the Lambda's time is over after the fourth. Return the symptoms."""
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 2)
    for n in range(5):
        scanned.account.queue(f"q-{n}")
    an_hour_on(scanned.account)
    times = iter([900.0, 900.0, 100.0])
    scanned.remaining_seconds = lambda: next(times, 100.0)
    symptoms = [slow(of_configuration=True)]
    first = scanned.done(symptoms)
    assert (first.queues_scanned, first.last_queue_name) == (4, "q-3")
    scanned.remaining_seconds = lambda: 900.0
    return symptoms


@pytest.mark.parametrize("lies", [b"", b"[", b'{"findings": [5]}', b"[" * 100_000])
def test_a_round_that_ran_out_of_time_is_resumed_where_it_stopped(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch, lies: bytes
) -> None:
    """Whatever somebody has put in the place of what it had found."""
    symptoms = make_cut_off_scan(scanned, monkeypatch)
    if lies:
        key, client = findings_key(start_of_hour(scanned.account.now)), scanned.account.clients.s3
        client.put_object(Bucket="cases", Key=key, Body=lies)
    scanned.account.later(minutes=10)
    second = scanned.done(symptoms)
    assert (second.queues_scanned, second.last_queue_name) == (1, "q-4")
    document, first_known = scanned.findings(), 4 * bool(lies)
    names = [f"q-{n}" for n in range(first_known, 5)]
    assert document["queues_scanned"] == len(names)
    assert [each["queue_arn"][-3:] for each in document["findings"]] == names
    assert [each[-3:] for each in document["managed"]] == [f"q-{n}" for n in range(5)]
    assert document["managed_whole"] is True
    scanned.account.later(minutes=10)
    assert scanned.scan(symptoms) is None


@pytest.mark.parametrize("s3_code", ["NoSuchKey", "AccessDenied"])
def test_scan_continues_after_a_leftover_run_failed_before_it_stored_results(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch, s3_code: str
) -> None:
    """S3 says AccessDenied to a role that may not list the bucket."""
    symptoms = make_cut_off_scan(scanned, monkeypatch)
    an_hour_on(scanned.account)
    let_in = refusing(scanned.account.clients.s3, "PutObject")
    with pytest.raises(ClientError):
        scanned.scan(symptoms)
    let_in()
    if s3_code == "AccessDenied":
        let_in = refusing(scanned.account.clients.s3, "GetObject")
    scanned.account.later(minutes=10)
    assert scanned.done(symptoms).last_queue_name == "q-4"
    let_in()
    names = [finding["queue_arn"][-3:] for finding in scanned.findings()["findings"]]
    assert names == ["q-4"]


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="https://s3"),
        ClientError({"Error": {"Code": "InternalError", "Message": ""}}, "GetObject"),
    ],
)
def test_scan_keeps_stored_results_and_fails_if_s3_does_not_answer(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    symptoms = make_cut_off_scan(scanned, monkeypatch)
    stored_document = scanned.findings()
    scanned.account.later(minutes=10)
    let_in = refusing(scanned.account.clients.s3, "GetObject", unreachable=error)
    with pytest.raises(type(error)):
        scanned.scan(symptoms)
    let_in()
    assert scanned.findings() == stored_document


def test_faults_of_configuration_are_reported_ten_new_queues_a_day(scanned: Scanning) -> None:
    # In the morning: the three rounds are on one day.
    scanned.account.now = scanned.account.now.replace(hour=6)
    queues = [scanned.account.queue(f"q-{n:02}") for n in range(25)]
    symptoms = [slow(of_configuration=True)]
    an_hour_on(scanned.account)
    announced = []
    for _ in range(3):
        scanned.scan(symptoms)
        announced.append({arn for arn, _ in scanned.named()})
        scanned.announced.clear()
        an_hour_on(scanned.account)
    assert [len(each) for each in announced] == [MAXIMUM_NEW_FAULTS_PER_DAY] * 3
    assert announced[0] == announced[1] == announced[2] < set(queues)
    scanned.account.later(days=1)
    scanned.scan(symptoms)
    assert len({arn for arn, _ in scanned.named()} - announced[0]) == MAXIMUM_NEW_FAULTS_PER_DAY
    assert len(scanned.findings()["findings"]) == 25, "all of them are reported"


def test_what_many_show_by_measurement_is_a_mass_symptom(scanned: Scanning) -> None:
    queues = measured_queues(scanned, MAXIMUM_FINDINGS_PER_CALL + 5)
    symptoms = [slow()]
    done = scanned.done(symptoms)
    assert {each.queue_arn for each in done.findings} == set(queues)
    assert len(scanned.named()) == MAXIMUM_FINDINGS_PER_CALL
    spread = scanned.account.run().case_store.note_spread([], "slow", scanned.account.now)
    assert len(spread) == len(queues), "heal sees how many there are"


def limit(scanned: Scanning, limits: Limits) -> None:
    scanned.account.settings = structs.replace(scanned.account.settings, limits=limits)


def of_an_hour(metrics: int) -> Limits:
    """Limits that let so many metrics be asked for in the first hour of a day."""
    return Limits(scan_metrics_per_day=24 * metrics, mass_symptom_share=1)


def test_measuring_keeps_to_the_hours_share_of_the_days_budget(scanned: Scanning) -> None:
    measured_queues(scanned, 25)
    limit(scanned, of_an_hour(100))
    done = scanned.done([slow()])
    assert (done.suspects, done.measured, len(done.skipped_arns), done.metrics) == (
        25,
        10,
        15,
        80,
    )
    assert scanned.findings()["skipped_for_budget"] == 15
    stood = scanned.findings()["queues"].values()
    assert [set(each) for each in stood] == [{"backlog", "oldest_age_seconds"}] * 10
    an_hour_on(scanned.account)
    done = scanned.done([slow()])
    assert (done.measured, done.metrics) == (0, 0), "heal measures what is found, and that counts"
    an_hour_on(scanned.account)
    done = scanned.done([slow()])
    assert done.measured == 10, "what an hour left is the next one's"


def test_what_merely_costs_money_is_measured_last(scanned: Scanning) -> None:
    queues = measured_queues(scanned, 25)
    harmed = slow("harmed", is_suspect=lambda facts: facts.queue_arn in queues[-10:])
    symptoms = [slow("dear", is_measured_last=True), harmed]
    limit(scanned, of_an_hour(80))
    done = scanned.done(symptoms)
    assert (done.suspects, done.measured, len(done.skipped_arns)) == (25, 10, 15)
    assert {each.queue_arn for each in done.findings} == set(queues[-10:])
    assert {each.symptom for each in done.findings} == {"harmed", "dear"}, "asked of once, for both"


def test_one_queue_or_entry_that_fails_costs_itself(scanned: Scanning) -> None:
    good, bad = scanned.account.queue("good"), scanned.account.queue("bad")

    def detect(facts: Facts) -> DetectedFault:
        if facts.queue_arn == bad:
            raise ValueError("a person's text")
        return DetectedFault("found")

    failing = slow("failing", of_configuration=True, detect=detect)
    done = scanned.done([failing, slow(of_configuration=True)])
    assert done.error_by_target.keys() == {bad}
    assert {(each.queue_arn, each.symptom) for each in done.findings} == {
        (good, "failing"),
        (good, "slow"),
        (bad, "slow"),
    }
    assert not done.is_blind, "asked again each ten minutes, measuring would cost six times as much"
    assert scanned.scan([failing]) is None


def test_a_queue_that_was_deleted_since_it_was_listed_is_no_error(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = ManagedQueue(scanned.account.queue("here").replace("here", "gone"), {"mendq": "heal"})
    listed = QueueListing((gone,), {})
    monkeypatch.setattr("mendq.scan.hourly.list_readable_queues", lambda *_: listed)
    done = scanned.done()
    assert (done.queues_scanned, done.gone, done.error_by_target) == (1, 1, {})


def test_of_what_nobody_has_measured_yet_heal_hears_while_it_fits(scanned: Scanning) -> None:
    """A fault in a configuration is found unmeasured, and heal measures it before it plans."""
    queues = measured_queues(scanned, 5)
    limit(scanned, of_an_hour(20))
    measures = replace(
        slow(of_configuration=True), needs=frozenset({Need.QUEUE, Need.MEASUREMENTS})
    )
    scanned.scan([measures])
    assert [arn for arn, _ in scanned.named()] == queues[:2]
    assert len(scanned.findings()["findings"]) == 5, "all of them are reported"
    limit(scanned, Limits(scan_metrics_per_day=0))
    scanned.announced.clear()
    an_hour_on(scanned.account)
    scanned.scan([measures])
    assert scanned.announced == []


def test_messages_do_not_page_where_the_same_round_finds_their_cause(scanned: Scanning) -> None:
    dead = scanned.account.queue("orders-dlq", MessageRetentionPeriod=str(14 * A_DAY))
    queue = scanned.account.queue("orders", RedrivePolicy=RedrivePolicy(dead, 5).text)
    for each in (queue, dead):
        scanned.account.clients.sqs.send_message(
            QueueUrl=scanned.account.url(each), MessageBody="one"
        )
    scanned.account.later(days=1)
    for minutes in (30, 60, 90):
        at = scanned.account.now - timedelta(minutes=minutes)
        scanned.count(queue, at, received=1_000, visible=200, sent=200)
        scanned.count(dead, at, visible=100 - minutes)
    scanned.scan()
    found = {(each["queue_arn"], each["symptom"]) for each in scanned.findings()["findings"]}
    assert {(queue, "consumer_failing"), (dead, "dlq_messages_arriving")} <= found
    assert scanned.named() == [(queue, "consumer_failing")]


def died_in(scanned: Scanning) -> tuple[str, str]:
    """An empty source of whose messages 100 died within an hour, and their DLQ."""
    dead = scanned.account.queue("orders-dlq", MessageRetentionPeriod=str(14 * A_DAY))
    queue = scanned.account.queue("orders", RedrivePolicy=RedrivePolicy(dead, 3).text)
    tags = {"mendq": "heal", MAX_PROCESSING_TAG: "40"}
    sqs, url = scanned.account.clients.sqs, scanned.account.url
    sqs.tag_queue(QueueUrl=url(queue), Tags=tags)
    sqs.send_message(QueueUrl=url(dead), MessageBody="one")
    scanned.account.later(days=1)
    for minutes in (90, 60, 30):
        at = scanned.account.now - timedelta(minutes=minutes)
        busy = {"sent": 100.0, "received": 300.0} if minutes == 60 else {}
        scanned.count(queue, at, visible=0, **busy)
    return queue, dead


def test_an_empty_source_is_measured_while_its_dlq_holds_messages(scanned: Scanning) -> None:
    queue, dead = died_in(scanned)
    looked = list[str]()
    note = cast(
        "Callable[..., None]",
        lambda params, **_: looked.append(json.loads(params["body"])["QueueUrl"]),
    )
    events = scanned.account.clients.sqs.meta.events
    events.register("before-call.sqs.GetQueueAttributes", note)
    done = scanned.done()
    assert (queue, TOO_SHORT.name) in scanned.named()
    assert (dead, "dlq_messages_arriving") not in scanned.named()
    assert (done.measured, looked.count(scanned.account.url(dead))) == (2, 1)


def test_a_dlq_that_keeps_us_out_costs_its_source_nothing_else(scanned: Scanning) -> None:
    queue, dead = died_in(scanned)
    scanned.account.clients.sqs.untag_queue(QueueUrl=scanned.account.url(dead), TagKeys=["mendq"])
    scanned.count_one_coming_back(queue)
    denied(scanned, dead, words="a resource-based policy")
    done = scanned.done([slow(), TOO_SHORT])
    assert (done.unseen, [*done.error_by_target]) == (0, [queue])
    assert scanned.named() == [(queue, "slow")]


@pytest.mark.parametrize(
    "words", ["a service control policy", "a resource-based policy"], ids=["silent", "kept out"]
)
def test_dlq_whose_moves_cannot_be_listed_costs_other_queues_nothing(
    scanned: Scanning, words: str
) -> None:
    """A move of its messages could explain what any queue shows; it does not hide that."""
    queue, _ = died_in(scanned)
    scanned.count_one_coming_back(queue)
    dark = dlq(scanned, "bills")
    refused: list[str] = []

    def refuse(params: Any, **_: Any) -> None:
        if json.loads(params["body"])["SourceArn"] == dark:
            refused.append(dark)
            message = f"not authorized with an explicit deny in {words}"
            error: Any = {"Error": {"Code": "AccessDenied", "Message": message}}
            raise ClientError(error, "ListMessageMoveTasks")

    events: Any = scanned.account.clients.sqs.meta.events
    events.register_first("before-call.sqs.ListMessageMoveTasks", refuse)
    done = scanned.done([TOO_SHORT, DLQ_RETENTION_TOO_SHORT])
    assert refused
    assert done.error_by_target.keys() <= {dark}
    assert (queue, TOO_SHORT.name) in scanned.named()


def test_what_is_only_reported_opens_no_case(scanned: Scanning) -> None:
    queue = scanned.account.queue("orders", tag="heal", SqsManagedSseEnabled="false")
    policy = RedrivePolicy(queue, 5).text
    scanned.account.clients.sqs.set_queue_attributes(
        QueueUrl=scanned.account.url(queue), Attributes={"RedrivePolicy": policy}
    )
    scanned.scan()
    assert scanned.announced == []
    found = scanned.findings()["findings"]
    names = {each["symptom"] for each in found if each["queue_arn"] == queue}
    assert names == {"alarm_missing", "not_encrypted", "redrive_cycle", "tls_not_enforced"}
    assert scanned.account.transitions() == []
