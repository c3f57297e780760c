"""Record the AWS calls of the scan and of the Lambdas that own single steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from mendq.aws.queue import read_queue_tags
from mendq.cases.pins import Pins
from mendq.cases.receivers import Receivers
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.heal.apply import DlqWriter, claim_and_write
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
from tests.infra.aws_calls import CallRecorder, make_recorder
from tests.infra.case_runs import (
    ANSWERS,
    MANAGED,
    kill_at_next_write,
    notify_everyone,
    record_calls,
)
from tests.redrive.world import LATE, LONGEST, SYMPTOM, RedriveWorld, make_redrive_world
from tests.scan.scanner import Scanner

DAYS_4 = 345_600
MAPPINGS = "ListEventSourceMappings"
RUNNING = {"Results": [{"Status": "RUNNING", "StartedTimestamp": 1}]}
_PASSES = {"result": "PASS", "message": "", "reasons": []}


def make_scanned_queues(account: Account) -> str:
    """Make an encrypted queue with an approved DLQ whose retention is too short.

    Return the DLQ's ARN.
    """
    messages = account.queue("scanned-dlq", MessageRetentionPeriod="86400")
    policy = json.dumps({"deadLetterTargetArn": messages, "maxReceiveCount": 5})
    key_arn = account.clients.kms.create_key()["KeyMetadata"]["Arn"]
    source = account.queue(
        "scanned", RedrivePolicy=policy, VisibilityTimeout="30", KmsMasterKeyId=key_arn
    )
    Pins(account.clients.dynamodb, "case_store").approve_source(messages, source)
    for queue_arn in (source, messages):
        account.clients.sqs.send_message(QueueUrl=account.url(queue_arn), MessageBody="x")
    return messages


def heal_all_findings(account: Account, watched: Account) -> None:
    """Pass every finding that a scan can have to heal, for a queue and for its DLQ."""
    messages = make_scanned_queues(account)
    watched.later(days=1)
    for queue_arn in (messages, messages.removesuffix("-dlq")):
        names = [symptom.name for symptom in CATALOGUE if symptom.plan and symptom.detection]
        request = {"found": [{"queue_arn": queue_arn, "symptom": name} for name in names]}
        healed = heal_findings(request, watched.run())
        errors = healed.error_by_message_id
        # The answers have no datapoints, so consumer_stopped cannot be judged.
        assert all("the traffic of four days" in str(error) for error in errors.values()), errors
    assert account.attributes(messages)["MessageRetentionPeriod"] == "1209600"


def scanning() -> CallRecorder:
    """Record an hour's scan in two runs, the second of which reads the findings of the first.

    Both runs see messages arrive, which a redrive could explain, and receives without a delete.
    """
    at = datetime.now(UTC) + timedelta(hours=23)
    values_by_series = {"visible": [9.0], "received": [9.0], "sent": [0.0], "deleted": [0.0]}
    series = []
    for key in select_series(["every queue", "receives"]):
        values = values_by_series.get(key, [])
        for number in range(2):
            timestamps = [at for _ in values]
            series.append({"Id": f"{key}{number}", "Timestamps": timestamps, "Values": values})
    answers = {**ANSWERS, "GetMetricData": {"MetricDataResults": series}}
    return record_calls(
        answers,
        _scan_twice,
        pages=False,
        consent=Consent(tag_may_raise_to=Mode.HEAL, queues=("scanned*",)),
    )


def _scan_twice(account: Account, watched: Account) -> None:
    make_scanned_queues(account)
    watched.later(days=1)
    scans = Scanner(watched)
    looked_once = iter([900.0, 0.0])
    scans.remaining_seconds = lambda: next(looked_once, 900.0)
    with patch("mendq.scan.scan.QUEUES_PER_BLOCK", 1):
        for _ in range(2):
            scans.scan()
    assert scans.read_findings()["queues_scanned"] == 2


def restoring() -> CallRecorder:
    """Record restore_policy: one case overridden by a person, one stopped as a mass symptom."""
    open_today = {"GetCalendarState": ANSWERS["GetCalendarState"]}
    answers = {**open_today, "CheckNoPublicAccess": _PASSES}
    return record_calls(answers, _restore_one_of_many, _restore_too_late, **MANAGED)


def _policy_to_restore(account: Account, watched: Account) -> str:
    queue = make_queue_with_emptied_policy(account)
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=1)
    watched.now = account.now
    return queue


def _restore_one_of_many(account: Account, watched: Account) -> None:
    queue = _policy_to_restore(account, watched)
    _show_symptom_on_many(account, "access_denied")
    _check_mass_symptom(restore_policy(watched, load_newest_case(account)))
    assert policy_of(account, queue) == EMPTIED


def _show_symptom_on_many(account: Account, symptom: str) -> list[str]:
    many = [account.queue(f"bulk-{n}", tag=None) for n in range(5)]
    account.run().case_store.note_spread(many, symptom, account.now)
    return many


def _check_mass_symptom(outcome: Outcome) -> None:
    assert outcome.refusal is not None
    assert outcome.refusal.code == "mass_symptom", outcome.refusal


def _restore_too_late(account: Account, watched: Account) -> None:
    queue = _policy_to_restore(account, watched)
    with kill_at_next_write(watched):
        restore_policy(watched, load_newest_case(account))
    set_policy(account, queue, make_policy(DEPLOYS))
    watched.later(minutes=5)
    restore_policy(watched, load_newest_case(account))
    assert list_states(account)[-1] == "overridden"
    assert policy_of(account, queue) == make_policy(DEPLOYS)


def attaching() -> CallRecorder:
    """Record attach_dlq: one DLQ attached, one case overridden, one stopped as a mass symptom.

    Without metrics there would be no attachment.
    """
    answers = {name: answer for name, answer in ANSWERS.items() if name != "GetMetricData"}
    return record_calls(answers, _attach_a_dlq, _attach_too_late, _attach_one_of_many, **MANAGED)


def _attach_a_dlq(account: Account, watched: Account) -> None:
    queue = _make_dlq_to_attach(account)
    _attach(account, watched)
    assert list_states(account)[-1] == "applied", list_states(account)
    assert account.attributes(queue)["RedrivePolicy"]


def _attach_too_late(account: Account, watched: Account) -> None:
    """A person attached another one while a run was dying, and a page says so."""
    queue = _make_dlq_to_attach(account)
    with kill_at_next_write(account):
        _attach(account, watched, _die)
    account.later(minutes=5)
    theirs = RedrivePolicy(account.queue("theirs", tag=None), 9)
    account.clients.sqs.set_queue_attributes(
        QueueUrl=account.url(queue), Attributes={"RedrivePolicy": theirs.text}
    )
    _attach(account, watched)
    assert list_states(account)[-1] == "overridden", list_states(account)
    assert account.pages()


def _attach_one_of_many(account: Account, watched: Account) -> None:
    _make_dlq_to_attach(account)
    _show_symptom_on_many(account, "dlq_missing")
    _check_mass_symptom(_attach(account, watched))


def _make_dlq_to_attach(account: Account) -> str:
    queue = account.queue("orders")
    scans = Scanner(account)
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


def _attach(account: Account, watched: Account, write: Callable[..., Any] | None = None) -> Outcome:
    watched.now = account.now
    watched.deliveries += 100
    run = watched.run()
    attach_dlq = DlqWriter(run.open_store(Receivers), run.now).write
    run = replace(run, write_steps=write or attach_dlq, writer=Owner.ATTACH_DLQ)
    return continue_case(make_owner_request(load_newest_case(account)), run)


def _die(*_: Any) -> None:
    raise Killed


def redriving_messages() -> CallRecorder:
    """Record redrive: one started, one refused, one expired, and one that moves messages."""
    deleted = {"Id": "deleted", "Values": [9_000.0], "Timestamps": [datetime.now(UTC)]}
    answers = {**ANSWERS, "GetMetricData": {"MetricDataResults": [deleted]}}
    recorder = make_recorder(answers)
    events: Any = recorder.clients.sqs.meta.events
    for act in (
        _start_redrive,
        _refuse_redrive,
        _expire_redrive,
        _redrive_messages,
        _count_reach_of_many,
    ):
        with make_redrive_world(MessageRetentionPeriod=str(DAYS_4)) as world:
            world.account.settings = replace(world.account.settings, **MANAGED)
            events.register("after-call.sqs.ReceiveMessage", world.set_dlq_source)
            answers["ListMessageMoveTasks"] = RUNNING if act is _refuse_redrive else {"Results": []}
            # The consumer of the other acts reads every queue, also a quarantine.
            mappings = (
                {"EventSourceMappings": []} if act is _redrive_messages else ANSWERS[MAPPINGS]
            )
            answers[MAPPINGS] = mappings
            act(world, world.make_run(recorder.clients))
            events.unregister("after-call.sqs.ReceiveMessage", world.set_dlq_source)
    notify_everyone(recorder)
    return recorder


def _apply_redrive(world: RedriveWorld, run: RedriveRun) -> Case | Refusal:
    """Claim and write as `continue_case` does if the facts still support the plan."""
    approved = world.record_case(State.PROPOSED, State.APPROVED)
    steps = (world.redrive_step(), SetMessageRetention(DAYS_4, LONGEST))
    documents = tuple(step.document() for step in steps)
    case = approved.move_to(State.APPLIED, "messages wait", run.now, steps=documents)
    symptom = SYMPTOM_BY_NAME[SYMPTOM]
    assert symptom is not None
    attributes = tuple(step.attribute for step in symptom.steps)
    view = run.case_store.look(world.dlq, SYMPTOM, attributes)
    tags = read_queue_tags(run.clients, world.dlq) or {}
    facts = Facts(world.dlq, world.account.attributes(world.dlq), tags)
    return claim_and_write(case, steps, facts, view, symptom, run)


def _start_redrive(world: RedriveWorld, run: RedriveRun) -> None:
    assert isinstance(_apply_redrive(world, run), Case)
    retention = world.account.attributes(world.dlq)["MessageRetentionPeriod"]
    assert retention == str(LONGEST)


def _refuse_redrive(world: RedriveWorld, run: RedriveRun) -> None:
    refusal = _apply_redrive(world, run)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "redrive_unfit"


def _expire_redrive(world: RedriveWorld, run: RedriveRun) -> None:
    """The facts no longer support the plan, and the approver is notified."""
    case = world.record_case(State.PROPOSED, State.APPROVED)
    outcome = redrive(make_owner_request(case), run)
    assert outcome.case is not None
    assert outcome.case.state is State.EXPIRED
    assert world.account.pages()


def _redrive_messages(world: RedriveWorld, run: RedriveRun) -> None:
    """Move eight messages in two stages, quarantine one that returns, and cancel the redrive."""
    world.bounds = LATE
    world.send(*"abcdefgh")
    case = world.record_case(State.APPLIED)
    redrive(make_owner_request(case), run)
    world.consume(frozenset(sorted(world.read_bodies(world.source))[:1]))
    world.account.later(minutes=2)  # no message is looked at before the soak is over
    ticked = redrive(make_owner_request(case), world.make_run(run.clients))
    assert isinstance(ticked, TickOutcome)
    assert world.progress.moved == 8, ticked
    assert ticked.quarantined_count == 1, ticked
    stopped = redrive({**make_owner_request(case), "cancel": True}, world.make_run(run.clients))
    assert stopped.refusal is None


def _count_reach_of_many(world: RedriveWorld, run: RedriveRun) -> None:
    """Count a symptom of many queues against all managed queues."""
    many = _show_symptom_on_many(world.account, SYMPTOM)
    assert count_reach(frozenset(many), many, run).managed_queue_count >= len(many)
