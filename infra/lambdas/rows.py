"""The table of Lambdas: one row for each, with its code, settings, grants and rules.

`make_lambdas` makes the Lambdas of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct
from msgspec import Struct

from infra.lambdas.environment import (
    PeerLambdas,
    make_deliver_report_settings,
    make_follow_up_settings,
    make_operator_settings,
    make_owner_settings,
    make_probe_settings,
    make_redrive_settings,
    make_scan_settings,
    make_start_nightly_settings,
    make_template_hook_settings,
    make_watch_nightly_settings,
)
from infra.lambdas.grants import (
    FactReadsGrant,
    Grant,
    StackResources,
    StepsGrant,
    allow_case_queries,
    allow_case_writes,
    allow_finding_writes,
    allow_freeze_checks,
    allow_job_checks,
    allow_job_starts,
    allow_notifications,
    allow_open_case_list,
    allow_probe_records,
    allow_report_delivery,
    allow_seal_keys,
    allow_table_sharing,
    allow_transition_events,
)
from infra.lambdas.lambda_function import AsyncLambda, Handler, OwnLambda, set_environment
from infra.own_queues import make_queue
from infra.queue_grants import (
    HEAL_READ_ACTIONS,
    SCAN_READ_ACTIONS,
    list_owned_steps,
    list_owner_read_actions,
    list_undoable_steps,
)
from infra.roles import allow
from infra.template_hook import add_template_hook
from mendq.model.facts import (
    FOLLOW_UP_READ_ACTIONS,
    POLICY_CHECK_ACTIONS,
    ROLLBACK_READ_ACTIONS,
    ReadAction,
)
from mendq.model.settings import LambdaSettings
from mendq.model.steps import PROBE_ACTION, Owner
from mendq.nightly.outcome import EMR_DETAIL_TYPE, EMR_EVENT_SOURCE, STATES_OF_ENDED_RUNS
from mendq.probe.probe import PROBE_QUEUE_NAME

WEEK_SUMMARY_KEY_PATTERN = "summary/week=*/summary.json"
DELIVER_REPORT_TIMEOUT_SECONDS = 120
TEMPLATE_HOOK_HANDLER_NAME = "template_hook"
_OWNER_HANDLER_NAMES = tuple(owner.value for owner in Owner)


def _list_owner_grants(
    owner: Owner, read_actions: frozenset[ReadAction] | None = None
) -> tuple[Grant, ...]:
    """Return the grants that an owner of writes needs.

    Args:
        owner: the Lambda that owns the writes.
        read_actions: the AWS calls with which the Lambda reads facts; None for those of all
            symptoms that plan a step of this owner.
    """
    return (
        allow_case_writes,
        allow_freeze_checks,
        allow_notifications,
        FactReadsGrant(list_owner_read_actions(owner) if read_actions is None else read_actions),
        StepsGrant(list_owned_steps(owner)),
    )


class LambdaRow(Struct, frozen=True):
    """A Lambda of the stack.

    Attributes:
        handler: the code that the Lambda runs.
        make_settings: returns the settings that the Lambda reads from its environment variables.
        grants: the grants of the Lambda's role.
        retry_time: how long Lambda retries an asynchronous invocation before the event goes to the
            Lambda's DLQ; None if the Lambda has no DLQ, because its callers wait for the answer or,
            as with redrive, invoke it again.
        called_handler_names: names of the handlers of the Lambdas that this Lambda invokes.
        add_rule: adds the EventBridge rule that invokes this Lambda; None if there is no such rule.
        needs_nightly_job: True if the Lambda exists only if the nightly job is enabled.
        draws_charts: True if the Lambda needs the packages that draw charts.
    """

    handler: Handler
    make_settings: Callable[[StackResources, PeerLambdas], LambdaSettings]
    grants: tuple[Grant, ...]
    retry_time: Duration | None = None
    called_handler_names: tuple[str, ...] = ()
    add_rule: Callable[[StackResources, AsyncLambda], None] | None = None
    needs_nightly_job: bool = False
    draws_charts: bool = False


def _add_run_ended_rule(resources: StackResources, watch_nightly: AsyncLambda) -> None:
    """Add the rule that invokes watch_nightly when a job run of Mendq's EMR application ends.

    An event that is not delivered within six hours goes to the DLQ. Then the alarm on this DLQ
    rings, and later the one on missing nightly runs.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
    """
    watch_nightly.invoke_on_event(
        "RunEnded",
        "A job run of Mendq's application ended",
        Duration.hours(6),
        events.EventPattern(
            source=[EMR_EVENT_SOURCE],
            detail_type=[EMR_DETAIL_TYPE],
            detail={
                "applicationId": [resources.job.application.attr_application_id],
                "state": list(STATES_OF_ENDED_RUNS),
            },
        ),
    )


def _add_summary_written_rule(resources: StackResources, deliver_report: AsyncLambda) -> None:
    """Add the rule that invokes deliver_report when the summary of a week is written.

    A report that is a day late is still useful, so EventBridge retries for a day.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/EventBridge.html
    """
    deliver_report.invoke_on_event(
        "SummaryWritten",
        "A week's summary was written to Mendq's report bucket",
        Duration.hours(24),
        events.EventPattern(
            source=["aws.s3"],
            detail_type=["Object Created"],
            detail={
                "bucket": {"name": [resources.buckets.reports.bucket_name]},
                "object": {"key": [{"wildcard": WEEK_SUMMARY_KEY_PATTERN}]},
            },
        ),
    )


HEAL_HANDLER = Handler("heal", "Mendq: fixes the queue that a failed SQS call names", 60, 512)
LAMBDA_ROWS = (
    LambdaRow(
        HEAL_HANDLER,
        make_owner_settings,
        (*_list_owner_grants(Owner.HEAL, HEAL_READ_ACTIONS), allow_case_queries),
    ),
    LambdaRow(
        Handler("attach_dlq", "Mendq: makes and attaches DLQs", 60, 512),
        make_owner_settings,
        (*_list_owner_grants(Owner.ATTACH_DLQ), allow_case_queries),
    ),
    # IAM Access Analyzer checks the policy before restore_policy writes it, and once afterwards.
    LambdaRow(
        Handler("restore_policy", "Mendq: puts a queue's pinned policy back", 60, 512),
        make_owner_settings,
        _list_owner_grants(
            Owner.RESTORE_POLICY,
            list_owner_read_actions(Owner.RESTORE_POLICY).union(POLICY_CHECK_ACTIONS),
        ),
    ),
    # Redrive holds thousands of messages in memory.
    LambdaRow(
        Handler("redrive", "Mendq: sends DLQ messages back, a few first", 60, 1_024),
        make_redrive_settings,
        (*_list_owner_grants(Owner.REDRIVE), allow_case_queries, allow_seal_keys),
    ),
    # follow_up writes no queue: it calls the owner of the write. It runs each minute, so after five
    # minutes of retries later runs have followed up the same cases.
    LambdaRow(
        Handler("follow_up", "Mendq: verifies, watches and closes open cases", 60, 512),
        make_follow_up_settings,
        (
            allow_case_writes,
            allow_transition_events,
            allow_notifications,
            allow_open_case_list,
            FactReadsGrant(FOLLOW_UP_READ_ACTIONS),
        ),
        retry_time=Duration.minutes(5),
        called_handler_names=_OWNER_HANDLER_NAMES,
    ),
    # Operators invoke approve and rollback. Both wait for the Lambda that owns the write, or that
    # works on the case, and record the case before and after.
    LambdaRow(
        Handler("approve", "Mendq: takes a person's decision on a case", 90, 512),
        make_operator_settings,
        (allow_case_writes, allow_case_queries),
        called_handler_names=_OWNER_HANDLER_NAMES,
    ),
    LambdaRow(
        Handler(
            "rollback", "Mendq: undoes what it changed, where nobody changed it since", 90, 512
        ),
        make_operator_settings,
        (
            allow_case_writes,
            allow_notifications,
            allow_case_queries,
            FactReadsGrant(ROLLBACK_READ_ACTIONS),
            StepsGrant(list_undoable_steps()),
        ),
        called_handler_names=(Owner.REDRIVE.value,),
    ),
    # The scan runs for up to 15 minutes, Lambda's longest timeout. The next run continues with the
    # queues that are left. It changes no case: it invokes heal with its findings.
    LambdaRow(
        Handler("scan", "Mendq: scans managed queues for what makes no call fail", 900, 1_024),
        make_scan_settings,
        (
            allow_finding_writes,
            allow_open_case_list,
            allow_case_queries,
            FactReadsGrant(SCAN_READ_ACTIONS),
        ),
        retry_time=Duration.minutes(10),
        called_handler_names=(HEAL_HANDLER.name,),
    ),
    # The rule of failed calls does not exclude the probe's role: Mendq must see the probe's call.
    # After ten minutes the next probe is due soon, so a late one is useless.
    LambdaRow(
        Handler("probe", "Mendq: sends a failing call that heal has to see", 30, 256),
        make_probe_settings,
        (allow_probe_records,),
        retry_time=Duration.minutes(10),
    ),
    LambdaRow(
        Handler("start_nightly", "Mendq: starts the nightly and the weekly job", 60, 256),
        make_start_nightly_settings,
        (allow_job_starts,),
        retry_time=Duration.hours(1),
        needs_nightly_job=True,
    ),
    LambdaRow(
        Handler(
            "watch_nightly",
            "Mendq: checks nightly runs that ended, and counts what failed or read too little",
            60,
            256,
        ),
        make_watch_nightly_settings,
        (allow_job_checks, allow_table_sharing),
        retry_time=Duration.hours(6),
        add_rule=_add_run_ended_rule,
        needs_nightly_job=True,
    ),
    # Drawing charts needs much computing, so the memory is the size that gives one whole vCPU.
    # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
    LambdaRow(
        Handler(
            "deliver_report",
            "Mendq: delivers the weekly report",
            DELIVER_REPORT_TIMEOUT_SECONDS,
            1_769,
        ),
        make_deliver_report_settings,
        (allow_report_delivery,),
        retry_time=Duration.hours(6),
        add_rule=_add_summary_written_rule,
        draws_charts=True,
    ),
    # People wait for it while they deploy, so it has one whole vCPU. CloudFormation waits 30 s.
    LambdaRow(
        Handler(
            TEMPLATE_HOOK_HANDLER_NAME,
            "Mendq: judges a queue that is about to be deployed",
            10,
            1_769,
        ),
        make_template_hook_settings,
        (),
    ),
)


def make_lambdas(
    resources: StackResources, code: lambda_.Code, report_code: lambda_.Code
) -> dict[str, OwnLambda]:
    """Make the Lambdas of LAMBDA_ROWS that the settings need.

    Return them by the names of their handlers.

    Args:
        resources: resources and settings that the Lambdas work with.
        code: the zip of all Lambdas except those that draw charts.
        report_code: the zip of the Lambdas that draw charts.
    """
    needed_rows = [row for row in LAMBDA_ROWS if _is_needed(row, resources)]
    lambda_by_handler: dict[str, OwnLambda] = {}
    for row in needed_rows:
        row_code = report_code if row.draws_charts else code
        lambda_by_handler[row.handler.name] = _make_lambda(row, resources.stack, row_code)
    probe_lambda = lambda_by_handler["probe"]
    probe_queue = _make_probe_queue(probe_lambda)
    probe_lambda.role.add_to_policy(allow([PROBE_ACTION], probe_queue.queue_arn))
    for row in needed_rows:
        function_by_handler = {
            name: lambda_by_handler[name].function for name in row.called_handler_names
        }
        peer_lambdas = PeerLambdas(
            function_name_by_owner={
                Owner(name): function.function_name
                for name, function in function_by_handler.items()
            },
            heal_function_name=lambda_by_handler[HEAL_HANDLER.name].function.function_name,
            probe_queue_url=probe_queue.queue_url,
        )
        _configure_lambda(
            lambda_by_handler[row.handler.name], row, resources, peer_lambdas, function_by_handler
        )
    # Lambda does not retry redrive: follow_up invokes it again in the next minute.
    lambda_by_handler[Owner.REDRIVE.value].function.configure_async_invoke(
        max_event_age=Duration.seconds(60), retry_attempts=0
    )
    hook_lambda = lambda_by_handler.get(TEMPLATE_HOOK_HANDLER_NAME)
    if hook_lambda:
        add_template_hook(resources.stack, hook_lambda.function, resources.settings.template_hook)
    return lambda_by_handler


def _is_needed(row: LambdaRow, resources: StackResources) -> bool:
    """Return True if the settings enable the feature that the Lambda belongs to."""
    if row.handler.name == TEMPLATE_HOOK_HANDLER_NAME:
        return resources.settings.template_hook.is_on
    return resources.nightly is not None or not row.needs_nightly_job


def _make_lambda(row: LambdaRow, scope: Construct, code: lambda_.Code) -> OwnLambda:
    """Make the Lambda of a row, with a DLQ if the row has a `retry_time`."""
    if row.retry_time is None:
        return OwnLambda(scope, row.handler, code)
    return AsyncLambda(scope, row.handler, code, row.retry_time)


def _configure_lambda(
    own_lambda: OwnLambda,
    row: LambdaRow,
    resources: StackResources,
    peer_lambdas: PeerLambdas,
    function_by_handler: Mapping[str, lambda_.Function],
) -> None:
    """Give a Lambda its permissions, its environment variables and the rule that invokes it.

    `function_by_handler` contains the functions that the Lambda invokes, by the names of their
    handlers.
    """
    for grant in row.grants:
        for statement in grant(resources):
            own_lambda.role.add_to_policy(statement)
    if function_by_handler:
        called_function_arns = [function.function_arn for function in function_by_handler.values()]
        own_lambda.role.add_to_policy(allow(["lambda:InvokeFunction"], *called_function_arns))
    set_environment(own_lambda.function, row.make_settings(resources, peer_lambdas))
    if row.add_rule and isinstance(own_lambda, AsyncLambda):
        row.add_rule(resources, own_lambda)


def _make_probe_queue(probe_lambda: OwnLambda) -> sqs.Queue:
    """Make the queue that the probe sends to.

    Every probe fails, because it is a FIFO queue without content-based deduplication and the
    probe gives no deduplication id. The name is fixed, because heal and the trail must know it
    before the queue exists.
    """
    return make_queue(
        probe_lambda,
        "Queue",
        Duration.minutes(1),
        queue_name=PROBE_QUEUE_NAME,
        fifo=True,
        content_based_deduplication=False,
    )
