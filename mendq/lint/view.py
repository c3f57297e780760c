"""The findings of `mendq lint` as documents: JSON, SARIF and GitHub annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mendq.catalogue import BY_NAME
from mendq.lint.judging import LintFinding, LintResult
from mendq.notifications.text import visible

SCHEMA = 1
_MOST_ANNOTATION = 1_000
_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas"


def document(templates: Sequence[LintResult]) -> dict[str, Any]:
    """The command's answer to a script."""
    counted_by = ("findings", "ignored", "not_judged")
    return {
        "schema": SCHEMA,
        **{name: sum(len(getattr(each, name)) for each in templates) for name in counted_by},
        "templates": [asdict(each) for each in templates],
    }


def sarif(templates: Sequence[LintResult]) -> dict[str, Any]:
    """The findings as SARIF 2.1.0, which code scanning takes.

    https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support
    """
    found = _findings(templates)
    rules = [
        {"id": each.name, "shortDescription": {"text": each.sentence}, "helpUri": each.aws_page}
        for each in (BY_NAME[name] for name in sorted({one.symptom for _, one in found}))
    ]
    driver = {"name": "mendq", "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_sarif_result(*each) for each in found]}
    return {"$schema": f"{_SARIF}/sarif-schema-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _sarif_result(file: str, one: LintFinding) -> Mapping[str, Any]:
    region = {"region": {"startLine": one.line}} if one.line else {}
    where = {"artifactLocation": {"uri": Path(file).as_posix()}, **region}
    said = "\n".join((f"{one.construct or one.resource}: {one.because}.", *one.remedy, one.runbook))
    return {
        "ruleId": one.symptom,
        "level": one.severity.value,
        "message": {"text": said},
        "locations": [{"physicalLocation": where}],
    }


def github_lines(templates: Sequence[LintResult]) -> Iterator[str]:
    """GitHub's workflow commands, which put a finding beside its line.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    for file, one in _findings(templates):
        line = f",line={one.line}" if one.line else ""
        where = f"file={_property(file)}{line},title={_property(one.symptom)}"
        lines = (f"{one.construct or one.resource}: {one.because}", *one.remedy, one.runbook)
        yield f"::{one.severity.value} {where}::{'%0A'.join(map(_escaped, lines))}"


def _findings(templates: Sequence[LintResult]) -> list[tuple[str, LintFinding]]:
    return [(each.file, one) for each in templates for one in each.findings]


def _escaped(text: str) -> str:
    """Its indentation stays: a remedy is YAML."""
    indentation = " " * (len(text) - len(text.lstrip(" ")))
    return indentation + visible(text, _MOST_ANNOTATION).replace("%", "%25")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
