"""`mendq show CASE`: all that is known of one case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.case_view import STYLES, find, snapshot_of, step_lines, summary, undo_commands
from cli.invocation import Invocation, with_invocation
from cli.output import Output, table
from functions.aws.errors import QueueGone
from functions.aws.queue_look import attributes_of
from functions.healing.case import Case
from functions.healing.difference import configured, differences
from functions.healing.evidence import to_text
from functions.healing.ledger_view import LedgerView, PageRecord
from functions.healing.plain_text import plain, value

CaseId = Annotated[str, typer.Argument(metavar="CASE", help="As `mendq cases` prints it.")]


@dataclass(frozen=True)
class Whole:
    """A case and what stands around it; `facts` from before it wrote, else as it was last known.

    `now` is None where the queue is gone.
    """

    transitions: tuple[Case, ...]
    facts: Mapping[str, str] | None
    now: Mapping[str, str] | None
    page: PageRecord | None

    @property
    def case(self) -> Case:
        return self.transitions[-1]

    @property
    def difference(self) -> tuple[str, ...]:
        """What differs now from the facts."""
        if self.facts is None or self.now is None:
            return ()
        return differences(self.facts, self.now)

    def document(self) -> dict[str, Any]:
        page = self.page
        return {
            **summary(self.case),
            "evidence": dict(self.case.evidence),
            "transitions": [each.document() for each in self.transitions],
            "facts": None if self.facts is None else configured(self.facts),
            "queue_exists": self.now is not None,
            "difference": list(self.difference),
            "undo": undo_commands(self.transitions),
            "page": None
            if page is None
            else {
                "told": {news: to_text(at) for news, at in page.told.items()},
                "subject": page.subject,
                "body": page.body,
            },
        }


def look(call: Invocation, case_id: str) -> Whole:
    """Read it all; Stopped where there is no such case."""
    transitions = find(call.account, case_id)
    case = transitions[-1]
    view: LedgerView = call.account.ledger.look(case.queue_arn, case.symptom, ())
    known = view.known.attributes if view.known else None
    try:
        now = attributes_of(call.account.clients, case.queue_arn)
    except QueueGone:
        now = None
    return Whole(transitions, snapshot_of(call.account, transitions) or known, now, view.page)


@with_invocation
def show(call: Invocation, case_id: CaseId) -> None:
    """All of one case: timeline, plan, what differs now."""
    with call.out.waiting("reading the case and its queue"):
        whole = look(call, case_id)
    call.out.document(whole.document())
    if not call.as_json:
        print_whole(call.out, whole)


def print_whole(out: Output, whole: Whole) -> None:
    case = whole.case
    out.show(
        Text.assemble(
            (case.case_id, "bold"), "  ", (str(case.state), STYLES.get(case.state, "dim"))
        )
    )
    out.say(case.queue_arn, "dim")
    _timeline(out, whole.transitions)
    _evidence(out, case.evidence)
    print_plan(out, whole)
    if whole.facts is not None:
        out.heading("Facts from before")
        facts = table("ATTRIBUTE", "VALUE")
        for name, text in configured(whole.facts).items():
            facts.add_row(Text(plain(name, 64)), Text(value(text, 300)))
        out.show(facts)
    for command in undo_commands(whole.transitions):
        out.heading("Undo")
        out.command(f"mendq roll-back {case.case_id}")
        out.say("or by hand, which does not look whether somebody has changed it since:", "dim")
        out.command(command)
    if whole.page is not None and whole.page.body:
        out.heading("Page that is still to be sent")
        for line in whole.page.body.splitlines():
            out.say(line)


def print_plan(out: Output, whole: Whole) -> None:
    """What was or would be changed, and what the queue says now."""
    out.heading("Plan")
    for line in step_lines(whole.case.steps) or ["no change"]:
        out.say(line)
    out.say(f"because {whole.case.reason}", "dim")
    out.heading("Different now")
    if whole.now is None:
        out.say("the queue is gone, or was never there", "red")
        return
    if whole.facts is None:
        out.say("not known: nothing was written down of the queue before", "dim")
        return
    for line in whole.difference or ("nothing",):
        out.say(line)


def _timeline(out: Output, transitions: tuple[Case, ...]) -> None:
    out.heading("Timeline")
    shown = table("AT (UTC)", "STATE", "BY", "REASON")
    for each in transitions:
        shown.add_row(
            f"{each.at:%Y-%m-%d %H:%M:%S}",
            Text(each.state, style=STYLES.get(each.state, "dim")),
            Text(plain(each.actor.rpartition("/")[2], 24)),
            Text(plain(each.reason, 300)),
        )
    out.show(shown)


def _evidence(out: Output, evidence: Mapping[str, Any]) -> None:
    out.heading("Evidence")
    out.say(f"{evidence.get('failed_calls', 0)} failed calls")
    for which in ("first", "last"):
        request_id = evidence.get(f"{which}_request_id")
        out.say(f"{which:5} {evidence.get(f'{which}_at')}, request {request_id}")
    for principal in evidence.get("principals", ()):
        out.say(f"by {principal}")
