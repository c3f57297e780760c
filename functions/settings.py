"""One frozen class per Lambda: infra asks it for the variables, the Lambda reads it back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self, get_type_hints

from functions.healing import setting_texts
from functions.healing.limits import Limits, Timing
from functions.healing.managed import Consent
from functions.healing.mode import Mode
from functions.healing.redrive_bounds import Bounds
from functions.healing.steps import Owner

PREFIX = "MENDQ_"


class SettingsUnreadable(Exception):
    """The environment does not hold what the Lambda needs; names every variable and its fault."""


@dataclass(frozen=True)
class LambdaSettings:
    """What every Lambda of Mendq knows about where it runs."""

    account: str

    def to_environment(self) -> dict[str, str]:
        """The variables that `from_environment` reads back; text as it is, all else as JSON.

        What is not set has none.
        """
        values = {variable_of(each.name): getattr(self, each.name) for each in fields(self)}
        return {
            name: setting_texts.written(each) for name, each in values.items() if each is not None
        }

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Raise SettingsUnreadable with every missing or unreadable variable at once."""
        values: dict[str, Any] = {}
        faults: list[str] = []
        types = get_type_hints(cls)
        for each in fields(cls):
            variable = variable_of(each.name)
            text = environment.get(variable)
            if text is None:
                if each.default is MISSING and each.default_factory is MISSING:
                    faults.append(f"{variable} is missing")
                continue
            try:
                values[each.name] = setting_texts.read(text, types[each.name])
            except (ValueError, TypeError, KeyError) as error:
                faults.append(f"{variable} is not readable: {error}")
        if faults:
            raise SettingsUnreadable("; ".join(faults) + ". Deploy the stack again to set them.")
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class LedgerSettings(LambdaSettings):
    """What every Lambda needs that asks the ledger about cases."""

    ledger_table: str
    case_bucket: str
    limits: Limits = field(default_factory=Limits)
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, kw_only=True)
class CaseSettings(LedgerSettings):
    """What every Lambda needs that moves a case."""

    urgent_topic_arn: str
    info_topic_arn: str


@dataclass(frozen=True, kw_only=True)
class ConsentSettings(LambdaSettings):
    """What every Lambda needs that has to know which queues are managed, and how far."""

    mode: Mode = Mode.OBSERVE
    tag_may_raise_to: Mode = Mode.OBSERVE
    queues: tuple[str, ...] = ()

    @property
    def consent(self) -> Consent:
        return Consent(self.mode, self.tag_may_raise_to, self.queues)


@dataclass(frozen=True, kw_only=True)
class ManagingSettings(CaseSettings, ConsentSettings):
    """What every Lambda needs that moves cases of managed queues by itself."""


@dataclass(frozen=True, kw_only=True)
class OwnerSettings(ManagingSettings):
    """What every Lambda needs beside it that owns a write."""

    autonomy: Mapping[str, Mode] = field(default_factory=dict)
    freeze_calendars: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class HealSettings(OwnerSettings):
    """What the heal Lambda needs beside it; our own roles by name, which is shorter than an ARN."""

    own_roles: tuple[str, ...]
    pulse_role: str


@dataclass(frozen=True, kw_only=True)
class AttachDeadLettersSettings(OwnerSettings):
    """What attach_dead_letters needs."""


@dataclass(frozen=True, kw_only=True)
class RestorePolicySettings(OwnerSettings):
    """What restore_policy needs."""


@dataclass(frozen=True, kw_only=True)
class RedriveSettings(OwnerSettings):
    """What redrive needs beside it."""

    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, kw_only=True)
class FollowUpSettings(ManagingSettings):
    """What follow_up needs beside it: the Lambdas that own the writes, by name.

    How far its clock may be put forward, to see what becomes of a case, the local account alone
    says: no template sets it.
    """

    owners: Mapping[Owner, str]
    most_days_ahead: int | None = None


@dataclass(frozen=True, kw_only=True)
class ApproveSettings(CaseSettings):
    """What approve needs beside it."""

    owners: Mapping[Owner, str]


@dataclass(frozen=True, kw_only=True)
class RollBackSettings(CaseSettings):
    """What roll_back needs beside it: the Lambdas whose work it has to stop first, by name."""

    owners: Mapping[Owner, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SweepSettings(LedgerSettings, ConsentSettings):
    """What the sweep needs beside it: it moves no case."""

    heal_function: str


@dataclass(frozen=True, kw_only=True)
class PulseSettings(LambdaSettings):
    """What the pulse needs: it moves no case."""

    ledger_table: str
    urgent_topic_arn: str
    pulse_queue_url: str


@dataclass(frozen=True)
class StartNightSettings(LambdaSettings):
    """What start_night needs; the roots, the job's code and its packages are s3 URIs."""

    application_id: str
    job_role_arn: str
    entry_point: str
    package: str
    compiled_packages: str
    trail_root: str
    case_root: str
    out_root: str
    log_root: str
    maximum_executors: int


@dataclass(frozen=True)
class WatchNightSettings(LambdaSettings):
    """What watch_night needs."""

    application_id: str
    report_bucket: str


@dataclass(frozen=True)
class DeliverReportSettings(LambdaSettings):
    """What deliver_report needs; without a sender nothing goes by mail."""

    report_bucket: str
    topic_arn: str
    sender: str | None = None
    recipients: tuple[str, ...] = ()


def variable_of(field_name: str) -> str:
    """The environment variable that carries a field."""
    return PREFIX + field_name.upper()
