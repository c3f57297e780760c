"""The Lambdas, a row each: what it runs, its settings, what it may do, which others it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.lambdas.environment import (
    Peers,
    deliver_report_settings,
    follow_up_settings,
    operator_settings,
    owner_settings,
    probe_settings,
    redrive_settings,
    scan_settings,
    start_nightly_settings,
    template_hook_settings,
    watch_nightly_settings,
)
from infra.lambdas.grants import (
    Grant,
    ReadsFacts,
    Work,
    WritesQueues,
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
    shares,
    starts_jobs,
)
from infra.lambdas.lambda_function import Handler, OwnLambda, ParkingLambda, deliver
from infra.own_queues import own_queue
from infra.queue_grants import HEAL_READS, SCAN_READS, kinds_of, owner_reads, taken_back
from infra.roles import may
from infra.template_hook import template_hook
from mendq.model.facts import FOLLOW_UP_READS, POLICY_CHECKS, ROLLBACK_READS, ReadAction
from mendq.model.settings import LambdaSettings
from mendq.model.steps import PROBE_ACTION, Owner
from mendq.nightly.outcome import DETAIL_TYPE, ENDED, SOURCE
from mendq.probe.probe import QUEUE_NAME

SUMMARIES = "summary/week=*/summary.json"
DELIVER_SECONDS = 120
TEMPLATE_HOOK = "template_hook"
_OWNERS = tuple(owner.value for owner in Owner)


def _grants_of(owner: Owner, reads: frozenset[ReadAction] | None = None) -> tuple[Grant, ...]:
    """Grants that an owner of writes needs.

    Args:
        owner: the Lambda that takes the steps.
        reads: what it reads. None: all that its symptoms need.
    """
    return (
        moves_cases,
        asks_for_freezes,
        notifies,
        ReadsFacts(owner_reads(owner) if reads is None else reads),
        WritesQueues(kinds_of(owner)),
    )


@dataclass(frozen=True)
class Row:
    """One Lambda.

    Attributes:
        handler: what it runs.
        settings: makes the settings that it reads from its environment.
        grants: what its role may do.
        patience: how long Lambda retries an asynchronous call before it goes to the DLQ; None if
            every caller waits for the answer.
        calls: names of the Lambdas that it invokes.
        event: adds a rule of EventBridge that invokes it.
        needs_nightly: True if it exists only together with the nightly job.
        draws_charts: True if it needs the packages that draw charts.
    """

    handler: Handler
    settings: Callable[[Work, Peers], LambdaSettings]
    grants: tuple[Grant, ...]
    patience: Duration | None = None
    calls: tuple[str, ...] = ()
    event: Callable[[Work, ParkingLambda], None] | None = None
    needs_nightly: bool = False
    draws_charts: bool = False


def _run_ended(work: Work, started: ParkingLambda) -> None:
    """Invoke watch_nightly if a job run of Mendq's EMR application ends.

    If no event comes within six hours, the alarm on the run's figures reports the run as missing.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
    """
    started.starts_with(
        "RunEnded",
        "A job run of Mendq's application ended",
        Duration.hours(6),
        source=[SOURCE],
        detail_type=[DETAIL_TYPE],
        detail={
            "applicationId": [work.job.application.attr_application_id],
            "state": list(ENDED),
        },
    )


def _summary_written(work: Work, started: ParkingLambda) -> None:
    """Invoke deliver_report if the summary of a week is written. A day late is still useful.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/EventBridge.html
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
    Row(HEAL, owner_settings, (*_grants_of(Owner.HEAL, HEAL_READS), reads_cases)),
    Row(
        Handler("attach_dlq", "Mendq: makes and attaches DLQs", 60, 512),
        owner_settings,
        (*_grants_of(Owner.ATTACH_DLQ), reads_cases),
    ),
    # AWS's own checks come before its write, and one after it.
    Row(
        Handler("restore_policy", "Mendq: puts a queue's pinned policy back", 60, 512),
        owner_settings,
        _grants_of(Owner.RESTORE_POLICY, owner_reads(Owner.RESTORE_POLICY).union(POLICY_CHECKS)),
    ),
    # It holds thousands of messages at once.
    Row(
        Handler("redrive", "Mendq: sends DLQ messages back, a few first", 60, 1_024),
        redrive_settings,
        (*_grants_of(Owner.REDRIVE), reads_cases),
    ),
    # It writes no queue: it calls the owner of the write. When its patience ends, four later
    # minutes have looked after the same cases.
    Row(
        Handler("follow_up", "Mendq: verifies, watches and closes open cases", 60, 512),
        follow_up_settings,
        (moves_cases, files_cases, notifies, lists_open_cases, ReadsFacts(FOLLOW_UP_READS)),
        patience=Duration.minutes(5),
        calls=_OWNERS,
    ),
    # Operators invoke this one and the next. They wait for the owner of the write, or of what goes
    # on, and write down before and after.
    Row(
        Handler("approve", "Mendq: takes a person's decision on a case", 90, 512),
        operator_settings,
        (moves_cases, reads_cases),
        calls=_OWNERS,
    ),
    Row(
        Handler(
            "rollback", "Mendq: undoes what it changed, where nobody changed it since", 90, 512
        ),
        operator_settings,
        (
            moves_cases,
            notifies,
            reads_cases,
            ReadsFacts(ROLLBACK_READS),
            WritesQueues(taken_back()),
        ),
        calls=(Owner.REDRIVE.value,),
    ),
    # As long as Lambda lets it: what it does not get to waits for the next run. It moves no case:
    # it invokes heal for what it finds.
    Row(
        Handler("scan", "Mendq: scans managed queues for what makes no call fail", 900, 1_024),
        scan_settings,
        (notes_findings, lists_open_cases, reads_cases, ReadsFacts(SCAN_READS)),
        patience=Duration.minutes(10),
        calls=(HEAL.name,),
    ),
    # Its role is the one that the rule and the trail do not leave out. When its patience ends, the
    # probe that was to be judged has had its successor.
    Row(
        Handler("probe", "Mendq: sends a failing call that heal has to see", 30, 256),
        probe_settings,
        (probes,),
        patience=Duration.minutes(10),
    ),
    Row(
        Handler("start_nightly", "Mendq: starts the nightly and the weekly job", 60, 256),
        start_nightly_settings,
        (starts_jobs,),
        patience=Duration.hours(1),
        needs_nightly=True,
    ),
    Row(
        Handler(
            "watch_nightly",
            "Mendq: checks nightly runs that ended, and counts what failed or read too little",
            60,
            256,
        ),
        watch_nightly_settings,
        (checks_jobs, shares),
        patience=Duration.hours(6),
        event=_run_ended,
        needs_nightly=True,
    ),
    # Charts are drawn by a whole browser engine: one full virtual CPU.
    # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
    Row(
        Handler("deliver_report", "Mendq: delivers the weekly report", DELIVER_SECONDS, 1_769),
        deliver_report_settings,
        (delivers,),
        patience=Duration.hours(6),
        event=_summary_written,
        draws_charts=True,
    ),
    # People wait for it as they deploy: one full virtual CPU. The hook waits 30 s.
    Row(
        Handler(TEMPLATE_HOOK, "Mendq: judges a queue that is about to be deployed", 10, 1_769),
        template_hook_settings,
        (),
    ),
)


def every_lambda(work: Work, code: lambda_.Code, report_code: lambda_.Code) -> dict[str, OwnLambda]:
    """Make the Lambdas of ROWS that the settings need. Return them by their handlers' names.

    Args:
        work: what they work with.
        code: the zip of all Lambdas except those that draw charts.
        report_code: the zip of the Lambdas that draw charts.
    """
    rows = [row for row in ROWS if _is_needed(row, work)]
    lambdas = {
        row.handler.name: _lambda_of(row, work.stack, report_code if row.draws_charts else code)
        for row in rows
    }
    probe = lambdas["probe"]
    probe_queue = _probe_queue(probe)
    probe.role.add_to_policy(may([PROBE_ACTION], probe_queue.queue_arn))
    for row in rows:
        called = {name: lambdas[name].function for name in row.calls}
        peers = Peers(
            owners={Owner(name): function.function_name for name, function in called.items()},
            heal_function=lambdas[HEAL.name].function.function_name,
            probe_queue_url=probe_queue.queue_url,
        )
        _set_up(lambdas[row.handler.name], row, work, peers, called)
    # Redrive is not retried: the next minute's call continues the same work.
    lambdas[Owner.REDRIVE.value].function.configure_async_invoke(
        max_event_age=Duration.seconds(60), retry_attempts=0
    )
    hook = lambdas.get(TEMPLATE_HOOK)
    if hook:
        template_hook(work.stack, hook.function, work.settings.template_hook)
    return lambdas


def _is_needed(row: Row, work: Work) -> bool:
    """Return True if the settings enable the feature that needs the Lambda."""
    if row.handler.name == TEMPLATE_HOOK:
        return work.settings.template_hook.is_on
    return work.nightly is not None or not row.needs_nightly


def _lambda_of(row: Row, scope: Construct, code: lambda_.Code) -> OwnLambda:
    """Make the Lambda, with a DLQ if callers do not wait for it."""
    if row.patience is None:
        return OwnLambda(scope, row.handler, code)
    return ParkingLambda(scope, row.handler, code, row.patience)


def _set_up(
    own_lambda: OwnLambda,
    row: Row,
    work: Work,
    peers: Peers,
    called: Mapping[str, lambda_.Function],
) -> None:
    """Give a Lambda its permissions, its environment and the rule that invokes it."""
    for grant in row.grants:
        for statement in grant(work):
            own_lambda.role.add_to_policy(statement)
    if called:
        arns = [function.function_arn for function in called.values()]
        own_lambda.role.add_to_policy(may(["lambda:InvokeFunction"], *arns))
    deliver(own_lambda.function, row.settings(work, peers))
    if row.event and isinstance(own_lambda, ParkingLambda):
        row.event(work, own_lambda)


def _probe_queue(probe: OwnLambda) -> sqs.Queue:
    """The queue that the probe sends to. It refuses every message.

    Its name is fixed: heal and the trail must know it before the queue exists.
    """
    return own_queue(
        probe,
        "Queue",
        Duration.minutes(1),
        queue_name=QUEUE_NAME,
        fifo=True,
        content_based_deduplication=False,
    )
