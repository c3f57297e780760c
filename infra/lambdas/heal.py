"""The heal Lambda, its role and what starts it."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.lambda_function import Handler, deliver, lambda_function
from infra.queue_grants import kinds_of, look_statements, write_statements
from infra.roles import allow, own_role
from infra.settings.deployment import DeploymentSettings
from mendq.catalogue import CATALOGUE
from mendq.model.facts import ReadAction, read_actions
from mendq.model.names import HEAL
from mendq.model.settings import HealSettings
from mendq.model.steps import Owner


class HealRole(Construct):
    """Literal name, so that the rule, the trail and the settings can leave it out."""

    def __init__(self, scope: Construct, name: str, settings: DeploymentSettings) -> None:
        super().__init__(scope, name)
        stack = Stack.of(self)
        self.role = own_role(
            self,
            "Role",
            purpose=HEAL,
            service="lambda",
            description="Mendq: looks at queues and changes the attributes it may",
        )
        for statement in (
            *look_statements(stack, heal_reads()),
            *write_statements(stack, settings, kinds_of(Owner.HEAL)),
        ):
            self.role.add_to_policy(statement)
        if settings.freeze_calendars:
            allow(self.role, ["ssm:GetCalendarState"], *settings.freeze_calendars)

    def works_at(self, context: CaseGrants) -> None:
        """What recording its work and notifying people takes."""
        context.let_move_cases(self.role)
        context.let_check_freeze(self.role)
        context.let_page(self.role)
        context.let_read_a_case(self.role)


def heal_reads() -> frozenset[ReadAction]:
    """What the facts of every symptom take."""
    return read_actions(need for symptom in CATALOGUE for need in symptom.every_need)


TIMEOUT = Duration.seconds(60)
BATCHING_WINDOW = Duration.seconds(5)
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
VISIBILITY = Duration.seconds(6 * TIMEOUT.to_seconds() + BATCHING_WINDOW.to_seconds())
# CDK's own has the stack's id in it, which becomes another one with several environments. The new
# mapping would be made before the old one goes, and Lambda allows one of a queue and a function.
# https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
MAPPING_ID = "HealFunctionSqsEventSourceMendqIntakeQueue88BDDCD09779940B"

HANDLER = Handler(
    "heal", "Mendq: fixes the queue that a failed SQS call names", timeout=TIMEOUT, memory_mb=512
)


class Heal(Construct):
    """Reads large batches, because a storm of failed calls collapses to one look per queue.

    Two at a time at most: enough to go on while one is slow. No concurrency is reserved, because
    that would take it from an account's other functions.
    """

    def __init__(self, scope: Construct, name: str, *, code: lambda_.Code, role: iam.Role) -> None:
        super().__init__(scope, name)
        self.role = role
        self.function = lambda_function(self, HANDLER, code=code, role=role)

    def knows(self, settings: HealSettings) -> None:
        """Raises SettingsRefused where they are more than its environment holds."""
        deliver(self.function, settings)

    def reads(self, intake: sqs.Queue) -> None:
        """Feed it; records that it reports as failed come again, the others are done."""
        self.function.add_event_source(
            sources.SqsEventSource(
                intake,
                batch_size=1_000,
                max_batching_window=BATCHING_WINDOW,
                report_batch_item_failures=True,
                max_concurrency=2,
            )
        )
        self._mapping.override_logical_id(MAPPING_ID)

    @property
    def _mapping(self) -> lambda_.CfnEventSourceMapping:
        (found,) = (
            each
            for each in self.function.node.find_all()
            if isinstance(each, lambda_.CfnEventSourceMapping)
        )
        return found
