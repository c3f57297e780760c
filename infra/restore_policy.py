"""The Lambda that puts a pinned policy back; no other Lambda of Mendq's writes one."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.healing.looks import POLICY_CHECKS
from functions.healing.own_roles import RESTORE_POLICY
from functions.healing.steps import Owner
from functions.settings import RestorePolicySettings
from infra.case_desk import CaseDesk
from infra.heal import TIMEOUT
from infra.lambda_function import Handler
from infra.owner_lambda import OwnerLambda, known_by_owners

HANDLER = Handler(
    "restore_policy",
    "Mendq: puts a queue's pinned policy back",
    timeout=TIMEOUT,
    memory_mb=512,
)


class RestorePolicy(OwnerLambda):
    """Called with a case by approve and follow_up; AWS's own checks come before its write."""

    def __init__(self, scope: Construct, name: str, *, code: lambda_.Code, desk: CaseDesk) -> None:
        super().__init__(
            scope,
            name,
            owner=Owner.RESTORE_POLICY,
            handler=HANDLER,
            code=code,
            purpose=RESTORE_POLICY,
            desk=desk,
        )
        self.may([each.iam_action for each in POLICY_CHECKS], "*")
        self.knows(RestorePolicySettings(**known_by_owners(desk)))
