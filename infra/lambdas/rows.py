"""The Lambdas, a row each: what it runs, what it knows, what it may do, and whom it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.lambdas.grants import (
    Grant,
    Work,
    asks_for_freezes,
    checks_jobs,
    delivers,
    files_cases,
    lists_open_cases,
    moves_cases,
    notes_findings,
    notifies,
    probes,
    reads_cases,
    reads_facts,
    shares,
    starts_jobs,
    writes,
)
from infra.lambdas.lambda_function import Handler, OwnLambda, ParkingLambda, deliver
from infra.own_queues import own_queue
from infra.queue_grants import HEAL_READS, SCAN_READS, kinds_of, owner_reads, taken_back
from infra.roles import may
from infra.template_hook import template_hook
from mendq.model.facts import FOLLOW_UP_READS, POLICY_CHECKS, ROLLBACK_READS, ReadAction
from mendq.model.settings import (
    DeliverReportSettings,
    FollowUpSettings,
    LambdaSettings,
    OperatorSettings,
    OwnerSettings,
    ProbeSettings,
    RedriveSettings,
    ScanSettings,
    StartNightlySettings,
    TemplateHookSettings,
    WatchNightlySettings,
)
from mendq.model.steps import PROBE_ACTION, Owner
from mendq.nightly.outcome import DETAIL_TYPE, ENDED, SOURCE
from mendq.probe.probe import QUEUE_NAME

SUMMARIES = "summary/week=*/summary.json"
DELIVER_SECONDS = 120
# What these Lambdas start and watch is there or not: nightly.enabled.
_OF_NIGHTLY = (StartNightlySettings, WatchNightlySettings)
TEMPLATE_HOOK = "template_hook"
_OWNERS = tuple(each.value for each in Owner)


def _owns(owner: Owner, reads: Iterable[ReadAction] | None = None) -> tuple[Grant, ...]:
    """What taking the steps of an owner takes; `reads` where that is not what its symptoms take."""
    look = reads_facts(owner_reads(owner) if reads is None else reads)
    return moves_cases, asks_for_freezes, notifies, look, writes(kinds_of(owner))


@dataclass(frozen=True)
class Row:
    """One Lambda.

    `patience` is how long Lambda tries what nobody waits for before it is kept for a person; None
    where the caller waits. `calls` are the Lambdas that it invokes.
    """

    handler: Handler
    settings: type[LambdaSettings]
    grants: tuple[Grant, ...]
    patience: Duration | None = None
    calls: tuple[str, ...] = ()
    event: Callable[[Work, ParkingLambda], None] | None = None


def _run_ended(work: Work, started: ParkingLambda) -> None:
    """https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html

    A nightly run that nobody heard of in time is missing: the alarm on its figures says so.
    """
    application_id = work.job.application.attr_application_id
    detail = {"applicationId": [application_id], "state": list(ENDED)}
    pattern = {"source": [SOURCE], "detail_type": [DETAIL_TYPE], "detail": detail}
    ended = "A job run of Mendq's application ended"
    started.starts_with("RunEnded", ended, Duration.hours(6), **pattern)


def _summary_written(work: Work, started: ParkingLambda) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/EventBridge.html

    A report that is a day late is still worth reading.
    """
    started.starts_with(
        "SummaryWritten",
        "A week's summary was written to Mendq's report bucket",
        Duration.hours(24),
        source=["aws.s3"],
        detail_type=["Object Created"],
        detail={
            "bucket": {"name": [work.buckets.reports.bucket_name]},
            "object": {"key": [{"wildcard": SUMMARIES}]},
        },
    )


HEAL = Handler("heal", "Mendq: fixes the queue that a failed SQS call names", 60, 512)
ROWS = (
    Row(HEAL, OwnerSettings, (*_owns(Owner.HEAL, HEAL_READS), reads_cases)),
    Row(
        Handler("attach_dlq", "Mendq: makes and attaches DLQs", 60, 512),
        OwnerSettings,
        (*_owns(Owner.ATTACH_DLQ), reads_cases),
    ),
    # AWS's own checks come before its write, and one after it.
    Row(
        Handler("restore_policy", "Mendq: puts a queue's pinned policy back", 60, 512),
        OwnerSettings,
        _owns(Owner.RESTORE_POLICY, owner_reads(Owner.RESTORE_POLICY).union(POLICY_CHECKS)),
    ),
    # It holds thousands of messages at once.
    Row(
        Handler("redrive", "Mendq: sends DLQ messages back, a few first", 60, 1_024),
        RedriveSettings,
        (*_owns(Owner.REDRIVE), reads_cases),
    ),
    # It writes no queue: it calls the owner of the write. When its patience ends, four later
    # minutes have looked after the same cases.
    Row(
        Handler("follow_up", "Mendq: verifies, watches and closes open cases", 60, 512),
        FollowUpSettings,
        (moves_cases, files_cases, notifies, lists_open_cases, reads_facts(FOLLOW_UP_READS)),
        patience=Duration.minutes(5),
        calls=_OWNERS,
    ),
    # Operators invoke this one and the next. They wait for the owner of the write, or of what goes
    # on, and write down before and after.
    Row(
        Handler("approve", "Mendq: takes a person's decision on a case", 90, 512),
        OperatorSettings,
        (moves_cases, reads_cases),
        calls=_OWNERS,
    ),
    Row(
        Handler(
            "rollback", "Mendq: undoes what it changed, where nobody changed it since", 90, 512
        ),
        OperatorSettings,
        (moves_cases, notifies, reads_cases, reads_facts(ROLLBACK_READS), writes(taken_back())),
        calls=(Owner.REDRIVE.value,),
    ),
    # As long as Lambda lets it: what it does not get to waits for the next run. It moves no case:
    # it invokes heal for what it finds.
    Row(
        Handler("scan", "Mendq: scans managed queues for what makes no call fail", 900, 1_024),
        ScanSettings,
        (notes_findings, lists_open_cases, reads_cases, reads_facts(SCAN_READS)),
        patience=Duration.minutes(10),
        calls=(HEAL.name,),
    ),
    # Its role is the one that the rule and the trail do not leave out. When its patience ends, the
    # probe that was to be judged has had its successor.
    Row(
        Handler("probe", "Mendq: sends a failing call that heal has to see", 30, 256),
        ProbeSettings,
        (probes,),
        patience=Duration.minutes(10),
    ),
    Row(
        Handler("start_nightly", "Mendq: starts the nightly and the weekly job", 60, 256),
        StartNightlySettings,
        (starts_jobs,),
        patience=Duration.hours(1),
    ),
    Row(
        Handler(
            "watch_nightly",
            "Mendq: checks nightly runs that ended, and counts what failed or read too little",
            60,
            256,
        ),
        WatchNightlySettings,
        (checks_jobs, shares),
        patience=Duration.hours(6),
        event=_run_ended,
    ),
    # Charts are drawn by a whole browser engine: one full virtual CPU.
    # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
    Row(
        Handler("deliver_report", "Mendq: delivers the weekly report", DELIVER_SECONDS, 1_769),
        DeliverReportSettings,
        (delivers,),
        patience=Duration.hours(6),
        event=_summary_written,
    ),
    # People wait for it as they deploy: one full virtual CPU. The hook waits 30 s.
    Row(
        Handler(TEMPLATE_HOOK, "Mendq: judges a queue that is about to be deployed", 10, 1_769),
        TemplateHookSettings,
        (),
    ),
)


def _is_there(row: Row, work: Work) -> bool:
    if row.settings is TemplateHookSettings:
        return work.settings.template_hook.is_on
    return work.nightly is not None or row.settings not in _OF_NIGHTLY


def every_lambda(
    work: Work, known: Mapping[str, Any], code: lambda_.Code, report_code: lambda_.Code
) -> dict[str, OwnLambda]:
    """Each of ROWS by its handler's name; `known` are the values of their settings."""
    rows = [row for row in ROWS if _is_there(row, work)]
    made = {row.handler.name: _made(work.stack, row, code, report_code) for row in rows}
    probe_queue = _probe_queue(made["probe"])
    made["probe"].role.add_to_policy(may([PROBE_ACTION], probe_queue.queue_arn))
    known = {
        **known,
        "probe_queue_url": probe_queue.queue_url,
        "heal_function": made[HEAL.name].function.function_name,
    }
    for row in rows:
        _let_work(made, row, work, known)
    # What this call did not do, the next minute's does.
    made[Owner.REDRIVE.value].function.configure_async_invoke(
        max_event_age=Duration.seconds(60), retry_attempts=0
    )
    if hook := made.get(TEMPLATE_HOOK):
        template_hook(work.stack, hook.function, work.settings.template_hook)
    return made


def _made(scope: Construct, row: Row, common: lambda_.Code, report: lambda_.Code) -> OwnLambda:
    code = report if row.settings is DeliverReportSettings else common
    if row.patience is None:
        return OwnLambda(scope, row.handler, code)
    return ParkingLambda(scope, row.handler, code, row.patience)


def _let_work(
    made: Mapping[str, OwnLambda], row: Row, work: Work, known: Mapping[str, Any]
) -> None:
    each, called = made[row.handler.name], {name: made[name].function for name in row.calls}
    for statement in (statement for grant in row.grants for statement in grant(work)):
        each.role.add_to_policy(statement)
    if called:
        functions = (function.function_arn for function in called.values())
        each.role.add_to_policy(may(["lambda:InvokeFunction"], *functions))
    owners = {Owner(name): function.function_name for name, function in called.items()}
    deliver(each.function, row.settings.of({**known, "owners": owners}))
    if row.event and isinstance(each, ParkingLambda):
        row.event(work, each)


def _probe_queue(probe: OwnLambda) -> sqs.Queue:
    """It refuses every message. Heal knows its fixed name, and the trail before it is there."""
    fifo = {"queue_name": QUEUE_NAME, "fifo": True, "content_based_deduplication": False}
    return own_queue(probe, "Queue", Duration.minutes(1), **fifo)
