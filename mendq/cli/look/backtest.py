"""`mendq backtest`: what past CloudTrail files would have meant, had Mendq been there."""

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
from mendq.cli.commands import QUEUE, Kind, command
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.look.export import replace_if_changed, require_place
from mendq.cli.output import Output, make_table, shorten_list
from mendq.model.limits import Mode
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR
from mendq.notifications.text import format_count

# What decides about failed calls, but for what is measured or stands in a case store.
_RIGHTS = QUEUE | {
    *("sqs:ListQueueTags", "sqs:ListQueues", "tag:GetResources"),
    *("lambda:ListEventSourceMappings", "lambda:GetFunctionConfiguration"),
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


@command(12, Kind.LOOKING, _RIGHTS)
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

    Needs no deployment and changes nothing. The trail is read here, by Spark. Exits with 3 where
    over 1 % of its bytes could not be read, with 4 where nothing was there for any of the days.

    Examples:
      mendq backtest --trail logs/ --from 2026-11-02 --to 2026-11-08
      mendq backtest --trail s3://trail --from 2026-11-02 --to 2026-11-08
    """
    require_place(out / "mendq-backtest.html")
    page, given = _page_maker(), None if queues is None else read_configuration(queues)
    arguments = [f"--trail={trail}", f"--from={first}", f"--to={last}"]
    if given is None:
        arguments += [f"--account={call.account.account_id}", f"--region={call.account.region}"]
    named = {"AWS_PROFILE": call.profile, "AWS_DEFAULT_REGION": call.region}
    aws = {name: text for name, text in named.items() if text}
    files = list[str]()
    with tempfile.TemporaryDirectory(prefix="mendq-backtest-") as name:
        with call.out.show_waiting(f"reading {trail} from {first} to {last}"):
            code, found = run(arguments, Path(name), aws)
        with call.out.show_waiting(
            f"deciding about {format_count(len(found.incidents), 'incident')}"
        ):
            this = Backtest(given or read_current_configuration(call.account))
            judged = list(this.judged(found.incidents))
        for week in found.weeks:
            content = Path(name, f"summary/week={week}/summary.json").read_bytes()
            files.append(str(out / f"mendq-backtest-{week}.html"))
            replace_if_changed(
                Path(files[-1]), page(summarize_week_with_mendq(content, judged, mode))
            )
    document = _document(judged, days=found.days, pages=files)
    call.out.print_json(document)
    _show(call.out, judged, document)
    if code is not Exit.DONE:
        call.out.say("over 1 % of the bytes could not be read: the page names the files", "red")
    return code


def _page_maker() -> Any:
    """Before the trail is read: the wheel's core has neither Spark nor charts."""
    require_installed()
    try:
        return import_module("mendq.report.html_page").page
    except ModuleNotFoundError as missing:
        raise make_not_installed_error(missing.name) from missing


def _document(judged: Sequence[JudgedIncident], **more: Any) -> dict[str, Any]:
    would = {m: dict(Counter(it.answers[m].would.would for it in judged)) for m in Mode}
    modes = {str(m): {"would": would[m], **count_notifications(judged, m)} for m in Mode}
    said = {"modes": modes, "left_alone": explain_left_alone(judged), "not_known": NOT_KNOWN}
    return {**more, **said, "incidents": to_builtins(judged)}


def _show(out: Output, judged: Sequence[JudgedIncident], document: Mapping[str, Any]) -> None:
    """What is alike together; what nothing would have come of, by queue."""
    alone, alike = document["left_alone"], defaultdict[tuple[str, ...], list[JudgedIncident]](list)
    for each in judged:
        if each.incident.queue_arn not in alone:
            said = (it.would.line for it in each.answers.values())
            alike[each.incident.symptom, *said].append(each)
    for (symptom, *lines), some_of in sorted(alike.items(), key=lambda item: -len(item[1])):
        names = dict.fromkeys(_name(each.incident.queue_arn) for each in some_of)
        out.say(shorten_list([*names], _MOST_NAMED), "bold")
        out.say_indented(f"{symptom}: {_how_many(some_of)}", "yellow")
        modes = defaultdict[str, list[str]](list)
        for mode, line in zip(Mode, lines, strict=True):
            modes[line].append(str(mode))
        out.say_labelled([(", ".join(of), "cyan", line) for line, of in modes.items()])
    if alone:
        out.say_heading(f"Left alone: {format_count(len(alone), 'queue')}")
    for why in dict.fromkeys(alone.values()):
        queues = [_name(arn) for arn in alone if alone[arn] == why]
        out.say_indented(f"{shorten_list(queues, _MOST_NAMED)}: {why}")
    out.say_heading(f"Had Mendq been there: {_how_many(judged)}")
    rows = make_table(
        "mode", "changes", "proposals", "notifications", "urgent", "worst hour", "late"
    )
    for mode, of in document["modes"].items():
        figures = [of["would"].get(each, 0) for each in ("does", "proposes")]
        figures += [of[each] for each in ("notifications", "urgent", "in_worst_hour", "held_back")]
        rows.add_row(mode, *(f"{each:,}" for each in figures))
    out.show(rows)
    out.say(NOT_KNOWN, "dim")
    for path in document["pages"]:
        out.say(f"The page: {path}")
    out.say("nothing was changed")


def _how_many(judged: Sequence[JudgedIncident]) -> str:
    calls = sum(each.incident.failed_calls for each in judged)
    return f"{format_count(len(judged), 'incident')} of {format_count(calls, 'failed call')}"


def _name(queue_arn: str) -> str:
    """Its last part; what names no queue is said as it is."""
    return queue_arn.rpartition(":")[2]
