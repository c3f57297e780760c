"""What redrive calls, as it takes up a case, ticks and stops in an account."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.aws.queue import tags_of
from mendq.heal.apply import apply
from mendq.heal.context import request_about
from mendq.heal.recover import symptom_known_as
from mendq.model.case import Case, State
from mendq.model.facts import Facts
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import SetMessageRetention
from mendq.redrive.messages import REDRIVE_COUNT
from mendq.redrive.reads import RedriveRun
from mendq.redrive.redrive import Ticked, redrive
from tests.infra.aws_calls import Recorded, recording
from tests.infra.paging_runs import page_everybody
from tests.infra.scan_runs import ANSWERS
from tests.infra.synthesized import CALENDAR
from tests.redrive.world import LONGEST, SYMPTOM, Redriving, redriving

DAYS_4 = 345_600
MAPPINGS = "ListEventSourceMappings"
RUNNING = {"Results": [{"Status": "RUNNING", "StartedTimestamp": 1}]}


def redriven() -> Recorded:
    """One taken up, one refused on its claim, one that expires; messages sent back and kept."""
    answers: dict[str, Any] = {
        **ANSWERS,
        "GetCalendarState": {"State": "OPEN"},
        "LookupEvents": {"Events": []},
        "GetMetricData": {"MetricDataResults": [{"Id": "deleted", "Values": [9_000.0]}]},
    }
    recorded = recording(answers)
    for act in (_taken_up, _refused, _expired, _sent_back, _one_of_many):
        with redriving(MessageRetentionPeriod=str(DAYS_4)) as world:
            world.account.settings = replace(
                world.account.settings, queues=("bulk-*",), freeze_calendars=(CALENDAR,)
            )
            events: Any = recorded.clients.sqs.meta.events
            events.register("after-call.sqs.ReceiveMessage", world.died_here)
            answers["ListMessageMoveTasks"] = RUNNING if act is _refused else {"Results": []}
            # The other acts' consumer reads every queue: a quarantine that is read is none.
            read = {"EventSourceMappings": []} if act is _sent_back else ANSWERS[MAPPINGS]
            answers[MAPPINGS] = read
            act(world, recorded)
            events.unregister("after-call.sqs.ReceiveMessage", world.died_here)
    page_everybody(recorded)
    return recorded


def _applied(world: Redriving, run: RedriveRun) -> Case | Refusal:
    """As `take_up` does with the plan, once the facts bear it."""
    approved = world.case(State.PROPOSED, State.APPROVED)
    steps = (world.back(), SetMessageRetention(DAYS_4, LONGEST))
    documents = tuple(each.document() for each in steps)
    case = approved.moved(State.APPLIED, "messages wait", run.now, steps=documents)
    symptom = symptom_known_as(SYMPTOM)
    assert symptom is not None
    attributes = tuple(each.attribute for each in symptom.steps)
    view = run.case_store.look(world.dlq, SYMPTOM, attributes)
    tags = tags_of(run.clients, world.dlq) or {}
    facts = Facts(world.dlq, world.account.attributes(world.dlq), tags)
    return apply(case, Plan(steps, "messages wait"), facts, view, symptom, run)


def _taken_up(world: Redriving, recorded: Recorded) -> None:
    case = _applied(world, world.run(recorded.clients))
    assert isinstance(case, Case), case
    retention = world.account.attributes(world.dlq)["MessageRetentionPeriod"]
    assert retention == str(LONGEST)


def _refused(world: Redriving, recorded: Recorded) -> None:
    refusal = _applied(world, world.run(recorded.clients))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "redrive_unfit"


def _expired(world: Redriving, recorded: Recorded) -> None:
    """The facts do not bear it any more, and whoever approved it is notified."""
    case = world.case(State.PROPOSED, State.APPROVED)
    outcome = redrive(request_about(case), world.run(recorded.clients))
    assert outcome.case is not None
    assert outcome.case.state is State.EXPIRED
    assert world.account.pages()


def _sent_back(world: Redriving, recorded: Recorded) -> None:
    """Five of eight, the others are let go; one that came back before goes to quarantine."""
    world.send(*"abcdefgh")
    world.account.clients.sqs.send_message(
        QueueUrl=world.account.url(world.dlq),
        MessageBody="poison",
        MessageAttributes={REDRIVE_COUNT: {"DataType": "Number", "StringValue": "1"}},
    )
    case = world.case(State.APPLIED)
    ticked = redrive(request_about(case), world.run(recorded.clients))
    assert isinstance(ticked, Ticked)
    assert (ticked.redriven, ticked.quarantined) == (5, 1), ticked
    stopped = redrive({**request_about(case), "cancel": True}, world.run(recorded.clients))
    assert stopped.refusal is None


def _one_of_many(world: Redriving, recorded: Recorded) -> None:
    """What many queues show at once is counted against all that are managed."""
    many = [world.account.queue(f"bulk-{n}", tag=None) for n in range(5)]
    reach = world.run(recorded.clients).reach(frozenset(many), many)
    assert reach.managed_queues >= len(many)
