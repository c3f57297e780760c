"""What a rehearsed scan says of messages that could go back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from mendq.cases.finding import Finding
from mendq.cases.transactions import Entry
from mendq.cases.view import CaseStoreView
from mendq.catalogue.examples import case
from mendq.cli.look.dry_run import DryRun, Purse, WouldDo
from mendq.cli.look.scan import findings_table
from mendq.model.case import State
from mendq.model.metrics import metrics_of
from tests.cli.conftest import Operator
from tests.cli.scan.conftest import everything

NAMES = {each.key: each.name for each in metrics_of(fifo=False)}
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=10)


def count(operator: Operator, queue_arn: str, at: datetime, **values: float) -> None:
    operator.aws.clients.cloudwatch.put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": NAMES[key],
                "Dimensions": [{"Name": "QueueName", "Value": queue_arn.rpartition(":")[2]}],
                "Timestamp": at,
                "Value": value,
            }
            for key, value in values.items()
        ],
    )


def waiting(operator: Operator, name: str, hours_old: int, tag: str = "propose") -> str:
    """Messages whose cause was fixed a moment ago; the ARN of their queue."""
    dead = operator.aws.queue(f"{name}-dlq", tag, MessageRetentionPeriod="1209600")
    redrive = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": "5"})
    source = operator.aws.queue(name, tag, RedrivePolicy=redrive)
    operator.aws.clients.sqs.send_message(QueueUrl=operator.aws.url(dead), MessageBody="x")
    made = case("visibility_timeout_too_short", State.APPLIED, State.WATCHING, queue_arn=source)
    made = replace(made, at=LATER, opened_at=LATER)
    due = LATER + timedelta(days=2)
    operator.aws.run().case_store.record(Entry(made, CaseStoreView(), "o", "o", {}, {}, due))
    count(operator, dead, LATER - timedelta(minutes=10), visible=1, age=3_600 * hours_old - 600)
    count(operator, source, LATER - timedelta(minutes=10), deleted=3_600)
    return dead


def said(operator: Operator) -> tuple[DryRun, dict[Finding, WouldDo]]:
    this = DryRun(operator.account, LATER, Purse())
    *_, scanned = this.stretches()
    would = dict(this.would_do(scanned.findings))
    assert this.document(scanned, would)["metrics_an_hour"]
    return this, {each: what for each, what in would.items() if each.symptom.endswith("_waiting")}


def test_it_proposes_to_send_them_back_and_nothing_is_done(operator: Operator) -> None:
    dead = waiting(operator, "orders", 5)
    before = everything(operator)
    _, would = said(operator)
    assert everything(operator) == before
    ((found, what),) = would.items()
    assert found.queue_arn == dead
    assert what.words == "proposes"
    assert what.steps == (f"Dlq: held -> {dead.removesuffix('-dlq')}",)
    assert found.document()["seconds_left"] == int(found.seconds_left or 0) > 0


def test_what_speaks_against_it_is_said(operator: Operator) -> None:
    dead = waiting(operator, "orders", 5)
    operator.aws.clients.sqs.tag_queue(
        QueueUrl=operator.aws.url(dead), Tags={"mendq:redrive": "off"}
    )
    _, would = said(operator)
    (what,) = would.values()
    assert what.words == "would be refused: redrive_off"


@pytest.mark.parametrize("columns", [80, 120])
def test_the_most_urgent_stand_first(operator: Operator, columns: int) -> None:
    hours = {"a": 2, "b": 5, "c": 3}
    for name, hours_old in hours.items():
        waiting(operator, name, hours_old)
    _, would = said(operator)
    console = Console(width=columns, no_color=True, force_terminal=False)
    with console.capture() as captured:
        console.print(findings_table(would))
    shown = captured.get()
    places = [shown.index(f"{name}-dlq") for name in ("b", "c", "a")]
    assert places == sorted(places)


def test_what_it_asks_for_is_paid_and_what_heal_asks_for_again_is_counted(
    operator: Operator,
) -> None:
    """Of the messages' queue everything, of its source the deletes."""
    waiting(operator, "orders", 5)
    this = DryRun(operator.account, LATER, Purse())
    *_, scanned = this.stretches()
    scanned = replace(
        scanned, findings=tuple(e for e in scanned.findings if e.seconds_left is not None)
    )
    assert this.purse.spent == scanned.metrics
    would = dict(this.would_do(scanned.findings))
    assert this.purse.spent == scanned.metrics + 1, "what was measured is kept"
    assert this.metrics_an_hour(scanned, would) == scanned.metrics + len(NAMES) + 1
