"""Example cases and their details for tests of notifications."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import structs

from mendq.catalogue.examples import DLQ_ARN, QUEUE_ARN
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.policy import QueueChange
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from mendq.model.steps import AttachDlq, CreateDlq, SetVisibilityTimeout
from mendq.notifications import notification
from mendq.notifications.commands import (
    delete_queue_command,
    get_attributes_command,
    list_consumers_command,
    list_quotas_command,
)
from mendq.notifications.configuration import Baseline
from mendq.notifications.notification import MassSymptom, ReportRedelivery
from mendq.notifications.sent import NotificationText
from tests.golden.files import SECTION_MARK, split_sections

PAGES_FILE = "tests/notifications/pages.txt"
COMMANDS_FILE = "tests/notifications/commands.txt"
NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
EXAMPLE_TEXT = NotificationText("Mendq: something", "is the matter\n")
FLOODER = "arn:aws:iam::123456789012:role/stranger"
STEP = {"attribute": "VisibilityTimeout", "before": "30", "after": "45"}
_SAMPLES = json.loads(Path(__file__).with_name("samples.json").read_text())
ATTRIBUTES: dict[str, str] = _SAMPLES["attributes"]
CASE = Case(at=NOW, came_from=None, state=State.PROPOSED, queue_arn=QUEUE_ARN, steps=(STEP,),
            **_SAMPLES["case"])  # fmt: skip
TAGS = {f"tag {key}": text for key, text in _SAMPLES["beside"]["tags"].items()}
THEN = {**ATTRIBUTES, **TAGS, "VisibilityTimeout": "60", "tag mendq": "heal"}
WELL = Baseline(NOW - timedelta(days=1), {**THEN, "consumer bill": "timeout 9 s"})
BESIDE: dict[str, Any] = {
    **_SAMPLES["beside"],
    "attributes": ATTRIBUTES,
    "baselines": (WELL,),
    "last_change": QueueChange(
        NOW, "SetQueueAttributes", "arn:aws:iam::123456789012:role/deployer"
    ),
    "refusal_command": f"aws sqs list-queue-tags --queue-url {QUEUE_ARN}",
}


def make_notification(beside: dict[str, Any] | None = None, **over: Any) -> NotificationText:
    """Return the notification of the example case. `over` replaces fields of the case, `beside`
    adds details.
    """
    known = {**BESIDE, **(beside or {})}
    of_queue = {name: known.pop(name) for name in ("attributes", "tags", "event_names")}
    details = notification.CaseDetails(**known, facts=Facts(CASE.queue_arn, **of_queue))
    return notification.describe_case(replace(CASE, **over), details)


def list_section_lines(text: str, heading: str) -> list[str]:
    """Return the lines under `heading` without indentation, or [] if there is no such heading."""
    blocks = [line.splitlines() for line in text.split("\n\n")]
    found = [lines[1:] for lines in blocks if lines[0] == heading]
    return [line.removeprefix("  ") for lines in found for line in lines]


LONG_POLICY = json.dumps({"Statement": [{"Sid": "let the shop send", "Effect": "Allow"}]})
RAISED = {**ATTRIBUTES, "VisibilityTimeout": "45"}
STACK = {"aws:cloudformation:stack-name": "shop", "aws:cloudformation:logical-id": "Orders"}
TRIED: dict[str, Any] = {"state": State.ESCALATED, "came_from": State.INEFFECTIVE}
RETAINED = {"attribute": "MessageRetentionPeriod", "before": "345600", "after": "1209600"}
BACK = {"attribute": "Dlq", "before": "held", "after": QUEUE_ARN.replace("orders", "billing")}
DLQ_STEPS = (
    CreateDlq("", DLQ_ARN).document(),
    AttachDlq("", RedrivePolicy(DLQ_ARN, 5).text).document(),
)
SIX_STEPS = tuple({**STEP, "attribute": f"A{n}"} for n in range(6))
MASS = MassSymptom(
    "kms_throttled",
    "KMS throttles the queue's calls.",
    "docs/runbooks/kms_throttled.md",
    "Look at the request quota of KMS.",
)
QUEUES = [f"arn:aws:sqs:us-east-1:123456789012:q{n:03}" for n in range(12)]
WHERE = notification.format_account_and_region("123456789012", "us-east-1")
LONG_AGO = NOW - timedelta(days=9)
LATE = NOW + timedelta(hours=15)
WHY = "MessageRejected: Email address is not verified."
AGAIN = ReportRedelivery("Mendq-DeliverReport", "eu-west-1", "summary/week=2026-W46/summary.json")


def every_page() -> dict[str, NotificationText]:
    """Return every kind of notification by title. pages.txt has their exact texts."""
    policy = {**ATTRIBUTES, "Policy": LONG_POLICY}
    shown = {
        "attributes": policy,
        "always_shown_attributes": ["Policy", "KmsMasterKeyId"],
        "last_change": None,
    }
    last = QueueChange(NOW, "SetQueueAttributes", "arn:x", ("Policy", "DelaySeconds"))
    unknown = {"attributes": {}, "tags": {}, "last_change": "throttled"}
    theirs = {**ATTRIBUTES, "VisibilityTimeout": "31"}
    first = ["aws sqs set-queue-attributes --queue-url 'a b' --attributes A=1", "x\nNEXT"]
    advised: dict[str, Any] = {
        "advice_before_change": first,
        "advice_after_change": [str(SetVisibilityTimeout(45, 240)), "x\nNEXT"],
    }
    advised["named_time_spans"] = [("tag mendq:max-processing-seconds", 60), ("timeout before", 30)]
    before = QueueChange(NOW - timedelta(hours=2), "SetQueueAttributes", "arn:y", ("Policy",))
    same = Baseline(WELL.at, ATTRIBUTES | TAGS)
    unchanged = {"baselines": (same,), "last_change": last}
    changes = {"last_change": replace(last, earlier_changes=(before,))}
    lately = {**changes, "baselines": (same, replace(WELL, at=LONG_AGO))}
    requests = [{"source_ip": f"192.0.2.{n}", "user_agent": "Boto3/1.40 md/x"} for n in range(4)]
    from_hosts = {**CASE.evidence, "requests": requests}
    overridden: dict[str, Any] = {"state": State.OVERRIDDEN}
    back_and_retained: dict[str, Any] = {"steps": (BACK, RETAINED)}
    return {
        "a proposal": make_notification(),
        "a proposal, with what to do before and beyond it": make_notification(advised),
        "a proposal of more steps than are shown": make_notification(steps=SIX_STEPS),
        "a proposal to send messages back": make_notification(**back_and_retained),
        "a proposal of a DLQ": make_notification(steps=DLQ_STEPS),
        "a proposal that a configuration asks for": make_notification(unchanged, evidence={}),
        "a proposal that was approved, and held up": make_notification(
            {"refusal_command": ""}, state=State.APPROVED
        ),
        "a step that is held up": make_notification(
            state=State.INEFFECTIVE, came_from=State.WATCHING
        ),
        "what was approved and not done": make_notification(
            state=State.EXPIRED, came_from=State.APPROVED
        ),
        "a refusal, with what its symptom shows": make_notification(shown, state=State.REFUSED),
        "a queue that is gone": make_notification(unknown, state=State.ESCALATED, steps=()),
        "what was tried": make_notification({"attributes": RAISED}, **TRIED),
        "what was tried, and a person has overruled": make_notification(
            {"attributes": theirs}, **TRIED
        ),
        "what was tried in a queue that cannot be read": make_notification(
            {"attributes": {}}, **TRIED
        ),
        "what is overridden": make_notification(
            {"tags": STACK, "attributes": theirs}, **overridden
        ),
        "what is overridden without a stack": make_notification({"baselines": ()}, **overridden),
        "messages and an overridden value": make_notification(**back_and_retained, **overridden),
        "what changed since the scan before": make_notification(lately, evidence=from_hosts),
        "a mass symptom": notification.describe_mass_symptom(MASS, QUEUES, 40, NOW, WHERE),
        "a mass symptom among queues that nobody counted": notification.describe_mass_symptom(
            structs.replace(MASS, next_command="aws sqs x"), QUEUES[:4], 0, NOW, WHERE
        ),
        "a flood of names": notification.describe_call_flood(
            [(FLOODER, 5_000), ("", 2)], NOW, WHERE
        ),
        "pages held back": notification.describe_held_back_notifications(
            [FLOODER, "redrive_cycle"], "123456789012", "us-east-1"
        ),
        "a report not mailed": notification.describe_refused_mail(
            "2026-W46", {"a@example.com": WHY}, AGAIN
        ),
    }


def read_recorded_pages() -> dict[str, str]:
    """Return the sections of the golden file `pages.txt` by their titles."""
    return split_sections(Path(__file__).with_name("pages.txt").read_text())


def render_pages() -> str:
    """Return the text of `pages.txt` as notifications are now."""
    return "".join(
        f"{SECTION_MARK}{title}\n{render_page(page)}" for title, page in every_page().items()
    )


def render_page(page: NotificationText) -> str:
    """Return a notification as `pages.txt` holds it."""
    return f"Subject: {page.subject}\n\n{page.body}\n"


def list_commands() -> tuple[str, ...]:
    """Return one example of each command that notifications print about a queue."""
    return (
        get_attributes_command(QUEUE_ARN, "Policy", "KmsMasterKeyId"),
        list_consumers_command(QUEUE_ARN),
        delete_queue_command(DLQ_ARN),
        list_quotas_command("kms", QUEUE_ARN, "rate"),
        list_quotas_command("sqs", QUEUE_ARN),
    )


def render_commands() -> str:
    """Return the text of `commands.txt` as the commands are now."""
    return "".join(f"{command}\n" for command in list_commands())
