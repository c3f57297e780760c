"""Settings of the Lambdas as environment variables: one frozen class per Lambda."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from math import inf
from types import NoneType
from typing import Any, Self, get_args, get_origin, get_type_hints

from msgspec import Struct, field
from msgspec.structs import fields

from mendq.model.limits import Bounds, Consent, Limits, Mode, Timing
from mendq.model.steps import Owner


def written(value: object) -> str:
    """Text as it is, all else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(_plain(value), separators=(",", ":"))


def _plain(value: Any) -> Any:
    """A mode is its name, wherever it stands."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return str(value) if isinstance(value, Mode) else value


def read(text: str, kind: Any) -> Any:
    """The value of type `kind`; raise ValueError, TypeError or KeyError where it is none."""
    return _as(kind, text if kind in (str, str | None) else json.loads(text))


def _as(kind: Any, value: Any) -> Any:
    """`value` of a JSON document as a field's type."""
    origin, parts = get_origin(kind), get_args(kind)
    if NoneType in parts:
        return _as(parts[0], value)
    if origin is tuple and isinstance(value, list):
        return tuple(_as(parts[0], each) for each in value)
    if origin is Mapping and isinstance(value, dict):
        return {_as(parts[0], name): _as(parts[1], each) for name, each in value.items()}
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        types = get_type_hints(kind)
        return kind(**{name: _as(types[name], each) for name, each in value.items()})
    words = {str(each): each for each in kind} if kind in (Mode, Owner) else {}
    if isinstance(value, str) and value in words:
        return words[value]
    is_text = kind is str and isinstance(value, str) and value != ""
    is_number = kind in (int, float) and type(value) in (int, float) and 0 <= value < inf
    if is_text or is_number:
        return value
    raise TypeError(f"{value!r} is no {getattr(kind, '__name__', kind)}")


PREFIX = "MENDQ_"


class SettingsUnreadable(Exception):
    """The environment does not hold what the Lambda needs; names every variable and its fault."""


class LambdaSettings(Struct, frozen=True):
    """What every Lambda of Mendq knows about where it runs."""

    account: str

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Self:
        """What this Lambda needs of all that is known."""
        return cls(**{name: known[name] for name in cls.__struct_fields__ if name in known})

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
        for each in fields(cls):
            variable = variable_of(each.name)
            text = environment.get(variable)
            if text is None:
                if each.required:
                    faults.append(f"{variable} is missing")
                continue
            try:
                values[each.name] = read(text, each.type)
            except (ValueError, TypeError, KeyError) as error:
                faults.append(f"{variable} is not readable: {error}")
        if faults:
            raise SettingsUnreadable("; ".join(faults) + ". Deploy the stack again to set them.")
        return cls(**values)


class CaseStoreSettings(LambdaSettings, frozen=True, kw_only=True):
    """What every Lambda needs that asks the case store about cases."""

    case_table: str
    case_bucket: str
    limits: Limits = Limits()
    timing: Timing = Timing()


class CaseSettings(CaseStoreSettings, frozen=True, kw_only=True):
    """What every Lambda needs that moves a case."""

    urgent_topic_arn: str
    info_topic_arn: str


class ManagingSettings(CaseSettings, frozen=True, kw_only=True):
    """What every Lambda needs that moves cases of managed queues by itself."""

    consent: Consent = Consent()


class OwnerSettings(ManagingSettings, frozen=True, kw_only=True):
    """What every Lambda needs beside it that owns a write."""

    autonomy: Mapping[str, Mode] = field(default_factory=dict)
    freeze_calendars: tuple[str, ...] = ()


class HealSettings(OwnerSettings, frozen=True, kw_only=True):
    """What the heal Lambda needs beside it; our own roles by name, which is shorter than an ARN."""

    own_roles: tuple[str, ...]
    probe_role: str


class RedriveSettings(OwnerSettings, frozen=True, kw_only=True):
    """What redrive needs beside it."""

    bounds: Bounds = Bounds()


class FollowUpSettings(ManagingSettings, frozen=True, kw_only=True):
    """What follow_up needs beside it: the Lambdas that own the writes, by name.

    How far its clock may be put forward, to see what becomes of a case, the local account alone
    says: no template sets it.
    """

    owners: Mapping[Owner, str]
    most_days_ahead: int | None = None


class OperatorSettings(CaseSettings, frozen=True, kw_only=True):
    """What approve and rollback need beside it: the Lambdas that they call or stop, by name."""

    owners: Mapping[Owner, str]


class ScanSettings(CaseStoreSettings, frozen=True, kw_only=True):
    """What the scan needs beside it: it moves no case."""

    consent: Consent = Consent()
    heal_function: str


class ProbeSettings(LambdaSettings, frozen=True, kw_only=True):
    """What the probe needs: it moves no case."""

    case_table: str
    urgent_topic_arn: str
    probe_queue_url: str


class StartNightlySettings(LambdaSettings, frozen=True):
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


class WatchNightlySettings(LambdaSettings, frozen=True):
    """What watch_nightly needs."""

    application_id: str
    report_bucket: str


class DeliverReportSettings(LambdaSettings, frozen=True):
    """What deliver_report needs; without a sender nothing goes by mail."""

    report_bucket: str
    topic_arn: str
    sender: str | None = None
    recipients: tuple[str, ...] = ()


def variable_of(field_name: str) -> str:
    """The environment variable that carries a field."""
    return PREFIX + field_name.upper()


class Worker(Struct, frozen=True):
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
