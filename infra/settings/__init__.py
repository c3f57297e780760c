"""The settings of a deployment. Nothing here knows CDK or AWS: a mistake is found at once."""

from infra.settings.deployment import (
    DeploymentSettings,
    Environment,
    FileRefused,
    NightlySettings,
    NotificationSettings,
    ReportSettings,
    TrailSettings,
    merge,
    object_in,
    read,
)
from infra.settings.reading import Mistake, SettingsRefused

__all__ = [
    "DeploymentSettings",
    "Environment",
    "FileRefused",
    "Mistake",
    "NightlySettings",
    "NotificationSettings",
    "ReportSettings",
    "SettingsRefused",
    "TrailSettings",
    "merge",
    "object_in",
    "read",
]
