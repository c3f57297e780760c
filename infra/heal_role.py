"""What the heal Lambda may do: look at queues, change those it was handed, record what it did."""

from __future__ import annotations

from aws_cdk import Stack
from constructs import Construct

from functions.catalogue import CATALOGUE
from functions.healing.looks import LookAction, look_actions
from functions.healing.own_roles import HEAL
from functions.healing.steps import Owner
from infra.case_desk import CaseDesk
from infra.queue_looks import look_statements
from infra.queue_writes import kinds_of, write_statements
from infra.roles import allow, own_role
from infra.settings import DeploymentSettings


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
            *look_statements(stack, heal_looks()),
            *write_statements(stack, settings, kinds_of(Owner.HEAL)),
        ):
            self.role.add_to_policy(statement)
        if settings.freeze_calendars:
            allow(self.role, ["ssm:GetCalendarState"], *settings.freeze_calendars)

    def works_at(self, desk: CaseDesk) -> None:
        """Where it writes down what it did, and tells people."""
        desk.let_move_cases(self.role)
        desk.let_check_freeze(self.role)
        desk.let_page(self.role)
        desk.let_read_a_case(self.role)


def heal_looks() -> frozenset[LookAction]:
    """What the facts of every symptom take."""
    return look_actions(need for symptom in CATALOGUE for need in symptom.every_need)
