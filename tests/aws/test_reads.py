"""What heal and a scan see of a queue, beyond its attributes; and which queues there are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import UnknownServiceError
from botocore.loaders import Loader

from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnreadable
from mendq.aws.queue import list_managed_queues
from mendq.cases import items
from mendq.heal.gather import gather_facts
from mendq.model.consent import Consent
from mendq.model.facts import Facts, Need
from mendq.model.mode import Mode
from tests.account.faults import calls_of
from tests.catalogue.asking import keep_read_facts
from tests.heal.operators import fail_calls
from tests.scan.scanner import Scanner, open_scanner


@pytest.fixture
def seen() -> Iterator[Scanner]:
    with open_scanner() as made:
        yield made


def facts(seen: Scanner, queue_arn: str, *needs: Need) -> Facts:
    return gather_facts(seen.account.run(), queue_arn, {}, {Need.QUEUE, *needs})


def with_dlq(seen: Scanner) -> tuple[str, str]:
    """A queue and its DLQ."""
    messages = seen.account.queue("orders-dlq.fifo")
    policy = json.dumps({"deadLetterTargetArn": messages, "maxReceiveCount": 5})
    return seen.account.queue("orders.fifo", RedrivePolicy=policy), messages


def test_a_need_is_answered_by_what_is_written_down_as_its_answer(seen: Scanner) -> None:
    """By that the catalogue's examples are cut down to what a scan would know."""
    both = with_dlq(seen)
    fail_calls(seen.account, both[0])
    seen.account.later(hours=7)
    at = seen.account.now - timedelta(minutes=30)
    seen.put_metrics(both[1], at, sent=1)
    seen.move_tasks[both[1]] = [
        {"Status": "RUNNING", "StartedTimestamp": int(at.timestamp() * 1000)}
    ]
    answered = set[Need]()
    for need in Need:
        gathered = [facts(seen, each, need) for each in both]
        assert gathered == [keep_read_facts(each, {Need.QUEUE, need}) for each in gathered], need
        if gathered != [keep_read_facts(each, {Need.QUEUE}) for each in gathered]:
            answered.add(need)
    of_people = {Need.APPROVED_SOURCES, Need.PIN}
    of_lambda = {Need.LAMBDA_CONSUMERS, Need.RESERVED_CONCURRENCY}
    elsewhere = {Need.QUEUE, Need.SOURCE_CASES} | of_people | of_lambda
    assert answered == set(Need) - elsewhere


@pytest.mark.parametrize(
    ("status", "hours_ago", "moves"),
    [
        ("RUNNING", 30, True),
        ("WHATEVER-COMES", 43, True),
        ("COMPLETED", 5, True),
        ("COMPLETED", 42, True),
        ("COMPLETED", 43, False),
    ],
)
def test_a_redrive_counts_into_and_out_of_while_what_is_measured_may_show_it(
    seen: Scanner, status: str, hours_ago: int, moves: bool
) -> None:
    source, messages = with_dlq(seen)
    assert not facts(seen, source, Need.MOVE_TASKS).move_task_running
    started = (seen.account.now - timedelta(hours=hours_ago)).timestamp() * 1000
    seen.move_tasks[messages] = [{"Status": status, "StartedTimestamp": int(started)}]
    for queue in (source, messages):
        assert facts(seen, queue, Need.MOVE_TASKS).move_task_running is moves


def test_cases_are_known_of_a_queue_and_of_its_sources(seen: Scanner) -> None:
    source, messages = with_dlq(seen)
    open_ones, newest = Need.OPEN_CASES, Need.SOURCE_CASES
    before = facts(seen, messages, Need.DLQ_SOURCES, open_ones, newest)
    assert (before.open_symptoms, before.source_cases) == (frozenset(), ())
    fail_calls(seen.account, source)
    after = facts(seen, messages, Need.DLQ_SOURCES, open_ones, newest)
    (case,) = after.source_cases
    assert after.open_symptoms == {case.symptom} == {"visibility_timeout_too_short"}
    assert case.queue_arn == source
    at_source = facts(seen, source, Need.DLQ_SOURCES, open_ones, newest)
    assert at_source.open_symptoms == {case.symptom}
    assert at_source.source_cases == (), "it is nobody's DLQ"
    assert facts(seen, messages, open_ones).open_symptoms == frozenset()


def test_queues_are_managed_by_tag_or_name_and_come_in_order(seen: Scanner) -> None:
    for name, tag in (
        ("c", "heal"),
        ("a", "off"),
        ("b-1", None),
        ("b-2", "off"),
        ("z", None),
        ("zz", None),
    ):
        seen.account.queue(name, tag=tag)
    seen.account.tag(f"{seen.account.queue('b-3', tag=None)}", team="shop")
    clients, account = seen.account.clients, seen.account.settings.account
    consent = Consent(Mode.HEAL, Mode.HEAL, ("b-*", "z", "gone"))
    found = list_managed_queues(clients, account, consent)
    assert [each.name for each in found] == ["b-1", "b-3", "c", "z"]
    assert found[1].tags == {"team": "shop"}, "what is named is looked at with its tags"
    tagged = list_managed_queues(clients, account, replace(consent, queues=()))
    assert [each.name for each in tagged] == ["c"]


def test_a_scan_asks_for_the_same_once(seen: Scanner) -> None:
    """Of each queue, and of all what CloudWatch and Lambda list and two rounds noted as moved."""
    both = with_dlq(seen)
    seen.account.later(hours=7)
    reader, asked = seen.context().make_reader(seen.account.now, ()), calls_of(seen.account)
    every = set(Need) - {Need.SOLE_SOURCE, Need.SOURCE_CASES, Need.OPEN_CASES, Need.DLQ_NAMESAKE}
    for _ in range(3):
        for queue in both:
            reader.with_needed_facts(reader.read_queue(queue, {}, every), every)
    of_each = ("GetQueueAttributes", "ListDeadLetterSourceQueues", "ListMessageMoveTasks")
    of_all = ("DescribeAlarms", "ListEventSourceMappings", *["ListMetrics", "GetItem"] * 2)
    assert Counter(asked) == Counter((*of_each, "GetMetricData") * 2 + (*of_all, "ListQueueTags"))


def test_a_case_that_cannot_be_read_is_not_taken_for_none(seen: Scanner) -> None:
    source, messages = with_dlq(seen)
    item = {**items.case_key(source, "visibility_timeout_too_short"), "document": {"S": "{}"}}
    seen.account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    with pytest.raises(CaseStoreUnreadable):
        facts(seen, messages, Need.DLQ_SOURCES, Need.SOURCE_CASES)


def test_a_sole_source_is_known_with_its_tags_its_mode_and_its_deletes(seen: Scanner) -> None:
    source, messages = with_dlq(seen)
    seen.put_metrics(source, seen.account.now - timedelta(minutes=30), deleted=7_200)
    seen.put_metrics(source, seen.account.now - timedelta(hours=2), deleted=9_999)
    found = facts(seen, messages, Need.SOLE_SOURCE).sole_source
    assert found is not None
    assert (found.queue_arn, found.deletes_per_second) == (source, 2)
    assert (found.tags, found.mode) == ({"mendq": "heal"}, Mode.HEAL)
    assert facts(seen, source, Need.SOLE_SOURCE).sole_source is None


@pytest.mark.parametrize("service", ["sqs", "dynamodb", "lambda", "s3", "events"])
def test_a_lambdas_clients_are_of_the_sdks_own_models(service: str) -> None:
    ours = Clients.for_lambda().session.session.get_component("data_loader")  # type: ignore[union-attr]
    for kind in ("service-2", "endpoint-rule-set-1", "paginators-1"):
        expected = Loader().load_service_model(service, kind)
        assert ours.load_service_model(service, kind) == expected
    assert ours.load_data("endpoints") == Loader().load_data("endpoints")
    with pytest.raises(UnknownServiceError):
        ours.load_service_model("teapot", "service-2")
