"""Settings of the Lambdas as environment variables: one frozen class per Lambda."""

from __future__ import annotations

import json as plain_json
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, convert, field, json
from msgspec.structs import fields

from mendq.model.case import Severity
from mendq.model.limits import Bounds, Consent, Limits, Mode, Timing
from mendq.model.queue import refuse_repeated_keys
from mendq.model.steps import Owner

Text = Annotated[str, Meta(min_length=1)]


def read(text: str, kind: Any) -> Any:
    """The value of type `kind`; raise ValueError or TypeError where it is none."""
    if kind in (Text, Text | None):
        return convert(text, kind)
    value = json.decode(text, type=kind)
    given = plain_json.loads(text, object_pairs_hook=refuse_repeated_keys)
    if is_dataclass(value):
        if unknown := given.keys() - vars(value).keys():
            raise ValueError(f"nothing is called {', '.join(sorted(unknown))}")
        if any(isinstance(each, int | float) and each < 0 for each in given.values()):
            raise ValueError("a number is below 0")
        if any("" in each for each in given.values() if isinstance(each, list)):
            raise ValueError("a name is empty")
    return value


PREFIX = "MENDQ_"
# Whose trail and cases the nightly job reads.
ACCOUNT, ORGANIZATION = "account", "organization"
# Every alarm, as the stack ships.
FULL = "full"


class SettingsUnreadable(Exception):
    """The environment does not hold what the Lambda needs; names every variable and its fault."""


class LambdaSettings(Struct, frozen=True):
    """What every Lambda of Mendq knows about where it runs."""

    account: Text

    def to_environment(self) -> dict[str, str]:
        """The variables that `from_environment` reads back; text as it is, all else as JSON.

        What is not set has none.
        """
        values = {variable_of(each.name): getattr(self, each.name) for each in fields(self)}
        return {
            name: each if isinstance(each, str) else json.encode(each).decode()
            for name, each in values.items()
            if each is not None
        }

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
            except (ValueError, TypeError, RecursionError) as error:
                faults.append(f"{variable} is not readable: {error}")
        if faults:
            raise SettingsUnreadable("; ".join(faults) + ". Deploy the stack again to set them.")
        return cls(**values)


class CaseStoreSettings(LambdaSettings, frozen=True, kw_only=True):
    """What every Lambda needs that asks the case store about cases."""

    case_table: Text
    case_bucket: Text
    limits: Limits = Limits()
    timing: Timing = Timing()


class CaseSettings(CaseStoreSettings, frozen=True, kw_only=True):
    """What every Lambda needs that moves a case."""

    urgent_topic_arn: Text
    info_topic_arn: Text
    team_topic_arns: Mapping[str, Text] = field(default_factory=dict)
    chat: tuple[Severity, ...] = ()
    docs_url: Text | None = None


class ManagingSettings(CaseSettings, frozen=True, kw_only=True):
    """What every Lambda needs that moves cases of managed queues by itself."""

    consent: Consent = Consent()


class OwnerSettings(ManagingSettings, frozen=True, kw_only=True):
    """What every Lambda needs beside it that owns a write."""

    autonomy: Mapping[str, Mode] = field(default_factory=dict)
    freeze_calendars: tuple[Text, ...] = ()


class RedriveSettings(OwnerSettings, frozen=True, kw_only=True):
    """What redrive needs beside it."""

    bounds: Bounds = Bounds()


class FollowUpSettings(ManagingSettings, frozen=True, kw_only=True):
    """What follow_up needs beside it: the Lambdas that own the writes, by name.

    How far its clock may be put forward, to see what becomes of a case, the local account alone
    says: no template sets it.
    """

    owners: Mapping[Owner, Text]
    alarms: Text = FULL
    most_days_ahead: int | None = None


class OperatorSettings(CaseSettings, frozen=True, kw_only=True):
    """What approve and rollback need beside it: the Lambdas that they call or stop, by name."""

    owners: Mapping[Owner, Text]


class ScanSettings(CaseStoreSettings, frozen=True, kw_only=True):
    """What the scan needs beside it: it moves no case."""

    consent: Consent = Consent()
    heal_function: Text


class ProbeSettings(LambdaSettings, frozen=True, kw_only=True):
    """What the probe needs: it moves no case."""

    case_table: Text
    urgent_topic_arn: Text
    probe_queue_url: Text
    chat: tuple[Severity, ...] = ()
    docs_url: Text | None = None


class StartNightlySettings(LambdaSettings, frozen=True):
    """What start_nightly needs; the roots, the job's code and its packages are s3 URIs."""

    application_id: Text
    job_role_arn: Text
    entry_point: Text
    package: Text
    compiled_packages: Text
    trail_root: Text
    case_root: Text
    out_root: Text
    log_root: Text
    maximum_executors: int
    organization_root: Text | None = None
    organization_accounts: tuple[Text, ...] = ()
    scope: Text = ACCOUNT


class WatchNightlySettings(LambdaSettings, frozen=True):
    """What watch_nightly needs; without `organization_bucket` nothing is shared."""

    application_id: Text
    report_bucket: Text
    organization_bucket: Text | None = None


class DeliverReportSettings(LambdaSettings, frozen=True):
    """What deliver_report needs; without a sender nothing goes by mail.

    Of a member the organization's hub tells: only its own recipients hear of it beside that.
    """

    report_bucket: Text
    topic_arn: Text
    is_member: bool = False
    sender: Text | None = None
    recipients: tuple[Text, ...] = ()
    chat: tuple[Severity, ...] = ()
    docs_url: Text | None = None


class TemplateHookSettings(LambdaSettings, frozen=True):
    """What the template hook needs: whether it stops deployments, and what it says nothing of."""

    hook_fails: bool
    hook_ignores: tuple[Text, ...] = ()


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
