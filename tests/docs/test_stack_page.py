"""The page of the stack and its pictures are what the template says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def documents() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("stack_page", DOCS / "stack_page.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.stack_documents())


def test_they_are_not_stale(documents: dict[str, str]) -> None:
    assert {name for name, text in documents.items() if (DOCS / name).read_text() != text} == set()


def test_the_page_shows_both_pictures(documents: dict[str, str]) -> None:
    for picture in documents.keys() - {"stack.md"}:
        assert f'"{picture}"' in documents["stack.md"]
