"""Mendq's own changes in a notification about many queues."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mendq.model.own_change import OwnChange
from mendq.notifications.notification import MassSymptom, describe_mass_symptom
from mendq.notifications.own_change import describe_own_changes

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
CHANGE = OwnChange(
    case_id="dlq_missing-0123456789ab",
    queue_arn="arn:aws:sqs:us-east-1:123456789012:orders",
    written_at=NOW - timedelta(minutes=5),
    change_text="attached the DLQ orders-dlq to orders",
    effect="messages that had been received 5 times move there",
    rollback_introduction="To take the change back",
)
EARLIER = replace(
    CHANGE, case_id="dlq_missing-ba9876543210", written_at=NOW - timedelta(minutes=50)
)


def page(*changes: OwnChange) -> str:
    lines = describe_own_changes(changes, NOW)
    of = MassSymptom("dlq_messages_arriving", "", "", "", own_changes=lines)
    return describe_mass_symptom(of, [CHANGE.queue_arn], 40, NOW, "here").body


def test_mass_symptom_notification_names_the_newest_own_change_and_counts_the_others() -> None:
    text = page(EARLIER, CHANGE, CHANGE)
    assert "\nMendq attached the DLQ orders-dlq to orders 5 min ago (case dlq_missing-0123" in text
    assert "mendq rollback dlq_missing-0123456789ab --region us-east-1. 1 other change by" in text
    assert text.index("Mendq attached") < text.index("Why: ")


def test_mass_symptom_notification_without_own_changes_offers_no_rollback() -> None:
    assert "rollback" not in page()
