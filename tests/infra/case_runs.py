"""Record the AWS calls of the Lambdas that move cases, while they work in an account in moto."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

from msgspec import structs

from mendq.follow_up.follow_up import follow_up
from mendq.heal.batch import heal_findings
from mendq.heal.owners import ask_owner, call_owner
from mendq.model.case import Case
from mendq.model.consent import Consent
from mendq.model.mode import Mode
from mendq.model.settings import ProbeSettings
from mendq.model.state import State
from mendq.model.steps import STEP_CLASSES
from mendq.notifications.sent import NotificationRecord, NotificationText
from mendq.probe.probe import PROBE_QUEUE_NAME
from mendq.probe.send import send_probe
from tests.account.account import Account, moto_account
from tests.account.faults import Killed
from tests.heal.operators import (
    OWNERS,
    fail_calls,
    list_states,
    load_newest_case,
    make_context,
    roll_back,
    send_decision,
)
from tests.infra.aws_calls import CallRecorder, make_recorder
from tests.infra.called_resources import TEAMS
from tests.infra.synthesized import CALENDAR
from tests.redrive.world import make_redrive_world

# A function that works in an account. The second argument is the same account with recorded calls.
Act = Callable[[Account, Account], None]
MANAGED: Mapping[str, Any] = {
    "consent": Consent(tag_may_raise_to=Mode.HEAL, queues=("bulk-*",)),
    "freeze_calendars": (CALENDAR,),
}
CONSUMER = "arn:aws:lambda:us-east-1:123456789012:function:consumer"
_MAPPING = {
    "State": "Enabled",
    "FunctionArn": CONSUMER,
    "EventSourceArn": "arn:aws:sqs:us-east-1:123456789012:scanned",
    "ScalingConfig": {"MaximumConcurrency": 5},
}
# Answers that moto cannot give, or would start a container for.
ANSWERS: Mapping[str, Any] = {
    "GetCalendarState": {"State": "OPEN"},
    "LookupEvents": {"Events": []},
    "ListEventSourceMappings": {"EventSourceMappings": [_MAPPING]},
    "GetFunctionConfiguration": {"FunctionName": "consumer", "Timeout": 60},
    "GetMetricData": {"MetricDataResults": []},
    "GetFunctionConcurrency": {"ReservedConcurrentExecutions": 5},
    "ListMessageMoveTasks": {"Results": []},
    "Invoke": {"StatusCode": 202},
}


def record_calls(
    answers: Mapping[str, Any], *acts: Act, pages: bool = True, **settings: Any
) -> CallRecorder:
    """Record the calls of each act, which works in an account of its own.

    With `pages`, also record unsent notifications to every topic, which any run may have to send.
    """
    recorder = make_recorder(answers)
    for act in acts:
        with moto_account() as account:
            act(account, make_watched_account(account, recorder, **settings))
    if pages:
        notify_everyone(recorder)
    return recorder


def make_watched_account(account: Account, recorder: CallRecorder, **settings: Any) -> Account:
    account.settings = structs.replace(account.settings, **settings)
    return replace(account, clients=recorder.clients, deliveries=account.deliveries + 100)


def notify_everyone(recorder: CallRecorder) -> None:
    with moto_account() as account:
        settings = structs.replace(account.settings, team_topic_arns=TEAMS)
        watched = replace(account, clients=recorder.clients, settings=settings)
        notifier = make_context(watched).notifier
        for urgent, severity in ((True, "urgent"), (False, "info")):
            text = NotificationText(f"orders: {severity}", "any")
            record = NotificationRecord.create(None, severity, text, urgent=urgent, at=account.now)
            record = structs.replace(record, team="payments")
            assert notifier.send("orders", severity, record)
            assert len(account.pages(severity)) == 1


@contextmanager
def kill_at_next_write(account: Account) -> Iterator[None]:
    """Kill the process at the next write of the account's clients."""

    def kill(**_: Any) -> None:
        raise Killed

    events: Any = account.clients.sqs_for_writing.meta.events
    events.register("before-call.sqs.SetQueueAttributes", kill)
    with suppress(Killed):
        yield
    events.unregister("before-call.sqs.SetQueueAttributes", kill)


def healing(found: Act) -> CallRecorder:
    """Record heal: a proposal, a mass symptom, and changes after a scan."""
    return record_calls(ANSWERS, _propose_a_fix, _fail_many_queues, found, **MANAGED)


def _propose_a_fix(account: Account, watched: Account) -> None:
    queue = account.queue("proposed.fifo", tag="propose", VisibilityTimeout="30")
    watched.heal(account.late_deletes(queue, "1", "2", "3"))
    assert list_states(account) == ["proposed"]


def _fail_many_queues(account: Account, watched: Account) -> None:
    queues = [account.queue(f"bulk-{number}.fifo") for number in range(5)]
    bodies: dict[str, str] = {}
    for queue in queues:
        bodies |= account.late_deletes(queue, *(f"{queue}-{n}" for n in range(3)))
    result = watched.heal(bodies)
    assert "mass_symptom" in {
        outcome.refusal.code for outcome in result.outcome_by_group.values() if outcome.refusal
    }


def following_up() -> CallRecorder:
    """Record follow_up: one case is passed to heal and escalated because heal does not act.

    Cases of all other owners are passed on as well.
    """
    deleted = {"Id": "deleted", "Values": [7.0], "Timestamps": [datetime.now(UTC)]}
    answers = {**ANSWERS, "GetMetricData": {"MetricDataResults": [deleted]}}
    recorder = record_calls(answers, _escalate_a_case)
    for case in _make_case_of_each_owner():
        call_owner(recorder.clients, OWNERS, case)
    return recorder


def _escalate_a_case(account: Account, watched: Account) -> None:
    queue = account.queue("escalated.fifo", VisibilityTimeout="30")
    fail_calls(account, queue)
    account.later(minutes=40)
    fail_calls(account, queue, "again")
    _run_follow_up(watched, minutes=41)
    _run_follow_up(watched, hours=25)
    assert len(account.pages("urgent")) == 1


def _run_follow_up(watched: Account, **later: float) -> None:
    watched.later(**later)
    assert follow_up(make_context(watched), OWNERS, lambda: 60).errors == {}


def _make_case_of_each_owner() -> Iterator[Case]:
    """Yield a case for each kind of step."""
    with moto_account() as account:
        fail_calls(account, account.queue(VisibilityTimeout="30"))
        case = load_newest_case(account)
    for kind in STEP_CLASSES:
        yield replace(case, steps=({"attribute": kind.attribute},))


def approving() -> CallRecorder:
    """Record approve: heal's answer is no case, so the case is read again.

    All other owners are asked as well.
    """
    answers = {"Invoke": {"StatusCode": 200, "Payload": BytesIO(b'{"state": null}')}}
    recorder = record_calls(answers, _approve_a_fix, _approve_a_dlq_source, pages=False)
    for case in _make_case_of_each_owner():
        answers["Invoke"]["Payload"] = BytesIO(b"{}")
        ask_owner(recorder.clients, OWNERS, case)
    return recorder


def _approve_a_fix(account: Account, watched: Account) -> None:
    fail_calls(account, account.queue(tag="propose", VisibilityTimeout="30"))
    assert (
        send_decision(watched, "approve", load_newest_case(account).case_id)["state"] == "approved"
    )


def _approve_a_dlq_source(account: Account, watched: Account) -> None:
    """The DLQ's retention is too short, and nobody has approved its source queue yet."""
    dlq = account.queue("orders-dlq", tag="propose", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": dlq, "maxReceiveCount": 5})
    account.queue("orders", tag="propose", RedrivePolicy=policy)
    finding = {"queue_arn": dlq, "symptom": "dlq_retention_too_short"}
    heal_findings({"found": [finding]}, account.run())
    case = load_newest_case(account)
    assert case.evidence["source"]
    assert send_decision(watched, "approve", case.case_id)["state"] == "approved"


def rolling_back() -> CallRecorder:
    """Record rollback: one fix undone, one overridden by a person, one redrive stopped."""
    answered = {"StatusCode": 200, "Payload": BytesIO(b'{"code": ""}')}
    recorder = record_calls(
        {"LookupEvents": {"Events": []}, "Invoke": answered}, _undo_a_fix, _override_an_undo
    )
    with make_redrive_world() as world:
        case = world.record_case(State.APPLIED)
        watched = make_watched_account(world.account, recorder)
        assert roll_back(watched, case.case_id)["state"] == "rolled_back"
    return recorder


def _undo_a_fix(account: Account, watched: Account) -> None:
    queue = account.queue("undone.fifo", VisibilityTimeout="30")
    fail_calls(account, queue)
    watched.later(minutes=5)
    assert roll_back(watched, load_newest_case(account).case_id)["state"] == "rolled_back"
    assert account.visibility(queue) == 30


def _override_an_undo(account: Account, watched: Account) -> None:
    queue = account.queue("overridden.fifo", VisibilityTimeout="30")
    account.later(minutes=5)
    fail_calls(account, queue)
    case_id = load_newest_case(account).case_id
    with kill_at_next_write(account):
        roll_back(account, case_id)
    account.set_visibility(queue, 40)
    watched.later(minutes=10)
    roll_back(watched, case_id)
    assert list_states(account)[-1] == "overridden"
    assert account.visibility(queue) == 40


def probing() -> CallRecorder:
    """Record probe: three probes, all lost."""
    return record_calls({}, _lose_three_probes, pages=False)


def _lose_three_probes(account: Account, watched: Account) -> None:
    settings = ProbeSettings(
        account.settings.account,
        case_table=account.settings.case_table,
        urgent_topic_arn=account.settings.urgent_topic_arn,
        probe_queue_url=account.url(account.queue(PROBE_QUEUE_NAME, tag=None)),
    )
    for hour in range(3):
        now = account.now + timedelta(hours=hour)
        send_probe(watched.clients, settings, now, now)
    assert len(account.pages("urgent")) == 1
