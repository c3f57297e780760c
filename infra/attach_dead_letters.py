"""The Lambda that makes dead-letter queues, attaches them and lets their sources in."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.healing.own_roles import ATTACH_DEAD_LETTERS
from functions.healing.steps import Owner
from functions.settings import AttachDeadLettersSettings
from infra.case_desk import CaseDesk
from infra.heal import TIMEOUT
from infra.lambda_function import Handler
from infra.owner_lambda import OwnerLambda, known_by_owners

HANDLER = Handler(
    "attach_dead_letters",
    "Mendq: makes and attaches dead-letter queues",
    timeout=TIMEOUT,
    memory_mb=512,
)


class AttachDeadLetters(OwnerLambda):
    """Called with a case by approve and follow_up."""

    def __init__(self, scope: Construct, name: str, *, code: lambda_.Code, desk: CaseDesk) -> None:
        super().__init__(
            scope,
            name,
            owner=Owner.ATTACH_DEAD_LETTERS,
            handler=HANDLER,
            code=code,
            purpose=ATTACH_DEAD_LETTERS,
            desk=desk,
        )
        desk.let_read_a_case(self.role)
        self.knows(AttachDeadLettersSettings(**known_by_owners(desk)))
