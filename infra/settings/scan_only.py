"""The settings that a scan-only stack uses, and the remedies for all others.

A scan-only stack has one Lambda, one table, one topic and one alarm. A setting about anything else
would do nothing, so it is refused. A new setting is refused until it is listed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from infra.settings.reading import Conflict, to_camel_case

# The settings that a scan-only stack uses.
USED_SETTINGS = frozenset(
    {
        "scanOnly",
        "queues",
        "mutes",
        "limits.scanMetricsPerDay",
        "timing.propagationSeconds",
        "timing.measuringMinutes",
        "notifications.urgent",
        "notifications.topics.urgent",
        "notifications.chat.urgent",
        "docsUrl",
        "environments",
    }
)
# Settings that leave parts of a whole stack out. A scan-only stack has none of these parts, so any
# value fits.
HARMLESS_SETTINGS = frozenset({"alarms", "dashboard", "nightly.enabled"})
_CHANGES_REMEDY = "leave it out: a scan-only stack changes no queue and opens no case"
_REPORT_REMEDY = "leave it out: a scan-only stack has no nightly job and no report"
# Remedies by the setting, or by the beginning of its path. The longest beginning counts.
REMEDY_BY_PATH = {
    "mode": _CHANGES_REMEDY,
    "tagMayRaiseTo": _CHANGES_REMEDY,
    "autonomy": _CHANGES_REMEDY,
    "freezeCalendars": _CHANGES_REMEDY,
    "limits": _CHANGES_REMEDY,
    "timing": _CHANGES_REMEDY,
    "timing.probeMinutes": "leave it out: a scan-only stack sends no probe",
    "trail": "leave it out: a scan-only stack has no trail and sees no failed call",
    "notifications.info": (
        "name these addresses in notifications.urgent: a scan-only stack has one topic"
    ),
    "notifications.topics.info": (
        "name one topic, in notifications.topics.urgent: a scan-only stack has no other"
    ),
    "notifications.teams": "leave it out, and subscribe the teams to the only topic",
    "notifications.chat.info": "say notifications.chat.urgent: a scan-only stack has one topic",
    "notifications.pagerduty": (
        "name PagerDuty's https URL in notifications.urgent: a scan-only stack sends no events"
    ),
    "report": _REPORT_REMEDY,
    "nightly": _REPORT_REMEDY,
    "organization": _REPORT_REMEDY,
    "templateHook": "leave it out: the hook is a Lambda of its own",
}


def list_scan_only_conflicts(settings: Any, default_settings: Any) -> Iterator[Conflict]:
    """Yield a mistake for each setting that was changed and that a scan-only stack does not use.

    Args:
        settings: the deployment's settings.
        default_settings: settings with all defaults.
    """
    for path in _list_changed_settings(settings, default_settings, ""):
        if path in USED_SETTINGS | HARMLESS_SETTINGS:
            continue
        section_field = _find_section_field(settings, path)
        remedy = f"{find_remedy(path)}; or leave scanOnly out"
        yield Conflict(
            {"scan_only", section_field}, path, "is given although scanOnly is true", remedy
        )


def find_remedy(path: str) -> str:
    """Return the remedy for a setting that a scan-only stack does not use."""
    fitting_paths = [
        beginning
        for beginning in REMEDY_BY_PATH
        if path == beginning or path.startswith(f"{beginning}.")
    ]
    return REMEDY_BY_PATH[max(fitting_paths, key=len)] if fitting_paths else "leave it out"


def _list_changed_settings(section: Any, default_section: Any, path_prefix: str) -> Iterator[str]:
    """Yield the path of each setting of a section whose value is not its default.

    A section that is left out by default counts as one setting.
    """
    for settings_field in fields(section):
        value = getattr(section, settings_field.name)
        default_value = getattr(default_section, settings_field.name)
        path = f"{path_prefix}{to_camel_case(settings_field.name)}"
        if is_dataclass(value) and is_dataclass(default_value):
            yield from _list_changed_settings(value, default_value, f"{path}.")
        elif value != default_value:
            yield path


def _find_section_field(settings: Any, path: str) -> str:
    """Return the name of the field of `settings` that holds the setting with this path."""
    first_word = path.partition(".")[0]
    return next(
        settings_field.name
        for settings_field in fields(settings)
        if to_camel_case(settings_field.name) == first_word
    )
