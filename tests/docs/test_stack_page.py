"""The page of the stack and its pictures are what the template says."""

from __future__ import annotations

import importlib

import pytest

from tests.docs.test_states_page import DOCS


@pytest.fixture(scope="module")
def documents() -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        return dict(importlib.import_module("stack_page").stack_documents())


def test_they_are_not_stale(documents: dict[str, str]) -> None:
    assert {name for name, text in documents.items() if (DOCS / name).read_text() != text} == set()


def test_the_page_shows_both_pictures(documents: dict[str, str]) -> None:
    for picture in documents.keys() - {"stack.md"}:
        assert f'"{picture}"' in documents["stack.md"]


def test_the_page_names_what_it_leaves_out_and_what_has_no_card(documents: dict[str, str]) -> None:
    page = " ".join(documents["stack.md"].split())
    assert "Left out: roles, policies and logs." in page
    parked_in = sum(
        each["Type"] == "AWS::SQS::Queue" and ("DeadLetters" in name or "Undelivered" in name)
        for name, each in importlib.import_module("stack_outline").resources().items()
    )
    assert f"The {parked_in} queues that things are only parked in have no card" in page
    assert "Alarms watch each of them." in page
