"""Test `mendq queues`, which lists each queue's mode, its reason and the last scan."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from mendq.aws.errors import FactsUnavailable
from mendq.aws.queue import list_readable_queues
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.finding import Finding, ScanResult, add_managed_queues, findings_key, start_of_hour
from mendq.model.consent import Consent
from mendq.model.mode import Mode
from mendq.scan.store import ScanStore, Stretch
from tests.cli.builders import Operator

NAMES = ("a-well", "b-found", "c-skipped", "d-failed", "e-later")


def list_queues(operator: Operator) -> dict[str, dict[str, Any]]:
    queues = operator.run_json("queues")["queues"]
    return {queue["queue_arn"].rpartition(":")[2]: queue for queue in queues}


def put_scan_result(
    operator: Operator, at: datetime, names: tuple[str, ...], scanned: ScanResult
) -> None:
    """Store the result of a complete scan of the queues `names`."""
    arns = (make_arn(name) for name in names)
    document = add_managed_queues(scanned.document(at), arns, is_listing_complete=True)
    CaseBucket(operator.aws.clients.s3, "cases").put(findings_key(start_of_hour(at)), document)


def make_arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:123456789012:{name}"


def test_queues_lists_each_queue_with_the_result_of_its_last_scan(operator: Operator) -> None:
    for name in NAMES:
        operator.aws.queue(name, "observe")
    assert list_queues(operator)["a-well"]["last_scan"] is None, "nothing was scanned"
    now = operator.aws.now
    store = ScanStore(operator.aws.clients.dynamodb, "case_store", "scan")
    assert store.claim_stretch(now)
    store.end_stretch(Stretch(start_of_hour(now)), "d-failed", is_round_done=False)
    newest = ScanResult(
        findings=(Finding(make_arn("b-found"), "dlq_missing", "it has none"),),
        skip_reason_by_arn={make_arn("c-skipped"): "spent"},
        gap_reason_by_arn={make_arn("b-found"): "CloudWatch lacks counts"},
        error_by_target={
            make_arn("d-failed"): FactsUnavailable("it \x1b[2J refuses us" + "x" * 400)
        },
    )
    before = now - timedelta(hours=1)
    put_scan_result(operator, before, ("b-found", "e-later"), ScanResult())
    put_scan_result(operator, now, NAMES, newest)
    thought = {name: queue["last_scan"] for name, queue in list_queues(operator).items()}
    assert thought["a-well"]["found"] == []
    assert thought["b-found"]["found"] == ["dlq_missing"]
    assert thought["c-skipped"]["skipped_for_budget"] is True
    assert len(thought["d-failed"]["not_looked_at"]) == 300
    assert thought["e-later"]["at"][:13] == f"{before:%Y-%m-%dT%H}", "the newest has not come to it"
    output = operator.read_output("queues")
    assert "nothing found" in output
    assert "not measured, because the scan's budget of metrics or time was spent" in output
    assert "dlq_missing; not measured: CloudWatch lacks counts" in output
    assert r"not or not wholly looked at: it \x1b[2J refuses us" in output


def test_queues_lists_the_open_cases_of_each_queue(operator: Operator) -> None:
    case_id = operator.open_proposed_case()
    assert list_queues(operator)["orders.fifo"]["open_cases"] == [case_id]
    assert case_id in operator.read_output("queues")


def test_queues_shows_tags_not_understood_and_counts_queues_tagged_off(
    operator: Operator,
) -> None:
    operator.aws.queue("billing", "Heal")
    operator.aws.queue("left", "off")
    listing = operator.run_json("queues")
    assert listing["off"] == [make_arn("left")]
    (billing,) = listing["queues"]
    assert billing["mode"] == "observe"
    (sentence,) = billing["tags_not_understood"]
    assert sentence.startswith("the tag mendq says Heal, which is none of")
    assert "1 managed queue; off by tag: left" in operator.read_output("queues")


def test_queues_reports_name_patterns_whose_queues_could_not_be_listed_and_exits_with_1(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.aws.queue("orders", "observe")
    cut = FactsUnavailable("the queues named x* could not be read")
    monkeypatch.setattr(
        "mendq.cli.queues.listing.list_readable_queues",
        lambda *given: structs.replace(list_readable_queues(*given), error_by_pattern={"x*": cut}),
    )
    assert operator.run_json("queues", code=1)["not_listed"] == {"x*": str(cut)}


@pytest.mark.parametrize(
    ("tag", "why", "mode"),
    [
        (None, "", Mode.PROPOSE),
        ("observe", "; its tag says observe", Mode.OBSERVE),
        (
            "heal",
            "; its tag says heal, and tagMayRaiseTo (observe) caps it at propose",
            Mode.PROPOSE,
        ),
        ("Heal", "; its tag says nothing that Mendq knows, so observe", Mode.OBSERVE),
        ("off", "; its tag says off", None),
    ],
)
def test_mode_of_a_queue_and_its_explanation_follow_from_settings_and_tag(
    tag: str | None, why: str, mode: Mode | None
) -> None:
    consent = Consent(Mode.PROPOSE, Mode.OBSERVE, ("orders*",))
    tags = {} if tag is None else {"mendq": tag}
    assert consent.explain_mode("orders-new", tags) == f"settings name it (orders*): propose{why}"
    assert consent.mode_of("orders-new", tags) is mode
    assert consent.explain_mode("mail", {"mendq": "heal"}).startswith(
        "no setting names it; its tag says"
    )
