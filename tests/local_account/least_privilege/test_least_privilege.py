"""The roles as synthesized are enough, and no action of them is one too many.

Permissions are enforced by the local account, not by AWS. The Lambdas are called as whoever calls
them would, so that each missing action shows in a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.infra.declared_actions import DECLARED
from tests.local_account.least_privilege import (
    approve,
    attach_dlq,
    deliver_report,
    follow_up,
    heal,
    nightly_runs,
    probe,
    redrive,
    restore_policy,
    rollback,
    scan,
)
from tests.local_account.least_privilege.enforced import Enforced, role_of
from tests.local_account.least_privilege.proof import Proof
from tests.local_account.queues import new_queue

pytestmark = pytest.mark.account
PROOFS = (
    heal.PROOF,
    approve.PROOF,
    probe.PROOF,
    *nightly_runs.PROOFS,
    rollback.PROOF,
    restore_policy.PROOF,
    attach_dlq.PROOF,
    redrive.PROOF,
    scan.PROOF,
    follow_up.PROOF,
    deliver_report.PROOF,
)
# The others are long together.
IN_EVERY_TEST = {"heal", "probe", "start_nightly"}


def _params(proofs: Iterable[tuple[Proof, *tuple[str, ...]]]) -> list[Any]:
    return [
        pytest.param(
            proof,
            *more,
            id="-".join([proof.handler, *more]),
            marks=() if proof.handler in IN_EVERY_TEST else pytest.mark.long,
        )
        for proof, *more in proofs
    ]


def test_every_lambda_has_its_proof(enforced: Enforced) -> None:
    assert enforced.functions.keys() == {role_of(each.handler) for each in PROOFS}


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.handler)
def test_a_role_holds_what_is_tested_and_nothing_else(enforced: Enforced, proof: Proof) -> None:
    declared = {action for action, _ in DECLARED[proof.handler]}
    assert not proof.without.keys() & proof.elsewhere.keys()
    assert not proof.elsewhere.keys() & declared
    assert enforced.allowed(proof.handler) == {*proof.without, *proof.elsewhere, *declared}


@pytest.fixture(scope="session")
def under_the_whole_role(enforced: Enforced) -> Callable[[Proof], str]:
    """What comes of a run; each Lambda's is made once, before anything is taken from it.

    Once more where it is another: the first call starts a process, and on a busy machine a client
    of it may give up in that time.
    """
    announced: dict[str, str] = {}

    def run(proof: Proof) -> str:
        for _ in range(2):
            if announced.get(proof.handler) != proof.whole:
                announced[proof.handler] = proof.comes_of(enforced, proof.prepare(enforced))
        return announced[proof.handler]

    return run


@pytest.mark.parametrize("proof", _params((each,) for each in PROOFS))
def test_with_all_of_them_it_does_what_it_is_for(
    under_the_whole_role: Callable[[Proof], str], proof: Proof
) -> None:
    assert under_the_whole_role(proof) == proof.whole


@pytest.mark.parametrize(
    ("proof", "action"), _params((each, action) for each in PROOFS for action in each.without)
)
def test_without_any_one_action_it_does_not(
    enforced: Enforced, under_the_whole_role: Callable[[Proof], str], proof: Proof, action: str
) -> None:
    assert proof.without[action] != under_the_whole_role(proof) == proof.whole
    scene = proof.prepare(enforced)
    with enforced.without(proof.handler, action):
        announced = proof.comes_of(enforced, scene)
    assert announced == proof.without[action], enforced.said
    # SQS names actions in lower case.
    assert {each.denied.lower() for each in enforced.said} <= {"", action.lower()}, enforced.said


def test_a_queue_that_is_not_tagged_for_it_cannot_be_written(enforced: Enforced) -> None:
    """The second lock: even a Mendq gone wrong is refused by IAM."""
    account = enforced.account
    role = f"arn:aws:iam::000000000000:role/{role_of('heal')}"
    assumed = account.client("sts").assume_role(RoleArn=role, RoleSessionName="test")
    given = assumed["Credentials"]
    as_mendq = account.client(
        "sqs",
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )
    for tags in ({}, {"mendq": "observe"}, {"mendq": "off"}, {"owner": "heal"}):
        queue = new_queue(account, tags=tags)
        with pytest.raises(as_mendq.exceptions.ClientError, match="AccessDenied"):
            as_mendq.set_queue_attributes(
                QueueUrl=queue.url, Attributes={"VisibilityTimeout": "31"}
            )
        assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "30"}
