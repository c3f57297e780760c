"""Resources that docs/operate.md looks up by name."""

from __future__ import annotations

import re

from tests.architecture.documents import PAGES
from tests.infra.synthesized import template_of

NAMED = re.compile(r"ResourceType=='([\w:]+)' && starts_with\(LogicalResourceId, '(\w+)'\)")


def _list_lookups() -> list[tuple[str, str]]:
    return [lookup for page in PAGES for lookup in NAMED.findall(page.read_text())]


def test_resource_that_the_docs_look_up_by_name_exists_once_in_the_stack() -> None:
    lookups = _list_lookups()
    assert len(lookups) >= 2
    for kind, start in lookups:
        names = [name for name in template_of("default").all(kind) if name.startswith(start)]
        assert len(names) == 1, start
