"""The settings of a deployment. Nothing here knows CDK or AWS: a mistake is told in a blink."""

from infra.settings.deployment import DeploymentSettings, merge, read
from infra.settings.groups import (
    Environment,
    NightSettings,
    PageSettings,
    ReportSettings,
    TrailSettings,
)
from infra.settings.mistakes import Mistake, SettingsRefused

__all__ = [
    "DeploymentSettings",
    "Environment",
    "Mistake",
    "NightSettings",
    "PageSettings",
    "ReportSettings",
    "SettingsRefused",
    "TrailSettings",
    "merge",
    "read",
]
