"""Tagged resources in pages."""

from __future__ import annotations

import uuid

import pytest

from local_account.process import LocalAccount
from local_account.tagging.pages import BadPage, page_of
from tests.local_account.queues import error_of, new_queue

FIVE = list(range(5))


@pytest.mark.parametrize(("token", "most"), [("", 0), ("", 101), ("x", 2), ("-1", 2)])
def test_what_is_no_page_is_refused(token: str, most: int) -> None:
    with pytest.raises(BadPage):
        page_of(FIVE, token, most)


@pytest.mark.parametrize(
    ("token", "page", "following"),
    [("", [0, 1], "2"), ("2", [2, 3], "4"), ("4", [4], ""), ("6", [], "")],
)
def test_a_page_names_the_next(token: str, page: list[int], following: str) -> None:
    assert page_of(FIVE, token, 2) == (page, following)


def test_the_last_page_may_be_full() -> None:
    assert page_of(FIVE, "", 5) == (FIVE, "")


@pytest.mark.account
def test_queues_come_in_pages(account: LocalAccount) -> None:
    team = f"team-{uuid.uuid4()}"
    queues = {new_queue(account, tags={"team": team}).arn for _ in range(3)}
    tagging = account.client("resourcegroupstaggingapi")
    asked = {
        "ResourceTypeFilters": ["sqs"],
        "TagFilters": [{"Key": "team", "Values": [team]}],
        "ResourcesPerPage": 2,
    }
    pages = [
        [each["ResourceARN"] for each in page["ResourceTagMappingList"]]
        for page in tagging.get_paginator("get_resources").paginate(**asked)
    ]
    assert [len(page) for page in pages] == [2, 1]
    assert {arn for page in pages for arn in page} == queues
    bad = {**asked, "PaginationToken": "x"}
    assert error_of(lambda: tagging.get_resources(**bad))[0] == "InvalidParameterException"
