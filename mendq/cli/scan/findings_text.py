"""Print the findings of a scan for people: a summary first, then the worst in detail.

An account can have thousands of findings, most of them hygiene. So the text answers in this order:

1. The summary: one row for each symptom, the worst class first, with the number of queues, the
   worst example, and what to do. Hygiene is one line.
2. Details of each class but hygiene: the consequence once for each symptom, then a few queues with
   their numbers, what Mendq would do, and a command. Queues with equal sentences share them.
3. Findings that another finding explains, one line each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from mendq.cases.finding import Finding
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.cli.output import Output, make_table, shorten_list
from mendq.cli.scan.dry_run import ExpectedAction
from mendq.cli.scan.finding_filter import FindingFilter
from mendq.model.queue import parse_queue_arn
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import runbook_command, scan_symptom_command
from mendq.notifications.text import format_count, to_terminal_text
from mendq.scan.selection import group_shared_defaults
from mendq.scan.severity import find_class, find_explained_findings, sort_worst_first

# Most groups of queues with the same symptom that are printed. --symptom prints all of them.
_MOST_GROUPS_PER_SYMPTOM = 3
_MOST_QUEUE_NAMES = 4
# The most findings that are printed of those that another finding explains.
_MOST_EXPLAINED_FINDINGS = 20
_MOST_HYGIENE_SYMPTOMS = 3
_MOST_NAME_CHARACTERS = 80
# A narrower terminal cannot hold the four columns of the summary.
_LEAST_TABLE_WIDTH = 96


@dataclass(frozen=True)
class _SummaryRow:
    """A row of the summary: the findings of a symptom in one severity class."""

    severity_class: SeverityClass
    symptom: str
    # The worst first.
    findings: Sequence[Finding]

    @property
    def example(self) -> str:
        return _format_name(self.findings[0])

    @property
    def first_step(self) -> str:
        return SYMPTOM_BY_NAME[self.symptom].first_step


def print_findings_of_scan(
    out: Output,
    action_by_finding: Mapping[Finding, ExpectedAction],
    finding_filter: FindingFilter,
    *,
    shows_hygiene: bool,
) -> None:
    """Print the summary and the details of the findings that the filter shows.

    Args:
        out: The command's output.
        action_by_finding: What Mendq would do about each finding.
        finding_filter: The findings that the operator wants to see.
        shows_hygiene: True if hygiene is printed in detail too.
    """
    explaining_symptom_by_finding = {
        finding: symptom
        for finding, symptom in find_explained_findings(action_by_finding).items()
        if _is_shown(finding, finding_filter)
    }
    findings = [
        finding
        for finding in sort_worst_first(action_by_finding)
        if _is_shown(finding, finding_filter) and finding not in explaining_symptom_by_finding
    ]
    rows = _make_summary_rows(findings)
    _print_summary(out, rows, shows_hygiene=shows_hygiene)
    for severity_class, rows_of_class in groupby(rows, lambda row: row.severity_class):
        if severity_class is SeverityClass.HYGIENE and not shows_hygiene:
            continue
        out.say_heading(severity_class.title.capitalize())
        for row in rows_of_class:
            _print_symptom(out, row, action_by_finding, is_whole=finding_filter.names_symptoms)
    _print_explained_findings(out, explaining_symptom_by_finding)
    hidden_count = sum(not _is_shown(finding, finding_filter) for finding in action_by_finding)
    if hidden_count:
        out.say(f"{format_count(hidden_count, 'other finding')} not shown, as you chose", "dim")


def _is_shown(finding: Finding, finding_filter: FindingFilter) -> bool:
    queue_name = parse_queue_arn(finding.queue_arn).name
    return finding_filter.shows(finding.symptom, find_class(finding), queue_name)


def _make_summary_rows(sorted_findings: Iterable[Finding]) -> list[_SummaryRow]:
    """Return a row for each symptom of each class, in the order of the findings."""
    findings_by_key = defaultdict[tuple[SeverityClass, str], list[Finding]](list)
    for finding in sorted_findings:
        findings_by_key[find_class(finding), finding.symptom].append(finding)
    return [
        _SummaryRow(severity_class, symptom, findings)
        for (severity_class, symptom), findings in sorted(
            findings_by_key.items(), key=lambda item: item[0][0].rank
        )
    ]


def _print_summary(out: Output, rows: Sequence[_SummaryRow], *, shows_hygiene: bool) -> None:
    """Print the rows below the titles of their classes. Without details, hygiene is one line."""
    hygiene_rows = [row for row in rows if row.severity_class is SeverityClass.HYGIENE]
    table_rows = rows if shows_hygiene else [row for row in rows if row not in hygiene_rows]
    if out.text_width >= _LEAST_TABLE_WIDTH:
        _print_summary_table(out, table_rows)
    else:
        _print_summary_list(out, table_rows)
    if hygiene_rows and not shows_hygiene:
        out.say(_describe_hygiene(hygiene_rows))


def _print_summary_table(out: Output, rows: Iterable[_SummaryRow]) -> None:
    table = make_table("symptom", "queues", "worst example", "what to do")
    for severity_class, rows_of_class in groupby(rows, lambda row: row.severity_class):
        table.add_row(Text(severity_class.title.capitalize(), style="bold"), "", "", "")
        for row in rows_of_class:
            table.add_row(
                Text(f"  {row.symptom}", style="yellow"),
                f"{len(row.findings):,}",
                row.example,
                row.first_step,
            )
    if table.row_count:
        out.show(table)


def _print_summary_list(out: Output, rows: Iterable[_SummaryRow]) -> None:
    for severity_class, rows_of_class in groupby(rows, lambda row: row.severity_class):
        out.say(severity_class.title.capitalize(), "bold")
        for row in rows_of_class:
            queues_text = format_count(len(row.findings), "queue")
            out.say_indented(f"{row.symptom}: {queues_text}, such as {row.example}", "yellow")
            out.say_indented(row.first_step, indent=4)


def _describe_hygiene(hygiene_rows: Sequence[_SummaryRow]) -> str:
    """Return the one line about hygiene, with its most frequent symptoms."""
    count_by_symptom = Counter({row.symptom: len(row.findings) for row in hygiene_rows})
    most_frequent = [
        f"{symptom} {count:,}"
        for symptom, count in count_by_symptom.most_common(_MOST_HYGIENE_SYMPTOMS)
    ]
    count_text = format_count(sum(count_by_symptom.values()), "finding")
    more_text = " and others" if len(count_by_symptom) > len(most_frequent) else ""
    return (
        f"Hygiene: {count_text} that put no message in danger "
        f"({', '.join(most_frequent)}{more_text}). "
        "`mendq scan --hygiene` shows them"
    )


def _print_symptom(
    out: Output,
    row: _SummaryRow,
    action_by_finding: Mapping[Finding, ExpectedAction],
    *,
    is_whole: bool,
) -> None:
    """Print the consequence of a symptom once, then its queues, and where to read on."""
    symptom = SYMPTOM_BY_NAME[row.symptom]
    queues_text = format_count(len(row.findings), "queue")
    out.show(Text.assemble((row.symptom, "yellow"), f": {queues_text}"))
    out.say_indented(symptom.sentence)
    single_findings = list(row.findings)
    for shared_findings in group_shared_defaults(row.findings):
        _print_shared_default(out, shared_findings, action_by_finding, is_whole=is_whole)
        single_findings = [finding for finding in single_findings if finding not in shared_findings]
    groups = _group_equal_findings(single_findings, action_by_finding)
    shown_groups = groups if is_whole else groups[:_MOST_GROUPS_PER_SYMPTOM]
    for group in shown_groups:
        _print_group(out, group, action_by_finding[group[0]], symptom.sentence)
    left_out_count = sum(len(group) for group in groups[len(shown_groups) :])
    if left_out_count:
        out.say_indented(
            f"and {left_out_count:,} more: `{scan_symptom_command(row.symptom)}` shows all", "dim"
        )
    out.say_indented(f"read on: {runbook_command(row.symptom)}", "dim")


def _print_shared_default(
    out: Output,
    findings: Sequence[Finding],
    action_by_finding: Mapping[Finding, ExpectedAction],
    *,
    is_whole: bool,
) -> None:
    """Print one block for all queues that share a wrong setting.

    The commands are those of all queues if `is_whole` is True, or else of the first one.
    """
    names_text = shorten_list([_format_name(finding) for finding in findings], _MOST_QUEUE_NAMES)
    attribute, _, value = findings[0].shared_setting.partition("=")
    out.show(Text.assemble("  ", (f"{len(findings):,} queues share a default", "bold")))
    out.say_indented(names_text, indent=4)
    out.say_indented(f"{attribute} is {value or 'not set'} on all of them", indent=4)
    out.say_indented(f"Mendq {action_by_finding[findings[0]].line}", "cyan", indent=4)
    for finding in findings if is_whole else findings[:1]:
        for command in action_by_finding[finding].commands:
            out.say_command(command)
    has_more_commands = any(action_by_finding[finding].commands for finding in findings[1:])
    if has_more_commands and not is_whole:
        command = scan_symptom_command(findings[0].symptom)
        out.say_indented(f"`{command}` prints the commands of all of them", "dim", indent=4)


def _group_equal_findings(
    findings: Iterable[Finding], action_by_finding: Mapping[Finding, ExpectedAction]
) -> list[list[Finding]]:
    """Group findings that have the same sentence and action, in the order of `findings`.

    A finding with a command of its own is alone in its group, because the command names its queue.
    """
    groups = defaultdict[object, list[Finding]](list)
    for finding in findings:
        action = action_by_finding[finding]
        key = finding if action.commands else (finding.sentence, action.line)
        groups[key].append(finding)
    return list(groups.values())


def _print_group(
    out: Output, group: Sequence[Finding], action: ExpectedAction, consequence: str
) -> None:
    """Print the names of queues, their sentence, what Mendq would do, and the commands."""
    names_text = shorten_list([_format_name(finding) for finding in group], _MOST_QUEUE_NAMES)
    out.show(Text.assemble("  ", (names_text, "bold")))
    sentence = group[0].sentence
    if sentence and sentence.rstrip(".") != consequence.rstrip("."):
        out.say_indented(sentence, indent=4)
    action_line = action.line.replace(f"{sentence}. ", "")
    if action_line:
        out.say_indented(f"Mendq {action_line}", "cyan", indent=4)
    for command in action.commands:
        out.say_command(command)


def _print_explained_findings(
    out: Output, explaining_symptom_by_finding: Mapping[Finding, str]
) -> None:
    """Print a line for each finding that another one explains, with the symptom that explains it.

    Of many findings, only the first are printed.
    """
    if not explaining_symptom_by_finding:
        return
    count_text = format_count(len(explaining_symptom_by_finding), "finding")
    out.say_heading(f"Explained by another finding: {count_text}")
    explained_findings = sort_worst_first(explaining_symptom_by_finding)
    for finding in explained_findings[:_MOST_EXPLAINED_FINDINGS]:
        explaining_symptom = explaining_symptom_by_finding[finding]
        out.say_indented(
            f"{_format_name(finding)}: {finding.symptom}, probably caused by {explaining_symptom}: "
            "fix that first"
        )
    if len(explained_findings) > _MOST_EXPLAINED_FINDINGS:
        left_out_count = len(explained_findings) - _MOST_EXPLAINED_FINDINGS
        out.say_indented(f"and {left_out_count:,} more: --json names them")


def _format_name(finding: Finding) -> str:
    return to_terminal_text(parse_queue_arn(finding.queue_arn).name, _MOST_NAME_CHARACTERS)


def count_queues_by_need(findings: Collection[Finding]) -> tuple[int, int]:
    """Return how many queues need attention, and how many others have hygiene findings only."""
    arns_of_hygiene = set[str]()
    arns_of_attention = set[str]()
    for finding in findings:
        is_hygiene = find_class(finding) is SeverityClass.HYGIENE
        (arns_of_hygiene if is_hygiene else arns_of_attention).add(finding.queue_arn)
    return len(arns_of_attention), len(arns_of_hygiene - arns_of_attention)
