"""Who is paged: composites alone, one for each thing that people do something else about."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from functions.healing.paging import Severity
from infra.alarms import open_cases, parked, spike
from infra.alarms.liveness import BLIND
from infra.alarms.told import OPEN_CASES, Paged
from infra.topics import Topics

# What CloudWatch needs to see that the alarm which holds back has changed.
SETTLING = Duration.minutes(1)
FIXES_SPIKE = Paged(
    spike.RUNBOOK,
    "more fixes than usual, or than there may ever be; held back for 15 minutes at most while a "
    "fix is being verified",
    spike.IMPACT,
    OPEN_CASES,
)
NOT_HEALING = Paged(
    "not_healing",
    "no sign of life, the pulse lost, or failed calls that do not come through to heal",
    BLIND,
)
CASES_ESCALATED = Paged(
    "cases_escalated", open_cases.ESCALATED.when, open_cases.ESCALATED.impact, OPEN_CASES
)
PROPOSALS_WAITING = Paged(
    "proposals_waiting",
    open_cases.PROPOSED.when,
    open_cases.PROPOSED.impact,
    OPEN_CASES,
    severity=Severity.INFO,
)
WORK_PARKED = Paged(
    "work_parked",
    "something lies in a dead-letter queue of Mendq's own, or a Lambda that writes keeps failing",
    parked.IMPACT,
    runbook="own_dead_letters",
    severity=Severity.INFO,
)
NIGHTS_AND_REPORT = Paged(
    "nights_and_report",
    "a night failed, is missing or read too little, or a report was not delivered",
    "The weekly report is late, lacks a day, or did not arrive; healing goes on.",
    severity=Severity.INFO,
)
PAGED = (
    FIXES_SPIKE,
    NOT_HEALING,
    CASES_ESCALATED,
    PROPOSALS_WAITING,
    WORK_PARKED,
    NIGHTS_AND_REPORT,
)


def page(
    scope: Construct,
    told: Paged,
    rule: cloudwatch.IAlarmRule,
    topics: Topics,
    held_back_by: cloudwatch.Alarm | None = None,
) -> cloudwatch.CompositeAlarm:
    """Tells of its beginning and its end, on the topic of its severity."""
    name = told.called()
    composite = cloudwatch.CompositeAlarm(
        scope,
        "".join(each.capitalize() for each in name.split("-")[1:]),
        composite_alarm_name=name,
        alarm_description=told.description(scope),
        alarm_rule=rule,
        actions_suppressor=held_back_by,
        actions_suppressor_wait_period=SETTLING if held_back_by else None,
        actions_suppressor_extension_period=SETTLING if held_back_by else None,
    )
    topics.tell_of(composite, told.severity)
    return composite
