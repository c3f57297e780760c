"""Test the facts that heal and the scan read about a queue, and which queues Mendq manages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

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
from mendq.model.state import State
from mendq.model.steps import MESSAGES_HELD_IN_DLQ_VALUE, RedriveMessages
from tests.account.faults import calls_of
from tests.catalogue.asking import keep_read_facts
from tests.heal.operators import fail_calls
from tests.redrive.world import record_case
from tests.scan.scanner import Scanner, open_scanner


@pytest.fixture
def scanner() -> Iterator[Scanner]:
    with open_scanner() as opened_scanner:
        yield opened_scanner


def read_facts(scanner: Scanner, queue_arn: str, *needs: Need) -> Facts:
    return gather_facts(scanner.account.run(), queue_arn, {}, {Need.QUEUE, *needs})


def make_queue_with_dlq(scanner: Scanner) -> tuple[str, str]:
    """Make a queue and its DLQ. Return both ARNs."""
    messages = scanner.account.queue("orders-dlq.fifo")
    policy = json.dumps({"deadLetterTargetArn": messages, "maxReceiveCount": 5})
    return scanner.account.queue("orders.fifo", RedrivePolicy=policy), messages


def test_each_need_reads_exactly_the_facts_that_its_declaration_lists(scanner: Scanner) -> None:
    """Catalogue tests use this declaration to cut examples down to the facts that a scan reads."""
    queue_arns = make_queue_with_dlq(scanner)
    source, messages = queue_arns
    fail_calls(scanner.account, source)
    scanner.account.later(hours=7)
    at = scanner.account.now - timedelta(minutes=30)
    scanner.put_metrics(messages, at, sent=1)
    scanner.move_tasks[messages] = [
        {"Status": "RUNNING", "StartedTimestamp": int(at.timestamp() * 1000)}
    ]
    answered = set[Need]()
    for need in Need:
        for queue_arn in queue_arns:
            facts = read_facts(scanner, queue_arn, need)
            assert facts == keep_read_facts(facts, {Need.QUEUE, need}), need
            if facts != keep_read_facts(facts, {Need.QUEUE}):
                answered.add(need)
    made_by_people = {Need.APPROVED_SOURCES, Need.PIN}
    read_from_lambda = {
        Need.LAMBDA_CONSUMERS,
        Need.RESERVED_CONCURRENCY,
        Need.SWITCHED_OFF_FUNCTIONS,
    }
    not_read_alone = {Need.QUEUE, Need.SOURCE_CASES, Need.REDRIVES}
    read_from_templates = {Need.PRODUCERS}
    read_from_kms = {Need.KMS_KEY}
    tested_elsewhere = (
        read_from_kms | not_read_alone | made_by_people | read_from_lambda | read_from_templates
    )
    assert answered == set(Need) - tested_elsewhere


def list_running_answers(scanner: Scanner, status: str, hours_ago: int) -> list[bool]:
    """Return for a source and its DLQ if a move task of this status and age counts as running."""
    source, messages = make_queue_with_dlq(scanner)
    assert not read_facts(scanner, source, Need.MOVE_TASKS).move_task_running
    started = (scanner.account.now - timedelta(hours=hours_ago)).timestamp() * 1000
    scanner.move_tasks[messages] = [{"Status": status, "StartedTimestamp": int(started)}]
    return [
        read_facts(scanner, queue, Need.MOVE_TASKS).move_task_running
        for queue in (source, messages)
    ]


@pytest.mark.parametrize(("status", "hours_ago"), [("RUNNING", 30), ("WHATEVER-COMES", 43)])
def test_move_task_in_any_status_but_completed_counts_as_running_for_source_and_dlq(
    scanner: Scanner, status: str, hours_ago: int
) -> None:
    assert list_running_answers(scanner, status, hours_ago) == [True, True]


@pytest.mark.parametrize(("hours_ago", "is_running"), [(5, True), (42, True), (43, False)])
def test_completed_move_task_counts_as_running_until_42_hours_after_its_start(
    scanner: Scanner, hours_ago: int, *, is_running: bool
) -> None:
    """Measurements of the last hours may still show its moves."""
    assert list_running_answers(scanner, "COMPLETED", hours_ago) == [is_running, is_running]


def test_facts_of_a_dlq_include_open_symptoms_and_cases_of_its_source_queues(
    scanner: Scanner,
) -> None:
    source, messages = make_queue_with_dlq(scanner)
    needs = (Need.DLQ_SOURCES, Need.OPEN_CASES, Need.SOURCE_CASES)
    before = read_facts(scanner, messages, *needs)
    assert (before.open_symptoms, before.source_cases) == (frozenset(), ())
    fail_calls(scanner.account, source)
    after = read_facts(scanner, messages, *needs)
    (case,) = after.source_cases
    assert after.open_symptoms == {case.symptom} == {"visibility_timeout_too_short"}
    assert case.queue_arn == source
    source_facts = read_facts(scanner, source, *needs)
    assert source_facts.open_symptoms == {case.symptom}
    assert source_facts.source_cases == (), "no queue names it as its DLQ"
    assert read_facts(scanner, messages, Need.OPEN_CASES).open_symptoms == frozenset()


def test_managed_queues_are_those_in_settings_or_tagged_but_not_tagged_off_in_order_of_name(
    scanner: Scanner,
) -> None:
    for name, tag in (
        ("c", "heal"),
        ("a", "off"),
        ("b-1", None),
        ("b-2", "off"),
        ("z", None),
        ("zz", None),
    ):
        scanner.account.queue(name, tag=tag)
    scanner.account.tag(f"{scanner.account.queue('b-3', tag=None)}", team="shop")
    clients = scanner.account.clients
    account = scanner.account.settings.account
    consent = Consent(Mode.HEAL, Mode.HEAL, ("b-*", "z", "gone"))
    managed = list_managed_queues(clients, account, consent)
    assert [queue.name for queue in managed] == ["b-1", "b-3", "c", "z"]
    assert managed[1].tags == {"team": "shop"}, "the tags of a named queue are read too"
    tagged = list_managed_queues(clients, account, replace(consent, queues=()))
    assert [queue.name for queue in tagged] == ["c"]


def test_facts_of_a_queue_read_three_times_by_a_scan_reader_cost_each_call_once(
    scanner: Scanner,
) -> None:
    """Each call is made once per queue or once per account.

    Four needs are left out: a scan makes no plans and so never reads DLQ_NAMESAKE, and it reads the
    newest cases (OPEN_CASES, SOURCE_CASES) and the sources' deletes (REDRIVE_SOURCES) anew each
    time.
    """
    queue_arns = make_queue_with_dlq(scanner)
    scanner.account.later(hours=7)
    reader = scanner.context().make_reader(scanner.account.now, ())
    calls = calls_of(scanner.account)
    needs = set(Need) - {
        Need.REDRIVE_SOURCES,
        Need.SOURCE_CASES,
        Need.OPEN_CASES,
        Need.DLQ_NAMESAKE,
    }
    for _ in range(3):
        for queue_arn in queue_arns:
            reader.with_needed_facts(reader.read_queue(queue_arn, {}, needs), needs)
    assert Counter(calls) == {
        "GetQueueAttributes": 2,
        "ListDeadLetterSourceQueues": 2,
        "ListMessageMoveTasks": 2,
        # The last minutes of each queue, and its last four days.
        "GetMetricData": 4,
        "ListMetrics": 2,
        "GetItem": 2,
        "DescribeAlarms": 1,
        "ListEventSourceMappings": 1,
        "ListQueueTags": 1,
    }


def test_reading_the_cases_of_a_dlqs_source_raises_if_one_of_them_is_unreadable(
    scanner: Scanner,
) -> None:
    source, messages = make_queue_with_dlq(scanner)
    item = {**items.case_key(source, "visibility_timeout_too_short"), "document": {"S": "{}"}}
    scanner.account.clients.dynamodb.put_item(TableName="case_store", Item=item)
    with pytest.raises(CaseStoreUnreadable):
        read_facts(scanner, messages, Need.DLQ_SOURCES, Need.SOURCE_CASES)


def test_redrive_source_of_a_dlq_is_read_with_tags_mode_and_deletes_per_second(
    scanner: Scanner,
) -> None:
    source, messages = make_queue_with_dlq(scanner)
    scanner.put_metrics(source, scanner.account.now - timedelta(minutes=30), deleted=7_200)
    scanner.put_metrics(source, scanner.account.now - timedelta(hours=2), deleted=9_999)
    (redrive_source,) = read_facts(scanner, messages, Need.REDRIVE_SOURCES).redrive_sources
    assert redrive_source.queue_arn == source
    assert redrive_source.deletes_per_second == 2
    assert (redrive_source.tags, redrive_source.mode) == ({"mendq": "heal"}, Mode.HEAL)
    assert read_facts(scanner, source, Need.REDRIVE_SOURCES).redrive_sources == ()


def make_shared_dlq(scanner: Scanner, source_count: int) -> tuple[list[str], str]:
    """Make queues with one DLQ. Return their ARNs, and that of the DLQ."""
    messages = scanner.account.queue("all-dlq")
    policy = json.dumps({"deadLetterTargetArn": messages, "maxReceiveCount": 5})
    names = [f"queue-{number:02}" for number in range(source_count)]
    return [scanner.account.queue(name, RedrivePolicy=policy) for name in names], messages


@pytest.mark.parametrize(("source_count", "read_count"), [(2, 2), (10, 10), (11, 0)])
def test_redrive_sources_of_a_dlq_are_read_if_there_are_at_most_ten(
    scanner: Scanner, source_count: int, read_count: int
) -> None:
    sources, messages = make_shared_dlq(scanner, source_count)
    redrive_sources = read_facts(scanner, messages, Need.REDRIVE_SOURCES).redrive_sources
    assert [source.queue_arn for source in redrive_sources] == sources[:read_count]


@pytest.mark.parametrize("source_count", [1, 2])
def test_newest_redrive_case_is_read_only_for_a_dlq_with_several_sources(
    scanner: Scanner, source_count: int
) -> None:
    (source, *_), messages = make_shared_dlq(scanner, source_count)
    step = RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, source)
    about = {"queue_arn": messages, "symptom": "dlq_messages_waiting"}
    case = record_case(scanner.account, [State.APPLIED, State.VERIFIED], (step,), **about)
    record_case(scanner.account, [State.ESCALATED], (), **{**about, "symptom": "kms_denied"})
    needs = (Need.DLQ_SOURCES, Need.SOURCE_CASES)
    redrive_case = read_facts(scanner, messages, *needs).redrive_case
    if source_count == 1:
        assert redrive_case is None
        return
    assert redrive_case is not None
    assert (redrive_case.case_id, redrive_case.state) == (case.case_id, State.VERIFIED)
    assert redrive_case.opened_at is not None


@pytest.mark.parametrize("service", ["sqs", "dynamodb", "lambda", "s3", "events"])
def test_lambda_clients_use_the_same_service_models_as_the_sdk(service: str) -> None:
    loader = Clients.for_lambda().session.session.get_component("data_loader")  # type: ignore[union-attr]
    for kind in ("service-2", "endpoint-rule-set-1", "paginators-1"):
        expected = Loader().load_service_model(service, kind)
        assert loader.load_service_model(service, kind) == expected
    assert loader.load_data("endpoints") == Loader().load_data("endpoints")
    with pytest.raises(UnknownServiceError):
        loader.load_service_model("teapot", "service-2")


def _fail_to_load(*_: Any, **__: Any) -> Any:
    raise AttributeError("another botocore")


def test_lambda_client_is_created_with_the_loader_of_botocore_if_mendqs_loader_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    clients = Clients.for_lambda()
    loader = clients.session.session.get_component("data_loader")  # type: ignore[union-attr]
    monkeypatch.setattr(loader, "load_service_model", _fail_to_load)
    assert clients.sqs.meta.service_model.service_name == "sqs"
    config: Any = clients.sqs.meta.config
    assert config.read_timeout == 3
    assert "Mendq's loader of service models failed for sqs" in caplog.text


def test_lambda_clients_use_the_loader_of_botocore_if_mendqs_loader_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setattr("botocore.loaders.JSONFileLoader", None)
    clients = Clients.for_lambda()
    assert clients.dynamodb.meta.service_model.service_name == "dynamodb"
    assert "failed for every service" in caplog.text
