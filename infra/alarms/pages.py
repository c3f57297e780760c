"""Composite alarms: several alarms of one cause make one page.

An alarm with a cause of its own notifies by itself, or a lasting one would hide the next.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import spike
from infra.alarms.description import OPEN_CASES, AlarmDescription
from infra.alarms.liveness import BLIND
from infra.topics import Topics
from mendq.model.case import Severity

# How long what holds back may be away or come late: the minutes in a row that it needs, and one
# that its metric comes later than the fixes.
SETTLING = Duration.minutes(spike.VERIFIED_IN + 1)
FIXES_SPIKE = AlarmDescription(
    spike.RUNBOOK,
    f"more fixes than usual, and not few, and they still come; {spike.HELD_BACK}",
    spike.IMPACT,
    OPEN_CASES,
    severity=Severity.URGENT,
)
NOT_HEALING = AlarmDescription(
    "not_healing",
    "failed calls reach the intake and do not come through heal",
    BLIND,
    severity=Severity.URGENT,
)
NIGHTLY_FAILING = AlarmDescription(
    "nightly_failing",
    "a nightly run failed, is missing or read too little",
    "The weekly report lacks a day, or comes late; queues are fixed all the same.",
    runbook="nightly_and_report",
    severity=Severity.INFO,
)
# It pages nobody.
HELD_BACK = AlarmDescription(
    "fixes_held_back",
    f"one of many fixes is being verified, and was not for {spike.HELD_AT_MOST} of the last "
    f"{spike.OF_MINUTES} minutes",
    "None: while it stands, the page of many fixes is held back.",
    OPEN_CASES,
    spike.RUNBOOK,
)
COMPOSITES = (FIXES_SPIKE, NOT_HEALING, NIGHTLY_FAILING)


def page(
    scope: Construct,
    announced: AlarmDescription,
    rule: cloudwatch.IAlarmRule,
    topics: Topics,
    held_back_by: cloudwatch.IAlarm | None = None,
) -> cloudwatch.CompositeAlarm:
    """Tells of its beginning and its end on the topic of its severity, if it has one."""
    name = announced.called()
    composite = cloudwatch.CompositeAlarm(
        scope,
        "".join(each.capitalize() for each in name.split("-")[1:]),
        composite_alarm_name=name,
        alarm_description=announced.description(scope),
        alarm_rule=rule,
        actions_suppressor=held_back_by,
        actions_suppressor_wait_period=SETTLING if held_back_by else None,
        actions_suppressor_extension_period=SETTLING if held_back_by else None,
    )
    if announced.severity:
        topics.tell_of(composite, announced.severity)
    return composite
