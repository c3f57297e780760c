"""Settings of the Lambdas as environment variables: one frozen class per Lambda."""

from __future__ import annotations

import json as plain_json
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, convert, field, json
from msgspec.structs import fields

from mendq.model.case import Severity
from mendq.model.consent import Consent
from mendq.model.limits import Bounds, Limits, Timing
from mendq.model.mode import Mode
from mendq.model.mutes import Mute
from mendq.model.queue import refuse_repeated_keys
from mendq.model.steps import Owner

NonEmptyText = Annotated[str, Meta(min_length=1)]


def read_setting(text: str, setting_type: Any) -> Any:
    """Return the value of type `setting_type` in an environment variable's text.

    The text is JSON, except for a text setting, whose value is the text itself. Raise ValueError or
    TypeError if the text is not a value of this type.
    """
    if setting_type in (NonEmptyText, NonEmptyText | None):
        return convert(text, setting_type)
    value = json.decode(text, type=setting_type)
    parsed_json = plain_json.loads(text, object_pairs_hook=refuse_repeated_keys)
    if is_dataclass(value):
        _check_json_object(parsed_json, known_names=vars(value).keys())
    return value


def _check_json_object(json_object: Mapping[str, Any], known_names: Collection[str]) -> None:
    """Raise ValueError if a key is not known, a number is negative, or a list has an empty name."""
    if unknown_names := json_object.keys() - set(known_names):
        raise ValueError(f"nothing is called {', '.join(sorted(unknown_names))}")
    if any(isinstance(value, int | float) and value < 0 for value in json_object.values()):
        raise ValueError("a number is below 0")
    if any(isinstance(value, list) and "" in value for value in json_object.values()):
        raise ValueError("a name is empty")


ENVIRONMENT_VARIABLE_PREFIX = "MENDQ_"
# The scope of the nightly job: one account, or all accounts of an organization.
ACCOUNT_SCOPE = "account"
ORGANIZATION_SCOPE = "organization"
# The default: every alarm is deployed.
FULL_ALARMS = "full"


class SettingsUnreadable(Exception):
    """Environment variables of the Lambda are missing or unreadable.

    The message names each variable and its fault.
    """


class LambdaSettings(Struct, frozen=True):
    """Settings of every Lambda: the account in which it runs."""

    account: NonEmptyText

    def to_environment(self) -> dict[str, str]:
        """Return the environment variables from which `from_environment` reads these settings.

        Texts are unchanged, and all other values become JSON. A setting of None has no variable.
        """
        environment: dict[str, str] = {}
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, str):
                environment[environment_variable_of(setting.name)] = value
            elif value is not None:
                environment[environment_variable_of(setting.name)] = json.encode(value).decode()
        return environment

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Return the settings in these environment variables.

        Raise SettingsUnreadable, which names all faults, if required variables are missing or
        variables are unreadable.
        """
        value_by_field: dict[str, Any] = {}
        faults: list[str] = []
        for setting in fields(cls):
            variable = environment_variable_of(setting.name)
            variable_text = environment.get(variable)
            if variable_text is None:
                if setting.required:
                    faults.append(f"{variable} is missing")
                continue
            try:
                value_by_field[setting.name] = read_setting(variable_text, setting.type)
            except (ValueError, TypeError, RecursionError) as error:
                faults.append(f"{variable} is not readable: {error}")
        if faults:
            raise SettingsUnreadable("; ".join(faults) + ". Deploy the stack again to set them.")
        return cls(**value_by_field)


class CaseTableSettings(LambdaSettings, frozen=True, kw_only=True):
    """Settings of every Lambda that reads the case table, except the probe."""

    case_table: NonEmptyText
    limits: Limits = Limits()
    timing: Timing = Timing()


class CaseStoreSettings(CaseTableSettings, frozen=True, kw_only=True):
    """Settings of every Lambda that also reads or writes the case bucket."""

    case_bucket: NonEmptyText


class CaseSettings(CaseStoreSettings, frozen=True, kw_only=True):
    """Settings of every Lambda that changes the state of cases and sends notifications."""

    urgent_topic_arn: NonEmptyText
    info_topic_arn: NonEmptyText
    team_topic_arns: Mapping[str, NonEmptyText] = field(default_factory=dict)
    chat: tuple[Severity, ...] = ()
    docs_url: NonEmptyText | None = None


class ManagedCaseSettings(CaseSettings, frozen=True, kw_only=True):
    """Settings of every Lambda that changes the state of cases automatically."""

    consent: Consent = Consent()


class OwnerSettings(ManagedCaseSettings, frozen=True, kw_only=True):
    """Settings of the Lambdas that apply fixes: heal, attach_dlq, restore_policy and redrive.

    Redrive has more: see `RedriveSettings`.
    """

    autonomy: Mapping[str, Mode] = field(default_factory=dict)
    freeze_calendars: tuple[NonEmptyText, ...] = ()
    mutes: tuple[Mute, ...] = ()


class RedriveSettings(OwnerSettings, frozen=True, kw_only=True):
    """Settings of redrive. `seal_table` is the table of seal keys."""

    seal_table: NonEmptyText
    bounds: Bounds = Bounds()


class FollowUpSettings(ManagedCaseSettings, frozen=True, kw_only=True):
    """Settings of follow_up.

    Attributes:
        owners: The names of the Lambda functions that apply fixes, by owner (`Owner`).
        alarms: The set of deployed alarms, such as FULL_ALARMS.
        most_days_ahead: The number of days by which follow_up's clock may be set forward, to see
            what happens to a case later. Only the local account sets it.
    """

    owners: Mapping[Owner, NonEmptyText]
    alarms: NonEmptyText = FULL_ALARMS
    most_days_ahead: int | None = None


class OperatorSettings(CaseSettings, frozen=True, kw_only=True):
    """Settings of approve and rollback.

    Attributes:
        owners: The names of the Lambda functions that apply fixes, by owner (`Owner`).
    """

    owners: Mapping[Owner, NonEmptyText]


class ScanSettings(CaseStoreSettings, frozen=True, kw_only=True):
    """Settings of the hourly scan, which changes no case and passes its findings to heal."""

    consent: Consent = Consent()
    heal_function: NonEmptyText
    mutes: tuple[Mute, ...] = ()


class ScanOnlySettings(CaseTableSettings, frozen=True, kw_only=True):
    """Settings of the only Lambda of a scan-only stack, which reports its findings to people."""

    consent: Consent = Consent()
    urgent_topic_arn: NonEmptyText
    chat: tuple[Severity, ...] = ()
    docs_url: NonEmptyText | None = None
    mutes: tuple[Mute, ...] = ()


class ProbeSettings(LambdaSettings, frozen=True, kw_only=True):
    """Settings of the probe, which changes no case."""

    case_table: NonEmptyText
    urgent_topic_arn: NonEmptyText
    probe_queue_url: NonEmptyText
    chat: tuple[Severity, ...] = ()
    docs_url: NonEmptyText | None = None


class StartNightlySettings(LambdaSettings, frozen=True):
    """Settings of start_nightly. The roots, the job's code and its packages are S3 URIs."""

    application_id: NonEmptyText
    job_role_arn: NonEmptyText
    entry_point: NonEmptyText
    package: NonEmptyText
    compiled_packages: NonEmptyText
    trail_root: NonEmptyText
    case_root: NonEmptyText
    out_root: NonEmptyText
    log_root: NonEmptyText
    maximum_executors: int
    organization_root: NonEmptyText | None = None
    organization_accounts: tuple[NonEmptyText, ...] = ()
    scope: NonEmptyText = ACCOUNT_SCOPE


class WatchNightlySettings(LambdaSettings, frozen=True):
    """Settings of watch_nightly.

    Without `organization_bucket`, watch_nightly shares no report with an organization.
    """

    application_id: NonEmptyText
    report_bucket: NonEmptyText
    organization_bucket: NonEmptyText | None = None


class DeliverReportSettings(LambdaSettings, frozen=True):
    """Settings of deliver_report. Without a sender, no report is mailed.

    If `is_member` is True, the organization's hub account delivers this account's report. This
    Lambda then delivers it only if the account has recipients of its own.
    """

    report_bucket: NonEmptyText
    topic_arn: NonEmptyText
    is_member: bool = False
    sender: NonEmptyText | None = None
    recipients: tuple[NonEmptyText, ...] = ()
    chat: tuple[Severity, ...] = ()
    docs_url: NonEmptyText | None = None


class TemplateHookSettings(LambdaSettings, frozen=True):
    """Settings of the template hook.

    Attributes:
        hook_fails: True if findings stop a deployment.
        hook_ignores: The names of symptoms that the hook ignores.
    """

    hook_fails: bool
    hook_ignores: tuple[NonEmptyText, ...] = ()


def environment_variable_of(field_name: str) -> str:
    """Return the environment variable of a field."""
    return ENVIRONMENT_VARIABLE_PREFIX + field_name.upper()


class SparkWorker(Struct, frozen=True):
    """The size of a Spark worker: the driver or an executor.

    The disk has the largest size that EMR does not charge for.
    """

    vcpu: int = 2
    heap_gb: int = 5
    # The memory besides the heap, as a share of the heap. Python reads the files there, one per
    # processor at a time.
    overhead_factor: float = 0.4
    disk_gb: int = 20

    @property
    def memory_gb(self) -> int:
        """The memory that EMR allocates and charges for: heap plus overhead, rounded up to a GB."""
        return -int(-self.heap_gb * (1 + self.overhead_factor) // 1)


DEFAULT_SPARK_WORKER = SparkWorker()
# A job run begins with this many executors and never has fewer. EMR Serverless's own default is 3.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/jobs-spark.html
INITIAL_EXECUTORS = 1


def count_workers_within(maximum_vcpu: int, maximum_memory_gb: int) -> int:
    """Return how many workers of the size DEFAULT_SPARK_WORKER fit into these limits."""
    return min(
        maximum_vcpu // DEFAULT_SPARK_WORKER.vcpu,
        maximum_memory_gb // DEFAULT_SPARK_WORKER.memory_gb,
    )


def count_executors_within(maximum_vcpu: int, maximum_memory_gb: int) -> int:
    """Return how many Spark executors may run at once.

    One of the workers that fit (`count_workers_within`) is the driver, which is not an executor.
    """
    return count_workers_within(maximum_vcpu, maximum_memory_gb) - 1
