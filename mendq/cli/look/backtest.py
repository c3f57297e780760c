"""`mendq backtest`: show what Mendq would have done about past CloudTrail files."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins

from mendq.cli.backtest.configuration import read_configuration, read_current_configuration
from mendq.cli.backtest.judged import (
    Backtest,
    JudgedIncident,
    count_notifications,
    explain_left_alone,
)
from mendq.cli.backtest.nightly_run import (
    make_not_installed_error,
    require_installed,
    run,
    summarize_week_with_mendq,
)
from mendq.cli.commands import QUEUE_ATTRIBUTES_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.look.export import replace_if_changed, require_writable_place
from mendq.cli.output import Output, make_table, shorten_list
from mendq.model.mode import Mode
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR
from mendq.notifications.text import format_count

# Rights for the facts that decisions about failed calls need, except metrics and the case store.
_RIGHTS = QUEUE_ATTRIBUTES_ACTIONS | {
    "sqs:ListQueueTags",
    "sqs:ListQueues",
    "tag:GetResources",
    "lambda:ListEventSourceMappings",
    "lambda:GetFunctionConfiguration",
}
_MOST_NAMED = 4
_QUEUES: Any = typer.Option(
    metavar="FILE", help="What `mendq export` wrote.", show_default="as they stand now"
)
NOT_KNOWN = (
    "Each incident is decided for itself, as if its queue had stood then as it stands now: open "
    "cases, claims, cooldowns, freezes and pins are not known, and nothing is measured. A case "
    "that is open silences what comes after it, so these are the most notifications; late are "
    f"those beyond the {NOTIFICATIONS_PER_HOUR} of a kind that are sent in an hour."
)


@command(12, CommandKind.LOOKING, _RIGHTS)
def backtest(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    trail: Annotated[
        str, typer.Option(metavar="ROOT", help="What AWSLogs is in: folder or s3://.")
    ],
    first: Annotated[str, typer.Option("--from", metavar="DAY", help="Such as 2026-11-02 (UTC).")],
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="The last day.")],
    queues: Annotated[Path | None, _QUEUES] = None,
    mode: Annotated[Mode, typer.Option(help="What the pages are about.")] = Mode.HEAL,
    out: Annotated[
        Path, typer.Option(metavar="DIR", parser=parse_folder, help="Where the pages are put.")
    ] = Path(),
) -> Exit:
    """What past CloudTrail files would have meant, had Mendq been there.

    Needs no deployment and changes nothing. The trail is read here, by Spark. Exits with 3 if over
    1 % of its bytes could not be read, with 4 if there was nothing for any of the days.

    Examples:
      mendq backtest --trail logs/ --from 2026-11-02 --to 2026-11-08
      mendq backtest --trail s3://trail --from 2026-11-02 --to 2026-11-08
    """
    require_writable_place(out / "mendq-backtest.html")
    make_page = _import_page_maker()
    configuration = None if queues is None else read_configuration(queues)
    arguments = [f"--trail={trail}", f"--from={first}", f"--to={last}"]
    if configuration is None:
        arguments.append(f"--account={call.account.account_id}")
        arguments.append(f"--region={call.account.region}")
    # The environment variables from which the nightly job takes its credentials.
    environment = {}
    if call.profile:
        environment["AWS_PROFILE"] = call.profile
    if call.region:
        environment["AWS_DEFAULT_REGION"] = call.region
    pages: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mendq-backtest-") as name:
        with call.out.show_waiting(f"reading {trail} from {first} to {last}"):
            code, found = run(arguments, Path(name), environment)
        incidents = format_count(len(found.incidents), "incident")
        with call.out.show_waiting(f"deciding about {incidents}"):
            decider = Backtest(configuration or read_current_configuration(call.account))
            judged = list(decider.judge_incidents(found.incidents))
        for week in found.weeks:
            summary = Path(name, f"summary/week={week}/summary.json").read_bytes()
            path = out / f"mendq-backtest-{week}.html"
            replace_if_changed(path, make_page(summarize_week_with_mendq(summary, judged, mode)))
            pages.append(str(path))
    document = _document(judged, days=found.days, pages=pages)
    call.out.print_json(document)
    _show(call.out, judged, document)
    if code is not Exit.DONE:
        call.out.say("over 1 % of the bytes could not be read: the page names the files", "red")
    return code


def _import_page_maker() -> Any:
    """Return the function that makes the report's page.

    Raises CommandError if Spark or the charts are not installed. The command calls it before it
    reads the trail.
    """
    require_installed()
    try:
        return import_module("mendq.report.html_page").page
    except ModuleNotFoundError as missing:
        raise make_not_installed_error(missing.name) from missing


def _document(judged: Sequence[JudgedIncident], **more: Any) -> dict[str, Any]:
    """Return the document that `mendq backtest --json` prints."""
    modes = {}
    for mode in Mode:
        would = Counter(incident.answers[mode].would.would for incident in judged)
        modes[str(mode)] = {"would": dict(would), **count_notifications(judged, mode)}
    return {
        **more,
        "modes": modes,
        "left_alone": explain_left_alone(judged),
        "not_known": NOT_KNOWN,
        "incidents": to_builtins(judged),
    }


def _show(out: Output, judged: Sequence[JudgedIncident], document: Mapping[str, Any]) -> None:
    """Print the incidents in groups, the queues that Mendq would leave alone, and the numbers.

    A group has the same symptom and the same answer in each mode. The largest group comes first.
    """
    left_alone = document["left_alone"]
    groups = defaultdict[tuple[str, ...], list[JudgedIncident]](list)
    for incident in judged:
        if incident.incident.queue_arn not in left_alone:
            answers = [answer.would.line for answer in incident.answers.values()]
            groups[incident.incident.symptom, *answers].append(incident)
    for (symptom, *answers), incidents in sorted(groups.items(), key=lambda item: -len(item[1])):
        names = dict.fromkeys(_queue_name(incident.incident.queue_arn) for incident in incidents)
        out.say(shorten_list([*names], _MOST_NAMED), "bold")
        out.say_indented(f"{symptom}: {_describe_number(incidents)}", "yellow")
        modes_by_answer = defaultdict[str, list[str]](list)
        for mode, answer in zip(Mode, answers, strict=True):
            modes_by_answer[answer].append(str(mode))
        out.say_labelled(
            (", ".join(modes), "cyan", answer) for answer, modes in modes_by_answer.items()
        )
    if left_alone:
        out.say_heading(f"Left alone: {format_count(len(left_alone), 'queue')}")
    names_by_reason = defaultdict[str, list[str]](list)
    for queue_arn, reason in left_alone.items():
        names_by_reason[reason].append(_queue_name(queue_arn))
    for reason, queue_names in names_by_reason.items():
        out.say_indented(f"{shorten_list(queue_names, _MOST_NAMED)}: {reason}")
    out.say_heading(f"Had Mendq been there: {_describe_number(judged)}")
    _show_modes(out, document["modes"])
    out.say(NOT_KNOWN, "dim")
    for path in document["pages"]:
        out.say(f"The page: {path}")
    out.say("nothing was changed")


def _show_modes(out: Output, modes: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the table of changes, proposals and notifications in each mode."""
    rows = make_table(
        "mode", "changes", "proposals", "notifications", "urgent", "worst hour", "late"
    )
    for mode, numbers in modes.items():
        figures = [
            numbers["would"].get("does", 0),
            numbers["would"].get("proposes", 0),
            numbers["notifications"],
            numbers["urgent"],
            numbers["in_worst_hour"],
            numbers["held_back"],
        ]
        rows.add_row(mode, *(f"{figure:,}" for figure in figures))
    out.show(rows)


def _describe_number(judged: Sequence[JudgedIncident]) -> str:
    """Return how many incidents and failed calls these are."""
    calls = sum(incident.incident.failed_calls for incident in judged)
    return f"{format_count(len(judged), 'incident')} of {format_count(calls, 'failed call')}"


def _queue_name(queue_arn: str) -> str:
    """Return the last part of the ARN. Text that is no ARN is returned unchanged."""
    return queue_arn.rpartition(":")[2]
