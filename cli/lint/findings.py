"""What is said of a template: findings, and what nobody can judge before it is deployed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cli.lint.template import Place
from functions.catalogue.symptom import Symptom

SCHEMA = 1


class Severity(StrEnum):
    """Whether Mendq would act on it, or page about it, or report it alone."""

    ERROR = "error"
    WARNING = "warning"

    @classmethod
    def of(cls, symptom: Symptom) -> Severity:
        return cls.WARNING if symptom.plan is None else cls.ERROR


@dataclass(frozen=True)
class Finding:
    """A symptom that a resource would show; `cure` are lines of the template that mend it."""

    resource: str
    symptom: Symptom
    severity: Severity
    because: str
    place: Place
    cure: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "symptom": self.symptom.name,
            "severity": self.severity.value,
            "path": self.place.path,
            "line": self.place.line,
            "because": self.because,
            "cure": list(self.cure),
            "runbook": self.symptom.runbook,
            "aws_page": self.symptom.aws_page,
        }


@dataclass(frozen=True)
class NotJudged:
    """A place of which nobody can say whether it shows one of `symptoms`; empty: any."""

    place: Place
    because: str
    symptoms: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "path": self.place.path,
            "line": self.place.line,
            "because": self.because,
            "symptoms": list(self.symptoms),
        }


@dataclass(frozen=True)
class Linted:
    """One template, judged; `defaults` are the parameters whose default was taken."""

    file: str
    queues: int
    findings: Sequence[Finding] = ()
    ignored: Sequence[Finding] = ()
    not_judged: Sequence[NotJudged] = ()
    defaults: Sequence[tuple[str, str]] = ()

    def document(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "queues": self.queues,
            "findings": [each.document() for each in self.findings],
            "ignored": [each.document() for each in self.ignored],
            "not_judged": [each.document() for each in self.not_judged],
            "defaults": [{"parameter": name, "value": text} for name, text in self.defaults],
        }


def document(templates: Iterable[Linted]) -> dict[str, Any]:
    """The command's answer to a script."""
    every = list(templates)
    return {
        "schema": SCHEMA,
        "findings": sum(len(each.findings) for each in every),
        "ignored": sum(len(each.ignored) for each in every),
        "not_judged": sum(len(each.not_judged) for each in every),
        "templates": [each.document() for each in every],
    }
