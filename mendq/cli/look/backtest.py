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
    explain_queues_left_alone,
)
from mendq.cli.backtest.nightly_run import (
    make_not_installed_error,
    require_installed,
    run_nightly_job,
    summarize_week_with_mendq,
)
from mendq.cli.commands import QUEUE_ATTRIBUTES_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.output import Output, make_table, shorten_list
from mendq.cli.private_file import (
    WrittenFile,
    report_open_files,
    require_writable_path,
    write_private_file,
)
from mendq.model.mode import Mode
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR
from mendq.notifications.text import format_count

# IAM actions for the facts that decisions about failed calls need, except metrics and the case
# store.
_IAM_ACTIONS = QUEUE_ATTRIBUTES_ACTIONS | {
    "sqs:ListQueueTags",
    "sqs:ListQueues",
    "tag:GetResources",
    "lambda:ListEventSourceMappings",
    "lambda:GetFunctionConfiguration",
}
_MOST_QUEUE_NAMES = 4
_QUEUES_OPTION: Any = typer.Option(
    metavar="FILE",
    help="A file that `mendq export` wrote.",
    show_default="the queues as they are now",
)
BACKTEST_LIMITATIONS = (
    "Each incident is decided for itself, as if its queue had stood then as it stands now: open "
    "cases, claims, cooldowns, freezes and pins are not known, and nothing is measured. A case "
    "that is open silences what comes after it, so these are the most notifications; late are "
    f"those beyond the {NOTIFICATIONS_PER_HOUR} of a kind that are sent in an hour."
)


@command(12, CommandKind.LOOKING, _IAM_ACTIONS)
def backtest(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    trail: Annotated[
        str, typer.Option(metavar="ROOT", help="The folder or s3:// address that contains AWSLogs.")
    ],
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="The first day, such as 2026-11-02 (UTC).")
    ],
    last: Annotated[str, typer.Option("--to", metavar="DAY", help="The last day.")],
    queues: Annotated[Path | None, _QUEUES_OPTION] = None,
    mode: Annotated[Mode, typer.Option(help="The mode whose outcome the pages show.")] = Mode.HEAL,
    out: Annotated[
        Path, typer.Option(metavar="DIR", parser=parse_folder, help="The folder for the pages.")
    ] = Path(),
) -> Exit:
    """Show what Mendq would have done about the failed calls in past CloudTrail files.

    Needs no deployment and changes nothing. Spark reads the files on this machine. Exits with 3 if
    over 1 % of the bytes could not be read, with 4 if nothing was read though the trail had begun.

    Examples:
      mendq backtest --trail logs/ --from 2026-11-02 --to 2026-11-08
      mendq backtest --trail s3://trail --from 2026-11-02 --to 2026-11-08
    """
    require_writable_path(out / "mendq-backtest.html")
    render_page = _import_page_renderer()
    configuration = None if queues is None else read_configuration(queues)
    job_arguments = [f"--trail={trail}", f"--from={first}", f"--to={last}"]
    if configuration is None:
        job_arguments.append(f"--account={call.account.account_id}")
        job_arguments.append(f"--region={call.account.region}")
    # The environment variables from which the nightly job takes its credentials.
    job_environment = {}
    if call.profile:
        job_environment["AWS_PROFILE"] = call.profile
    if call.region:
        job_environment["AWS_DEFAULT_REGION"] = call.region
    written_pages: list[WrittenFile] = []
    with tempfile.TemporaryDirectory(prefix="mendq-backtest-") as job_folder:
        with call.out.show_waiting(f"reading {trail} from {first} to {last}"):
            job_exit_code, nightly_result = run_nightly_job(
                job_arguments, Path(job_folder), job_environment
            )
        incidents_text = format_count(len(nightly_result.incidents), "incident")
        with call.out.show_waiting(f"deciding about {incidents_text}"):
            incident_judge = Backtest(configuration or read_current_configuration(call.account))
            judged_incidents = list(incident_judge.judge_incidents(nightly_result.incidents))
        for week in nightly_result.weeks:
            summary_content = Path(job_folder, f"summary/week={week}/summary.json").read_bytes()
            page_path = out / f"mendq-backtest-{week}.html"
            page_text = render_page(
                summarize_week_with_mendq(summary_content, judged_incidents, mode)
            )
            written_pages.append(write_private_file(page_path, page_text))
    page_paths = [str(page.path) for page in written_pages]
    result_document = _make_document(judged_incidents, days=nightly_result.days, pages=page_paths)
    call.out.print_json(result_document)
    _print_results(call.out, judged_incidents, result_document)
    report_open_files(call.out, written_pages)
    if job_exit_code is not Exit.DONE:
        call.out.say("over 1 % of the bytes could not be read: the page names the files", "red")
    return job_exit_code


def _import_page_renderer() -> Any:
    """Return the function that renders a weekly report as an HTML page.

    Raises CommandError if Spark or the charts are not installed. So the command calls this function
    before it reads the trail.
    """
    require_installed()
    try:
        return import_module("mendq.report.html_page").make_page
    except ModuleNotFoundError as missing:
        raise make_not_installed_error(missing.name) from missing


def _make_document(
    judged_incidents: Sequence[JudgedIncident], **further_fields: Any
) -> dict[str, Any]:
    """Return the document that `mendq backtest --json` prints, with `further_fields` in it."""
    numbers_by_mode = {}
    for mode in Mode:
        decision_counts = Counter(
            judged_incident.answers[mode].would.would for judged_incident in judged_incidents
        )
        numbers_by_mode[str(mode)] = {
            "would": dict(decision_counts),
            **count_notifications(judged_incidents, mode),
        }
    return {
        **further_fields,
        "modes": numbers_by_mode,
        "left_alone": explain_queues_left_alone(judged_incidents),
        "not_known": BACKTEST_LIMITATIONS,
        "incidents": to_builtins(judged_incidents),
    }


def _print_results(
    out: Output, judged_incidents: Sequence[JudgedIncident], result_document: Mapping[str, Any]
) -> None:
    """Print the incidents in groups, the queues that Mendq would leave alone, and the numbers."""
    reason_by_queue_arn = result_document["left_alone"]
    incidents_not_left_alone = [
        judged_incident
        for judged_incident in judged_incidents
        if judged_incident.incident.queue_arn not in reason_by_queue_arn
    ]
    _print_incident_groups(out, incidents_not_left_alone)
    _print_queues_left_alone(out, reason_by_queue_arn)
    out.say_heading(f"Had Mendq been there: {_describe_incidents(judged_incidents)}")
    _print_mode_table(out, result_document["modes"])
    out.say(BACKTEST_LIMITATIONS, "dim")
    for page_path in result_document["pages"]:
        out.say(f"The page: {page_path}")
    out.say("nothing was changed")


def _print_incident_groups(out: Output, judged_incidents: Sequence[JudgedIncident]) -> None:
    """Print the incidents in groups, the largest group first.

    The incidents of a group have the same symptom and the same answer in each mode.
    """
    incidents_by_group = defaultdict[tuple[str, ...], list[JudgedIncident]](list)
    for judged_incident in judged_incidents:
        answer_lines = [answer.would.line for answer in judged_incident.answers.values()]
        incidents_by_group[judged_incident.incident.symptom, *answer_lines].append(judged_incident)
    for (symptom, *answer_lines), incidents_of_group in sorted(
        incidents_by_group.items(), key=lambda item: -len(item[1])
    ):
        queue_names = dict.fromkeys(
            _get_queue_name(incident_of_group.incident.queue_arn)
            for incident_of_group in incidents_of_group
        )
        out.say(shorten_list([*queue_names], _MOST_QUEUE_NAMES), "bold")
        out.say_indented(f"{symptom}: {_describe_incidents(incidents_of_group)}", "yellow")
        modes_by_answer_line = defaultdict[str, list[str]](list)
        for mode, answer_line in zip(Mode, answer_lines, strict=True):
            modes_by_answer_line[answer_line].append(str(mode))
        out.say_labelled(
            (", ".join(modes), "cyan", answer_line)
            for answer_line, modes in modes_by_answer_line.items()
        )


def _print_queues_left_alone(out: Output, reason_by_queue_arn: Mapping[str, str]) -> None:
    """Print the queues that Mendq would leave alone, one line for each reason."""
    if reason_by_queue_arn:
        out.say_heading(f"Left alone: {format_count(len(reason_by_queue_arn), 'queue')}")
    queue_names_by_reason = defaultdict[str, list[str]](list)
    for queue_arn, reason in reason_by_queue_arn.items():
        queue_names_by_reason[reason].append(_get_queue_name(queue_arn))
    for reason, queue_names in queue_names_by_reason.items():
        out.say_indented(f"{shorten_list(queue_names, _MOST_QUEUE_NAMES)}: {reason}")


def _print_mode_table(out: Output, numbers_by_mode: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the table of changes, proposals and notifications in each mode."""
    table = make_table(
        "mode", "changes", "proposals", "notifications", "urgent", "worst hour", "late"
    )
    for mode, numbers_of_mode in numbers_by_mode.items():
        cell_counts = [
            numbers_of_mode["would"].get("does", 0),
            numbers_of_mode["would"].get("proposes", 0),
            numbers_of_mode["notifications"],
            numbers_of_mode["urgent"],
            numbers_of_mode["in_worst_hour"],
            numbers_of_mode["held_back"],
        ]
        table.add_row(mode, *(f"{cell_count:,}" for cell_count in cell_counts))
    out.show(table)


def _describe_incidents(judged_incidents: Sequence[JudgedIncident]) -> str:
    """Return how many incidents and failed calls these are."""
    failed_call_count = sum(
        judged_incident.incident.failed_calls for judged_incident in judged_incidents
    )
    incidents_text = format_count(len(judged_incidents), "incident")
    return f"{incidents_text} of {format_count(failed_call_count, 'failed call')}"


def _get_queue_name(queue_arn: str) -> str:
    """Return the queue's name from its ARN. A text without a colon is returned unchanged."""
    return queue_arn.rpartition(":")[2]
