"""The demo's output: events, a table of the queues below them, and the summary at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from local_account.demo.story import BadQueue, Story
from local_account.demo.traffic import Traffic
from local_account.demo.watching import AccountWatcher, QueueObservation
from mendq.cli.look.case_view import STYLE_BY_STATE
from mendq.model.case import Severity
from mendq.model.state import State
from mendq.notifications.change_lines import DELETION_WARNING, RETENTION_ATTRIBUTE
from mendq.notifications.commands import set_attributes_command

if TYPE_CHECKING:
    from local_account.demo.mailbox import Mailbox, Message

MAXIMUM_SHOWN_LINES = 12
RULE_WIDTH_COLUMNS = 80
PIPE_WIDTH_COLUMNS = 10_000  # a pipe has no width; lines in it are not broken
UNDO_NOTE = "(as it would be typed: this account and its port end with the demo)"
INDENT_PADDING = (0, 0, 0, 2)
NEXT_STEPS = (
    ("make account", "keeps such an account standing, for tries of your own"),
    ("docs/deploy.md", "puts Mendq on your own account, to observe at first"),
)


def make_console() -> Console:
    """Return the demo's console. In a pipe it does not wrap lines, so that logs can be searched.

    If the environment variable COLUMNS is set, lines are wrapped at that width also in a pipe.
    """
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=get_terminal_size((PIPE_WIDTH_COLUMNS, 0)).columns)


def print_all(console: Console, *renderables: RenderableType) -> None:
    """Print objects one after the other. A text with `no_wrap` is not wrapped."""
    for renderable in renderables:
        is_never_wrapped = isinstance(renderable, Text) and renderable.no_wrap is True
        console.print(renderable, soft_wrap=is_never_wrapped)


def make_rule(title: str, style: str, *, has_title_at_right: bool = False) -> RenderableType:
    """Return a horizontal line with a title, at the left unless `has_title_at_right` is True."""
    text = Text(title, style="dim" if has_title_at_right else "bold")
    return Constrain(
        Rule(text, align="right" if has_title_at_right else "left", style=style), RULE_WIDTH_COLUMNS
    )


def _indent(text: str | Text, style: str = "") -> RenderableType:
    if isinstance(text, str):
        text = Text(text, style=style)
    return Padding(text, INDENT_PADDING, expand=False)


def make_event_line(
    watcher: AccountWatcher, name: str, event_text: str, style: str = ""
) -> RenderableType:
    """Return a line about an event: the seconds since the story began, a name, and a text."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=7, justify="right", style="dim")
    grid.add_column(min_width=13, style="bold")
    grid.add_column(overflow="fold", style=style)
    grid.add_row(f"{watcher.elapsed_seconds():.1f} s", Text(name), Text(event_text))
    return grid


def draw_command(command_text: str, exit_code: int, output: str) -> Iterator[RenderableType]:
    """Yield the lines about a command that has ended: the command, its output, its exit code."""
    yield make_rule(f"$ {command_text}", "cyan")
    yield Text(output.strip("\n"), no_wrap=True)
    yield make_rule(f"exit {exit_code}", "cyan", has_title_at_right=True)


def describe_calls(traffic: Traffic, fault: str | None, call_count: int) -> tuple[str, str]:
    """Return a text and its style for `call_count` calls with the same result.

    `fault` is the error message, or None if the calls succeeded.
    """
    calls_text = f"{call_count} {traffic.call_noun}{'' if call_count == 1 else 's'}"
    if fault is None:
        return f"{calls_text} {traffic.success_words}", "green"
    return f"{calls_text} failed: {fault}", "red"


def describe_transition(transition: Mapping[str, Any]) -> tuple[str, str]:
    """Return a text and its style for a transition of a case."""
    return f"{transition['to']}: {transition['reason']}", STYLE_BY_STATE.get(
        transition["to"], "bold"
    )


def get_queue_name(record: Mapping[str, Any]) -> str:
    """Return the name of the queue of a case or an incident."""
    return str(record["queue_arn"]).rpartition(":")[2]


def make_pairs_grid(
    rows: Iterable[tuple[str, str]], style: str = "bold", indent: int = 2
) -> RenderableType:
    """Return a grid of names, each with a sentence beside it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=style, no_wrap=True)
    grid.add_column(style="dim")
    for name, sentence in rows:
        grid.add_row(Text(name), Text(sentence))
    return Padding(grid, (0, 0, 0, indent), expand=False)


def draw_queues_of_story(story: Story) -> RenderableType:
    """Return a list of the story's queues, with a sentence about the fault of each."""
    return Group(
        Text(""),
        make_pairs_grid((bad_queue.name, bad_queue.why) for bad_queue in story.queues),
        Text(""),
    )


def make_table(headings: str, rows: Iterable[Sequence[Text]]) -> Table:
    """Return a table with these headings, separated by `|`.

    A column whose heading begins with `#` is right-aligned.
    """
    result_table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for heading in headings.split("|"):
        result_table.add_column(
            heading.lstrip("#"), justify="right" if heading[0] == "#" else "left"
        )
    for row in rows:
        result_table.add_row(*row)
    return result_table


def make_queue_table(story: Story, watcher: AccountWatcher) -> RenderableType:
    """Return a table with one line for each queue. It fits into 80 columns.

    The receives of a consumer that crashes are in the column "no error", because SQS answers them
    without an error.
    """

    def make_row(bad_queue: BadQueue) -> Iterator[Text]:
        queue = watcher.queues[bad_queue.name]
        yield Text(bad_queue.name, style="bold")
        yield Text(str(queue.failed_calls), style="red" if queue.failed_calls else "dim")
        yield Text(str(queue.successful_calls), style="green" if queue.successful_calls else "dim")
        yield _make_state_text(queue)
        changes = [
            f"{name} {value_before} -> {value_after}"
            for name, (value_before, value_after) in queue.changes().items()
        ]
        changes_text = f"{len(changes)} attributes" if len(changes) > 1 else "".join(changes)
        yield Text(changes_text or "-", style="bold green" if changes else "dim")

    rows = [tuple(make_row(bad_queue)) for bad_queue in story.queues]
    return Group(Text(""), make_table("queue|#failed calls|#no error|case|changed", rows))


def _make_state_text(queue: QueueObservation) -> Text:
    state: Any = queue.newest_transition["to"] if queue.newest_transition else "-"
    return Text(state, style=STYLE_BY_STATE.get(state, "dim"))


def draw_decisions(story: Story, watcher: AccountWatcher) -> Iterator[RenderableType]:
    """Yield the lines about the cases of each queue that has one: evidence, change and undo."""
    yield Text("")
    for bad_queue in story.queues:
        queue = watcher.queues[bad_queue.name]
        transitions = watcher.transitions(bad_queue.name)
        if transitions:
            yield from _draw_decision(bad_queue, queue, transitions)
            yield Text("")


def _draw_decision(
    bad_queue: BadQueue, queue: QueueObservation, transitions: Sequence[Mapping[str, Any]]
) -> Iterator[RenderableType]:
    """Yield the lines about the cases of one queue: states, reasons, evidence and change."""
    first_transition = transitions[0]
    last_transition = transitions[-1]
    yield Text.assemble((bad_queue.name, "bold"), "  ", _make_state_text(queue))
    if len(transitions) > 1:
        yield _make_labelled_line(
            "life", " -> ".join(transition["to"] for transition in transitions)
        )
    yield _make_labelled_line("why", first_transition["reason"])
    if len(transitions) > 1 and not first_transition["reason"].startswith(
        last_transition["reason"]
    ):
        yield _make_labelled_line("in the end", last_transition["reason"])
    yield _make_labelled_line("seen", _describe_evidence(first_transition["evidence"], queue))
    yield from _draw_change(bad_queue, queue)


def _describe_evidence(evidence: Mapping[str, Any], queue: QueueObservation) -> str:
    """Return a text about the evidence with which a case was opened."""
    failed_calls = evidence["failed_calls"]
    if not failed_calls:
        return "by a scan; no call failed"
    evidence_text = f"{failed_calls} failed calls"
    if failed_calls < queue.failed_calls:
        evidence_text += f" by then, {queue.failed_calls} in all"
    return f"{evidence_text}, the first request {evidence['first_request_id']}"


def _draw_change(bad_queue: BadQueue, queue: QueueObservation) -> Iterator[RenderableType]:
    """Yield the lines about a queue's change: undone, made, proposed, only planned, or none."""
    steps = queue.newest_transition["steps"] if queue.newest_transition else []
    state = queue.newest_transition["to"] if queue.newest_transition else None
    steps_text = ", ".join(
        f"{step['attribute']} {step['before']} -> {step['after']}" for step in steps
    )
    if state == State.ROLLED_BACK:
        yield _make_labelled_line("undone", steps_text)
    elif bad_queue.a_person_sets:
        yield _make_labelled_line("change", steps_text)
        values_set_by_person_text = ", ".join(
            f"{name} {value}" for name, value in bad_queue.a_person_sets.items()
        )
        yield _make_labelled_line("kept", f"{values_set_by_person_text}, a person's value")
    elif bad_queue.is_fix_written and not bad_queue.has_attribute_steps:
        yield _make_labelled_line("change", f"{steps_text}: what went back is not taken back")
    elif queue.changes():
        seconds = queue.seconds_to_heal()
        duration_text = "" if seconds is None else f", {seconds:.1f} s after the first failing call"
        yield _make_labelled_line("change", steps_text + duration_text)
        yield from _draw_undo(queue)
    elif state == State.PROPOSED:
        yield _make_labelled_line("change", f"none yet; proposed: {steps_text}")
    elif steps_text:
        yield _make_labelled_line("change", f"none (it would have been {steps_text})")
    else:
        yield _make_labelled_line("change", "none")


def _draw_undo(queue: QueueObservation) -> Iterator[RenderableType]:
    """Yield the lines with the command that undoes a change. Without a change, yield nothing."""
    endpoint_option = f" --endpoint-url {'/'.join(queue.queue_url.split('/')[:3])}"
    steps = (queue.newest_transition or {}).get("steps", ())
    value_before_by_attribute = {step["attribute"]: step["before"] for step in steps}
    if value_before_by_attribute:
        command_text = (
            set_attributes_command(queue.queue_arn, value_before_by_attribute, queue.queue_url)
            + endpoint_option
        )
        yield Text.assemble(("      undo ", "dim"), command_text, no_wrap=True)
        yield _make_labelled_line(
            "",
            f"{DELETION_WARNING} {UNDO_NOTE}"
            if RETENTION_ATTRIBUTE in value_before_by_attribute
            else UNDO_NOTE,
        )


def _make_labelled_line(name: str, text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=10, justify="right", style="dim")
    grid.add_column(overflow="fold")
    grid.add_row(name, Text(text))
    return grid


def draw_notifications(mailbox: Mailbox, path: Path) -> Iterator[RenderableType]:
    """Yield the first lines of each urgent notification, and the subjects of the others.

    `path` is the file with all notifications.
    """
    yield Text.assemble(
        ("the notifications, as people get them", "bold"), (f"  all: {path}", "dim")
    )
    for message in mailbox.messages:
        if message.severity is Severity.URGENT:
            yield from _draw_first_lines(message)
    for message in mailbox.messages:
        if message.severity is not Severity.URGENT:
            yield _indent(Text.assemble((f"{message.severity}  ", "dim"), message.subject))
    yield Text("")


def _draw_first_lines(message: Message) -> Iterator[RenderableType]:
    message_lines = message.text.splitlines()
    yield make_rule(str(message.severity), "magenta")
    yield Text(f"{message.subject}\n", style="bold")
    for line in message_lines[:MAXIMUM_SHOWN_LINES]:
        yield Text(line, no_wrap=line.startswith("  "))
    yield make_rule(
        f"{max(0, len(message_lines) - MAXIMUM_SHOWN_LINES)} more lines",
        "magenta",
        has_title_at_right=True,
    )


def draw_job(name: str, seconds: float, printed_lines: Sequence[str]) -> RenderableType:
    """Return the lines about a job run that has ended: name, seconds, and what it printed."""
    heading = Text.assemble((name, "bold"), (f"  {seconds:.1f} s", "dim"))
    return Group(heading, *(_indent(line, "dim") for line in printed_lines))


def make_incident_table(incidents: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return the incidents that the nightly job wrote, as a table."""

    def make_row(incident: Mapping[str, Any]) -> Iterator[Text]:
        yield Text(get_queue_name(incident), style="bold")
        yield Text(incident["symptom"])
        yield Text(str(incident["failed_calls"]))
        yield Text(incident["outcome"], style=STYLE_BY_STATE.get(incident["outcome"], "bold"))

    rows = [tuple(make_row(incident)) for incident in incidents]
    return Group(Text(""), make_table("incident on|symptom|#failed calls|outcome", rows), Text(""))


def draw_week_notification(text: str) -> Iterator[RenderableType]:
    """Yield the lines that show `text`, the notification about the week's report."""
    yield Text("the week's verdict, as its readers get it", style="bold")
    for line in text.splitlines():
        if line.startswith(("The page:", "To read it:")):
            yield Text(f"  {line}", no_wrap=True)  # so that people can copy it
        else:
            yield _indent(line)
    yield Text("")


def draw_differences(result: Mapping[str, Any], path: Path) -> Iterator[RenderableType]:
    """Yield the lines about differences from AWS.

    They show the number of things that are not emulated, the lowered limits, and the shortened
    waits. `path` is the file with all of them.
    """
    accepted_sentence = f"{len(result['not_emulated'])} things are accepted here and not emulated"
    yield Text.assemble((accepted_sentence, "bold"), (f"  all: {path}", "dim"))
    floors_text = ", ".join(result["floors_lowered"]) or "none"
    yield Text.assemble(("bounds that are other than shipped: ", "bold"), (floors_text, "dim"))
    for sentence in result["clock_put_forward"]:
        yield Text(sentence, style="dim")


def draw_claims(claims: Iterable[tuple[str, bool]]) -> Iterator[RenderableType]:
    """Yield a heading, and a line for each claim with the word `holds` or `not as claimed`."""
    yield Text("\nthe claims", style="bold")
    for claim_text, is_claim_true in claims:
        if is_claim_true:
            yield Text.assemble(
                ("  holds  ", "green"), Text(claim_text, style="dim"), overflow="fold"
            )
        else:
            yield Text.assemble(
                ("not as claimed: ", "bold red"),
                Text(claim_text, style="bold red"),
                overflow="fold",
            )


def draw_farewell(
    files: Iterable[tuple[Path, str]], *, have_all_claims_held: bool
) -> RenderableType:
    """Return the last lines: the overall result, the files that exist, and next steps."""
    existing_files = [(str(path), description) for path, description in files if path.is_file()]
    if have_all_claims_held:
        result_text = Text("It ended as claimed.", style="bold green")
    else:
        result_text = Text("It did not end as claimed: the lines in red say why.", style="bold red")
    next_steps = make_pairs_grid(NEXT_STEPS, "")
    return Group(
        Text(""),
        result_text,
        make_pairs_grid(existing_files, ""),
        Text("What next", style="bold"),
        next_steps,
    )
