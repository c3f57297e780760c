"""docs/operate.md names each part of `mendq show`, each mode, each alarm that reaches people."""

from __future__ import annotations

import ast
import re

import pytest

from infra.alarms import NOTIFIED, WATCHED
from tests.architecture.aws_commands import commands_in
from tests.architecture.test_documents import PAGES, ROOT, lines_of, named_in
from tests.infra.synthesized import template_of

NAMED = re.compile(r"ResourceType=='([\w:]+)' && starts_with\(LogicalResourceId, '(\w+)'\)")

PAGE = (ROOT / "docs" / "operate.md").read_text()


def _rows(heading: str) -> list[str]:
    """The first cells of the table below a heading."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| (?!---)(.+?) \|", part, re.MULTILINE)[1:]


def _headings_of_show() -> list[str]:
    tree = ast.parse((ROOT / "mendq" / "cli" / "look" / "show.py").read_text())
    return [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "heading"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def test_every_part_of_show_is_said_once() -> None:
    assert len(_headings_of_show()) > 5
    assert sorted(_rows("Reading `mendq show`")) == sorted(_headings_of_show())


@pytest.mark.parametrize("page", sorted({each.page for each in (*NOTIFIED, *WATCHED)}))
def test_what_an_alarms_page_says_to_type_names_the_region(page: str) -> None:
    """The alarm does so, and whoever reads it has another region as the default."""
    texts = (*lines_of(ROOT / page), *named_in(ROOT / page))
    typed = [each for text in texts for each in commands_in(text) if " --" in each]
    assert [each for each in typed if "--region REGION" not in each] == []


def _named() -> list[tuple[str, str]]:
    return [each for page in PAGES for each in NAMED.findall(page.read_text())]


def test_what_is_looked_up_by_name_is_one_part_of_the_stack() -> None:
    found = [
        [name for name in template_of("default").all(kind) if name.startswith(start)]
        for kind, start in _named()
    ]
    assert len(found) >= 2
    assert [len(names) for names in found] == [1] * len(found)
