"""The objects within the settings, and what their fields say of each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from infra.data_events import DATA_EVENT_NAMES
from infra.settings import shapes
from infra.settings.kinds import Flag, ListOf, Number, OneOf, Reading
from infra.settings.sections import Section, Together, setting


@dataclass(frozen=True)
class TrailSettings:
    """The trail of SQS data events."""

    create: bool = field(
        default=True,
        metadata=setting(
            Flag(), "Whether Mendq makes a trail of its own; else `bucket` is an existing one's."
        ),
    )
    bucket: str | None = field(
        default=None,
        metadata=setting(
            shapes.BUCKET,
            "The bucket that an existing trail of SQS data events writes to. Where a KMS key "
            "encrypts the trail, the key's policy must let the role `mendq-night-<region>` "
            "decrypt, and so must the policy of a bucket of another account let it read.",
        ),
    )
    bucket_region: str | None = field(
        default=None,
        metadata=setting(
            shapes.REGION,
            "Where `bucket` lies, which its name does not tell. It must be the stack's region: the "
            "nightly job, which has no VPC, reaches this region alone. A bucket elsewhere is "
            "refused; while its region is not said, `mendq doctor` finds out, or the first night.",
        ),
    )
    management_events: bool = field(
        default=False,
        metadata=setting(
            Flag(),
            "Whether the trail also logs management events that write, such as SetQueueAttributes. "
            "AWS bills every copy of them but the first.",
        ),
    )
    queue_arn_prefixes: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            ListOf(shapes.QUEUE_ARN_PREFIX, "starts of queue ARNs", most=400),
            "The queues whose calls are logged, each billed by AWS. `arn:aws:sqs:` is every queue; "
            "while none are named, only those of Mendq's own pulse and drills are.",
        ),
    )
    event_names: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            ListOf(OneOf(DATA_EVENT_NAMES, "a data event of SQS"), "SQS data events"),
            "The calls that are logged; empty: all of them.",
        ),
    )


@dataclass(frozen=True)
class PageSettings:
    """Whom pages reach."""

    urgent: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            ListOf(shapes.PAGE, "e-mail addresses and https URLs"),
            "Whom pages reach that want somebody now.",
        ),
    )
    info: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            ListOf(shapes.PAGE, "e-mail addresses and https URLs"),
            "Whom the others reach: proposals, refusals and the verdict of the weekly report.",
        ),
    )


@dataclass(frozen=True)
class ReportSettings:
    """The weekly report."""

    weekday: str = field(
        default="MONDAY",
        metadata=setting(OneOf(shapes.WEEKDAYS, "a weekday"), "The day it is sent."),
    )
    hour: int = field(default=6, metadata=setting(Number(0, 23), "The hour it is sent."))
    time_zone: str = field(
        default="UTC", metadata=setting(shapes.TIME_ZONE, "Where `weekday` and `hour` are read.")
    )
    sender: str | None = field(
        default=None,
        metadata=setting(
            shapes.MAIL,
            "Whom it comes from. The address, or its domain, must be an identity that was verified "
            "in SES, in the stack's region. Without a sender nothing goes by mail.",
        ),
    )
    recipients: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            ListOf(shapes.MAIL, "e-mail addresses", most=50),
            "Who gets it by mail, each in a mail of its own. In SES's sandbox these must be "
            "verified as well.",
        ),
    )

    @property
    def mails(self) -> bool:
        """Whether anything goes by mail."""
        return self.sender is not None and bool(self.recipients)


@dataclass(frozen=True)
class NightSettings:
    """The nightly job."""

    hour_utc: int = field(default=2, metadata=setting(Number(0, 23), "The hour it starts."))
    maximum_vcpu: int = field(
        default=16,
        metadata=setting(
            Number(4, 400),
            "The most virtual CPUs it may use at once: 2 for each worker, of which it needs two.",
        ),
    )
    maximum_memory_gb: int = field(
        default=64,
        metadata=setting(
            Number(16, 3_000), "The most memory it may use at once: 7 GB for each worker."
        ),
    )


@dataclass(frozen=True)
class Environment:
    """Where a stack goes."""

    account: str = field(metadata=setting(shapes.ACCOUNT, "The account's id."))
    region: str = field(metadata=setting(shapes.REGION, "The region."))


def _one_trail(trail: TrailSettings, path: str, reading: Reading) -> None:
    if trail.create and trail.bucket is not None:
        cure = "say create: false to use the trail that writes there, or leave bucket out"
        reading.note(f"{path}.bucket", "is given although create is true", cure)
    if not trail.create and trail.bucket is None:
        cure = "name the bucket of the existing trail, or say create: true"
        reading.note(f"{path}.bucket", "is missing although create is false", cure)
    if trail.create and trail.bucket_region is not None:
        cure = "leave it out: Mendq's own trail lies where the stack does"
        reading.note(f"{path}.bucketRegion", "is given although create is true", cure)


def _no_selectors_of_another(trail: TrailSettings, path: str, reading: Reading) -> None:
    selects = trail.management_events or trail.queue_arn_prefixes or trail.event_names
    if selects and not trail.create:
        cure = "leave managementEvents, queueArnPrefixes and eventNames out"
        reading.note(path, "selects events although create is false", cure)


def _a_sender(report: ReportSettings, path: str, reading: Reading) -> None:
    if report.recipients and report.sender is None:
        reading.note(f"{path}.sender", "is missing although there are recipients", "name it")


_SELECTORS = frozenset({"create", "management_events", "queue_arn_prefixes", "event_names"})

TRAIL = Section(
    TrailSettings,
    together=(
        Together(frozenset({"create", "bucket", "bucket_region"}), _one_trail),
        Together(_SELECTORS, _no_selectors_of_another),
    ),
)
REPORT = Section(
    ReportSettings, together=(Together(frozenset({"sender", "recipients"}), _a_sender),)
)
PAGES = Section(PageSettings)
NIGHT = Section(NightSettings)
ENVIRONMENT = Section(Environment, words="{account, region}")
