"""What the Lambdas call that move cases, as they do their work in an account."""

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
from tests.infra.aws_calls import Recorded, recording
from tests.infra.called_resources import TEAMS
from tests.infra.synthesized import CALENDAR
from tests.redrive.world import redriving

# An account, and the same as the Lambda has it whose calls are noted.
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
# What moto has no answer for, or would start a container for.
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


def recorded(
    answers: Mapping[str, Any], *acts: Act, pages: bool = True, **settings: Any
) -> Recorded:
    """What is called with watched clients while each act goes on in an account of its own.

    Any run may send a page, to either topic, that another has left unsent.
    """
    noted = recording(answers)
    for act in acts:
        with moto_account() as account:
            act(account, as_watched(account, noted, **settings))
    if pages:
        page_everybody(noted)
    return noted


def as_watched(account: Account, noted: Recorded, **settings: Any) -> Account:
    account.settings = structs.replace(account.settings, **settings)
    return replace(account, clients=noted.clients, deliveries=account.deliveries + 100)


def page_everybody(noted: Recorded) -> None:
    with moto_account() as account:
        settings = structs.replace(account.settings, team_topic_arns=TEAMS)
        watched = replace(account, clients=noted.clients, settings=settings)
        notifier = make_context(watched).notifier
        for urgent, severity in ((True, "urgent"), (False, "info")):
            page = NotificationText(f"orders: {severity}", "any")
            record = NotificationRecord.create(None, severity, page, urgent=urgent, at=account.now)
            record = structs.replace(record, team="payments")
            assert notifier.send("orders", severity, record)
            assert len(account.pages(severity)) == 1


@contextmanager
def dying(account: Account) -> Iterator[None]:
    """The next write of an account's clients ends the process."""

    def kill(**_: Any) -> None:
        raise Killed

    events: Any = account.clients.sqs_for_writing.meta.events
    events.register("before-call.sqs.SetQueueAttributes", kill)
    with suppress(Killed):
        yield
    events.unregister("before-call.sqs.SetQueueAttributes", kill)


def healing(found: Act) -> Recorded:
    """A proposal, a mass symptom, and changes, of what a scan found."""
    return recorded(ANSWERS, _proposed, _many, found, **MANAGED)


def _proposed(account: Account, watched: Account) -> None:
    queue = account.queue("proposed.fifo", tag="propose", VisibilityTimeout="30")
    watched.heal(account.late_deletes(queue, "1", "2", "3"))
    assert list_states(account) == ["proposed"]


def _many(account: Account, watched: Account) -> None:
    queues = [account.queue(f"bulk-{number}.fifo") for number in range(5)]
    bodies = [account.late_deletes(each, *(f"{each}-{n}" for n in range(3))) for each in queues]
    healed = watched.heal({name: body for each in bodies for name, body in each.items()})
    assert "mass_symptom" in {
        each.refusal.code for each in healed.outcome_by_group.values() if each.refusal
    }


def following_up() -> Recorded:
    """One case handed over, and escalated because heal did not take it up.

    Cases of every other owner are handed over as well.
    """
    deleted = {"Id": "deleted", "Values": [7.0], "Timestamps": [datetime.now(UTC)]}
    answers = {**ANSWERS, "GetMetricData": {"MetricDataResults": [deleted]}}
    noted = recorded(answers, _escalated)
    for case in _of_every_owner():
        call_owner(noted.clients, OWNERS, case)
    return noted


def _escalated(account: Account, watched: Account) -> None:
    queue = account.queue("escalated.fifo", VisibilityTimeout="30")
    fail_calls(account, queue)
    account.later(minutes=40)
    fail_calls(account, queue, "again")
    _follow(watched, minutes=41)
    _follow(watched, hours=25)
    assert len(account.pages("urgent")) == 1


def _follow(watched: Account, **later: float) -> None:
    watched.later(**later)
    assert follow_up(make_context(watched), OWNERS, lambda: 60).errors == {}


def _of_every_owner() -> Iterator[Case]:
    """A case for each kind of step."""
    with moto_account() as account:
        fail_calls(account, account.queue(VisibilityTimeout="30"))
        case = load_newest_case(account)
    for kind in STEP_CLASSES:
        yield replace(case, steps=({"attribute": kind.attribute},))


def approving() -> Recorded:
    """A proposal approved; heal's answer is not a case, so the case is read again.

    Every other owner is asked as well.
    """
    answers = {"Invoke": {"StatusCode": 200, "Payload": BytesIO(b'{"state": null}')}}
    noted = recorded(answers, _approved, _source_approved, pages=False)
    for case in _of_every_owner():
        answers["Invoke"]["Payload"] = BytesIO(b"{}")
        ask_owner(noted.clients, OWNERS, case)
    return noted


def _approved(account: Account, watched: Account) -> None:
    fail_calls(account, account.queue(tag="propose", VisibilityTimeout="30"))
    assert (
        send_decision(watched, "approve", load_newest_case(account).case_id)["state"] == "approved"
    )


def _source_approved(account: Account, watched: Account) -> None:
    """A DLQ that keeps messages too short for a source that nobody has approved yet."""
    dlq = account.queue("orders-dlq", tag="propose", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": dlq, "maxReceiveCount": 5})
    account.queue("orders", tag="propose", RedrivePolicy=policy)
    found = {"queue_arn": dlq, "symptom": "dlq_retention_too_short"}
    heal_findings({"found": [found]}, account.run())
    case = load_newest_case(account)
    assert case.evidence["source"]
    assert send_decision(watched, "approve", case.case_id)["state"] == "approved"


def rolling_back() -> Recorded:
    """One undone, one overridden, because a person came while a run was dying; one stopped."""
    answered = {"StatusCode": 200, "Payload": BytesIO(b'{"code": ""}')}
    noted = recorded({"LookupEvents": {"Events": []}, "Invoke": answered}, _undone, _overridden)
    with redriving() as world:
        case = world.case(State.APPLIED)
        watched = as_watched(world.account, noted)
        assert roll_back(watched, case.case_id)["state"] == "rolled_back"
    return noted


def _undone(account: Account, watched: Account) -> None:
    queue = account.queue("undone.fifo", VisibilityTimeout="30")
    fail_calls(account, queue)
    watched.later(minutes=5)
    assert roll_back(watched, load_newest_case(account).case_id)["state"] == "rolled_back"
    assert account.visibility(queue) == 30


def _overridden(account: Account, watched: Account) -> None:
    queue = account.queue("overridden.fifo", VisibilityTimeout="30")
    account.later(minutes=5)
    fail_calls(account, queue)
    case_id = load_newest_case(account).case_id
    with dying(account):
        roll_back(account, case_id)
    account.set_visibility(queue, 40)
    watched.later(minutes=10)
    roll_back(watched, case_id)
    assert list_states(account)[-1] == "overridden"
    assert account.visibility(queue) == 40


def probing() -> Recorded:
    """Three probes, all of which are lost."""
    return recorded({}, _lost, pages=False)


def _lost(account: Account, watched: Account) -> None:
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
