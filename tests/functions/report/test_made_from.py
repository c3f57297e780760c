from __future__ import annotations

import pytest

from functions.report.not_seen import made_from
from functions.report.words import plain
from tests.functions.report.weeks import summary

READ = "412 trail files (81.2 MB) with 1,284,019 records, of"


@pytest.mark.parametrize(
    ("accounts", "regions", "said"),
    [
        (["1"], ["r"], f"{READ} account 1 in region r"),
        (["1", "2"], ["r", "s"], f"{READ} accounts 1 and 2 in regions r and s"),
        (["1", "2", "3", "4"], [], f"{READ} 4 accounts in no region"),
        ([], ["r", "s", "t", "u", "v"], f"{READ} no account in 5 regions"),
    ],
)
def test_files_accounts_and_regions(accounts: list[str], regions: list[str], said: str) -> None:
    assert plain(made_from(summary(accounts=accounts, regions=regions))) == said


def test_those_left_out_are_counted() -> None:
    few = summary(accounts=["1"], accounts_left_out=4, regions=["r"], regions_left_out=0)
    assert plain(made_from(few)) == f"{READ} 5 accounts in region r"
