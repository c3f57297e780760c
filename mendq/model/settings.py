"""Settings of the Lambdas as environment variables: one frozen class per Lambda."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from math import inf
from typing import Any, Self, get_type_hints

from mendq.model.limits import Bounds, Consent, Limits, Mode, Timing
from mendq.model.steps import Owner


def written(value: object) -> str:
    """Text as it is, all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = {key: str(each) for key, each in value.items()}
    plain = str(value) if isinstance(value, Mode) else value
    return json.dumps(plain, default=asdict, separators=(",", ":"))


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is no name")
    return value


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no JSON list of texts")
    return tuple(map(_name, value))


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise TypeError(f"{value!r} is no number from 0 on")
    return value


def _mode(value: object) -> Mode:
    mode = Mode.read(value) if isinstance(value, str) else None
    if mode is None:
        raise ValueError(f"{value!r} is none of observe, propose, heal")
    return mode


def _by_name(value: object, of_value: Callable[[object], Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no JSON object")
    return {name: of_value(each) for name, each in value.items()}


_OF_JSON: Mapping[Any, Callable[[object], Any]] = {
    Mode: _mode,
    int: _number,
    int | None: _number,
    tuple[str, ...]: _names,
    Mapping[str, Mode]: lambda value: _by_name(value, _mode),
    Mapping[Owner, str]: lambda value: {
        Owner(name): each for name, each in _by_name(value, _name).items()
    },
}


def read(text: str, kind: Any) -> Any:
    """The value of type `kind`; raise ValueError, TypeError or KeyError where it is none."""
    if kind in (str, str | None):
        return _name(text)
    value = json.loads(text)
    return _OF_JSON[kind](value) if kind in _OF_JSON else kind(**_by_name(value, _number))


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
        return {name: written(each) for name, each in values.items() if each is not None}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
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
                values[each.name] = read(text, types[each.name])
            except (ValueError, TypeError, KeyError) as error:
                faults.append(f"{variable} is not readable: {error}")
        if faults:
            raise SettingsUnreadable("; ".join(faults) + ". Deploy the stack again to set them.")
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class CaseStoreSettings(LambdaSettings):
    """What every Lambda needs that asks the case store about cases."""

    case_table: str
    case_bucket: str
    limits: Limits = field(default_factory=Limits)
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, kw_only=True)
class CaseSettings(CaseStoreSettings):
    """What every Lambda needs that moves a case."""

    urgent_topic_arn: str
    info_topic_arn: str


@dataclass(frozen=True, kw_only=True)
class ConsentSettings(LambdaSettings, Consent):
    """What every Lambda needs that has to know which queues are managed, and how far."""

    mode: Mode = Mode.OBSERVE
    tag_may_raise_to: Mode = Mode.OBSERVE
    queues: tuple[str, ...] = ()


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
    probe_role: str


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
class RollbackSettings(CaseSettings):
    """What rollback needs beside it: the Lambdas whose work it has to stop first, by name."""

    owners: Mapping[Owner, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ScanSettings(CaseStoreSettings, ConsentSettings):
    """What the scan needs beside it: it moves no case."""

    heal_function: str


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(LambdaSettings):
    """What the probe needs: it moves no case."""

    case_table: str
    urgent_topic_arn: str
    probe_queue_url: str


@dataclass(frozen=True)
class StartNightlySettings(LambdaSettings):
    """What start_nightly needs; the roots, the job's code and its packages are s3 URIs."""

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
class WatchNightlySettings(LambdaSettings):
    """What watch_nightly needs."""

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


@dataclass(frozen=True)
class Worker:
    """One size for driver and executors; the disk is what comes without a charge."""

    vcpu: int = 2
    heap_gb: int = 5
    # Beside the heap: Python reads the files, as many at once as there are processors.
    overhead_factor: float = 0.4
    disk_gb: int = 20

    @property
    def memory_gb(self) -> int:
        """What EMR allots and bills: heap and overhead, in whole GB."""
        return -int(-self.heap_gb * (1 + self.overhead_factor) // 1)


WORKER = Worker()


def workers_within(maximum_vcpu: int, maximum_memory_gb: int) -> int:
    """How many there may be at once: what comes to its end first decides."""
    return min(maximum_vcpu // WORKER.vcpu, maximum_memory_gb // WORKER.memory_gb)


def executors_within(maximum_vcpu: int, maximum_memory_gb: int) -> int:
    """One worker is the driver; without an executor beside it, nothing would be read."""
    return max(1, workers_within(maximum_vcpu, maximum_memory_gb) - 1)
