"""approve: one proposal approved, so that heal is asked, and one declined."""

from __future__ import annotations

from mendq.model.case import Case
from tests.local_account.least_privilege.cases import a_fixed_case, is_filed
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof


def _proposals(here: Enforced) -> tuple[Case, Case]:
    return a_fixed_case(here, "propose")[1], a_fixed_case(here, "propose")[1]


def _decided(here: Enforced, proposals: tuple[Case, Case]) -> str:
    announced = []
    for decision, case in zip(("approve", "decline"), proposals, strict=True):
        asked = {"case_id": case.case_id, "decision": decision, "actor": "a test"}
        answer = here.call("approve", asked)
        announced.append(answer.error or answer.document["state"])
    filed = is_filed(here, proposals[1].case_id, "declined")
    return ", ".join([*announced, *(["filed"] if filed else [])])


PROOF = Proof(
    handler="approve",
    prepare=_proposals,
    comes_of=_decided,
    whole="applied, declined, filed",
    without={
        "dynamodb:DeleteItem": "unavailable, unavailable",
        "dynamodb:GetItem": "unavailable, unavailable",
        "dynamodb:PutItem": "unavailable, unavailable",
        "dynamodb:Query": "unavailable, unavailable",
        "dynamodb:UpdateItem": "unavailable, unavailable, filed",
        "lambda:InvokeFunction": "approved, declined, filed",
        "s3:PutObject": "applied, declined",
    },
    elsewhere={},
)
