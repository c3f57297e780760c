"""Our own roles are known by the names that infra gives them."""

from __future__ import annotations

import re

import pytest

from analytics.failed_calls import OWN_ROLE
from infra import roles

PURPOSES = (*roles.LEFT_OUT, "pulse", "follow_up", "start-night")


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("region", ["us-east-1", "ap-southeast-4", "us-gov-west-1"])
def test_every_role_of_ours_is_known(purpose: str, region: str) -> None:
    name = roles.role_name(purpose, region)
    assert re.search(OWN_ROLE, f"arn:aws:iam::123456789012:role/{name}")


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::123456789012:role/mendq-demo",
        "arn:aws:iam::123456789012:role/team/mendq-heal-us-east-1",
        "arn:aws:iam::123456789012:role/x-mendq-heal-us-east-1",
        "arn:aws:iam::123456789012:role/mendq-heal-us-east-1x",
        "arn:aws:iam::123456789012:user/mendq-heal-us-east-1",
        "arn:aws:sts::123456789012:assumed-role/worker/mendq-heal-us-east-1",
    ],
)
def test_no_other_role_is(arn: str) -> None:
    assert not re.search(OWN_ROLE, arn)
