"""Read the tables of test cases in `tables.json`, and generate arbitrary JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

_TABLES: dict[str, list[Any]] = json.loads(Path(__file__).with_name("tables.json").read_text())


def table(name: str) -> list[Any]:
    return _TABLES[name]


def any_json(*words: str, max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Generate any JSON value, in which these words occur as texts and as keys."""
    texts = st.text(max_size=8) | st.sampled_from([*words, ""])
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=max_leaves,
    )
