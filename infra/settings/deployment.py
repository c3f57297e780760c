"""What a user of Mendq may set: context key `mendq`, read whole or refused whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from functions.catalogue import CATALOGUE
from functions.healing.limits import Limits, Timing
from functions.healing.mode import Mode
from infra.settings import groups, shapes
from infra.settings.bounds import LIMITS, TIMING
from infra.settings.kinds import ByName, Flag, ListOf, ModeWord, Number, Reading
from infra.settings.mistakes import SettingsRefused
from infra.settings.sections import Section, setting

_NEVER_ACTS = {
    "count only": "is only counted",
    "report only": "is only reported",
    "page only": "only pages",
}


@dataclass(frozen=True)
class DeploymentSettings:
    """Everything that a user may set; the defaults watch and change nothing."""

    mode: Mode = field(
        default=Mode.OBSERVE,
        metadata=setting(ModeWord(), "How far Mendq may go on the queues that `queues` names."),
    )
    tag_may_raise_to: Mode = field(
        default=Mode.OBSERVE,
        metadata=setting(ModeWord(), "How far a queue's tag `mendq` may raise it above `mode`."),
    )
    queues: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            ListOf(shapes.QUEUE, "queue names, or starts of names and a `*`"),
            "The queues that Mendq manages beside those that carry the tag `mendq`; never a "
            "quarantine, `*-quarantine`, whatever prefix fits it.",
        ),
    )
    autonomy: Mapping[str, Mode] = field(
        default_factory=dict,
        metadata=setting(
            ByName(
                tuple(symptom.name for symptom in CATALOGUE if symptom.steps),
                ModeWord(),
                "symptom",
                {each.name: _NEVER_ACTS[each.ships_as] for each in CATALOGUE if not each.steps},
            ),
            "The highest mode a symptom may act in, where it shall not be the one that ships.",
        ),
    )
    trail: groups.TrailSettings = field(
        default=groups.TrailSettings(),
        metadata=setting(groups.TRAIL, "Where failed calls are seen."),
    )
    limits: Limits = field(
        default=Limits(), metadata=setting(Section(Limits, LIMITS), "How much may be changed.")
    )
    timing: Timing = field(
        default=Timing(),
        metadata=setting(
            Section(Timing, TIMING),
            "How long Mendq waits. Only the local account may go below these ranges, and says so.",
        ),
    )
    pages: groups.PageSettings = field(
        default=groups.PageSettings(), metadata=setting(groups.PAGES, "Whom pages reach.")
    )
    report: groups.ReportSettings = field(
        default=groups.ReportSettings(), metadata=setting(groups.REPORT, "The weekly report.")
    )
    night: groups.NightSettings = field(
        default=groups.NightSettings(), metadata=setting(groups.NIGHT, "The nightly job.")
    )
    dashboard: bool = field(
        default=True,
        metadata=setting(
            Flag(),
            "Whether there is a dashboard, which AWS bills by the month where the payer has three "
            "others; without one the alarms are the same.",
        ),
    )
    freeze_calendars: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            ListOf(shapes.CALENDAR, "ARNs of SSM Change Calendars", most=10),
            "While one of them is closed, or cannot be read, nothing is changed. They lie in the "
            "stack's region; one of another account has to be shared with the stack's first.",
        ),
    )
    environments: tuple[groups.Environment, ...] = field(
        default=(),
        metadata=setting(
            ListOf(groups.ENVIRONMENT, groups.ENVIRONMENT.words),
            "Where the stack goes; empty: the account and region of the credentials.",
        ),
    )

    def floors_lowered(self) -> tuple[str, ...]:
        """Each of `timing` that lies below its floor, as a person reads it."""
        return tuple(
            f"timing.{name}: {value:g} instead of at least {kind.floor:g}"
            for name, value, kind in self._timing()
            if kind.below_floor(value)
        )

    def _timing(self) -> Iterator[tuple[str, float, Number]]:
        for name, (each, described) in Section(Timing, TIMING).settings().items():
            assert isinstance(described.kind, Number)  # noqa: S101 - TIMING holds nothing else
            yield name, getattr(self.timing, each.name), described.kind


DEPLOYMENT = Section(DeploymentSettings)


def read(raw: Mapping[str, Any], *, floors: bool = True) -> DeploymentSettings:
    """The settings that `raw` spells, absent ones at their defaults.

    Raises SettingsRefused with every mistake. `floors=False` lifts those of `timing`: for the local
    account alone.
    """
    reading = Reading(floors)
    settings: DeploymentSettings = DEPLOYMENT.read(raw, "", reading)
    if reading.mistakes:
        raise SettingsRefused(reading.mistakes)
    return settings


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid on `base`: objects merge deeply, all else and lists replace."""
    both = {
        key: merge(base[key], over[key])
        for key in base.keys() & over.keys()
        if isinstance(base[key], Mapping) and isinstance(over[key], Mapping)
    }
    return {**base, **over, **both}


def leaves_of(settings: DeploymentSettings) -> Iterator[tuple[str, Any]]:
    """Every value that can be set, by its path."""
    for name, (each, described) in DEPLOYMENT.settings().items():
        value = getattr(settings, each.name)
        if not isinstance(described.kind, Section):
            yield name, value
            continue
        for inner, (part, _) in described.kind.settings().items():
            yield f"{name}.{inner}", getattr(value, part.name)
