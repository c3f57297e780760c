"""`mendq drill`: make real calls fail on a new queue, and measure how long Mendq takes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from msgspec import Struct, field
from rich.text import Text

from mendq.cases.table import CaseStore, OpenCases
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.cli.commands import CASES, INVOKE, QUEUE, SETTINGS, TRAILS, Kind, command
from mendq.cli.deploy import record_failed_calls
from mendq.cli.deploy.drill_queue import (
    LATE_CALL,
    LATE_CALLS,
    VISIBILITY_SECONDS,
    DrillQueue,
    make_drill_queue,
)
from mendq.cli.doctor.check import Status, run_checks
from mendq.cli.doctor.visibility import Trail, check_trails, select_logged_calls
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.interrupts import treat_signals_as_interrupts
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.output import Yes, confirm, make_table
from mendq.heal.approve import DECISIONS
from mendq.model.case import Case, State
from mendq.model.mode import Mode
from mendq.model.queue import arn_of_name
from mendq.model.tags import DRILL_QUEUE, MODE_TAG

PAUSE_SECONDS = 0.5
DEFAULT_MINUTES = 20.0
T = TypeVar("T")
# The state of the drill's case at the end of the test, by how far Mendq may go.
_EXPECTED_STATE = {
    Mode.HEAL: State.APPLIED,
    Mode.PROPOSE: State.PROPOSED,
    Mode.OBSERVE: State.OBSERVED,
}
_EXPECTED_TEXT = {
    Mode.HEAL: "changes the queue: timed until the change is read back",
    Mode.PROPOSE: "only proposes: timed until the case is proposed",
    Mode.OBSERVE: "only observes: timed until the case is observed",
}
# Decisions that end a case without a change to the queue. The first that its state allows is taken.
_ENDING_DECISIONS = ("close", "decline")
_QUEUE = "A name that the trail's selectors cover; .fifo at its end."
_TAGS = {MODE_TAG: str(Mode.HEAL)}
_RECORD = "Instead save what CloudTrail writes of failed calls; needs no stack."
_QUEUE_ACTIONS = (
    "sqs:CreateQueue",
    "sqs:DeleteMessage",
    "sqs:DeleteQueue",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
    "sqs:TagQueue",
)
# The actions on the drill's own queue, with the resources that the IAM policy allows them on.
_ON_OWN_QUEUE = dict.fromkeys(_QUEUE_ACTIONS, ("arn:aws:sqs:REGION:ACCOUNT:mendq-drill-*",))


_RECORD_PREFIX = record_failed_calls.PREFIX
_HERE = "REGION:ACCOUNT"
# The IAM policy of --record: actions by resource. No command that steers Mendq needs it.
# All other KMS rights come from the policy of the run's own key.
RECORDING: dict[str, list[str]] = {
    f"arn:aws:sqs:{_HERE}:{_RECORD_PREFIX}*": [
        "sqs:ChangeMessageVisibility",
        "sqs:CreateQueue",
        "sqs:DeleteMessage",
        "sqs:DeleteQueue",
        "sqs:GetQueueAttributes",
        "sqs:ListQueueTags",
        "sqs:ReceiveMessage",
        "sqs:SendMessage",
        "sqs:TagQueue",
    ],
    f"arn:aws:s3:::{_RECORD_PREFIX}*": [
        "s3:CreateBucket",
        "s3:DeleteBucket",
        "s3:DeleteObject",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutBucketPolicy",
    ],
    f"arn:aws:cloudtrail:{_HERE}:trail/{_RECORD_PREFIX}*": [
        "cloudtrail:CreateTrail",
        "cloudtrail:DeleteTrail",
        "cloudtrail:PutEventSelectors",
        "cloudtrail:StartLogging",
    ],
    f"arn:aws:events:{_HERE}:rule/{_RECORD_PREFIX}*": [
        "events:DeleteRule",
        "events:PutRule",
        "events:PutTargets",
        "events:RemoveTargets",
    ],
    f"arn:aws:sns:{_HERE}:{_RECORD_PREFIX}*": [
        "sns:CreateTopic",
        "sns:DeleteTopic",
        "sns:Publish",
        "sns:Subscribe",
    ],
    f"arn:aws:iam::ACCOUNT:role/{_RECORD_PREFIX}*": [
        "iam:CreateRole",
        "iam:DeleteRole",
        "sts:AssumeRole",
    ],
    # These two actions take no resource in IAM.
    "*": [
        "kms:CreateKey",
        "kms:ListKeys",
    ],
}


@command(
    2, Kind.STEERING, CASES | SETTINGS | TRAILS | QUEUE | {INVOKE, *_ON_OWN_QUEUE}, on=_ON_OWN_QUEUE
)
def drill(
    call: Invocation,
    queue: Annotated[str | None, typer.Option(help=_QUEUE)] = None,
    minutes: Annotated[float, typer.Option(help="How long to wait.", min=0.1)] = DEFAULT_MINUTES,
    record: Annotated[
        Path | None, typer.Option(metavar="DIR", parser=parse_folder, help=_RECORD)
    ] = None,
    yes: Yes = False,
) -> Exit:
    """Let calls fail on a queue made for it; time Mendq.

    Examples:
      mendq drill                      # a queue of its own, deleted afterwards
      mendq drill --minutes 5 --yes
    """
    if record is not None:
        return _record_failed_calls(call, record, minutes, yes=yes)
    name = make_queue_name() if queue is None else queue
    arn = arn_of_name(name, call.account.region, call.account.account_id)
    if arn is None or not name.endswith(".fifo"):
        raise CommandError(
            f"--queue {name!r} is no name of a FIFO queue (it ends in .fifo)", Exit.USAGE
        )
    mode = _expected_mode(call, name)
    _require_logged(call, arn)
    call.out.say(
        f"makes queue {name} (tag {MODE_TAG}={Mode.HEAL}, visibility timeout {VISIBILITY_SECONDS} "
        f"s), lets {LATE_CALLS} deletes on it fail for real, waits for Mendq; then takes back what "
        "it changed, ends the case and removes the queue"
    )
    call.out.say(f"with this account's settings Mendq {_EXPECTED_TEXT[mode]}")
    call.out.say("a real account takes minutes: CloudTrail delivers in about 5, with no promise")
    confirm("Start the drill?", yes=yes)
    sqs = call.account.clients.sqs
    with treat_signals_as_interrupts(), make_drill_queue(sqs, name, _TAGS) as made_queue:
        run = Drill(call, made_queue, arn, mode)
        try:
            run.measure(minutes * 60)
            run.end_case()
        except KeyboardInterrupt:
            # End the case all the same, so that nothing is left behind.
            run.case = run.read_case()
            run.end_case()
            outcome = run.fault or "no case was opened yet"
            if run.case and not run.fault:
                outcome = f"{run.case.case_id} is {run.case.state}"
            raise CommandError(f"interrupted: {outcome}; queue {name} is removed") from None
    return _report(run)


def _record_failed_calls(call: Invocation, folder: Path, minutes: float, *, yes: bool) -> Exit:
    """Save the CloudTrail records of failed calls in `folder` (`--record`).

    The calls fail on resources that are made for this and deleted afterwards.
    """
    session = call.account.session
    ask = partial(confirm, yes=yes)
    with treat_signals_as_interrupts():
        try:
            document = record_failed_calls.drill(session, folder, minutes, call.out.say, ask)
        except SystemExit as refused_file:
            raise CommandError(str(refused_file), Exit.USAGE) from None
    call.out.print_json(document)
    for line in record_failed_calls.table(document):
        typer.echo(line, err=call.out.as_json)
    is_failed = document["left"] or document["left_alone"] or document["refused"]
    return Exit.FAILED if is_failed else Exit.DONE


def make_queue_name() -> str:
    """Return a new queue name. It has the prefix whose calls the trail of the stack logs."""
    return f"{DRILL_QUEUE}{uuid.uuid4().hex[:8]}.fifo"


def _expected_mode(call: Invocation, name: str) -> Mode:
    """Return how far Mendq will go on a queue with that name and the tag `mendq=heal`."""
    mode = call.account.settings.consent.mode_of(name, {MODE_TAG: str(Mode.HEAL)})
    autonomy = call.account.settings.autonomy.get(TOO_SHORT.name, TOO_SHORT.autonomy)
    return min(mode or Mode.OBSERVE, Mode.HEAL if autonomy is None else autonomy)


def _require_logged(call: Invocation, arn: str) -> None:
    """Raise CommandError if it is certain that no trail logs the failing calls of the drill.

    If a trail cannot be read, it may log them, so nothing is raised.
    """
    trails: list[Trail] = []
    with call.out.show_waiting("looking whether a trail logs the queue"):
        checks = list(run_checks("trails", partial(check_trails, call.account, trails)))
    if select_logged_calls(trails, arn, [LATE_CALL]):
        return
    if all(check.status is not Status.UNKNOWN for check in checks):
        line = f"no trail logs {LATE_CALL} of {arn.rpartition(':')[2]}: give a name with --queue"
        raise CommandError(f"{line} that trail.queueArnPrefixes covers, or add this one's start")


def _wait_for(read: Callable[[], T | None], until: float) -> T | None:
    """Call `read` until it returns a value. Return None if the monotonic time `until` is over."""
    while True:
        value = read()
        if value is not None or time.monotonic() > until:
            return value
        time.sleep(PAUSE_SECONDS)


class Drill(Struct):
    """One drill: its queue, its case, and the times that were measured."""

    call: Invocation
    queue: DrillQueue
    arn: str
    # How far Mendq will go with the account's settings.
    mode: Mode
    # The stages that are over: name, time, and seconds since the calls failed.
    stages: list[dict[str, Any]] = field(default_factory=list)
    # The case as it was read last, and as it was when it was opened. None before that.
    case: Case | None = None
    opened: Case | None = None
    # True if Mendq went as far as the settings allow.
    fixed: bool = False
    # Why the case could not be ended. Empty if it has ended.
    fault: str = ""

    def measure(self, patience_seconds: float) -> None:
        """Let the calls fail. Wait for the case and, in mode heal, for the changed timeout."""
        until = time.monotonic() + patience_seconds
        show_waiting = self.call.out.show_waiting
        with show_waiting("calling the queue too late"):
            self._add_stage("calls failed", self.queue.make_calls_fail(self.call.out.say))
        with show_waiting("waiting for heal to see them"):
            self.opened = _wait_for(self.read_case, until)
        self.case = self.opened
        if self.case is None:
            return
        self._add_stage("case opened", self.case.at)
        self._add_stage("case read by this drill")
        self.fixed = self.case.state is _EXPECTED_STATE[self.mode]
        if self.fixed and self.mode is Mode.HEAL:
            new_seconds = int(self.case.steps[0]["after"])
            with show_waiting("reading the change back"):
                changed = _wait_for(
                    lambda: self.queue.visibility_seconds == new_seconds or None, until
                )
            self.fixed = changed is not None
            if changed:
                self._add_stage(f"read back: {new_seconds} s")

    def read_case(self) -> Case | None:
        """Return the drill's case, or None if Mendq has opened none yet."""
        return self.call.account.open_store(CaseStore).look(self.arn, TOO_SHORT.name, ()).case

    def end_case(self) -> None:
        """Roll the fix back if there is one, and end the case. `fault` says if that failed."""
        if self.case is None:
            return
        with self.call.out.show_waiting("taking the change back, ending the case"):
            if self.case.state is State.APPLIED or self.case.is_rollback:
                self.case = self._ask_lambda("RollbackFunction", dry_run=False)
                if not self.fault:
                    self._add_stage(f"fix taken back: {self.queue.visibility_seconds} s")
            for decision in _ENDING_DECISIONS:
                if self.case.state in DECISIONS[decision].out_of:
                    self.case = self._ask_lambda("ApproveFunction", decision=decision)
                    break
        if self.case.is_final:
            self._add_stage(f"case ended: {self.case.state}")
        else:
            because = self.fault or "its change could not be taken back"
            self.fault = f"{self.case.case_id} stays {self.case.state}: {because}"

    def _ask_lambda(self, output: str, **request: object) -> Case:
        """Send a request about the case to a Lambda. Return the case after its answer.

        `output` is the stack's output that names the Lambda. If it answers with an error, `fault`
        says which.
        """
        assert self.case is not None  # noqa: S101 - a request is only made about a case
        account = self.call.account
        event = {"case_id": self.case.case_id, "actor": account.identity, **request}
        answer = account.invoke(output, event)
        self.fault = ""
        if "error" in answer:
            self.fault = str(answer.get("reason") or answer["error"])
        return account.open_store(OpenCases).transitions(self.case.case_id)[-1]

    def _add_stage(self, name: str, at: datetime | None = None) -> None:
        """Add a stage that ended at `at`, or now."""
        at = at or datetime.now(UTC)
        start = datetime.fromisoformat(self.stages[0]["at"]) if self.stages else at
        seconds = round((at - start).total_seconds(), 1)
        self.stages.append({"stage": name, "at": at.isoformat(), "seconds": seconds})

    def document(self) -> dict[str, Any]:
        """Return the document that `mendq drill --json` prints."""
        opened = self.opened
        return {
            "queue_arn": self.arn,
            "case_id": opened and opened.case_id,
            "state": opened and str(opened.state),
            "reason": opened and opened.reason,
            "ended_as": self.case and str(self.case.state),
            "stages": self.stages,
            "done": self.fixed and not self.fault,
        }


def _report(run: Drill) -> Exit:
    """Print the times and the outcome of the drill. Return the exit code of the command."""
    out = run.call.out
    document = run.document()
    out.print_json(document)
    stages = make_table("STAGE", "AT (UTC)", "AFTER THE CALLS FAILED")
    for stage in document["stages"]:
        stages.add_row(Text(stage["stage"]), stage["at"][11:19], f"{stage['seconds']} s")
    out.show(stages)
    if run.opened is None:
        line = "no case in time: `mendq doctor` says whether this account's trails can show it"
        out.say(line, "red")
    else:
        line = f"{run.opened.case_id} was {run.opened.state}: {run.opened.reason}"
        out.say(line, "green" if run.fixed else "red")
    if run.fault:
        out.say(run.fault, "red")
    return Exit.DONE if document["done"] else Exit.FAILED
