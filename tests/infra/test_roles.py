"""Both ways: what our code calls is allowed, and what is allowed is called or has its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, partial
from io import BytesIO
from typing import Any

import pytest

from functions.aws.delivery_marks import DeliveryMarks
from functions.aws.report_bucket import ReportBucket
from functions.aws.send_report import send_report
from functions.aws.start_job import start
from functions.aws.watch_night import watch
from functions.healing.night import Roots, night
from functions.healing.night_watch import Watched
from functions.healing.nightly import night_key
from functions.healing.not_mailed import Again
from functions.report import outgoing
from functions.settings import DeliverReportSettings, StartNightSettings, WatchNightSettings
from tests.functions.aws.conftest import Account, moto_account
from tests.functions.healing.test_night_watch import event as ended
from tests.functions.report.weeks import summary as quiet_week
from tests.infra.aws_calls import Recorded, recording
from tests.infra.case_runs import approving, following_up, pulsing, rolling_back
from tests.infra.declared_actions import DECLARED
from tests.infra.named_calls import operations_named
from tests.infra.named_only import NAMED_ONLY
from tests.infra.owner_runs import attaching
from tests.infra.redrive_runs import redriven
from tests.infra.restore_runs import restoring
from tests.infra.sweep_runs import ANSWERS, found, sweeping
from tests.infra.synthesized import CALENDAR, SETTINGS, template_of


def _heal() -> Recorded:
    """A change, a proposal, too little evidence, a mass symptom, a write that fails."""
    recorded = recording(
        {**ANSWERS, "GetCalendarState": {"State": "OPEN"}, "LookupEvents": {"Events": []}}
    )
    with moto_account() as account:
        account.settings = replace(
            account.settings, queues=("bulk-*",), freeze_calendars=(CALENDAR,)
        )
        watched = replace(account, clients=recorded.clients)
        for tell in (_changed, _proposed, _waiting, _many, found, _failing):
            tell(account, watched)
    return recorded


def _changed(account: Account, watched: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    watched.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) > 30


def _proposed(account: Account, watched: Account) -> None:
    queue = account.queue("proposed.fifo", tag="propose", VisibilityTimeout="30")
    watched.heal(account.late_deletes(queue, "1", "2", "3"))
    states = [each["to"] for each in account.transitions() if each["queue_arn"] == queue]
    assert states == ["proposed"]


def _waiting(account: Account, watched: Account) -> None:
    """Evidence is kept, and dropped once it is old."""
    queue = account.queue("waiting.fifo")
    watched.heal(account.late_deletes(queue, "1"))
    assert account.ledger_items()[(queue, "evidence#lease_expired")]


def _many(account: Account, watched: Account) -> None:
    queues = [account.queue(f"bulk-{number}.fifo") for number in range(5)]
    bodies = [account.late_deletes(each, *(f"{each}-{n}" for n in range(3))) for each in queues]
    healed = watched.heal({name: body for each in bodies for name, body in each.items()})
    assert "mass_symptom" in {each.refusal.code for each in healed.mended.values() if each.refusal}


def _failing(account: Account, watched: Account) -> None:
    queue = account.queue("failing.fifo", VisibilityTimeout="30")

    def refuse(params: Any, **_: Any) -> None:
        raise ConnectionError

    watched.clients.sqs_for_writing.meta.events.register(
        "before-call.sqs.SetQueueAttributes", refuse
    )
    watched.heal(account.late_deletes(queue, "1", "2", "3"))
    assert account.visibility(queue) == 30


def _start_night() -> Recorded:
    recorded = recording({"ListJobRuns": {"jobRuns": []}, "StartJobRun": {"jobRunId": "1"}})
    function = template_of("default").only("AWS::Lambda::Function", "StartNight")
    settings = StartNightSettings.from_environment(function["Environment"]["Variables"])
    roots = Roots(settings.trail_root, settings.case_root, settings.out_root)
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)
    assert start(recorded.clients.emr, settings, night(at, roots), at) == "1"
    return recorded


def _watch_night() -> Recorded:
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)
    run = {"name": "night-2026-11-20", "state": "FAILED", "stateDetails": "any"}
    recorded = recording(
        {
            "GetJobRun": {"jobRun": {**run, "createdAt": at, "updatedAt": at}},
            "ListObjectsV2": {"Contents": [{"Key": night_key(date(2026, 11, 20))}]},
            "GetObject": {"Body": BytesIO(b"{}")},
        }
    )
    function = template_of("default").only("AWS::Lambda::Function", "WatchNight")
    settings = WatchNightSettings.from_environment(function["Environment"]["Variables"])
    told = ended(detail={"applicationId": settings.application_id})
    assert isinstance(watch(recorded.clients, settings, told), Watched)
    return recorded


def _deliver_report() -> Recorded:
    answers = {"GetObject": {"Body": BytesIO(b"{}")}, "PutObject": {"ETag": "1"}}
    recorded = recording(answers, otherwise={})
    bucket = ReportBucket(recorded.clients.s3, "reports")
    assert bucket.summary("summary/week=2026-W46/summary.json") == b"{}"
    bucket.put_page("2026-W46", "<!doctype html>")
    function = template_of("named").only("AWS::Lambda::Function", "DeliverReport")
    settings = DeliverReportSettings.from_environment(function["Environment"]["Variables"])
    marks = DeliveryMarks(
        recorded.clients.s3, "reports", "2026-W46", "run", partial(datetime.now, UTC)
    )
    report = outgoing(quiet_week(), "s3://reports/page", "us-east-1", settings.sender or "")
    again = Again("deliver", "us-east-1", "summary.json")
    delivery = send_report(recorded.clients, settings, marks, report, again)
    assert delivery.reached == (settings.topic_arn, *settings.recipients)
    return recorded


@dataclass(frozen=True)
class Lambda:
    handler: str
    role: str
    calls: Recorded

    def allowed(self) -> set[str]:
        """By whatever settings."""
        return {action for name in SETTINGS for action in _allowed(name, self.role)}


def _allowed(name: str, role: str) -> Iterator[str]:
    for statement in template_of(name).statements(role):
        if statement["Effect"] == "Allow":
            actions = statement["Action"]
            yield from [actions] if isinstance(actions, str) else actions


LAMBDAS: dict[str, tuple[str, Callable[[], Recorded]]] = {
    "heal": ("HealRole", _heal),
    "restore_policy": ("RestorePolicyRole", restoring),
    "attach_dead_letters": ("AttachDeadLettersRole", attaching),
    "redrive": ("RedriveRole", redriven),
    "start_night": ("StartNightRole", _start_night),
    "watch_night": ("WatchNightRole", _watch_night),
    "deliver_report": ("DeliverReportRole", _deliver_report),
    "follow_up": ("FollowUpRole", following_up),
    "approve": ("ApproveRole", approving),
    "roll_back": ("RollBackRole", rolling_back),
    "sweep": ("SweepRole", sweeping),
    "pulse": ("PulseRole", pulsing),
}


@cache
def _lambda(handler: str) -> Lambda:
    role, run = LAMBDAS[handler]
    return Lambda(handler, role, run())


@pytest.fixture(params=LAMBDAS)
def function(request: pytest.FixtureRequest) -> Lambda:
    return _lambda(request.param)


def test_every_call_that_its_code_names_is_made_here(function: Lambda) -> None:
    named = operations_named(function.handler)
    assert named - function.calls.operations == NAMED_ONLY[function.handler].keys()
    assert function.calls.operations <= named


def test_every_call_is_allowed(function: Lambda) -> None:
    assert function.calls.actions - function.allowed() == set()


def test_every_allowed_action_is_called_or_has_its_reason(function: Lambda) -> None:
    declared = DECLARED[function.handler].keys()
    assert function.allowed() - function.calls.actions == declared


def test_every_lambda_is_among_them() -> None:
    handlers = {
        each["Properties"]["Handler"].split(".")[-2]
        for each in template_of("default").all("AWS::Lambda::Function").values()
    }
    assert handlers == LAMBDAS.keys() == DECLARED.keys()
