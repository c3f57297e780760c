"""Valid summaries in which an attacker wrote every text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from hypothesis import strategies as st

from tests.report.weeks import PICTURED, Document, make_busy_week, make_recommendation

PAYLOADS = (
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "<a href=javascript:alert(1)>x</a>",
    "<!-- ", "-->", "]]>", "&lt;b&gt;", "&#60;script&#62;", "{{ 7 * 7 }}", "{% raw %}",
    "data:text/html,<script>alert(1)</script>",
    "http://evil.example/", "https://https://", "www.evil.example", "login.evil.example",
    "mailto:a@evil.example", "evil.com", "www.fifo", "a@b.co",
    "=cmd()|' /C calc'!A0", "[x](javascript:alert(1))", "`code`", "\x1b[31mred\x1b[0m",
    "a\nSubject: paid", "a\r\n\r\nb", "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe", "\x00", "\ud800",
    "\N{ZERO WIDTH JOINER}" * 9, "<" * 400, "q" * 80, "datum.label", "signal", "",
)  # fmt: skip
TEXT = st.one_of(
    st.sampled_from(PAYLOADS), st.text(st.characters(exclude_categories=[]), max_size=120)
)
KINDS = (
    *("write_into_template", "approve", "watch", "decide", "fix", "fix_caller", "name_code"),
    *("add_alarms", "correct_tags"),
)
# Calendar alone; then our own words too, which choose a sentence around the others' names.
DATES = frozenset({"week", "from", "to", "date", "day"})
OURS = DATES | {"kind", "why", "outcome", "state", "verdict"}
NAMED_BY_OTHERS = {"by_outcome", "by_symptom", "unknown_code", "habits"}
_TIME = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class _Filler:
    """Replaces texts by the next of `texts`, except dates and values of `retained` keys."""

    texts: Iterator[str]
    retained: frozenset[str]

    def fill(self, value: object, name: str) -> Any:
        if isinstance(value, dict) and name in NAMED_BY_OTHERS:
            return {next(self.texts): self.fill(item, key) for key, item in value.items()}
        if isinstance(value, dict):
            return {key: self.fill(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item, name) for item in value]
        is_text = isinstance(value, str) and not _TIME.match(value)
        return next(self.texts) if is_text and name not in self.retained else value


def fill_every_text(*texts: str, retained: frozenset[str] = DATES) -> Document:
    """A document with one of `texts` for every string but those under `retained` and times."""
    filler = _Filler(cycle(texts), retained)
    document = make_busy_week()
    document["cases"][0] |= deepcopy(PICTURED)
    why = {"fix": "refused", "name_code": "unknown_code", "fix_caller": "count_only"}
    asked = (make_recommendation(kind, why=why.get(kind, "verified")) for kind in KINDS)
    return {
        key: filler.fill(part, key) for key, part in {**document, "do_this_week": [*asked]}.items()
    }


def make_hostile_weeks() -> st.SearchStrategy[Document]:
    texts = st.lists(TEXT, min_size=1, max_size=7)
    return st.builds(
        lambda texts, retained: fill_every_text(*texts, retained=retained),
        texts,
        st.sampled_from((DATES, OURS)),
    )
