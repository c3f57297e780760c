"""The Lambda that puts a pinned policy back; no other Lambda of Mendq's writes one."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.heal import TIMEOUT
from infra.lambdas.lambda_function import Handler
from infra.lambdas.owner_lambda import OwnerLambda, known_by_owners
from mendq.model.facts import POLICY_CHECKS
from mendq.model.names import RESTORE_POLICY
from mendq.model.settings import RestorePolicySettings
from mendq.model.steps import Owner

HANDLER = Handler(
    "restore_policy",
    "Mendq: puts a queue's pinned policy back",
    timeout=TIMEOUT,
    memory_mb=512,
)


class RestorePolicy(OwnerLambda):
    """Called with a case by approve and follow_up; AWS's own checks come before its write."""

    def __init__(
        self, scope: Construct, name: str, *, code: lambda_.Code, context: CaseGrants
    ) -> None:
        super().__init__(
            scope,
            name,
            owner=Owner.RESTORE_POLICY,
            handler=HANDLER,
            code=code,
            purpose=RESTORE_POLICY,
            context=context,
        )
        self.may([each.iam_action for each in POLICY_CHECKS], "*")
        self.knows(RestorePolicySettings(**known_by_owners(context)))
