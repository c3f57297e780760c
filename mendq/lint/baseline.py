"""The baseline of `mendq lint`: findings that were there before, so that only new ones count.

A repository whose queues have faults already writes its baseline once and commits it. From then on
a run reports what is not in it. Rules:

- An entry names a template, a resource, a symptom and the severity class. It has no line, because
  lines move with every edit.
- An entry stands for one finding. A second finding of the symptom on the resource is new.
- A finding that became worse is new: its class is worse than the entry's.
- An entry without a finding is stale. It is reported, because it would hide the fault if it came
  back. Entries of templates that this run does not read are left alone.

The file is JSON with one entry on each line, sorted, so that two branches that fix faults merge
without a conflict in most cases.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from mendq.lint.files import STDIN_ARGUMENT, STDIN_NAME
from mendq.lint.ignores import StaleEntry
from mendq.lint.judging import LintFinding, LintResult
from mendq.lint.run import LintRun
from mendq.model.severity_class import SeverityClass

SCHEMA_NUMBER = 1
_MOST_BYTES = 4 * 1024 * 1024
_ENTRY_FIELDS = ("file", "resource", "symptom", "class")


class BaselineUnreadable(Exception):
    """The baseline file is not one that `mendq lint` wrote. The text names the field."""


@dataclass(frozen=True, order=True)
class BaselineEntry:
    """One finding that lint reported when the baseline file was written.

    Attributes:
        file: The template's path from the baseline's folder, with slashes.
        resource: The logical ID of the resource.
        symptom: The symptom's name.
        severity_class: The severity class of the finding.
    """

    file: str
    resource: str
    symptom: str
    severity_class: SeverityClass

    def document(self) -> dict[str, str]:
        """Return the entry as a JSON object."""
        return {
            "file": self.file,
            "resource": self.resource,
            "symptom": self.symptom,
            "class": self.severity_class.value,
        }


def write_baseline(path: Path, results: Iterable[LintResult]) -> int:
    """Write all findings to the baseline file, and return their number.

    Raises:
        OSError: The file cannot be written.
    """
    entries = sorted(
        _make_entry(path, result, finding) for result in results for finding in result.findings
    )
    entry_lines = ",\n".join(f"  {json.dumps(entry.document())}" for entry in entries)
    findings_text = f"[\n{entry_lines}\n ]" if entries else "[]"
    _replace_file(path, f'{{"schema": {SCHEMA_NUMBER},\n "findings": {findings_text}}}\n')
    return len(entries)


def _replace_file(path: Path, text: str) -> None:
    """Write a file as a whole. A link at its place is replaced, and never written through.

    The new file gets a name that nobody can guess, and mode x refuses a file or link of that name.
    """
    new_path = path.with_name(f".{path.name[:40]}.{token_hex(8)}")
    try:
        with new_path.open("x") as file:
            file.write(text)
        new_path.replace(path)
    finally:
        new_path.unlink(missing_ok=True)


def read_baseline(path: Path) -> tuple[BaselineEntry, ...]:
    """Read a baseline file.

    Raises:
        BaselineUnreadable: The file is not a baseline, or has another schema.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise BaselineUnreadable(f"it is longer than {_MOST_BYTES:,} bytes")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BaselineUnreadable(f"it is not valid JSON: {str(error)[:200]}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA_NUMBER:
        raise BaselineUnreadable(f"its `schema` is not {SCHEMA_NUMBER}")
    findings = document.get("findings")
    if not isinstance(findings, list):
        raise BaselineUnreadable("its `findings` is not a list")
    return tuple(_read_entry(number, finding) for number, finding in enumerate(findings))


def compare_with_baseline(
    path: Path, entries: Iterable[BaselineEntry], results: Sequence[LintResult]
) -> LintRun:
    """Return the run without the findings of the baseline (see the module).

    Args:
        path: The baseline file. The entries name templates from its folder.
        entries: The entries of the file.
        results: The results of this run.
    """
    unused_entries = defaultdict[tuple[str, str, str], list[BaselineEntry]](list)
    # The mildest entry comes first, so that a mild finding does not use up the entry of a bad one.
    for entry in sorted(entries, key=lambda entry: -entry.severity_class.rank):
        unused_entries[entry.file, entry.resource, entry.symptom].append(entry)
    new_results = list[LintResult]()
    known_count = 0
    for result in results:
        new_findings = [
            finding
            for finding in reversed(result.findings)
            if not _use_entry(unused_entries, _make_entry(path, result, finding))
        ]
        known_count += len(result.findings) - len(new_findings)
        new_results.append(replace(result, findings=[*reversed(new_findings)]))
    result_by_file = {_make_relative(path, result.file): result for result in results}
    stale_entries = [
        entry
        for entries_of_key in unused_entries.values()
        for entry in entries_of_key
        if _is_fixed(entry, result_by_file)
    ]
    return LintRun(
        new_results,
        known_count,
        [_describe_stale_entry(path, entry) for entry in sorted(stale_entries)],
    )


def _is_fixed(entry: BaselineEntry, result_by_file: Mapping[str, LintResult]) -> bool:
    """Return True if the run read the entry's template, and could check the symptom there."""
    result = result_by_file.get(entry.file)
    if result is None:
        return False
    return not any(entry.symptom in place.symptoms for place in result.not_judged)


def _describe_stale_entry(path: Path, entry: BaselineEntry) -> StaleEntry:
    return StaleEntry(
        str(path),
        entry.symptom,
        f"{entry.resource} in {entry.file} no longer has {entry.symptom}. Remove this entry, so "
        "that lint reports the fault if it comes back. --write-baseline removes it too, but "
        "accepts every new finding of its run",
    )


def _use_entry(
    unused_entries: Mapping[tuple[str, str, str], list[BaselineEntry]], wanted: BaselineEntry
) -> bool:
    """Take one entry for a finding from `unused_entries`. Return False if there is none for it."""
    entries = unused_entries.get((wanted.file, wanted.resource, wanted.symptom), [])
    for position, entry in enumerate(entries):
        if entry.severity_class.rank <= wanted.severity_class.rank:
            del entries[position]
            return True
    return False


def _make_entry(path: Path, result: LintResult, finding: LintFinding) -> BaselineEntry:
    return BaselineEntry(
        _make_relative(path, result.file),
        finding.resource,
        finding.symptom,
        finding.severity_class,
    )


def _make_relative(path: Path, file: str) -> str:
    """Return a template's path from the folder of the baseline, with slashes."""
    if file == STDIN_NAME:
        return STDIN_ARGUMENT
    return Path(os.path.relpath(file, path.parent)).as_posix()


def _read_entry(number: int, finding: Any) -> BaselineEntry:
    """Return one entry of the file. Raises BaselineUnreadable if a field is missing or wrong."""
    if not isinstance(finding, dict):
        raise BaselineUnreadable(f"findings[{number}] is not an object")
    for field in _ENTRY_FIELDS:
        if not isinstance(finding.get(field), str):
            raise BaselineUnreadable(f"findings[{number}].{field} is not a text")
    if finding["class"] not in list(SeverityClass):
        raise BaselineUnreadable(f"findings[{number}].class is none of {', '.join(SeverityClass)}")
    return BaselineEntry(
        finding["file"], finding["resource"], finding["symptom"], SeverityClass(finding["class"])
    )
