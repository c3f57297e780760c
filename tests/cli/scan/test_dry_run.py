"""Test `mendq scan --dry-run`, which reports what heal would do and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta

import pytest
from msgspec import structs

from mendq.aws.errors import CaseStoreUnavailable
from mendq.cases.finding import Finding
from mendq.cli.account import Account
from mendq.cli.scan.dry_run import DryRunChangeError, ExpectedAction, make_readonly_clients
from mendq.model.facts import QueueFacts
from mendq.model.mutes import Mute
from mendq.model.traffic import QueueRecord, hour_number, make_dlq_mark
from mendq.scan.store import ScanStore
from tests.cli.builders import Operator
from tests.cli.scan.builders import make_source_and_dlq, read_account_state, select_finding

ARN = "arn:aws:sqs:us-east-1:123456789012:"
LONG = "no " * 200 + "do"
PrintFindings = Callable[[dict[Finding, ExpectedAction], int], str]


def test_dry_run_without_managed_queues_says_that_no_queue_was_checked(operator: Operator) -> None:
    print_found = operator.read_output("scan", "--dry-run")
    assert "no queue is managed, so none was looked at" in print_found
    assert "nothing was found" not in print_found
    assert "nothing was changed" in print_found
    assert operator.account.invoked == []


@pytest.mark.parametrize(
    ("mode", "would"), [("observe", "only notes"), ("propose", "proposes"), ("heal", "does")]
)
def test_dry_run_reports_what_the_queues_mode_allows_and_changes_nothing(
    operator: Operator, mode: str, would: str
) -> None:
    dead = make_source_and_dlq(operator, mode)
    off = operator.aws.queue("mine", "off")
    before = read_account_state(operator)
    report = operator.run_json("scan", "--dry-run")
    assert read_account_state(operator) == before
    assert operator.account.invoked == []
    finding = select_finding(report["findings"], dead, "dlq_retention_too_short")
    assert finding["would"] == would
    assert finding["steps"][0].startswith("MessageRetentionPeriod: 345600 s")
    assert report["queues_scanned"] == 2
    assert off not in {entry["queue_arn"] for entry in report["findings"]}
    assert report["not_looked_at"] == {}


def test_dry_run_lists_what_the_settings_mute_and_decides_nothing_about_it(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = make_source_and_dlq(operator, "heal")
    mute = Mute("*", "dlq_retention_too_short", "nobody needs them", date(2999, 12, 31))
    settings = structs.replace(operator.account.known, mutes=(mute,))
    account = structs.replace(operator.account, known=settings)
    monkeypatch.setattr(Account, "from_options", lambda *_: account)
    report = operator.run_json("scan", "--dry-run")
    assert "dlq_retention_too_short" not in {entry["symptom"] for entry in report["findings"]}
    (muted,) = report["muted"]
    assert (muted["queue_arn"], muted["muted_because"]) == (dead, "nobody needs them")
    assert "muted until 2999-12-31: dlq_retention_too_short on" in operator.read_output(
        "scan", "--dry-run"
    )


def _store_judged_dlq(operator: Operator, queue_arn: str, dlq_arn: str) -> None:
    """Store what a scan remembers that judged the queue while its DLQ held one message."""
    hour = hour_number(datetime.now(UTC)) - 1
    mark = make_dlq_mark(QueueFacts(dlq_arn, {}))
    record = QueueRecord(0, hour, hour, hour, mark, 1, hour)
    store = ScanStore(operator.aws.clients.dynamodb, "case_store", "scan")
    store.store_history({queue_arn.rpartition(":")[2]: record}, None, datetime.now(UTC))


def test_dry_run_knows_from_earlier_scans_that_a_dlq_gained_no_message(operator: Operator) -> None:
    operator.aws.later(days=-2)
    dead = make_source_and_dlq(operator, "observe")
    queue_arn = dead.removesuffix("-dlq")
    operator.aws.clients.sqs.send_message(QueueUrl=operator.aws.url(dead), MessageBody="old")
    assert queue_arn in operator.run_json("scan", "--dry-run")["measured_because"]
    _store_judged_dlq(operator, queue_arn, dead)
    assert queue_arn not in operator.run_json("scan", "--dry-run")["measured_because"]


def test_dry_run_says_that_it_could_not_read_what_earlier_scans_remember(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise CaseStoreUnavailable("dynamodb:GetItem is denied")

    make_source_and_dlq(operator, "observe")
    monkeypatch.setattr(ScanStore, "read_history", refuse)
    result = operator.run("scan", "--dry-run", "--json")
    report = json.loads(result.stdout)
    assert report["not_looked_at"] == {"history": "dynamodb:GetItem is denied"}
    assert report["findings"]


def test_dry_run_clients_refuse_every_call_that_changes_something(operator: Operator) -> None:
    clients = make_readonly_clients(operator.account.session)
    queue = operator.aws.queue("orders")
    url = operator.aws.url(queue)
    sends: Mapping[str, Callable[[], object]] = {
        "SetQueueAttributes": lambda: clients.sqs_for_writing.set_queue_attributes(
            QueueUrl=url, Attributes={"VisibilityTimeout": "1"}
        ),
        "ReceiveMessage": lambda: clients.sqs.receive_message(QueueUrl=url),
        "PutItem": lambda: clients.dynamodb.put_item(TableName="case_store", Item={}),
        "Invoke": lambda: clients.functions.invoke(FunctionName="heal"),
    }
    for name, send in sends.items():
        with pytest.raises(DryRunChangeError, match=name):
            send()
    assert operator.aws.visibility(queue) == 30
    assert operator.aws.case_store_items() == {}


def test_dry_run_names_an_own_change_of_mendq_as_possible_cause_before_the_plan(
    operator: Operator,
) -> None:
    """Mendq raised the visibility timeout three hours ago; now messages are about to expire."""
    operator.aws.later(hours=-3)
    case_id = operator.open_applied_case("orders.fifo")
    operator.aws.later(hours=3)
    queue = f"{ARN}orders.fifo"
    url = operator.aws.url(queue)
    operator.aws.clients.sqs.send_message(
        QueueUrl=url, MessageBody="order", MessageGroupId="a", MessageDeduplicationId="a"
    )
    times = [operator.aws.now - timedelta(minutes=minutes) for minutes in range(10, 150, 5)]
    operator.put_sqs_metric("orders.fifo", "ApproximateAgeOfOldestMessage", 300_000, *times)
    operator.put_sqs_metric("orders.fifo", "ApproximateNumberOfMessagesVisible", 1, *times)
    before = read_account_state(operator)
    finding = select_finding(
        operator.run_json("scan", "--dry-run")["findings"], queue, "messages_about_to_expire"
    )
    assert read_account_state(operator) == before
    assert finding["would"] == "proposes"
    assert finding["steps"] == ["MessageRetentionPeriod: 345600 s (4 d) -> 1209600 s (14 d)"]
    assert finding["first"].startswith(
        "Mendq raised VisibilityTimeout of orders.fifo from 30 s to "
    )
    rollback = f"mendq rollback {case_id} --region us-east-1"
    assert finding["first"].endswith(f"To take the change back: {rollback}")
    assert rollback in operator.read_output("scan", "--dry-run").replace("\n", " ").replace(
        "  ", " "
    )
