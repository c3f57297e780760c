"""Convert the results of `mendq lint` for programs: to JSON, SARIF and GitHub annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.lint.judging import LintFinding, LintResult, LintSeverity
from mendq.lint.run import LintRun
from mendq.notifications.text import to_markdown_text, to_plain_text, to_terminal_text

DOCUMENT_SCHEMA_VERSION = 1
# Longest line of an annotation, in characters.
_MOST_ANNOTATION_CHARACTERS = 1_000
_GITHUB_COMMAND_BY_SEVERITY = {
    LintSeverity.ERROR: "error",
    LintSeverity.WARNING: "warning",
    LintSeverity.NOTE: "notice",
}
_SARIF_SCHEMAS_URL = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas"


def make_document(run: LintRun) -> dict[str, Any]:
    """Return the JSON document that `mendq lint --json` prints."""
    lint_results = run.results
    return {
        "schema": DOCUMENT_SCHEMA_VERSION,
        "findings": sum(len(lint_result.findings) for lint_result in lint_results),
        "ignored": sum(len(lint_result.ignored) for lint_result in lint_results),
        "not_judged": sum(len(lint_result.not_judged) for lint_result in lint_results),
        "in_baseline": run.known_count,
        "stale": [asdict(entry) for entry in run.list_stale_entries()],
        "templates": [_make_template_document(lint_result) for lint_result in lint_results],
    }


def _make_template_document(lint_result: LintResult) -> dict[str, Any]:
    document = asdict(lint_result)
    # They are in the list `stale` of the whole run.
    del document["stale_ignores"]
    # Only the mute list needs them.
    del document["queue_name_by_id"]
    del document["checked_symptoms"]
    return {
        **document,
        "findings": [_make_finding_document(finding) for finding in lint_result.findings],
        "ignored": [
            {**_make_finding_document(finding), "reason": finding.ignore_reason}
            for finding in lint_result.ignored
        ],
    }


def _make_finding_document(finding: LintFinding) -> dict[str, Any]:
    document = asdict(finding)
    severity_class = document.pop("severity_class")
    del document["ignore_reason"]
    return {
        "resource": document.pop("resource"),
        "symptom": document.pop("symptom"),
        "severity": finding.severity,
        "class": severity_class,
        **document,
    }


def make_sarif(lint_results: Sequence[LintResult]) -> dict[str, Any]:
    """Return the findings as SARIF 2.1.0, which GitHub's code scanning reads.

    https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support
    """
    files_and_findings = _list_findings(lint_results)
    symptom_names = sorted({finding.symptom for _, finding in files_and_findings})
    sarif_rules = [
        {
            "id": symptom_name,
            "shortDescription": {"text": SYMPTOM_BY_NAME[symptom_name].sentence},
            "helpUri": SYMPTOM_BY_NAME[symptom_name].aws_page,
        }
        for symptom_name in symptom_names
    ]
    sarif_run = {
        "tool": {"driver": {"name": "mendq", "rules": sarif_rules}},
        "results": [_make_sarif_result(file, finding) for file, finding in files_and_findings],
    }
    return {
        "$schema": f"{_SARIF_SCHEMAS_URL}/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [sarif_run],
    }


def _make_sarif_result(file: str, finding: LintFinding) -> Mapping[str, Any]:
    sarif_region = {"region": {"startLine": finding.line}} if finding.line else {}
    sarif_location = {"artifactLocation": {"uri": Path(file).as_posix()}, **sarif_region}
    first_line = f"{finding.construct or finding.resource}: {finding.because}."
    message_lines = [_make_sarif_line(line) for line in (first_line, *finding.remedy)]
    return {
        "ruleId": finding.symptom,
        "level": finding.severity.value,
        "message": {"text": "\n".join((*message_lines, finding.runbook))},
        "locations": [{"physicalLocation": sarif_location}],
    }


def _make_sarif_line(message_line: str) -> str:
    """Return one line of a message, without links.

    Anyone who opens a pull request can choose the names in a template. SARIF has links in brackets,
    `[text](target)` (3.11.6 of its standard).
    """
    safe_line = to_markdown_text(message_line, _MOST_ANNOTATION_CHARACTERS)
    return _get_indentation(message_line) + safe_line


def list_github_commands(run: LintRun) -> Iterator[str]:
    """Yield workflow commands of GitHub Actions, which show each finding next to its line.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    for file, finding in _list_findings(run.results):
        escaped_title = _escape_property(finding.symptom)
        line_property = f",line={finding.line}" if finding.line else ""
        command_properties = f"file={_escape_path(file)}{line_property},title={escaped_title}"
        first_line = f"{finding.construct or finding.resource}: {finding.because}"
        message_lines = (first_line, *finding.remedy, finding.runbook)
        escaped_message = "%0A".join(map(_escape_message, message_lines))
        command_name = _GITHUB_COMMAND_BY_SEVERITY[finding.severity]
        yield f"::{command_name} {command_properties}::{escaped_message}"
    for entry in run.list_stale_entries():
        escaped_title = _escape_property(f"stale: {entry.symptom}")
        escaped_message = _escape_message(f"{entry.where}: {entry.because}")
        yield f"::notice title={escaped_title}::{escaped_message}"


def _list_findings(lint_results: Sequence[LintResult]) -> list[tuple[str, LintFinding]]:
    """Return pairs of a file and a finding, for all findings. The file has the finding's line."""
    files_and_findings = list[tuple[str, LintFinding]]()
    for lint_result in lint_results:
        for finding in lint_result.findings:
            file = (
                Path(lint_result.file).parent / finding.file if finding.file else lint_result.file
            )
            files_and_findings.append((str(file), finding))
    return files_and_findings


def _escape_message(message_line: str) -> str:
    """Escape one line of a workflow command's message, break its links, and cut it if it is long.

    A path of a runbook stays as it is.
    """
    safe_line = to_plain_text(message_line, _MOST_ANNOTATION_CHARACTERS)
    return (_get_indentation(message_line) + safe_line).replace("%", "%25")


def _get_indentation(message_line: str) -> str:
    """Return the spaces before the text. A line keeps them, because a remedy may be YAML."""
    return " " * (len(message_line) - len(message_line.lstrip(" ")))


def _escape_path(path: str) -> str:
    """Escape a file's path. GitHub compares it, so `main.tf` must not look like a broken link."""
    safe_path = to_terminal_text(path, _MOST_ANNOTATION_CHARACTERS).replace("%", "%25")
    return safe_path.replace(":", "%3A").replace(",", "%2C")


def _escape_property(property_value: str) -> str:
    """Escape the value of a workflow command's property, such as `file`."""
    return _escape_message(property_value).replace(":", "%3A").replace(",", "%2C")
