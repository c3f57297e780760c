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
from mendq.cli.commands import (
    CASE_QUERY_ACTIONS,
    INVOKE_LAMBDA_ACTION,
    QUEUE_ATTRIBUTES_ACTIONS,
    SETTINGS_ACTIONS,
    TRAIL_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.deploy import record_failed_calls
from mendq.cli.deploy.drill_queue import (
    LATE_DELETE_COUNT,
    LATE_DELETE_EVENT_NAME,
    VISIBILITY_TIMEOUT_SECONDS,
    DrillQueue,
    make_drill_queue,
)
from mendq.cli.doctor.check import Status, run_checks
from mendq.cli.doctor.visibility import Trail, check_trails, select_logged_calls
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.interrupts import treat_signals_as_interrupts
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.output import YesOption, confirm, make_table
from mendq.heal.approve import TRANSITION_BY_DECISION
from mendq.model.case import Case
from mendq.model.mode import Mode
from mendq.model.queue import arn_of_name
from mendq.model.state import State
from mendq.model.tags import DRILL_QUEUE_PREFIX, MODE_TAG

POLL_PAUSE_SECONDS = 0.5
DEFAULT_MINUTES = 20.0
ValueType = TypeVar("ValueType")
# The state that the drill's case must reach, by the mode that Mendq applies to the queue.
_EXPECTED_STATE_BY_MODE = {
    Mode.HEAL: State.APPLIED,
    Mode.PROPOSE: State.PROPOSED,
    Mode.OBSERVE: State.OBSERVED,
}
_EXPECTED_OUTCOME_TEXT_BY_MODE = {
    Mode.HEAL: "changes the queue: timed until the change is read back",
    Mode.PROPOSE: "only proposes: timed until the case is proposed",
    Mode.OBSERVE: "only observes: timed until the case is observed",
}
# Decisions that end a case without a change to the queue. The drill sends the first one that the
# case's state allows.
_CASE_ENDING_DECISIONS = ("close", "decline")
_QUEUE_HELP = "A name that the trail's selectors cover; .fifo at its end."
_DRILL_QUEUE_TAGS = {MODE_TAG: str(Mode.HEAL)}
_RECORD_HELP = "Instead save what CloudTrail writes of failed calls; needs no stack."
_QUEUE_ACTIONS = (
    "sqs:CreateQueue",
    "sqs:DeleteMessage",
    "sqs:DeleteQueue",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
    "sqs:TagQueue",
)
# IAM actions on the drill's own queue, each with the resources of the operators' IAM policy.
_RESOURCES_BY_QUEUE_ACTION = dict.fromkeys(
    _QUEUE_ACTIONS, ("arn:aws:sqs:REGION:ACCOUNT:mendq-drill-*",)
)


_RECORD_PREFIX = record_failed_calls.NAME_PREFIX
_REGION_AND_ACCOUNT = "REGION:ACCOUNT"
# The IAM policy of --record: actions by resource. The policy for the other commands is separate.
# All other KMS rights come from the policy of the run's own key.
IAM_ACTIONS_FOR_RECORD_BY_RESOURCE: dict[str, list[str]] = {
    f"arn:aws:sqs:{_REGION_AND_ACCOUNT}:{_RECORD_PREFIX}*": [
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
    f"arn:aws:cloudtrail:{_REGION_AND_ACCOUNT}:trail/{_RECORD_PREFIX}*": [
        "cloudtrail:CreateTrail",
        "cloudtrail:DeleteTrail",
        "cloudtrail:PutEventSelectors",
        "cloudtrail:StartLogging",
    ],
    f"arn:aws:events:{_REGION_AND_ACCOUNT}:rule/{_RECORD_PREFIX}*": [
        "events:DeleteRule",
        "events:PutRule",
        "events:PutTargets",
        "events:RemoveTargets",
    ],
    f"arn:aws:sns:{_REGION_AND_ACCOUNT}:{_RECORD_PREFIX}*": [
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
    2,
    CommandKind.STEERING,
    CASE_QUERY_ACTIONS
    | SETTINGS_ACTIONS
    | TRAIL_ACTIONS
    | QUEUE_ATTRIBUTES_ACTIONS
    | {INVOKE_LAMBDA_ACTION, *_RESOURCES_BY_QUEUE_ACTION},
    resources_by_action=_RESOURCES_BY_QUEUE_ACTION,
)
def drill(
    call: Invocation,
    queue: Annotated[str | None, typer.Option(help=_QUEUE_HELP)] = None,
    minutes: Annotated[float, typer.Option(help="How long to wait.", min=0.1)] = DEFAULT_MINUTES,
    record: Annotated[
        Path | None, typer.Option(metavar="DIR", parser=parse_folder, help=_RECORD_HELP)
    ] = None,
    yes: YesOption = False,
) -> Exit:
    """Make calls fail on a temporary queue, and time Mendq.

    Examples:
      mendq drill                      # a queue of its own, deleted afterwards
      mendq drill --minutes 5 --yes
    """
    if record is not None:
        return _record_failed_calls(call, record, minutes, yes=yes)
    queue_name = make_queue_name() if queue is None else queue
    queue_arn = arn_of_name(queue_name, call.account.region, call.account.account_id)
    if queue_arn is None or not queue_name.endswith(".fifo"):
        raise CommandError(
            f"--queue {queue_name!r} is not a FIFO queue's name, which ends in .fifo", Exit.USAGE
        )
    call.account.require_whole_stack("drill")
    expected_mode = _find_expected_mode(call, queue_name)
    _require_logging_trail(call, queue_arn)
    call.out.say(
        f"makes queue {queue_name} (tag {MODE_TAG}={Mode.HEAL}, visibility timeout "
        f"{VISIBILITY_TIMEOUT_SECONDS} s), lets {LATE_DELETE_COUNT} deletes on it fail for real, "
        "waits for Mendq; then takes back what it changed, ends the case and removes the queue"
    )
    call.out.say(
        f"with this account's settings Mendq {_EXPECTED_OUTCOME_TEXT_BY_MODE[expected_mode]}"
    )
    call.out.say("a real account takes minutes: CloudTrail delivers in about 5, with no promise")
    confirm("Start the drill?", yes=yes)
    sqs = call.account.clients.sqs
    with (
        treat_signals_as_interrupts(),
        make_drill_queue(sqs, queue_name, _DRILL_QUEUE_TAGS) as drill_queue,
    ):
        drill_run = DrillRun(call, drill_queue, queue_arn, expected_mode)
        try:
            drill_run.run_and_time(minutes * 60)
            drill_run.end_case()
        except KeyboardInterrupt:
            # End the case even so, so that no open case is left.
            drill_run.case = drill_run.read_case()
            drill_run.end_case()
            interruption_text = drill_run.case_ending_fault or "no case was opened yet"
            if drill_run.case and not drill_run.case_ending_fault:
                interruption_text = f"{drill_run.case.case_id} is {drill_run.case.state}"
            raise CommandError(
                f"interrupted: {interruption_text}; queue {queue_name} is removed"
            ) from None
    return _print_report(drill_run)


def _record_failed_calls(call: Invocation, folder: Path, minutes: float, *, yes: bool) -> Exit:
    """Carry out `drill --record`: let calls fail, and save their CloudTrail records in `folder`.

    The calls fail on resources that are made for this and deleted afterwards.
    """
    session = call.account.session
    confirm_question = partial(confirm, yes=yes)
    with treat_signals_as_interrupts():
        try:
            document = record_failed_calls.clean_up_and_record(
                session, folder, minutes, call.out.say, confirm_question
            )
        except SystemExit as refusal:
            raise CommandError(str(refusal), Exit.USAGE) from None
    call.out.print_json(document)
    for report_line in record_failed_calls.list_report_lines(document):
        call.out.say_table_line(report_line)
    has_run_failed = document["left"] or document["left_alone"] or document["refused"]
    return Exit.FAILED if has_run_failed else Exit.DONE


def make_queue_name() -> str:
    """Return a new name for the drill's queue.

    It begins with the prefix of the queues whose calls the stack's own trail always logs.
    """
    return f"{DRILL_QUEUE_PREFIX}{uuid.uuid4().hex[:8]}.fifo"


def _find_expected_mode(call: Invocation, queue_name: str) -> Mode:
    """Return the mode that Mendq applies to the drill's symptom on a queue tagged `mendq=heal`.

    The settings may lower the mode for the queue's name or for the symptom.
    """
    mode_by_consent = call.account.settings.consent.mode_of(queue_name, {MODE_TAG: str(Mode.HEAL)})
    autonomy = call.account.settings.autonomy.get(TOO_SHORT.name, TOO_SHORT.autonomy)
    return min(mode_by_consent or Mode.OBSERVE, Mode.HEAL if autonomy is None else autonomy)


def _require_logging_trail(call: Invocation, queue_arn: str) -> None:
    """Raise CommandError if it is certain that no trail logs the drill's failing calls.

    A trail that cannot be read may log them: then no error is raised.
    """
    trails: list[Trail] = []
    with call.out.show_waiting("looking whether a trail logs the queue"):
        checks = list(run_checks("trails", partial(check_trails, call.account, trails)))
    if select_logged_calls(trails, queue_arn, [LATE_DELETE_EVENT_NAME]):
        return
    if all(check.status is not Status.UNKNOWN for check in checks):
        queue_name = queue_arn.rpartition(":")[2]
        raise CommandError(
            f"no trail logs {LATE_DELETE_EVENT_NAME} of {queue_name}: give a name with --queue "
            "that trail.queueArnPrefixes covers, or add this one's start"
        )


def _wait_for_value(
    read_value: Callable[[], ValueType | None], deadline: float
) -> ValueType | None:
    """Call `read_value` until it returns a value other than None, and return that value.

    Return None if `read_value` still returns None at `deadline`, in seconds of `time.monotonic`.
    """
    while True:
        value = read_value()
        if value is not None or time.monotonic() > deadline:
            return value
        time.sleep(POLL_PAUSE_SECONDS)


class DrillRun(Struct):
    """One drill: its queue, its case and the measured times."""

    call: Invocation
    queue: DrillQueue
    queue_arn: str
    # The mode that the account's settings allow for this queue and symptom.
    expected_mode: Mode
    # The finished stages: name, time, and seconds since the calls failed.
    stages: list[dict[str, Any]] = field(default_factory=list)
    # The case as it was read last, and as it was when it was first seen. None until it is opened.
    case: Case | None = None
    opened_case: Case | None = None
    # True if the case reached the state that the expected mode leads to.
    is_outcome_as_expected: bool = False
    # Why the case could not be ended. Empty if there is no such fault.
    case_ending_fault: str = ""

    def run_and_time(self, maximum_seconds: float) -> None:
        """Let the calls fail, and wait for the case. In mode heal, also wait for the new timeout.

        Wait for at most `maximum_seconds`. `stages` gets each stage and its time.
        """
        deadline = time.monotonic() + maximum_seconds
        show_waiting = self.call.out.show_waiting
        with show_waiting("calling the queue too late"):
            self._add_finished_stage("calls failed", self.queue.make_calls_fail(self.call.out.say))
        with show_waiting("waiting for heal to see them"):
            self.opened_case = _wait_for_value(self.read_case, deadline)
        self.case = self.opened_case
        if self.case is None:
            return
        self._add_finished_stage("case opened", self.case.at)
        self._add_finished_stage("case read by this drill")
        self.is_outcome_as_expected = self.case.state is _EXPECTED_STATE_BY_MODE[self.expected_mode]
        if self.is_outcome_as_expected and self.expected_mode is Mode.HEAL:
            new_timeout_seconds = int(self.case.steps[0]["after"])
            with show_waiting("reading the change back"):
                has_read_new_timeout = _wait_for_value(
                    lambda: self.queue.visibility_timeout_seconds == new_timeout_seconds or None,
                    deadline,
                )
            self.is_outcome_as_expected = has_read_new_timeout is not None
            if has_read_new_timeout:
                self._add_finished_stage(f"read back: {new_timeout_seconds} s")

    def read_case(self) -> Case | None:
        """Return the drill's case, or None if Mendq has opened none yet."""
        return self.call.account.open_store(CaseStore).look(self.queue_arn, TOO_SHORT.name, ()).case

    def end_case(self) -> None:
        """Roll back the fix if there is one, and end the case. Do nothing if there is no case.

        If the case could not be ended, `case_ending_fault` says why. Raises CommandError if a
        Lambda fails.
        """
        if self.case is None:
            return
        with self.call.out.show_waiting("taking the change back, ending the case"):
            if self.case.state is State.APPLIED or self.case.is_rollback:
                self.case = self._ask_lambda("RollbackFunction", dry_run=False)
                if not self.case_ending_fault:
                    self._add_finished_stage(
                        f"fix taken back: {self.queue.visibility_timeout_seconds} s"
                    )
            for decision in _CASE_ENDING_DECISIONS:
                if self.case.state in TRANSITION_BY_DECISION[decision].states_before:
                    self.case = self._ask_lambda("ApproveFunction", decision=decision)
                    break
        if self.case.is_final:
            self._add_finished_stage(f"case ended: {self.case.state}")
        else:
            reason = self.case_ending_fault or "its change could not be taken back"
            self.case_ending_fault = f"{self.case.case_id} stays {self.case.state}: {reason}"

    def _ask_lambda(self, output_name: str, **request: object) -> Case:
        """Send a request about the case to a Lambda. Return the case after the Lambda's answer.

        `output_name` is the stack's output that contains the Lambda's name. If the Lambda answers
        with an error, `case_ending_fault` gets its text. Raises CommandError if the Lambda fails.
        """
        assert self.case is not None  # noqa: S101 - a request is only made about a case
        account = self.call.account
        request_event = {"case_id": self.case.case_id, "actor": account.identity, **request}
        answer = account.invoke(output_name, request_event)
        self.case_ending_fault = ""
        if "error" in answer:
            self.case_ending_fault = str(answer.get("reason") or answer["error"])
        return account.open_store(OpenCases).list_transitions(self.case.case_id)[-1]

    def _add_finished_stage(self, name: str, end_time: datetime | None = None) -> None:
        """Add a stage that ended at `end_time`, or now if it is None."""
        end_time = end_time or datetime.now(UTC)
        start_time = datetime.fromisoformat(self.stages[0]["at"]) if self.stages else end_time
        seconds_since_start = round((end_time - start_time).total_seconds(), 1)
        self.stages.append(
            {"stage": name, "at": end_time.isoformat(), "seconds": seconds_since_start}
        )

    def make_document(self) -> dict[str, Any]:
        """Return the document that `mendq drill --json` prints."""
        opened_case = self.opened_case
        return {
            "queue_arn": self.queue_arn,
            "case_id": opened_case and opened_case.case_id,
            "state": opened_case and str(opened_case.state),
            "reason": opened_case and opened_case.reason,
            "ended_as": self.case and str(self.case.state),
            "stages": self.stages,
            "done": self.is_outcome_as_expected and not self.case_ending_fault,
        }


def _print_report(drill_run: DrillRun) -> Exit:
    """Print the times and the outcome of the drill. Return the command's exit code."""
    out = drill_run.call.out
    document = drill_run.make_document()
    out.print_json(document)
    stage_table = make_table("STAGE", "AT (UTC)", "AFTER THE CALLS FAILED")
    for stage in document["stages"]:
        stage_table.add_row(Text(stage["stage"]), stage["at"][11:19], f"{stage['seconds']} s")
    out.show(stage_table)
    opened_case = drill_run.opened_case
    if opened_case is None:
        outcome_line = (
            "no case in time: `mendq doctor` says whether this account's trails can show it"
        )
        out.say(outcome_line, "red")
    else:
        outcome_line = f"{opened_case.case_id} was {opened_case.state}: {opened_case.reason}"
        out.say(outcome_line, "green" if drill_run.is_outcome_as_expected else "red")
    if drill_run.case_ending_fault:
        out.say(drill_run.case_ending_fault, "red")
    return Exit.DONE if document["done"] else Exit.FAILED
