"""`mendq show CASE`: print everything that is known about one case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from msgspec import Struct

from mendq.aws.errors import QueueGone
from mendq.cases.baselines import Baselines
from mendq.cases.table import CaseStore, OpenCases
from mendq.cases.view import HoldUp
from mendq.catalogue.visibility.needed_timeout import list_need_spans
from mendq.cli.account import Account
from mendq.cli.commands import SHOW_ACTIONS, CommandKind, command
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import (
    STYLE_BY_STATE,
    describe_deadline,
    describe_hold_up,
    describe_shared_case,
    find_case,
    find_deadline,
    find_plan_reason,
    find_plan_transition,
    get_opening_time,
    list_decision_commands,
    list_step_lines,
    read_timing,
    select_hold_up,
    summarize_case,
)
from mendq.cli.output import Output
from mendq.cli.redrive.hold import list_progress_lines, read_progress
from mendq.cli.undo.answers import (
    RollbackAnswer,
    add_later_case_ids,
    format_attribute,
    list_printed_commands,
)
from mendq.heal.recover import read_written_attributes
from mendq.heal.restore_policy import describe_new_access
from mendq.heal.undo import UndoOutcome, list_writes, plan_undos
from mendq.model.case import MODE_LOWERED_BY_CASE_KEY, Case
from mendq.model.facts import Facts
from mendq.model.limits import Timing
from mendq.model.plan import owner_of_case
from mendq.model.state import State
from mendq.model.steps import CreateDlq, Owner, is_permanent
from mendq.model.time_text import format_time
from mendq.model.timeline import build_timeline
from mendq.notifications.change_lines import DELETION_WARNING, RETENTION_ATTRIBUTE
from mendq.notifications.commands import mendq_case_command
from mendq.notifications.configuration import (
    describe_differences,
    format_policy,
    select_configuration,
)
from mendq.notifications.next_steps import choose_next_step, describe_reason
from mendq.notifications.queue_lines import (
    TAG_AND_CONSUMER_PREFIXES,
    draw_time_bars,
    format_timeline,
)
from mendq.notifications.text import command_or_note, format_count, format_value, to_terminal_text
from mendq.redrive.progress import RedriveProgress

# Longest value that is printed, in characters.
_MOST_VALUE_CHARACTERS = 300
_CASE_ARGUMENT = typer.Argument(
    metavar="CASE", help="The case's id, as `mendq cases` prints it, or its queue's name."
)
CaseId = Annotated[str, _CASE_ARGUMENT]


class ShownCase(Struct, frozen=True):
    """A case with its queue, its redrive, and what a rollback would do."""

    transitions: tuple[Case, ...]
    # The queue's attributes before the case wrote. If they are not stored, those at the last scan
    # before the case that found the queue well. None if neither is known.
    attributes_before: Mapping[str, str] | None
    # The queue's attributes now. None if the queue is gone.
    attributes_now: Mapping[str, str] | None
    timing: Timing | None
    # The fields below are empty if the queue is gone.
    # The values that the case wrote, each with its outcome in `mendq rollback --dry-run`. Empty
    # after a rollback.
    attribute_rollback_answers: tuple[RollbackAnswer, ...] = ()
    hold_up: HoldUp | None = None
    redrive_progress: RedriveProgress | None = None
    # The access that a proposed policy would add, by IAM Access Analyzer. May be empty.
    new_access: str = ""

    @property
    def case(self) -> Case:
        """The newest transition of the case."""
        return self.transitions[-1]

    @property
    def changed_lines(self) -> tuple[str, ...]:
        """A line for each attribute that differs now from `attributes_before`.

        Empty if nothing differs or one of the two is not known.
        """
        if self.attributes_before is None or self.attributes_now is None:
            return ()
        return describe_differences(self.attributes_before, self.attributes_now)

    @property
    def undo_commands(self) -> list[str]:
        """The commands that undo the case's changes that are still in place.

        First `mendq rollback`, then the commands for changes that Mendq does not write itself.
        """
        commands = []
        if any(
            attribute_answer["outcome"] == UndoOutcome.UNDONE
            for attribute_answer in self.attribute_rollback_answers
        ):
            commands.append(mendq_case_command("rollback", self.case))
        reversible_attributes = [
            attribute_answer
            for attribute_answer in self.attribute_rollback_answers
            if not is_permanent(attribute_answer["attribute"])
        ]
        commands.extend(list_printed_commands(reversible_attributes).values())
        return commands

    @property
    def next_step(self) -> dict[str, str]:
        """The next step for a person: `sentence`, `command` and `runbook`, safe to print.

        It is computed if the case has none stored, as in earlier versions of Mendq.
        """
        stored_next_step = self.case.next_step or choose_next_step(self.case)
        printable_text_by_field = {}
        for name in ("sentence", "command", "runbook"):
            text = stored_next_step.get(name)
            printable_text_by_field[name] = command_or_note(str(text)) if text else ""
        return printable_text_by_field

    def document(self) -> dict[str, Any]:
        """Return the document that `mendq show --json` prints."""
        deadline = find_deadline(self.case, self.timing)
        hold_up_document = None
        if self.hold_up:
            hold_up_document = {
                "since": format_time(self.hold_up.waiting_since),
                "code": self.hold_up.code,
                "reason": self.hold_up.reason,
            }
        rolled_back_steps = []
        if self.case.is_rollback:
            rolled_back_steps = [dict(step) for step in self.case.steps]
        configuration_before = None
        if self.attributes_before is not None:
            configuration_before = select_configuration(self.attributes_before)
        return {
            **summarize_case(self.case),
            "steps": [dict(step) for step in find_plan_transition(self.transitions).steps],
            "taken_back": rolled_back_steps,
            "next_step": self.next_step,
            "plan_reason": find_plan_reason(self.transitions),
            "until": deadline and format_time(deadline),
            "held_up": hold_up_document,
            "evidence": dict(self.case.evidence),
            "transitions": [transition.document() for transition in self.transitions],
            "facts": configuration_before,
            "queue_exists": self.attributes_now is not None,
            "difference": list(self.changed_lines),
            "new_access": self.new_access,
            "redrive": self.redrive_progress and self.redrive_progress.document(),
            "standing": list(self.attribute_rollback_answers),
            "undo": self.undo_commands,
        }


def read_case_details(call: Invocation, case_id: str) -> ShownCase:
    """Read the case, its queue and its redrive. Raises CommandError as `find_case` does."""
    account = call.account
    transitions = find_case(account, case_id)
    case = transitions[-1]
    queue_arn = case.queue_arn
    attribute_writes = list_writes(transitions)
    attribute_names = [write.attribute for write in attribute_writes]
    case_store_view = account.open_store(CaseStore).look(queue_arn, case.symptom, attribute_names)
    snapshot_by_transition_number = {}
    for transition in transitions:
        attributes_snapshot = account.open_store(OpenCases).load_snapshot(transition)
        if attributes_snapshot is not None:
            snapshot_by_transition_number[transition.n] = attributes_snapshot
    first_snapshot = next(iter(snapshot_by_transition_number.values()), None)
    attributes_before = first_snapshot or _read_baseline_attributes(account, case)
    timing = read_timing(account, transitions)
    steps: list[Mapping[str, str]] = []
    for transition in transitions:
        steps.extend(transition.steps)
    try:
        attributes = read_written_attributes(account.clients, queue_arn, steps)
    except QueueGone:
        return ShownCase(transitions, attributes_before, None, timing)
    # After a rollback there is nothing left to take back.
    writes_to_undo = () if case.state is State.ROLLED_BACK else attribute_writes
    undo_steps = plan_undos(
        writes_to_undo,
        snapshot_by_transition_number,
        Facts(queue_arn, attributes, {}),
        case_store_view,
    )
    rollback_answer: RollbackAnswer = {
        "case_id": case.case_id,
        "attributes": [undo_step.document() for undo_step in undo_steps],
    }
    add_later_case_ids(account, [rollback_answer])
    return ShownCase(
        transitions,
        attributes_before,
        {name: value for name, value in attributes.items() if name != CreateDlq.attribute},
        timing,
        attribute_rollback_answers=tuple(rollback_answer["attributes"]),
        hold_up=select_hold_up(case_store_view, case),
        redrive_progress=read_progress(account, case),
        new_access=_describe_new_access(account, case),
    )


def _describe_new_access(account: Account, case: Case) -> str:
    """Return IAM Access Analyzer's sentences about the access that a proposed policy would add.

    Empty if the case proposes no policy, or if Access Analyzer has nothing to say.
    """
    if case.state is not State.PROPOSED or owner_of_case(case.steps) is not Owner.RESTORE_POLICY:
        return ""
    access_texts = [
        describe_new_access(account.clients, step["before"], step["after"]) for step in case.steps
    ]
    return "".join(access_texts)


def _read_baseline_attributes(account: Account, case: Case) -> Mapping[str, str] | None:
    """Return the queue's attributes from its last healthy scan before the case was opened.

    Tags and consumers are left out. None if there is no such scan.
    """
    for baseline in account.open_store(Baselines).load(case.queue_arn):
        if baseline.at <= get_opening_time(case):
            return {
                name: value
                for name, value in baseline.attributes.items()
                if not name.startswith(TAG_AND_CONSUMER_PREFIXES)
            }
    return None


@command(3, CommandKind.LOOKING, SHOW_ACTIONS)
def show(call: Invocation, case_id: CaseId) -> None:
    """Show one case: timeline, plan, what differs now.

    Examples:
      mendq show orders                # the ID of a case, or its queue
      mendq show orders --json
    """
    with call.out.show_waiting("reading the case and its queue"):
        shown_case = read_case_details(call, case_id)
    call.out.print_json(shown_case.document())
    if not call.as_json:
        print_details(call.out, shown_case)


def print_details(out: Output, shown_case: ShownCase) -> None:
    """Print everything about the case."""
    print_case_head(out, shown_case)
    _print_timeline(out, shown_case)
    _print_evidence(out, shown_case.case.evidence)
    print_plan(out, shown_case)
    if shown_case.redrive_progress is not None:
        out.say_heading("Redrive")
        out.say_labelled(list_progress_lines(shown_case.redrive_progress))
    if shown_case.attributes_before is not None:
        out.say_heading("Facts from before")
        attribute_lines = []
        for name, attribute_text in select_configuration(shown_case.attributes_before).items():
            shown_value = format_policy(
                name, attribute_text, _MOST_VALUE_CHARACTERS
            ) or format_value(attribute_text, _MOST_VALUE_CHARACTERS)
            attribute_lines.append((to_terminal_text(name, 64), "", shown_value))
        out.say_labelled(attribute_lines)
    next_step_texts = shown_case.next_step
    if next_step_texts["sentence"]:
        out.say_heading("Next")
        out.say(next_step_texts["sentence"])
        if next_step_texts["command"] != mendq_case_command("show", shown_case.case):
            out.say_command(next_step_texts["command"])
        out.say(f"runbook: {next_step_texts['runbook']}", "dim")
    decision_commands = list_decision_commands(shown_case.case)
    if decision_commands:
        out.say_heading("A person's word")
        for decision_command in decision_commands:
            out.say_command(decision_command)
    if shown_case.attribute_rollback_answers:
        _print_undo(out, shown_case)


def _print_undo(out: Output, shown_case: ShownCase) -> None:
    """Print the values that a rollback would keep, and the commands that undo the others.

    Before a command of the AWS CLI, print that it does not check who has set the value since.
    """
    out.say_heading("Undo")
    kept_attributes = [
        attribute_answer
        for attribute_answer in shown_case.attribute_rollback_answers
        if attribute_answer["outcome"] != UndoOutcome.UNDONE
    ]
    out.say_labelled(format_attribute(attribute_answer) for attribute_answer in kept_attributes)
    for line in shown_case.undo_commands:
        if not line.startswith("mendq "):
            warning = f"; {DELETION_WARNING}" if RETENTION_ATTRIBUTE in line else ""
            out.say(f"by hand, without a look at who has set it since{warning}:", "dim")
        out.say_command(line)


def print_case_head(out: Output, shown_case: ShownCase) -> None:
    """Print the case's id, queue, state and deadline, the reason, and what holds up the case."""
    case = shown_case.case
    deadline = describe_deadline(case, shown_case.timing)
    out.say(case.case_id, "bold")
    out.say_unwrapped(case.queue_arn)
    state_line = f"{case.state}, {deadline}" if deadline else str(case.state)
    out.say(state_line, STYLE_BY_STATE.get(case.state, "dim"))
    if case.reason != find_plan_reason(shown_case.transitions):
        out.say(describe_reason(case) if case.code else f"because {case.reason}", "dim")
    unhelpful_case_id = case.evidence.get(MODE_LOWERED_BY_CASE_KEY)
    if unhelpful_case_id:
        out.say(f"its plans wait for a person since case {unhelpful_case_id}", "yellow")
    shared_text = describe_shared_case(case)
    if shared_text:
        out.say(shared_text)
    if shown_case.hold_up is not None:
        out.say(describe_hold_up(shown_case.hold_up), "yellow")


def print_plan(out: Output, shown_case: ShownCase) -> None:
    """Print the steps of the plan, and what differs in the queue now."""
    out.say_heading("Plan")
    steps = find_plan_transition(shown_case.transitions).steps
    for line in list_step_lines(steps) or ["no change"]:
        out.say(line)
    if shown_case.new_access:
        out.say(
            f"Access Analyzer, beside what stands: {to_terminal_text(shown_case.new_access, 300)}",
            "yellow",
        )
    reason = find_plan_reason(shown_case.transitions)
    if reason:
        out.say(f"planned because {reason}", "dim")
    if (
        owner_of_case(steps) is Owner.REDRIVE
        and shown_case.attributes_now
        and not shown_case.changed_lines
    ):
        # A redrive moves messages and changes no attribute of the queue.
        return
    out.say_heading("Different now")
    if shown_case.attributes_now is None:
        out.say("the queue is gone, or was never there", "red")
    elif shown_case.attributes_before is None:
        out.say("not known: nothing was written down of the queue before", "dim")
    else:
        for line in shown_case.changed_lines or ("nothing",):
            out.say(line)


def _print_timeline(out: Output, shown_case: ShownCase) -> None:
    """Print the points of the case's timeline, and the times that its consumers need.

    For a point at which the case changed its state, also print who changed it, and why.
    """
    out.say_heading("Timeline (UTC)")
    transition_by_point = {}
    for transition in shown_case.transitions:
        transition_by_point[str(transition.state), transition.at] = transition
    timeline_points = build_timeline(shown_case.transitions, shown_case.timing, is_whole=True)
    labelled_lines = format_timeline(timeline_points, _MOST_VALUE_CHARACTERS)
    for timeline_point, (line_label, line_text) in zip(
        timeline_points, labelled_lines, strict=True
    ):
        transition_at_point = transition_by_point.get((timeline_point.what, timeline_point.at))
        if transition_at_point is None:
            out.say_labelled([(line_label, "dim", line_text)], indent=0)
            continue
        out.say_labelled(
            [(line_label, STYLE_BY_STATE.get(transition_at_point.state, "dim"), line_text)],
            indent=0,
        )
        out.say_unwrapped(f"by {transition_at_point.actor}", indent=2)
        out.say_indented(describe_reason(transition_at_point))
    needed_time_spans = list_need_spans(shown_case.transitions)
    if needed_time_spans:
        out.say_heading("Time that consumers need, and have")
        out.say_labelled(
            (line_label, "", bar_text) for line_label, bar_text in draw_time_bars(needed_time_spans)
        )


def _print_evidence(out: Output, evidence: Mapping[str, Any]) -> None:
    """Print how many calls failed, when and by whom; or when a scan found the symptom."""
    out.say_heading("Evidence")
    if not evidence.get("failed_calls"):
        out.say(f"seen by a scan at {evidence.get('first_at')}; no call failed")
        return
    out.say(format_count(evidence["failed_calls"], "failed call"))
    for first_or_last in ("first", "last"):
        request_id = evidence.get(f"{first_or_last}_request_id")
        out.say(f"{first_or_last:5} {evidence.get(f'{first_or_last}_at')}, request {request_id}")
    for principal in evidence.get("principals", ()):
        out.say_unwrapped(f"by {principal}", "")
    call_lines = [_describe_failed_call(request) for request in evidence.get("requests", ())]
    for line in dict.fromkeys(call_lines):
        out.say_indented(line)


def _describe_failed_call(failed_call: Mapping[str, str]) -> str:
    """Return one line about a failed call: its error code, IP address and user agent."""
    error_code = failed_call.get("error_code", "-")
    ip_address = failed_call.get("source_ip", "-")
    user_agent = failed_call.get("user_agent", "-")
    return f"{error_code} from {ip_address} with {user_agent}"
