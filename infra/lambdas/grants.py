"""What Lambdas work on, and what they may do with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from infra.nightly import Nightly
from infra.queue_grants import (
    Kinds,
    Statements,
    look_statements,
    redrive_statements,
    write_statements,
)
from infra.roles import may
from infra.settings.deployment import DeploymentSettings
from infra.storage import Buckets
from infra.topics import Topics
from mendq.cases import view
from mendq.model.case import EVENT_SOURCE, NOTIFICATION_EVENT, TRANSITION_EVENT
from mendq.model.facts import ReadAction
from mendq.model.limits import Consent
from mendq.model.steps import RedriveMessages
from mendq.nightly.verdict import NIGHTLY_RUNS, SHARED_TABLES, member_key


@dataclass(frozen=True)
class Work:
    """What the Lambdas work with. All of it is made before the Lambdas.

    Attributes:
        stack: the stack that the Lambdas belong to.
        settings: what the user has set, as it holds for this stack.
        consent: which queues Mendq manages, and how far it may go there.
        case_store: the case table.
        buckets: buckets of the trail, the cases and the reports.
        topics: topics of urgent and other notifications, and of the teams.
        nightly: the nightly job; None if the settings leave it out.
    """

    stack: Stack
    settings: DeploymentSettings
    consent: Consent
    case_store: dynamodb.Table
    buckets: Buckets
    topics: Topics
    nightly: Nightly | None

    @property
    def job(self) -> Nightly:
        """The nightly job, for Lambdas that exist only together with it."""
        assert self.nightly is not None  # noqa: S101 - `every_lambda` leaves those Lambdas out
        return self.nightly


Grant = Callable[[Work], Iterable[iam.PolicyStatement]]


def moves_cases(work: Work) -> Statements:
    """Item by item in the case store, one new object a transition.

    A transaction takes the actions of its parts.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
    """
    verbs = ("Get", "Put", "Update", "Delete")
    yield may([f"dynamodb:{each}Item" for each in verbs], work.case_store.table_arn)
    yield may(["s3:PutObject"], work.buckets.cases.arn_for_objects("cases/*"))


def files_cases(work: Work) -> Statements:
    """An event of each transition, whoever wrote it down."""
    yield _puts_events(work, TRANSITION_EVENT)


def _puts_events(work: Work, detail_type: str) -> iam.PolicyStatement:
    """Ours alone, of that type: rules of others on the default bus take nothing else for ours."""
    only = {"events:source": EVENT_SOURCE, "events:detail-type": detail_type}
    bus = work.stack.format_arn(service="events", resource="event-bus", resource_name="default")
    return may(["events:PutEvents"], bus, conditions={"StringEquals": only})


def notifies(work: Work) -> Statements:
    """Both severities and every team; an hour's pages are counted in the case store."""
    yield _puts_events(work, NOTIFICATION_EVENT)
    for topic in (work.topics.urgent, work.topics.info, *work.topics.teams):
        yield from topic.publishing()


def asks_for_freezes(work: Work) -> Statements:
    """As part of a claim; what undoes needs none, because no freeze stops it."""
    yield may(["dynamodb:ConditionCheckItem"], work.case_store.table_arn)
    if work.settings.freeze_calendars:
        yield may(["ssm:GetCalendarState"], *work.settings.freeze_calendars)


def reads_cases(work: Work) -> Statements:
    """All transitions of one case, or the newest cases about one queue."""
    yield may(["dynamodb:Query"], work.case_store.table_arn)


def lists_open_cases(work: Work) -> Statements:
    """By when they are due."""
    yield may(["dynamodb:Query"], f"{work.case_store.table_arn}/index/{view.OPEN_CASES}")


def notes_findings(work: Work) -> Statements:
    """The scan's own items of the case store, and one object an hour."""
    yield may(["dynamodb:GetItem", "dynamodb:UpdateItem"], work.case_store.table_arn)
    yield may(["s3:GetObject", "s3:PutObject"], work.buckets.cases.arn_for_objects("findings/*"))


@dataclass(frozen=True)
class ReadsFacts:
    """Make the reads that facts need."""

    actions: Collection[ReadAction]

    def __call__(self, work: Work) -> Statements:
        """Return the statements that allow these reads."""
        return look_statements(work.stack, self.actions)


@dataclass(frozen=True)
class WritesQueues:
    """Take these steps on managed queues. The steps of redrive also move messages."""

    kinds: Kinds

    def __call__(self, work: Work) -> Statements:
        """Return the statements that allow these steps."""
        if RedriveMessages in self.kinds:
            return redrive_statements(work.stack, work.settings)
        return write_statements(work.stack, work.settings, self.kinds)


def probes(work: Work) -> Statements:
    """Notes what it sends to its queue, and pages where several were lost."""
    verbs = ("Get", "Put", "Update")
    yield may([f"dynamodb:{each}Item" for each in verbs], work.case_store.table_arn)
    yield _puts_events(work, NOTIFICATION_EVENT)
    yield from work.topics.urgent.publishing()


def starts_jobs(work: Work) -> Statements:
    """It may pass the job's role to EMR Serverless and to nothing else."""
    actions = ["emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"]
    yield may(actions, work.job.application.attr_arn)
    to_emr = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
    yield may(["iam:PassRole"], work.job.role.role_arn, conditions=to_emr)


def checks_jobs(work: Work) -> Statements:
    """It reads the accounts of nightly runs, asks EMR about them, and lists weeks."""
    runs = f"{work.job.application.attr_arn}/jobruns/*"
    yield may(["emr-serverless:GetJobRun"], runs)
    yield may(["s3:GetObject"], work.buckets.reports.arn_for_objects(f"{NIGHTLY_RUNS}/*"))
    listed = {"StringLike": {"s3:prefix": [f"{NIGHTLY_RUNS}/*", "summary/*"]}}
    yield may(["s3:ListBucket"], work.buckets.reports.bucket_arn, conditions=listed)


def shares(work: Work) -> Statements:
    """Copies tables below the stack's own prefix of the organization's bucket; names the account.

    In an organization alone. The hub's bucket lets in nobody else, and nobody elsewhere.
    """
    if (central := work.buckets.organization) is None:
        return
    tables = [work.buckets.reports.arn_for_objects(f"{each}/*") for each in SHARED_TABLES]
    yield may(["s3:GetObject"], *tables)
    mine = member_key(work.stack.account, work.stack.region)
    yield may(["s3:PutObject"], central.arn_for_objects(f"{mine}/*"))
    yield may(["iam:ListAccountAliases"], "*")


def delivers(work: Work) -> Statements:
    """A page beside the summary, and a verdict to people; its own marks it reads back.

    Where an organization denies the account's alias, the report has its number alone.
    """
    yield may(["iam:ListAccountAliases"], "*")
    for action, keys in (
        ("s3:GetObject", "summary/*"),
        ("s3:PutObject", "report/*"),
        ("s3:GetObject", "report/*/delivered/*"),
    ):
        yield may([action], work.buckets.reports.arn_for_objects(keys))
    yield from work.topics.info.publishing()
    yield from _mails(work)


def _mails(work: Work) -> Statements:
    """From the sender alone; a mail that is sent raw takes both actions.

    Where a recipient is an identity of the account too, as in SES's sandbox, SES asks for the
    permission on that one as well; and on the sender's configuration set where it has one, which
    is set in SES. Whatever may be verified counts: each address, its domain and those above.
    Not tried on AWS.
    https://docs.aws.amazon.com/ses/latest/dg/control-user-access.html
    """
    sender, recipients = work.settings.report.sender, work.settings.report.recipients
    if sender is None or not recipients:
        return
    names = dict.fromkeys(
        name for each in (sender, *recipients) for name in (each, *_domains_of(each))
    )
    said = [("identity", each) for each in names] + [("configuration-set", "*")]
    arns = [
        work.stack.format_arn(service="ses", resource=kind, resource_name=name)
        for kind, name in said
    ]
    by_name = {"StringEquals": {"ses:FromAddress": sender}}
    yield may(["ses:SendEmail", "ses:SendRawEmail"], *arns, conditions=by_name)


def _domains_of(address: str) -> Iterator[str]:
    labels = address.rpartition("@")[2].lower().split(".")
    yield from (".".join(labels[n:]) for n in range(len(labels) - 1))
