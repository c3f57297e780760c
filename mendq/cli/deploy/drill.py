"""`mendq drill`: real failing calls on a queue made for it, and how long each stage takes."""

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
    drill_queue,
)
from mendq.cli.doctor.check import Status, run_checks
from mendq.cli.doctor.visibility import Trail, check_trails, select_logged_calls
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.interrupts import treat_signals_as_interrupts
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.output import Yes, confirm, make_table
from mendq.heal.approve import DECISIONS
from mendq.model.case import Case, State
from mendq.model.limits import DRILL_QUEUE, MODE_TAG, Mode
from mendq.model.queue import arn_of_name

EVERY_SECONDS = 0.5
DEFAULT_MINUTES = 20.0
T = TypeVar("T")
# How far Mendq goes with this account's settings, and the state of the case that comes of it.
_EXPECTED = {
    Mode.HEAL: ("changes the queue: timed until the change is read back", State.APPLIED),
    Mode.PROPOSE: ("only proposes: timed until the case is proposed", State.PROPOSED),
    Mode.OBSERVE: ("only observes: timed until the case is observed", State.OBSERVED),
}
# A person's words that end a case without a change to the queue, the plainest first.
_ENDING = ("close", "decline")
_QUEUE = "A name that the trail's selectors cover; .fifo at its end."
_TAGS = {MODE_TAG: str(Mode.HEAL)}
_RECORD = "Instead save what CloudTrail writes of failed calls; needs no stack."
_CALLS = "CreateQueue DeleteMessage DeleteQueue GetQueueUrl ReceiveMessage SendMessage TagQueue"
_ITS_QUEUE = dict.fromkeys(
    (f"sqs:{each}" for each in _CALLS.split()), ("arn:aws:sqs:REGION:ACCOUNT:mendq-drill-*",)
)


_MADE = record_failed_calls.PREFIX
_HERE = "REGION:ACCOUNT"
# The IAM policy of --record: actions by resource. No command that steers Mendq needs it.
# All other KMS rights come from the policy of the run's own key.
RECORDING: dict[str, list[str]] = {
    f"arn:aws:sqs:{_HERE}:{_MADE}*": [
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
    f"arn:aws:s3:::{_MADE}*": [
        "s3:CreateBucket",
        "s3:DeleteBucket",
        "s3:DeleteObject",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutBucketPolicy",
    ],
    f"arn:aws:cloudtrail:{_HERE}:trail/{_MADE}*": [
        "cloudtrail:CreateTrail",
        "cloudtrail:DeleteTrail",
        "cloudtrail:PutEventSelectors",
        "cloudtrail:StartLogging",
    ],
    f"arn:aws:events:{_HERE}:rule/{_MADE}*": [
        "events:DeleteRule",
        "events:PutRule",
        "events:PutTargets",
        "events:RemoveTargets",
    ],
    f"arn:aws:sns:{_HERE}:{_MADE}*": [
        "sns:CreateTopic",
        "sns:DeleteTopic",
        "sns:Publish",
        "sns:Subscribe",
    ],
    f"arn:aws:iam::ACCOUNT:role/{_MADE}*": [
        "iam:CreateRole",
        "iam:DeleteRole",
        "sts:AssumeRole",
    ],
    # IAM knows no resource for these two.
    "*": [
        "kms:CreateKey",
        "kms:ListKeys",
    ],
}


@command(2, Kind.STEERING, CASES | SETTINGS | TRAILS | QUEUE | {INVOKE, *_ITS_QUEUE}, on=_ITS_QUEUE)
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
        return _recorded(call, record, minutes, yes=yes)
    name = drill_queue_name() if queue is None else queue
    arn = arn_of_name(name, call.account.region, call.account.account_id)
    if arn is None or not name.endswith(".fifo"):
        raise CommandError(
            f"--queue {name!r} is no name of a FIFO queue (it ends in .fifo)", Exit.USAGE
        )
    reached = _reached(call, name)
    _require_situation(call, arn)
    call.out.say(
        f"makes queue {name} (tag {MODE_TAG}={Mode.HEAL}, visibility timeout {VISIBILITY_SECONDS} "
        f"s), lets {LATE_CALLS} deletes on it fail for real, waits for Mendq; then takes back what "
        "it changed, ends the case and removes the queue"
    )
    call.out.say(f"with this account's settings Mendq {_EXPECTED[reached][0]}")
    call.out.say("a real account takes minutes: CloudTrail delivers in about 5, with no promise")
    confirm("Start the drill?", yes=yes)
    with treat_signals_as_interrupts(), drill_queue(call.account.clients.sqs, name, _TAGS) as made:
        this = Drill(call, made, arn, reached)
        try:
            this.time_it(minutes * 60)
            this.end()
        except KeyboardInterrupt:
            # The case ends as it would have without the interrupt.
            this.case = this.case_by_now()
            this.end()
            case, none = this.case, "no case was opened yet"
            said = this.fault or (f"{case.case_id} is {case.state}" if case else none)
            raise CommandError(f"interrupted: {said}; queue {name} is removed") from None
    return _announced(this)


def _recorded(call: Invocation, folder: Path, minutes: float, *, yes: bool) -> Exit:
    """Save the CloudTrail records of calls that fail on resources made for it."""
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


def drill_queue_name() -> str:
    """A new one, which Mendq's own trail logs."""
    return f"{DRILL_QUEUE}{uuid.uuid4().hex[:8]}.fifo"


def _reached(call: Invocation, name: str) -> Mode:
    """How far Mendq goes on a queue of that name that says heal."""
    mode = call.account.settings.consent.mode_of(name, {MODE_TAG: str(Mode.HEAL)})
    autonomy = call.account.settings.autonomy.get(TOO_SHORT.name, TOO_SHORT.autonomy)
    return min(mode or Mode.OBSERVE, Mode.HEAL if autonomy is None else autonomy)


def _require_situation(call: Invocation, arn: str) -> None:
    """Raise CommandError where no trail logs the call that is going to fail, and each of
    them can be read.
    """
    trails: list[Trail] = []
    with call.out.show_waiting("looking whether a trail logs the queue"):
        checks = list(run_checks("trails", partial(check_trails, call.account, trails)))
    if select_logged_calls(trails, arn, [LATE_CALL]):
        return
    if all(each.status is not Status.UNKNOWN for each in checks):
        line = f"no trail logs {LATE_CALL} of {arn.rpartition(':')[2]}: give a name with --queue"
        raise CommandError(f"{line} that trail.queueArnPrefixes covers, or add this one's start")


def _eventually(look: Callable[[], T | None], until: float) -> T | None:
    while True:
        found = look()
        if found is not None or time.monotonic() > until:
            return found
        time.sleep(EVERY_SECONDS)


class Drill(Struct):
    """One drill: when each stage was there; `case` is the newest that is known of it.

    `fixed`: Mendq did what the settings let it do. `fault` is empty where the case has ended.
    """

    call: Invocation
    made: DrillQueue
    arn: str
    reached: Mode
    stages: list[dict[str, Any]] = field(default_factory=list)
    case: Case | None = None
    opened: Case | None = None
    fixed: bool = False
    fault: str = ""

    def time_it(self, patience_seconds: float) -> None:
        """Let the calls fail; wait for the case, and for the change where one is made."""
        until, waiting = time.monotonic() + patience_seconds, self.call.out.show_waiting
        with waiting("calling the queue too late"):
            self._stage("calls failed", self.made.fail(self.call.out.say))
        with waiting("waiting for heal to see them"):
            self.case = self.opened = _eventually(self.case_by_now, until)
        if self.case is None:
            return
        self._stage("case opened", self.case.at)
        self._stage("case read by this drill")
        self.fixed = self.case.state is _EXPECTED[self.reached][1]
        if self.fixed and self.reached is Mode.HEAL:
            wanted = int(self.case.steps[0]["after"])
            with waiting("reading the change back"):
                read = _eventually(lambda: self.made.needed_seconds == wanted or None, until)
            self.fixed = read is not None
            if read:
                self._stage(f"read back: {wanted} s")

    def case_by_now(self) -> Case | None:
        return self.call.account.open_store(CaseStore).look(self.arn, TOO_SHORT.name, ()).case

    def end(self) -> None:
        """Take the fix back, where one was made, then end the case, where that has not."""
        if self.case is None:
            return
        with self.call.out.show_waiting("taking the change back, ending the case"):
            if self.case.state is State.APPLIED or self.case.undoes:
                self.case = self._asked("RollbackFunction", dry_run=False)
                if not self.fault:
                    self._stage(f"fix taken back: {self.made.needed_seconds} s")
            words = (each for each in _ENDING if self.case.state in DECISIONS[each].out_of)
            if word := next(words, None):
                self.case = self._asked("ApproveFunction", decision=word)
        if self.case.is_final:
            self._stage(f"case ended: {self.case.state}")
        else:
            because = self.fault or "its change could not be taken back"
            self.fault = f"{self.case.case_id} stays {self.case.state}: {because}"

    def _asked(self, output: str, **said: object) -> Case:
        """The case once a Lambda has answered."""
        assert self.case is not None  # noqa: S101 - who asks has one
        account = self.call.account
        event = {"case_id": self.case.case_id, "actor": account.identity, **said}
        answer = account.invoke(output, event)
        self.fault = str(answer.get("reason") or answer["error"]) if "error" in answer else ""
        return account.open_store(OpenCases).transitions(self.case.case_id)[-1]

    def _stage(self, name: str, at: datetime | None = None) -> None:
        at = at or datetime.now(UTC)
        start = datetime.fromisoformat(self.stages[0]["at"]) if self.stages else at
        seconds = round((at - start).total_seconds(), 1)
        self.stages.append({"stage": name, "at": at.isoformat(), "seconds": seconds})

    def document(self) -> dict[str, Any]:
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


def _announced(this: Drill) -> Exit:
    out, found = this.call.out, this.document()
    out.print_json(found)
    shown = make_table("STAGE", "AT (UTC)", "AFTER THE CALLS FAILED")
    for each in found["stages"]:
        shown.add_row(Text(each["stage"]), each["at"][11:19], f"{each['seconds']} s")
    out.show(shown)
    if this.opened is None:
        line = "no case in time: `mendq doctor` says whether this account's trails can show it"
        out.say(line, "red")
    else:
        says = f"{this.opened.case_id} was {this.opened.state}: {this.opened.reason}"
        out.say(says, "green" if this.fixed else "red")
    if this.fault:
        out.say(this.fault, "red")
    return Exit.DONE if found["done"] else Exit.FAILED
