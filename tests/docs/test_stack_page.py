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
