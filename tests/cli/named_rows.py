"""Parametrize a test with the named rows of a table in a JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


def parametrize_rows(rows: Mapping[str, Mapping[str, Any]]) -> pytest.MarkDecorator:
    """Run a test once for each row. A row's name is the test's id, its fields are the arguments.

    Raises ValueError if two rows have different fields.
    """
    fields = list(next(iter(rows.values())))
    parameters = []
    for title, row in rows.items():
        if list(row) != fields:
            raise ValueError(f"the row {title!r} has other fields than the first row: {list(row)}")
        parameters.append(pytest.param(*row.values(), id=title))
    return pytest.mark.parametrize(fields, parameters)
