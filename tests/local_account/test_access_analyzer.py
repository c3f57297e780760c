"""The checks of a policy: refused until a test says what they answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import policy, user
from tests.local_account.queues import error_of

DOCUMENT = policy()


@pytest.fixture
def announced(account: LocalAccount) -> Iterator[LocalAccount]:
    yield account
    account.end_access_analyzer_answers()


def _checks(client: Any) -> tuple[partial[Any], partial[Any]]:
    return (
        partial(
            client.check_no_public_access,
            policyDocument=DOCUMENT,
            resourceType="AWS::SQS::Queue",
        ),
        partial(
            client.check_no_new_access,
            newPolicyDocument=DOCUMENT,
            existingPolicyDocument=DOCUMENT,
            policyType="RESOURCE_POLICY",
        ),
    )


@pytest.mark.account
def test_both_checks_are_refused_and_listed(account: LocalAccount) -> None:
    for check in _checks(account.client("accessanalyzer")):
        code, message = error_of(check)
        assert code == "NotEmulated"
        assert message.startswith("CheckNo")
    assert any("Access Analyzer" in line for line in account.not_emulated)


@pytest.mark.account
@pytest.mark.parametrize("result", ["PASS", "FAIL"])
def test_both_answer_as_they_are_said_and_no_longer(announced: LocalAccount, result: str) -> None:
    announced.have_access_analyzer_answer(result)
    client = announced.client("accessanalyzer")
    for check in _checks(client):
        assert check()["result"] == result
    assert error_of(lambda: client.validate_policy(policyDocument="{}", policyType="x"))[0] == (
        "NotEmulated"
    )
    announced.end_access_analyzer_answers()
    assert error_of(_checks(client)[0])[0] == "NotEmulated"


@pytest.mark.account
def test_who_may_not_check_is_denied(announced: LocalAccount) -> None:
    announced.have_access_analyzer_answer("PASS")
    _, nobody = user(announced)
    code, _ = error_of(_checks(announced.client("accessanalyzer", **nobody))[0])
    assert code.startswith("AccessDenied")
