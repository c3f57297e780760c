"""The settings of a deployment: the object `mendq` in the CDK context, as classes.

`read_deployment_settings` accepts all settings or refuses all of them. The sentence below a field
is the field's description in docs/settings.md. A section without such a sentence is described by
the docstring of its class.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from infra.settings.hook import HookSettings
from infra.settings.reading import (
    ComparedSection,
    Conflict,
    Mistake,
    make_entries_bounds,
    make_list_bounds,
    make_name_bounds,
    make_text_bounds,
    read_settings,
    suggest_name,
)
from infra.settings.scan_only import list_scan_only_conflicts
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.model.case import Severity
from mendq.model.limits import Limits, Range, Timing
from mendq.model.mode import Mode
from mendq.model.mutes import Mute, read_mute_entries
from mendq.model.names import DATA_EVENT_NAMES
from mendq.model.settings import ACCOUNT_SCOPE, FULL_ALARMS, ORGANIZATION_SCOPE

REGION_PATTERN = r"[a-z]{2,8}(?:-[a-z]+){1,3}-[0-9]{1,2}"
_ACCOUNT_PATTERN = r"[0-9]{12}"
# Characters of a mail address that need no quotes in a header. SES accepts only ASCII.
_MAIL_ATOM_PATTERN = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_MAIL_PATTERN = (
    rf"(?=[^@]{{1,64}}@){_MAIL_ATOM_PATTERN}(?:\.{_MAIL_ATOM_PATTERN})*"
    r"@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+"
)
# Up to this many expected events a day, a synthesis prints no warning about the trail's cost.
EXPECTED_EVENTS_WITHOUT_WARNING = 1_000_000
WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")

_QUEUE_NAME_BOUNDS = make_text_bounds(
    "a queue's name, or the start of one and a *",
    r"(?=.{1,80}\Z)(?:[A-Za-z0-9_-]+(?:\.fifo|\*)?)",
    "orders or orders-*",
    (r"^\*$", "no setting manages every queue: name them, or the start of their names and a *"),
    ("^(arn:|https?://)", "say the queue's name alone, such as orders"),
    (r"\*.", "a * may stand only once, at the end"),
)
_QUEUE_ARN_PREFIX_BOUNDS = make_text_bounds(
    "the start of a queue's ARN",
    rf"arn:aws[a-z-]*:sqs:(?:{REGION_PATTERN}:(?:{_ACCOUNT_PATTERN}:[A-Za-z0-9_-]{{0,80}}(?:\.fifo)?)?)?",
    "arn:aws:sqs:eu-west-1:111122223333:orders-",
    (r"\*$", "leave out the *: CloudTrail compares the start of the ARN"),
)
_CALENDAR_ARN_BOUNDS = make_text_bounds(
    "the ARN of an SSM Change Calendar",
    rf"arn:aws[a-z-]*:ssm:{REGION_PATTERN}:{_ACCOUNT_PATTERN}:document/[A-Za-z0-9_.-]{{3,128}}",
    "arn:aws:ssm:eu-west-1:111122223333:document/quiet-days",
)
_BUCKET_NAME_BOUNDS = make_text_bounds(
    "a bucket's name",
    r"[a-z0-9](?:[a-z0-9.-]{1,61})[a-z0-9]",
    "our-cloudtrail-logs",
    ("^arn:", "leave out arn:aws:s3:::"),
)
_TOPIC_ARN_BOUNDS = make_text_bounds(
    "the ARN of an SNS topic",
    rf"arn:aws[a-z-]*:sns:{REGION_PATTERN}:{_ACCOUNT_PATTERN}:[A-Za-z0-9_-]{{1,256}}",
    "arn:aws:sns:eu-west-1:111122223333:on-call",
    (r"\.fifo$", "name a standard topic: no alarm of CloudWatch's tells a FIFO one"),
)
_SECRET_ARN_BOUNDS = make_text_bounds(
    "the whole ARN of a secret in Secrets Manager",
    rf"arn:aws[a-z-]*:secretsmanager:{REGION_PATTERN}:{_ACCOUNT_PATTERN}:secret:[A-Za-z0-9/_+=.@-]{{1,505}}-[A-Za-z0-9]{{6}}",
    "arn:aws:secretsmanager:eu-west-1:111122223333:secret:pagerduty-AbCdEf",
    (":secret:[^-]*$", "say the whole ARN, with the six characters that Secrets Manager adds"),
)


_TEAM_NAME_BOUNDS = make_text_bounds("a team's name", "[A-Za-z0-9_.-]{1,40}", "payments")
_TEAMS_BOUNDS = Meta(title="{team: the ARN of its SNS topic}", extra={"most": 20})
_ORGANIZATION_ID_BOUNDS = make_text_bounds(
    "an organization's id", "o-[a-z0-9]{10,32}", "o-exampleorgid"
)
_KEY_PREFIX_BOUNDS = make_text_bounds(
    "what stands before AWSLogs in the keys of a trail",
    # Only characters that have no special meaning in S3 clients, shells and policies.
    r"(?=.{1,200}\Z)(?!(?:.*/)?(?:\.{1,2}|AWSLogs)(?:/|\Z))[A-Za-z0-9_.=+@-]+(?:/[A-Za-z0-9_.=+@-]+)*",
    "o-exampleorgid or logs/cloudtrail",
    ("^s3://|^arn:", "leave out the bucket, which trail.bucket names"),
    ("AWSLogs|^/|/$", "leave out AWSLogs, what follows it, and the slash at either end"),
)
_SUBSCRIBER_BOUNDS = make_text_bounds(
    "an e-mail address or an https URL",
    rf"{_MAIL_PATTERN}|https://[A-Za-z0-9.-]{{1,253}}(?::[0-9]{{1,5}})?(?:/[^\s]*)?",
    "on-call@example.com or https://events.example.com/key",
    ("^http://", "use https://"),
)
_DOCS_URL_BOUNDS = make_text_bounds(
    "an https URL with `*` for a page",
    r"https://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?/[A-Za-z0-9._~/-]{0,500}\*[A-Za-z0-9._/-]{0,20}",
    "https://wiki.example.com/mendq/docs/*.md",
    ("^http://", "use https://"),
)
_ALARMS_BOUNDS = make_text_bounds("full or essential", f"{FULL_ALARMS}|essential", FULL_ALARMS)
_TIME_ZONE_BOUNDS = make_text_bounds(
    "a time zone", "[A-Za-z]+(?:[/_+-][A-Za-z0-9_+-]+)*", "Europe/Berlin"
)
MailAddress = Annotated[
    str, make_text_bounds("an e-mail address", _MAIL_PATTERN, "sqs@example.com")
]
Subscribers = Annotated[
    tuple[Annotated[str, _SUBSCRIBER_BOUNDS], ...],
    make_list_bounds("e-mail addresses and https URLs"),
]
Account = Annotated[
    str,
    make_text_bounds("an account id", _ACCOUNT_PATTERN, '"111122223333", twelve digits in quotes'),
]
Region = Annotated[str, make_text_bounds("a region", REGION_PATTERN, "eu-west-1")]
Hour = Annotated[int, Range(0, 23)]
DataEvent = Annotated[str, make_name_bounds("a data event of SQS", DATA_EVENT_NAMES)]


@dataclass(frozen=True)
class TrailSettings(ComparedSection):
    """Settings of the CloudTrail trail that logs SQS calls. Mendq reads the failed calls."""

    create: bool = True
    """True: Mendq makes its own trail. False: Mendq reads the files of an existing trail in
    `bucket`."""
    bucket: Annotated[str, _BUCKET_NAME_BOUNDS] | None = None
    """The bucket to which an existing trail writes SQS data events. If a KMS key encrypts the
    trail's files, the key's policy must let the role `mendq-nightly-<region>` decrypt. If the
    bucket is in another account, its policy must let the role read."""
    prefix: Annotated[str, _KEY_PREFIX_BOUNDS] | None = None
    """The start of the keys of the trail's files, before `AWSLogs`. CloudTrail calls it the prefix.
    Trails of organizations and of Control Tower have one. Unless `nightly.scope` is `organization`,
    the nightly job reads only the files of the stack's account and region."""
    bucket_region: Region | None = None
    """The region of `bucket`. It must be the stack's region: the nightly job has no VPC, so it
    reaches only this region. A bucket in another region is refused. If the region is not set,
    `mendq doctor` or the first nightly run finds the mistake."""
    management_events: bool = False
    """True: the trail also logs management events that write, such as SetQueueAttributes. Without
    such a trail nothing shows `mapping_refused`. AWS bills every copy of such an event except the
    first."""
    queue_arn_prefixes: Annotated[
        tuple[Annotated[str, _QUEUE_ARN_PREFIX_BOUNDS], ...],
        make_list_bounds("starts of queue ARNs", 400),
    ] = ()
    """Starts of the ARNs of the queues whose calls the trail logs. AWS bills each logged call.
    `arn:aws:sqs:` selects every queue. If the list is empty, the trail logs only calls to the
    queues of Mendq's own probe and drills."""
    event_names: Annotated[tuple[DataEvent, ...], make_list_bounds("SQS data events")] = ()
    """The calls that the trail logs; empty: all calls."""
    expected_events_per_day: Annotated[int, Range(1_000, 10_000_000_000)] = (
        EXPECTED_EVENTS_WITHOUT_WARNING
    )
    """The most records a day that you expect. After a day with more records, the alarm
    `mendq-trail-busy` rings in the following night. If you set more than the default, `make synth`
    prints what that costs."""

    @property
    def log_key_prefix(self) -> str:
        """The part of a log file's key before `AWSLogs`: empty, or the prefix and a slash."""
        return f"{self.prefix}/" if self.prefix else ""

    def list_conflicts(self) -> Iterator[Conflict]:
        """Yield the mistakes that only a comparison of several fields shows."""
        bucket_fields = {"create", "bucket", "bucket_region"}
        if self.create and self.bucket is not None:
            fault = "is given although create is true"
            remedy = "say create: false to use the trail that writes there, or leave bucket out"
            yield Conflict(bucket_fields, "bucket", fault, remedy)
        if not self.create and self.bucket is None:
            fault = "is missing although create is false"
            remedy = "name the bucket of the existing trail, or say create: true"
            yield Conflict(bucket_fields, "bucket", fault, remedy)
        if self.create and self.bucket_region is not None:
            fault = "is given although create is true"
            remedy = "leave it out: Mendq's own trail lies where the stack does"
            yield Conflict(bucket_fields, "bucketRegion", fault, remedy)
        has_event_selection = self.management_events or self.queue_arn_prefixes or self.event_names
        if not self.create and has_event_selection:
            event_fields = {"create", "management_events", "queue_arn_prefixes", "event_names"}
            fault = "selects events although create is false"
            remedy = "leave managementEvents, queueArnPrefixes and eventNames out"
            yield Conflict(event_fields, "", fault, remedy)


@dataclass(frozen=True)
class TopicSettings:
    """SNS topics of the user that replace Mendq's own topics."""

    urgent: Annotated[str, _TOPIC_ARN_BOUNDS] | None = None
    """The topic of urgent notifications, in the stack's account and region. [You must set its
    policy and the policy of its key](organizations.md#topics-of-your-own)."""
    info: Annotated[str, _TOPIC_ARN_BOUNDS] | None = None
    """The topic of all other notifications, in the stack's account and region."""


@dataclass(frozen=True)
class ChatSettings:
    """Notifications in the JSON form of Amazon Q Developer in chat applications (Slack, Teams).

    SNS sends the same JSON to all https endpoints of such a topic, also to those of other tools.
    Mail stays plain text.
    """

    urgent: bool = False
    """True: urgent notifications have this form, also those on a team's topic."""
    info: bool = False
    """True: all other notifications have this form, also the verdict of the weekly report."""

    @property
    def severities(self) -> tuple[Severity, ...]:
        """The severities whose notifications are shown in chat."""
        severities: list[Severity] = []
        if self.urgent:
            severities.append(Severity.URGENT)
        if self.info:
            severities.append(Severity.INFO)
        return tuple(severities)


@dataclass(frozen=True)
class PagerDutySettings:
    """Settings of PagerDuty.

    An urgent notification opens an incident, or adds to the open incident of the same case.
    """

    secret_arn: Annotated[str, _SECRET_ARN_BOUNDS]
    """A secret of the stack's account and region whose whole text is the integration key (Events
    API v2). The deployment reads the secret; [a new key](integrations.md#a-new-key) needs a new
    secret."""
    service_region: Annotated[
        str, make_name_bounds("a service region of PagerDuty", ("US", "EU"))
    ] = "US"
    """The service region of the PagerDuty account: `US` or `EU`."""


@dataclass(frozen=True)
class NotificationSettings:
    """Subscribers and topics of notifications."""

    urgent: Subscribers = ()
    """Subscribers of urgent notifications, which need a person at once."""
    info: Subscribers = ()
    """Subscribers of all other notifications: proposals, refusals and the verdict of the weekly
    report."""
    topics: TopicSettings = TopicSettings()
    """Your own topics, which replace Mendq's topics."""
    teams: Annotated[
        Mapping[Annotated[str, _TEAM_NAME_BOUNDS], Annotated[str, _TOPIC_ARN_BOUNDS]], _TEAMS_BOUNDS
    ] = field(default_factory=dict)
    """A topic for each team that a queue's tag `mendq:notify` may name. Notifications about that
    queue, of both severities, go to the team's topic and to the usual topic. The topic must be in
    the stack's account and region. [You must set its policy and the policy of its
    key](organizations.md#topics-of-your-own)."""
    chat: ChatSettings = ChatSettings()
    pagerduty: PagerDutySettings | None = None
    """Urgent notifications as [incidents of PagerDuty](integrations.md#pagerduty)."""


@dataclass(frozen=True)
class ReportSettings(ComparedSection):
    """Settings of the weekly report."""

    weekday: Annotated[str, make_name_bounds("a weekday", WEEKDAYS)] = "MONDAY"
    """The weekday on which the report is sent."""
    hour: Hour = 6
    """The hour at which the report is sent."""
    time_zone: Annotated[str, _TIME_ZONE_BOUNDS] = "UTC"
    """The time zone of `weekday` and `hour`."""
    sender: MailAddress | None = None
    """The sender's address. The address or its domain must be a verified identity in SES, in the
    stack's region. Without a sender, no mail is sent."""
    recipients: Annotated[tuple[MailAddress, ...], make_list_bounds("e-mail addresses", 50)] = ()
    """The addresses that get the report, each in a mail of its own. In SES's sandbox, these
    addresses must be verified too."""

    @property
    def is_mailed(self) -> bool:
        """True if the report is sent by mail."""
        return self.sender is not None and bool(self.recipients)

    def list_conflicts(self) -> Iterator[Conflict]:
        """Yield the mistakes that only a comparison of fields shows, and an unknown time zone.

        If this machine has no time zone data, any name of the right form is accepted.
        """
        if self.recipients and self.sender is None:
            fault = "is missing although there are recipients"
            yield Conflict({"sender", "recipients"}, "sender", fault, "name it")
        time_zones = zoneinfo.available_timezones() - {"Factory", "localtime"}
        if time_zones and self.time_zone not in time_zones:
            fault = f'"{self.time_zone}" is not a time zone'
            yield Conflict({"time_zone"}, "timeZone", fault, "say one such as Europe/Berlin")


@dataclass(frozen=True)
class NightlySettings:
    """Settings of the nightly job."""

    enabled: bool = True
    """False: the stack has no EMR Serverless application, and nothing that starts or watches it.
    Then there are no tables of incidents and no weekly report."""
    hour_utc: Hour = 2
    """The hour at which the nightly job starts."""
    scope: Annotated[
        str, make_name_bounds("account or organization", (ACCOUNT_SCOPE, ORGANIZATION_SCOPE))
    ] = ACCOUNT_SCOPE
    """`organization`: one trail serves all accounts, and only the hub's job runs and reads it. [All
    other stacks](one-report.md#one-trail-for-all) have no nightly job."""
    # The smallest limits fit the driver and 3 executors, which EMR begins a run with by default.
    # Mendq asks for one executor, but nobody has seen that run on AWS within smaller limits.
    maximum_vcpu: Annotated[int, Range(8, 400)] = 16
    """The most virtual CPUs that the nightly job may use at once: 2 for each worker."""
    maximum_memory_gb: Annotated[int, Range(28, 3_000)] = 64
    """The most memory that the nightly job may use at once: 7 GB for each worker."""


@dataclass(frozen=True)
class Environment:
    """The account and region of one stack."""

    account: Account
    """The account's id."""
    region: Region
    """The region."""


@dataclass(frozen=True)
class OrganizationSettings:
    """Settings of one report for all accounts of an organization."""

    id: Annotated[str, _ORGANIZATION_ID_BOUNDS]
    """The organization's id. Only roles of its accounts may write to the report bucket."""
    report_bucket: Annotated[str, _BUCKET_NAME_BOUNDS]
    """The bucket that the hub's stack makes, and to which all stacks copy their tables."""
    hub: Environment
    """The stack that makes the report."""
    accounts: Annotated[tuple[Account, ...], make_list_bounds("account ids", 150)] = ()
    """Accounts that the report must mention as missing if they report nothing. It also mentions
    missing accounts that reported in the four weeks before."""


def _explain_unfit_symptom(name: str) -> tuple[str, str] | None:
    """Return fault and remedy if `name` is not a symptom that takes a mode, otherwise None."""
    if name not in SYMPTOM_BY_NAME:
        names_of_fixable_symptoms = [symptom.name for symptom in CATALOGUE if symptom.steps]
        return "no such symptom", suggest_name(name, names_of_fixable_symptoms)
    symptom = SYMPTOM_BY_NAME[name]
    if symptom.steps:
        return None
    return f"takes no mode: it is {symptom.default_mode_text}", "leave it out"


_AUTONOMY_BOUNDS = Meta(
    title="{symptom: observe, propose or heal}",
    extra={"most": 200, "unfit": _explain_unfit_symptom},
)


# A longer list does not fit into a Lambda's environment either (`set_environment`).
_MOST_MUTES = 100


def _read_mutes(entries: Sequence[Any]) -> tuple[tuple[Mute, ...], list[Mistake]]:
    """Read the mutes with the reader of `mendq.toml`. Return them with their mistakes."""
    mutes, mute_mistakes = read_mute_entries(
        entries, SYMPTOM_BY_NAME, lambda field_name, text: f'"{field_name}": "{text}"'
    )
    mistakes = [
        Mistake(
            f"[{mistake.number - 1}]{'.' if mistake.field else ''}{mistake.field}",
            mistake.fault,
            mistake.cure,
        )
        for mistake in mute_mistakes
    ]
    return mutes, mistakes


_MUTES_BOUNDS = make_entries_bounds("{queue, symptom, reason, until}", _MOST_MUTES, _read_mutes)


@dataclass(frozen=True)
class ManagingSettings:
    """The queues that Mendq manages, and how far Mendq may go there."""

    mode: Mode = Mode.OBSERVE
    """How far Mendq may go on the queues that `queues` names."""
    tag_may_raise_to: Mode = Mode.OBSERVE
    """The highest mode that a queue's tag `mendq` may give a queue. If `queues` names the queue,
    the limit is the higher of this and `mode`. If not, the tag alone makes Mendq manage the queue.
    """
    queues: Annotated[
        tuple[Annotated[str, _QUEUE_NAME_BOUNDS], ...],
        make_list_bounds("queue names, or starts of names and a `*`"),
    ] = ()
    """The queues that Mendq manages besides those that have the tag `mendq`. A quarantine
    (`*-quarantine`) is never managed, even if a prefix fits its name."""
    autonomy: Annotated[Mapping[str, Mode], _AUTONOMY_BOUNDS] = field(default_factory=dict)
    """The highest mode in which Mendq may act on a symptom, if it is not the catalogue's own."""


@dataclass(frozen=True)
class DeploymentSettings(ManagingSettings, ComparedSection):
    """All settings of a deployment. With the defaults Mendq only observes and changes no queue."""

    limits: Limits = field(default=Limits())
    timing: Timing = field(default=Timing())
    mutes: Annotated[tuple[Mute, ...], _MUTES_BOUNDS] = ()
    """Findings that are intended: until a day that you choose, the deployed Mendq opens no case and
    sends no message for them. [The fields](#mutes-of-a-deployed-mendq) are those of
    `mendq.toml`."""
    freeze_calendars: Annotated[
        tuple[Annotated[str, _CALENDAR_ARN_BOUNDS], ...],
        make_list_bounds("ARNs of SSM Change Calendars", 10),
    ] = ()
    """While one of these calendars is closed or cannot be read, Mendq changes nothing. They must be
    in the stack's region. A calendar of another account must first be shared with the stack's
    account."""
    trail: TrailSettings = TrailSettings()
    """The CloudTrail trail in which Mendq sees failed calls."""
    notifications: NotificationSettings = NotificationSettings()
    """Who gets notifications, and how."""
    report: ReportSettings = ReportSettings()
    """The weekly report."""
    docs_url: Annotated[str, _DOCS_URL_BOUNDS] | None = None
    """The web address of these docs, with `*` in place of a page's path. The report, notifications
    and alarms then link to the runbook; otherwise they name its file. The address ends in
    `/docs/*.md` if a forge shows this repository, and in `/*.html` if you serve the output of `make
    docs-site`."""
    nightly: NightlySettings = NightlySettings()
    """The nightly job."""
    organization: OrganizationSettings | None = None
    """[One report](one-report.md) for many accounts."""
    template_hook: HookSettings = field(default=HookSettings())
    """A CloudFormation hook that [checks queues and their policies](template-hook.md) before they
    are deployed. `"templateHook": "warn"` sets only the mode."""
    dashboard: bool = True
    """True: the stack has a dashboard. AWS bills it each month if the payer has three others. The
    alarms do not depend on it."""
    alarms: Annotated[str, _ALARMS_BOUNDS] = FULL_ALARMS
    """`essential` keeps only the alarms on escalated cases, too many fixes, and a Mendq that does
    not see, scan or heal. They cost less, and notifications about cases are sent all the same."""
    scan_only: bool = False
    """True: the stack only has the hourly scan, which [reports what it finds](scan-only.md) to one
    topic. It has no trail, probe, cases, nightly job or report, and never changes a queue."""
    environments: Annotated[tuple[Environment, ...], make_list_bounds("{account, region}")] = ()
    """The accounts and regions of the stacks; empty: those of the credentials."""

    @property
    def is_hub(self) -> bool:
        """True if one of the stacks in `environments` is the organization's hub."""
        return self.organization is not None and self.organization.hub in self.environments

    def list_conflicts(self) -> Iterator[Conflict]:
        """Yield the mistakes that only a comparison of several sections shows."""
        compared_sections = {"nightly", "organization", "trail"}
        if self.nightly.scope == ORGANIZATION_SCOPE and self.organization is None:
            fault = "is organization although none is named"
            remedy = "say organization: {id, reportBucket, hub}, or account"
            yield Conflict(compared_sections, "nightly.scope", fault, remedy)
        if self.nightly.scope == ORGANIZATION_SCOPE and self.trail.create:
            fault = "is organization although trail.create is true"
            remedy = "say trail.create: false and name the bucket of the organization's trail"
            yield Conflict(compared_sections, "nightly.scope", fault, remedy)
        if self.scan_only:
            yield from list_scan_only_conflicts(self, DeploymentSettings())


def read_deployment_settings(
    raw_settings: Mapping[str, Any], *, applies_floors: bool = True
) -> DeploymentSettings:
    """Convert `raw_settings` to settings. A setting that is missing there gets its default.

    Raises SettingsRefused with every mistake. `applies_floors=False` replaces the lower limits of
    `timing` by those of the local account; only the local account uses it.
    """
    return read_settings(DeploymentSettings, raw_settings, applies_floors=applies_floors)
