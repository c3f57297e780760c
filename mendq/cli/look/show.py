"""`mendq show CASE`: all that is known of one case."""

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
from mendq.cli.commands import SHOWN, Kind, command
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import (
    STYLES,
    commands,
    find,
    held_up_line,
    hold_up_in,
    opened_at,
    plan_of,
    plan_reason,
    runs_out_at,
    step_lines,
    summary,
    timing_of,
    until,
)
from mendq.cli.output import Output
from mendq.cli.redrive.hold import progress_lines, read_progress
from mendq.cli.undo.answers import Answer, format_attribute, list_printed_commands, name_later_cases
from mendq.heal.recover import read_written
from mendq.heal.restore_policy import new_access
from mendq.heal.undo import UndoOutcome, list_writes, plan_undos
from mendq.model.case import LOWERED, Case, State
from mendq.model.evidence import to_text
from mendq.model.facts import Facts
from mendq.model.limits import Timing
from mendq.model.plan import owner_of_case
from mendq.model.steps import CreateDlq, Owner, is_permanent
from mendq.model.timeline import build_timeline
from mendq.notifications.change_lines import DELETES, RETENTION
from mendq.notifications.commands import mendq_command
from mendq.notifications.configuration import as_json, differences, select_configuration
from mendq.notifications.next_steps import next_step, with_code
from mendq.notifications.queue_lines import BESIDE, draw_bars, timeline_lines
from mendq.notifications.text import command_line, format_count, plain, value
from mendq.redrive.progress import RedriveProgress

_MOST_VALUE = 300
_CASE_ID = typer.Argument(metavar="CASE", help="As `mendq cases` prints it; or its queue's name.")
CaseId = Annotated[str, _CASE_ID]


class Whole(Struct, frozen=True):
    """A case and what stands around it; `facts` from before it wrote, else as it was well.

    `now` is None where the queue is gone. `new_access` is what AWS says that a policy would add.
    `standing` is what stands of what was written, as `rollback --dry-run` says it.
    """

    transitions: tuple[Case, ...]
    facts: Mapping[str, str] | None
    now: Mapping[str, str] | None
    timing: Timing | None
    standing: tuple[Answer, ...] = ()
    hold_up: HoldUp | None = None
    progress: RedriveProgress | None = None
    new_access: str = ""

    @property
    def case(self) -> Case:
        return self.transitions[-1]

    @property
    def difference(self) -> tuple[str, ...]:
        """What differs now from the facts."""
        if self.facts is None or self.now is None:
            return ()
        return differences(self.facts, self.now)

    @property
    def undo(self) -> list[str]:
        """The commands that take back what stands there as the case wrote it."""
        ours = any(each["outcome"] == UndoOutcome.UNDONE for each in self.standing)
        printed = list_printed_commands(
            each for each in self.standing if not is_permanent(each["attribute"])
        )
        return [mendq_command("rollback", self.case)] * ours + [*printed.values()]

    @property
    def next_step(self) -> dict[str, str]:
        """As the case says it, made harmless to show; an older Mendq's did not."""
        said = self.case.next_step or next_step(self.case)
        texts = {name: said.get(name) for name in ("sentence", "command", "runbook")}
        return {name: command_line(str(each)) if each else "" for name, each in texts.items()}

    def document(self) -> dict[str, Any]:
        hold_up, ends_at = self.hold_up, runs_out_at(self.case, self.timing)
        return {
            **summary(self.case),
            "steps": [dict(each) for each in plan_of(self.transitions).steps],
            "taken_back": [dict(each) for each in self.case.steps if self.case.is_rollback],
            "next_step": self.next_step,
            "plan_reason": plan_reason(self.transitions),
            "until": ends_at and to_text(ends_at),
            "held_up": hold_up
            and {"since": to_text(hold_up.since), "code": hold_up.code, "reason": hold_up.reason},
            "evidence": dict(self.case.evidence),
            "transitions": [each.document() for each in self.transitions],
            "facts": None if self.facts is None else select_configuration(self.facts),
            "queue_exists": self.now is not None,
            "difference": list(self.difference),
            "new_access": self.new_access,
            "redrive": self.progress and self.progress.document(),
            "standing": list(self.standing),
            "undo": self.undo,
        }


def look(call: Invocation, case_id: str) -> Whole:
    """Read it all; CommandError where there is no such case."""
    account = call.account
    transitions = find(account, case_id)
    case, written = transitions[-1], list_writes(transitions)
    arn, names = case.queue_arn, [each.attribute for each in written]
    view = account.open_store(CaseStore).look(arn, case.symptom, names)
    taken = ((each.n, account.open_store(OpenCases).snapshot_of(each)) for each in transitions)
    snapshots = {n: snapshot for n, snapshot in taken if snapshot is not None}
    facts = next(iter(snapshots.values()), None) or _when_it_was_well(account, case)
    timing = timing_of(account, transitions)
    steps = [step for each in transitions for step in each.steps]
    try:
        stands = read_written(account.clients, arn, steps)
    except QueueGone:
        return Whole(transitions, facts, None, timing)
    now = {name: text for name, text in stands.items() if name != CreateDlq.attribute}
    # Of what was taken back nothing is to be taken back.
    made = () if case.state is State.ROLLED_BACK else written
    found = plan_undos(made, snapshots, Facts(arn, stands, {}), view)
    answer: Answer = {"case_id": case.case_id, "attributes": [each.document() for each in found]}
    name_later_cases(account, [answer])
    held_up, progress = hold_up_in(view, case), read_progress(account, case)
    is_policy = case.state is State.PROPOSED and owner_of_case(case.steps) is Owner.RESTORE_POLICY
    values = [(each["before"], each["after"]) for each in case.steps if is_policy]
    adds = "".join(new_access(account.clients, *each) for each in values)
    stood = tuple(answer["attributes"])
    return Whole(transitions, facts, now, timing, stood, held_up, progress, adds)


def _when_it_was_well(account: Account, case: Case) -> Mapping[str, str] | None:
    """The attributes as a scan found them well before the case; None where none did."""
    for each in account.open_store(Baselines).of(case.queue_arn):
        if each.at <= opened_at(case):
            return {k: text for k, text in each.attributes.items() if not k.startswith(BESIDE)}
    return None


@command(3, Kind.LOOKING, SHOWN)
def show(call: Invocation, case_id: CaseId) -> None:
    """All of one case: timeline, plan, what differs now.

    Examples:
      mendq show orders                # the ID of a case, or its queue
      mendq show orders --json
    """
    with call.out.show_waiting("reading the case and its queue"):
        whole = look(call, case_id)
    call.out.print_json(whole.document())
    if not call.as_json:
        print_whole(call.out, whole)


def print_whole(out: Output, whole: Whole) -> None:
    print_head(out, whole)
    _timeline(out, whole)
    _evidence(out, whole.case.evidence)
    print_plan(out, whole)
    if whole.progress is not None:
        out.say_heading("Redrive")
        out.say_labelled(progress_lines(whole.progress))
    if whole.facts is not None:
        out.say_heading("Facts from before")
        shown = {
            plain(name, 64): as_json(name, text, _MOST_VALUE) or value(text, _MOST_VALUE)
            for name, text in select_configuration(whole.facts).items()
        }
        out.say_labelled((name, "", text) for name, text in shown.items())
    if (step := whole.next_step)["sentence"]:
        out.say_heading("Next")
        out.say(step["sentence"])
        if step["command"] != mendq_command("show", whole.case):
            out.say_command(step["command"])
        out.say(f"runbook: {step['runbook']}", "dim")
    if words := commands(whole.case):
        out.say_heading("A person's word")
        for line in words:
            out.say_command(line)
    if whole.standing:
        out.say_heading("Undo")
        theirs = [each for each in whole.standing if each["outcome"] != UndoOutcome.UNDONE]
        out.say_labelled(map(format_attribute, theirs))
        for command in whole.undo:
            if not command.startswith("mendq "):
                also = f"; {DELETES}" * (RETENTION in command)
                out.say(f"by hand, without a look at who has set it since{also}:", "dim")
            out.say_command(command)


def print_head(out: Output, whole: Whole) -> None:
    """Which case, on which queue, how it stands and why."""
    case, ends = whole.case, until(whole.case, whole.timing)
    out.say(case.case_id, "bold")
    out.say_unwrapped(case.queue_arn)
    out.say(f"{case.state}, {ends}" if ends else case.state, STYLES.get(case.state, "dim"))
    if case.reason != plan_reason(whole.transitions):
        out.say(with_code(case) if case.code else f"because {case.reason}", "dim")
    if lowered_by := case.evidence.get(LOWERED):
        out.say(f"its plans wait for a person since case {lowered_by}", "yellow")
    if whole.hold_up is not None:
        out.say(held_up_line(whole.hold_up), "yellow")


def print_plan(out: Output, whole: Whole) -> None:
    """What was or would be changed, and what the queue says now."""
    out.say_heading("Plan")
    steps = plan_of(whole.transitions).steps
    for line in step_lines(steps) or ["no change"]:
        out.say(line)
    if whole.new_access:
        out.say(f"Access Analyzer, beside what stands: {plain(whole.new_access, 300)}", "yellow")
    if because := plan_reason(whole.transitions):
        out.say(f"planned because {because}", "dim")
    if owner_of_case(steps) is Owner.REDRIVE and whole.now and not whole.difference:
        return  # it moves messages, and changes nothing of the queue
    out.say_heading("Different now")
    if whole.now is None:
        out.say("the queue is gone, or was never there", "red")
        return
    if whole.facts is None:
        out.say("not known: nothing was written down of the queue before", "dim")
        return
    for line in whole.difference or ("nothing",):
        out.say(line)


def _timeline(out: Output, whole: Whole) -> None:
    """What came when, of each state who moved the case there, and why; what consumers need."""
    out.say_heading("Timeline (UTC)")
    moved = {(str(each.state), each.at): each for each in whole.transitions}
    points = build_timeline(whole.transitions, whole.timing, is_whole=True)
    for point, (when, said) in zip(points, timeline_lines(points, _MOST_VALUE), strict=True):
        each = moved.get((point.what, point.at))
        out.say_labelled([(when, STYLES.get(each.state, "dim") if each else "dim", said)], indent=0)
        if each:
            out.say_unwrapped(f"by {each.actor}", indent=2)
            out.say_indented(with_code(each))
    if spans := list_need_spans(whole.transitions):
        out.say_heading("Time that consumers need, and have")
        out.say_labelled((what, "", bar) for what, bar in draw_bars(spans))


def _evidence(out: Output, evidence: Mapping[str, Any]) -> None:
    out.say_heading("Evidence")
    if not evidence.get("failed_calls"):
        out.say(f"seen by a scan at {evidence.get('first_at')}; no call failed")
        return
    out.say(format_count(evidence["failed_calls"], "failed call"))
    for which in ("first", "last"):
        request_id = evidence.get(f"{which}_request_id")
        out.say(f"{which:5} {evidence.get(f'{which}_at')}, request {request_id}")
    for principal in evidence.get("principals", ()):
        out.say_unwrapped(f"by {principal}", "")
    for each in dict.fromkeys(map(_call_line, evidence.get("requests", ()))):
        out.say_indented(each)


def _call_line(call: Mapping[str, str]) -> str:
    code, ip, agent = (call.get(e, "-") for e in ("error_code", "source_ip", "user_agent"))
    return f"{code} from {ip} with {agent}"
