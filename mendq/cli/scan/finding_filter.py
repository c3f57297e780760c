"""The operator's choice of findings: by class, symptom and queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.severity_class import SeverityClass

_ALL_CLASSES = frozenset(SeverityClass)


@dataclass(frozen=True)
class IgnoredSymptom:
    """A symptom that the operator does not want to see.

    Attributes:
        symptom: The symptom's name.
        queue: The name of the only queue that this is about; empty for all queues.
    """

    symptom: str
    queue: str = ""


@dataclass(frozen=True)
class FindingFilter:
    """The findings that a scan shows. Others are neither printed nor counted.

    Attributes:
        classes: The severity classes to show.
        symptoms: The symptoms to show; None for all of them.
        ignored: Symptoms to leave out, on all queues or on one.
    """

    classes: frozenset[SeverityClass] = _ALL_CLASSES
    symptoms: frozenset[str] | None = None
    ignored: tuple[IgnoredSymptom, ...] = ()

    def shows(self, symptom: str, severity_class: str, queue_name: str) -> bool:
        """Return True if a finding with these properties is shown."""
        return (
            severity_class in self.classes
            and (self.symptoms is None or symptom in self.symptoms)
            and IgnoredSymptom(symptom) not in self.ignored
            and IgnoredSymptom(symptom, queue_name) not in self.ignored
        )

    @property
    def names_symptoms(self) -> bool:
        """True if the operator named the symptoms, and so wants to see all of their queues."""
        return self.symptoms is not None


def make_filter(
    classes: Iterable[SeverityClass], symptoms: Iterable[str], ignored: Iterable[str]
) -> FindingFilter:
    """Return the filter of the options `--class`, `--symptom` and `--ignore`.

    Args:
        classes: The classes to show; none of them means all.
        symptoms: The symptoms to show; none of them means all.
        ignored: Symptoms to leave out, each `SYMPTOM` or `SYMPTOM:QUEUE`.

    Raises:
        CommandError: A symptom is unknown. A typing mistake must not look like a clean account.
    """
    shown_symptoms = [_require_symptom("--symptom", name) for name in symptoms]
    ignored_symptoms = list[IgnoredSymptom]()
    for text in ignored:
        symptom, _, queue = text.partition(":")
        ignored_symptoms.append(IgnoredSymptom(_require_symptom("--ignore", symptom), queue))
    return FindingFilter(
        frozenset(classes) or _ALL_CLASSES,
        frozenset(shown_symptoms) or None,
        tuple(ignored_symptoms),
    )


def _require_symptom(option: str, name: str) -> str:
    """Return the symptom's name. Raises CommandError if a scan finds no such symptom."""
    symptom = SYMPTOM_BY_NAME.get(name)
    if symptom is not None and symptom.detection is not None:
        return name
    problem = (
        "only failed calls show it, and no scan looks for it"
        if symptom is not None
        else "no symptom has this name"
    )
    raise CommandError(f"{option} {name[:80]!r}: {problem}. {_suggest_symptom(name)}", Exit.USAGE)


def _suggest_symptom(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    scanned_names = [
        symptom.name for symptom in SYMPTOM_BY_NAME.values() if symptom.detection is not None
    ]
    close_names = get_close_matches(name, scanned_names, 1)
    if close_names:
        return f"Did you mean {close_names[0]}?"
    return f"Use one of {', '.join(sorted(scanned_names))}"


def find_failing_classes(fail_on: SeverityClass | None) -> frozenset[SeverityClass]:
    """Return the classes whose findings end a scan with exit code 1: `fail_on` and worse ones."""
    if fail_on is None:
        return frozenset()
    return frozenset(
        severity_class for severity_class in SeverityClass if severity_class.rank <= fail_on.rank
    )
