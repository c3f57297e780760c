"""What the scan, and the owners of single steps, call as they do their work in an account."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from mendq.aws.queue import read_queue_tags
from mendq.cases.pins import Pins
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.heal.apply import claim_and_write, create_and_attach_dlq
from mendq.heal.batch import heal_findings
from mendq.heal.gather import count_reach
from mendq.heal.outcome import Outcome
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from mendq.model.case import Case
from mendq.model.consent import Consent
from mendq.model.facts import Facts
from mendq.model.metrics import select_series
from mendq.model.mode import Mode
from mendq.model.plan import Refusal
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from mendq.model.steps import Owner, SetMessageRetention
from mendq.redrive.reads import RedriveRun
from mendq.redrive.redrive import TickOutcome, redrive
from tests.account.account import Account
from tests.account.faults import Killed
from tests.heal.operators import list_states, load_newest_case, move_case, send_decision
from tests.heal.policy_events import DEPLOYS
from tests.heal.restoring import (
    EMPTIED,
    make_policy,
    make_queue_with_emptied_policy,
    policy_of,
    restore_policy,
    set_policy,
)
from tests.infra.aws_calls import Recorded, recording
from tests.infra.case_runs import ANSWERS, MANAGED, dying, page_everybody, recorded
from tests.redrive.world import LATE, LONGEST, SYMPTOM, Redriving, redriving
from tests.scan.scanner import Scanner

DAYS_4 = 345_600
MAPPINGS = "ListEventSourceMappings"
RUNNING = {"Results": [{"Status": "RUNNING", "StartedTimestamp": 1}]}
_PASSES = {"result": "PASS", "message": "", "reasons": []}


def _dlq(account: Account) -> str:
    """A queue and its DLQ, which keeps messages too short, approved once; the latter's ARN."""
    messages = account.queue("scanned-dlq", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": messages, "maxReceiveCount": 5})
    source = account.queue("scanned", RedrivePolicy=policy, VisibilityTimeout="30")
    Pins(account.clients.dynamodb, "case_store").approve_source(messages, source)
    for each in (source, messages):
        account.clients.sqs.send_message(QueueUrl=account.url(each), MessageBody="x")
    return messages


def found(account: Account, watched: Account) -> None:
    """Heal hears everything that a scan may find, said of a queue and of its DLQ."""
    messages = _dlq(account)
    watched.later(days=1)
    for queue_arn in (messages, messages.removesuffix("-dlq")):
        names = [each.name for each in CATALOGUE if each.plan and each.detection]
        request = {"found": [{"queue_arn": queue_arn, "symptom": each} for each in names]}
        healed = heal_findings(request, watched.run())
        assert healed.error_by_message_id == {}, healed.error_by_message_id
    assert account.attributes(messages)["MessageRetentionPeriod"] == "1209600"


def scanning() -> Recorded:
    """An hour's scan in two runs, the second of which finds the first's findings.

    Both measure that a message came, which a redrive could explain.
    """
    at = datetime.now(UTC) + timedelta(hours=23)
    series = [
        {"Id": f"{key}{n}", "Timestamps": came * [at], "Values": came * [1.0]}
        for key in select_series(["every queue", "receives"])
        for n, came in enumerate(2 * [key == "visible"])
    ]
    answers = {**ANSWERS, "GetMetricData": {"MetricDataResults": series}}
    return recorded(
        answers,
        _scanned,
        pages=False,
        consent=Consent(tag_may_raise_to=Mode.HEAL, queues=("scanned*",)),
    )


def _scanned(account: Account, watched: Account) -> None:
    _dlq(account)
    watched.later(days=1)
    scans = Scanner(watched)
    looked_once = iter([900.0, 0.0])
    scans.remaining_seconds = lambda: next(looked_once, 900.0)
    with patch("mendq.scan.scan.QUEUES_PER_BLOCK", 1):
        for _ in range(2):
            scans.scan()
    assert scans.read_findings()["queues_scanned"] == 2


def restoring() -> Recorded:
    """One policy put back by a person as a run died; one stopped as one of many."""
    open_today = {"GetCalendarState": ANSWERS["GetCalendarState"]}
    answers = {**open_today, "CheckNoPublicAccess": _PASSES}
    return recorded(answers, _one_restored_of_many, _restored_too_late, **MANAGED)


def _policy_to_restore(account: Account, watched: Account) -> str:
    queue = make_queue_with_emptied_policy(account)
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=1)
    watched.now = account.now
    return queue


def _one_restored_of_many(account: Account, watched: Account) -> None:
    queue = _policy_to_restore(account, watched)
    _many_show(account, "access_denied")
    _is_stopped(restore_policy(watched, load_newest_case(account)))
    assert policy_of(account, queue) == EMPTIED


def _many_show(account: Account, symptom: str) -> list[str]:
    many = [account.queue(f"bulk-{n}", tag=None) for n in range(5)]
    account.run().case_store.note_spread(many, symptom, account.now)
    return many


def _is_stopped(outcome: Outcome) -> None:
    assert outcome.refusal is not None
    assert outcome.refusal.code == "mass_symptom", outcome.refusal


def _restored_too_late(account: Account, watched: Account) -> None:
    queue = _policy_to_restore(account, watched)
    with dying(watched):
        restore_policy(watched, load_newest_case(account))
    set_policy(account, queue, make_policy(DEPLOYS))
    watched.later(minutes=5)
    restore_policy(watched, load_newest_case(account))
    assert list_states(account)[-1] == "overridden"
    assert policy_of(account, queue) == make_policy(DEPLOYS)


def attaching() -> Recorded:
    """One queue made and attached; one overridden, as a run died; one among too many.

    What was not measured is not attached.
    """
    answers = {name: each for name, each in ANSWERS.items() if name != "GetMetricData"}
    return recorded(answers, _attached, _attached_too_late, _one_attached_of_many, **MANAGED)


def _attached(account: Account, watched: Account) -> None:
    queue = _dlq_to_attach(account)
    _attach(account, watched)
    assert list_states(account)[-1] == "applied", list_states(account)
    assert account.attributes(queue)["RedrivePolicy"]


def _attached_too_late(account: Account, watched: Account) -> None:
    """A person attached another one while a run was dying, and a page says so."""
    queue = _dlq_to_attach(account)
    with dying(account):
        _attach(account, watched, _die)
    account.later(minutes=5)
    theirs = RedrivePolicy(account.queue("theirs", tag=None), 9)
    account.clients.sqs.set_queue_attributes(
        QueueUrl=account.url(queue), Attributes={"RedrivePolicy": theirs.text}
    )
    _attach(account, watched)
    assert list_states(account)[-1] == "overridden", list_states(account)
    assert account.pages()


def _one_attached_of_many(account: Account, watched: Account) -> None:
    _dlq_to_attach(account)
    _many_show(account, "dlq_missing")
    _is_stopped(_attach(account, watched))


def _dlq_to_attach(account: Account) -> str:
    queue, scans = account.queue("orders"), Scanner(account)
    for client in (account.clients.functions, account.clients.sqs):
        events: Any = client.meta.events
        events.register("before-call", scans.answer_call)
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="poison")
    account.later(days=1)
    scans.put_metrics_of_returning_message(queue)
    scans.scan()
    scans.heal()
    send_decision(account, "approve", load_newest_case(account).case_id)
    account.later(minutes=1)
    return queue


def _attach(
    account: Account, watched: Account, write: Callable[..., Any] = create_and_attach_dlq
) -> Outcome:
    watched.now = account.now
    watched.deliveries += 100
    run = replace(watched.run(), write_steps=write, writer=Owner.ATTACH_DLQ)
    return continue_case(make_owner_request(load_newest_case(account)), run)


def _die(*_: Any) -> None:
    raise Killed


def redriven() -> Recorded:
    """One taken up, one refused on its claim, one that expires; messages sent back and kept."""
    deleted = {"Id": "deleted", "Values": [9_000.0], "Timestamps": [datetime.now(UTC)]}
    answers = {**ANSWERS, "GetMetricData": {"MetricDataResults": [deleted]}}
    noted = recording(answers)
    events: Any = noted.clients.sqs.meta.events
    for act in (_taken_up, _refused, _expired, _sent_back, _one_redriven_of_many):
        with redriving(MessageRetentionPeriod=str(DAYS_4)) as world:
            world.account.settings = replace(world.account.settings, **MANAGED)
            events.register("after-call.sqs.ReceiveMessage", world.died_here)
            answers["ListMessageMoveTasks"] = RUNNING if act is _refused else {"Results": []}
            # The other acts' consumer reads every queue: a quarantine that is read is none.
            read = {"EventSourceMappings": []} if act is _sent_back else ANSWERS[MAPPINGS]
            answers[MAPPINGS] = read
            act(world, world.run(noted.clients))
            events.unregister("after-call.sqs.ReceiveMessage", world.died_here)
    page_everybody(noted)
    return noted


def _applied(world: Redriving, run: RedriveRun) -> Case | Refusal:
    """As `continue_case` does with the plan, once the facts bear it."""
    approved = world.case(State.PROPOSED, State.APPROVED)
    steps = (world.back(), SetMessageRetention(DAYS_4, LONGEST))
    documents = tuple(each.document() for each in steps)
    case = approved.move_to(State.APPLIED, "messages wait", run.now, steps=documents)
    symptom = SYMPTOM_BY_NAME[SYMPTOM]
    assert symptom is not None
    attributes = tuple(each.attribute for each in symptom.steps)
    view = run.case_store.look(world.dlq, SYMPTOM, attributes)
    tags = read_queue_tags(run.clients, world.dlq) or {}
    facts = Facts(world.dlq, world.account.attributes(world.dlq), tags)
    return claim_and_write(case, steps, facts, view, symptom, run)


def _taken_up(world: Redriving, run: RedriveRun) -> None:
    assert isinstance(_applied(world, run), Case)
    retention = world.account.attributes(world.dlq)["MessageRetentionPeriod"]
    assert retention == str(LONGEST)


def _refused(world: Redriving, run: RedriveRun) -> None:
    refusal = _applied(world, run)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "redrive_unfit"


def _expired(world: Redriving, run: RedriveRun) -> None:
    """The facts do not bear it any more, and whoever approved it is notified."""
    case = world.case(State.PROPOSED, State.APPROVED)
    outcome = redrive(make_owner_request(case), run)
    assert outcome.case is not None
    assert outcome.case.state is State.EXPIRED
    assert world.account.pages()


def _sent_back(world: Redriving, run: RedriveRun) -> None:
    """Five of eight, the others are let go; one that comes back goes to quarantine."""
    world.bounds = LATE
    world.send(*"abcdefgh")
    case = world.case(State.APPLIED)
    redrive(make_owner_request(case), run)
    world.consume(frozenset(sorted(world.bodies(world.source))[:1]))
    ticked = redrive(make_owner_request(case), world.run(run.clients))
    assert isinstance(ticked, TickOutcome)
    assert (world.progress.moved, ticked.quarantined_count) == (5, 1), ticked
    stopped = redrive({**make_owner_request(case), "cancel": True}, world.run(run.clients))
    assert stopped.refusal is None


def _one_redriven_of_many(world: Redriving, run: RedriveRun) -> None:
    """What many queues show at once is counted against all that are managed."""
    many = _many_show(world.account, SYMPTOM)
    assert count_reach(frozenset(many), many, run).managed_queue_count >= len(many)
