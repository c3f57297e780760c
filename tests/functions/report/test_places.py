from __future__ import annotations

import pytest

from functions.report.words import place_in
from tests.functions.report.weeks import arn, summary


@pytest.mark.parametrize(
    ("accounts", "regions", "place"),
    [
        (["123456789012"], ["us-east-1"], ""),
        ([], [], ""),
        (["123456789012"], ["eu-west-1", "us-east-1"], "123456789012, us-east-1"),
        (["123456789012", "210987654321"], ["us-east-1"], "123456789012, us-east-1"),
    ],
)
def test_one_place_goes_without_saying(accounts: list[str], regions: list[str], place: str) -> None:
    assert place_in(summary(accounts=accounts, regions=regions), arn("q")) == place


def test_what_is_no_arn_has_no_place() -> None:
    several = summary(regions=["eu-west-1", "us-east-1"])
    assert place_in(several, "unresolved") == ""
