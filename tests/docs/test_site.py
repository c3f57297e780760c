"""Pages of the docs site: navigation, list indentation and length."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.source_files import ROOT

DOCS = ROOT / "docs"
NAV = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
# Said in docs/site_hooks.py: the root's own pages, and what the build makes.
MADE = {"index.md", "changelog.md", "contributing.md", "security.md", "sample-report.html"}


def test_every_docs_page_is_in_the_site_navigation_once() -> None:
    named = re.findall(r"[\w/.-]+\.(?:md|html)$", NAV, re.MULTILINE)
    pages = [path.name for path in DOCS.glob("*.md")]
    assert sorted(named) == sorted([*pages, *MADE, "runbooks/README.md"])


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_content_of_a_list_item_in_the_docs_is_indented_by_four_spaces(page: Path) -> None:
    """Python-Markdown needs four. With fewer, the site shows it as text below the list."""
    first = ""
    fenced = False
    wrong = list[str]()
    for line in page.read_text().splitlines():
        is_fence = line.lstrip().startswith("```")
        first = "" if is_fence or not line else first or line  # of the block that the line is in
        is_item = re.match(r" *(?:\d+\.|-) ", line)
        too_little = (is_fence or is_item or first == line) and re.match(" {1,3}[^ ]", line)
        if not fenced and (too_little or (is_item and first.startswith("    ") and line[0] != " ")):
            wrong.append(line)
        fenced = fenced is not is_fence
    assert wrong == []


# Parts that `make docs`, `make bench` or a proof generates may be of any length.
DERIVED = re.compile(r"<!-- (derived|measured): .*?<!-- end( measured)? -->", re.DOTALL)
WHOLLY_DERIVED = {"settings.md"}
# The threat model cites tests by name. A clear name may be long, and nobody reads it as prose.
TEST_NAME = re.compile(r"\[[^]]+\](?=\(\.\./tests/)")


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_docs_page_has_at_most_1500_words(page: Path) -> None:
    prose = TEST_NAME.sub("", DERIVED.sub("", page.read_text()))
    words = re.findall(r"\S*\w\S*", prose)
    assert page.name in WHOLLY_DERIVED or len(words) <= 1500
