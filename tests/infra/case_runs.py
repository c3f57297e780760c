"""What follow_up, approve, rollback and the probe call, as they do their work in an account."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from typing import Any

from mendq.follow_up.follow_up import follow_up
from mendq.heal.context import ask_owner, call_owner
from mendq.model.case import Case, State
from mendq.model.settings import ProbeSettings
from mendq.model.steps import STEPS
from mendq.probe.probe import QUEUE_NAME
from mendq.probe.send import send_probe
from tests.account.faults import Killed
from tests.heal.conftest import Account, moto_account
from tests.heal.operators import OWNERS, case_of, context_of, fail, say, states, undo
from tests.infra.aws_calls import Recorded, recording
from tests.infra.paging_runs import page_everybody
from tests.redrive.world import Redriving, redriving

METRICS = {"MetricDataResults": [{"Id": "deleted", "Values": [7.0]}]}


def following_up() -> Recorded:
    """One case verified; another handed over, and escalated because heal did not take it up.

    Cases of every other owner are handed over as well.
    """
    answers = {
        "GetMetricData": METRICS,
        "Invoke": {"StatusCode": 202},
        "LookupEvents": {"Events": []},
    }
    recorded = _recorded(answers, _verified, _escalated)
    for case in _of_every_owner():
        call_owner(recorded.clients, OWNERS, case)
    page_everybody(recorded)
    return recorded


def _verified(account: Account, watched: Account) -> None:
    fail(account, account.queue("verified.fifo", VisibilityTimeout="30"))
    _follow(watched, minutes=19)
    assert "verified" in states(account), states(account)


def _escalated(account: Account, watched: Account) -> None:
    queue = account.queue("escalated.fifo", VisibilityTimeout="30")
    fail(account, queue)
    account.later(minutes=40)
    fail(account, queue, "again")
    _follow(watched, minutes=41)
    _follow(watched, hours=25)
    assert len(account.pages("urgent")) == 1


def _follow(watched: Account, **later: float) -> None:
    watched.later(**later)
    assert follow_up(context_of(watched), OWNERS, lambda: 60).errors == {}


def approving() -> Recorded:
    """A proposal approved; heal's answer is not a case, so the case is read again.

    Every other owner is asked as well.
    """
    answers = {"Invoke": {"StatusCode": 200, "Payload": BytesIO(b'{"state": null}')}}
    recorded = _recorded(answers, _approved)
    for case in _of_every_owner():
        answers["Invoke"]["Payload"] = BytesIO(b"{}")
        ask_owner(recorded.clients, OWNERS, case)
    return recorded


def _of_every_owner() -> Iterator[Case]:
    """A case for each kind of step."""
    with moto_account() as account:
        fail(account, account.queue(VisibilityTimeout="30"))
        case = case_of(account)
    for kind in STEPS:
        yield replace(case, steps=({"attribute": kind.attribute},))


def _approved(account: Account, watched: Account) -> None:
    fail(account, account.queue(tag="propose", VisibilityTimeout="30"))
    assert say(watched, "approve", case_of(account).case_id)["state"] == "approved"


def rolling_back() -> Recorded:
    """One undone, one overridden, because a person came while a run was dying; one stopped."""
    answered = BytesIO(b'{"code": ""}')
    answers = {
        "LookupEvents": {"Events": []},
        "Invoke": {"StatusCode": 200, "Payload": answered},
    }
    recorded = _recorded(answers, _undone, _overridden)
    with redriving() as world:
        _stopped(world, recorded)
    page_everybody(recorded)
    return recorded


def _stopped(world: Redriving, recorded: Recorded) -> None:
    case = world.case(State.APPLIED)
    watched = replace(world.account, clients=recorded.clients, deliveries=100)
    assert undo(watched, case.case_id)["state"] == "rolled_back"


def _undone(account: Account, watched: Account) -> None:
    queue = account.queue("undone.fifo", VisibilityTimeout="30")
    fail(account, queue)
    account.later(minutes=5)
    assert undo(_now(account, watched), case_of(account).case_id)["state"] == "rolled_back"
    assert account.visibility(queue) == 30


def _overridden(account: Account, watched: Account) -> None:
    queue = account.queue("overridden.fifo", VisibilityTimeout="30")
    account.later(minutes=5)
    fail(account, queue)
    case_id = case_of(account).case_id
    with _killed_before_writing(account), suppress(Killed):
        undo(account, case_id)
    account.later(minutes=5)
    account.set_visibility(queue, 40)
    undo(_now(account, watched), case_id)
    assert states(account)[-1] == "overridden"
    assert account.visibility(queue) == 40


class _killed_before_writing:  # noqa: N801 - reads as what it does
    """The next write of an account's clients ends the process."""

    def __init__(self, account: Account) -> None:
        self._events: Any = account.clients.sqs_for_writing.meta.events

    def __enter__(self) -> None:
        self._events.register("before-call.sqs.SetQueueAttributes", self._kill)

    def __exit__(self, *_: object) -> None:
        self._events.unregister("before-call.sqs.SetQueueAttributes", self._kill)

    def _kill(self, **_: Any) -> None:
        raise Killed


def pulsing() -> Recorded:
    """Three probes, all of which are lost."""
    return _recorded({}, _lost)


def _lost(account: Account, watched: Account) -> None:
    settings = ProbeSettings(
        account.settings.account,
        case_table=account.settings.case_table,
        urgent_topic_arn=account.settings.urgent_topic_arn,
        probe_queue_url=account.url(account.queue(QUEUE_NAME, tag=None)),
    )
    for hour in range(3):
        now = account.now + timedelta(hours=hour)
        send_probe(watched.clients, settings, now, now)
    assert len(account.pages("urgent")) == 1


def _recorded(answers: dict[str, Any], *acts: Callable[[Account, Account], None]) -> Recorded:
    """What is called with the watched clients while each act goes on in an account of its own."""
    recorded = recording(answers)
    for act in acts:
        with moto_account() as account:
            act(account, replace(account, clients=recorded.clients))
    return recorded


def _now(account: Account, watched: Account) -> Account:
    return replace(watched, now=account.now, deliveries=account.deliveries + 100)
