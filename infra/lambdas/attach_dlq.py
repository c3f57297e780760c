"""The Lambda that makes DLQs, attaches them and lets their sources in."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.heal import TIMEOUT
from infra.lambdas.lambda_function import Handler
from infra.lambdas.owner_lambda import OwnerLambda, known_by_owners
from mendq.model.names import ATTACH_DLQ
from mendq.model.settings import AttachDlqSettings
from mendq.model.steps import Owner

HANDLER = Handler(
    "attach_dlq",
    "Mendq: makes and attaches DLQs",
    timeout=TIMEOUT,
    memory_mb=512,
)


class AttachDlq(OwnerLambda):
    """Called with a case by approve and follow_up."""

    def __init__(
        self, scope: Construct, name: str, *, code: lambda_.Code, context: CaseGrants
    ) -> None:
        super().__init__(
            scope,
            name,
            owner=Owner.ATTACH_DLQ,
            handler=HANDLER,
            code=code,
            purpose=ATTACH_DLQ,
            context=context,
        )
        context.let_read_a_case(self.role)
        self.knows(AttachDlqSettings(**known_by_owners(context)))
