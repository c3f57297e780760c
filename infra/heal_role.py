"""What the heal Lambda may do: look at queues, change those it was handed, record what it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.catalogue import CATALOGUE
from functions.catalogue.symptom import Symptom
from functions.healing.managed import MODE_TAG
from functions.healing.mode import Mode
from functions.healing.steps import LookAction, look_actions, write_actions
from infra.own_queues import PULSE_PREFIX, queue_arn
from infra.roles import HEAL, own_role
from infra.settings import DeploymentSettings

LEDGER_ACTIONS = (
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:ConditionCheckItem",
)
# CDK moves what is too much for one policy to the next, but never cuts a statement in two.
NAMES_PER_STATEMENT = 25


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
        for statement in (*_looks(stack), *_writes(stack, settings)):
            self.role.add_to_policy(statement)
        if settings.freeze_calendars:
            self._allow(["ssm:GetCalendarState"], settings.freeze_calendars)

    def never_writes_to(self, queues: Sequence[sqs.IQueue]) -> None:
        """Mendq's own queues, whatever their tags and names."""
        pulse = queue_arn(Stack.of(self), f"{PULSE_PREFIX}*")
        own = [*(queue.queue_arn for queue in queues), pulse]
        self.role.add_to_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY, actions=_write_actions(CATALOGUE), resources=own
            )
        )

    def keeps(self, ledger: dynamodb.ITable, cases: s3.IBucket) -> None:
        """Where it writes down what it did."""
        self._allow(LEDGER_ACTIONS, [ledger.table_arn])
        self._allow(["s3:PutObject"], [cases.arn_for_objects("cases/*")])

    def _allow(self, actions: Sequence[str], resources: Sequence[str]) -> None:
        self.role.add_to_policy(
            iam.PolicyStatement(actions=list(actions), resources=list(resources))
        )


def _looks(stack: Stack) -> Iterator[iam.PolicyStatement]:
    needs = frozenset(need for symptom in CATALOGUE for need in symptom.needs)
    by_resource: dict[str, list[str]] = {}
    for action in sorted(look_actions(needs), key=lambda each: each.iam_action):
        by_resource.setdefault(_looked_at(stack, action), []).append(action.iam_action)
    for resource, actions in by_resource.items():
        yield iam.PolicyStatement(actions=actions, resources=[resource])


def _looked_at(stack: Stack, action: LookAction) -> str:
    if action.resource == "queue":
        return queue_arn(stack, "*")
    if action.resource == "function":
        return stack.format_arn(
            service="lambda",
            resource="function",
            resource_name="*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
    return "*"


def _writes(stack: Stack, settings: DeploymentSettings) -> Iterator[iam.PolicyStatement]:
    """What the mode `heal` takes: nothing while no queue or no symptom can be in it."""
    tag = f"aws:ResourceTag/{MODE_TAG}"
    actions = _write_actions(_healed(settings))
    if actions and max(settings.mode, settings.tag_may_raise_to) is Mode.HEAL:
        yield iam.PolicyStatement(
            actions=actions,
            resources=[queue_arn(stack, "*")],
            conditions={"StringEquals": {tag: str(Mode.HEAL)}},
        )
    named = settings.queues if actions and settings.mode is Mode.HEAL else ()
    for start in range(0, len(named), NAMES_PER_STATEMENT):
        yield iam.PolicyStatement(
            actions=actions,
            resources=[
                queue_arn(stack, each) for each in named[start : start + NAMES_PER_STATEMENT]
            ],
        )
    # A tag that says anything else holds, whatever names the queue.
    yield iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=_write_actions(CATALOGUE),
        resources=[queue_arn(stack, "*")],
        conditions={"Null": {tag: "false"}, "StringNotEquals": {tag: str(Mode.HEAL)}},
    )


def _healed(settings: DeploymentSettings) -> Iterator[Symptom]:
    """The symptoms that may act without a person."""
    for symptom in CATALOGUE:
        if settings.autonomy.get(symptom.name, symptom.autonomy) is Mode.HEAL:
            yield symptom


def _write_actions(symptoms: Iterable[Symptom]) -> list[str]:
    return sorted(write_actions(step for symptom in symptoms for step in symptom.steps))
