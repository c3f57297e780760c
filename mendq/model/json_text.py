"""Write and read JSON without NaN and Infinity, which Python allows and JSON does not.

https://www.rfc-editor.org/rfc/rfc8259#section-6
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any


def to_json(
    document: Any,
    *,
    indent: int | None = None,
    sort_keys: bool = False,
    is_compact: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """Return a document as JSON that every parser reads, with null in place of NaN and Infinity.

    NaN raises no error, because a command must be able to report its change, and a Lambda to log
    its error, even if a measured number is NaN. The arguments are those of `json.dumps`;
    `is_compact` leaves out white space.
    """

    def write_strict_json(value: Any, default: Callable[[Any], Any] | None) -> str:
        return json.dumps(
            value,
            indent=indent,
            sort_keys=sort_keys,
            separators=(",", ":") if is_compact else None,
            default=default,
            allow_nan=False,
        )

    try:
        return write_strict_json(document, default)
    except ValueError:
        # The values that `default` returns may contain NaN as well.
        nan_free_default = None if default is None else lambda value: replace_nan(default(value))
        return write_strict_json(replace_nan(document), nan_free_default)


def replace_nan(value: Any) -> Any:
    """Return a copy of the value with None for every NaN and Infinity, at any depth."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {replace_nan(key): replace_nan(nested_value) for key, nested_value in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nan(nested_value) for nested_value in value]
    return value


def refuse_nan_constant(constant_name: str) -> None:
    """Raise ValueError. As `parse_constant` of `json.loads`, this refuses NaN and Infinity."""
    raise ValueError(f"{constant_name} is no JSON")


def parse_finite_float(number_text: str) -> float:
    """Return the number in `number_text`. Raise ValueError if it is NaN or too large for a double.

    Pass this function to `json.loads` as `parse_float`.
    """
    number = float(number_text)
    if not isfinite(number):
        raise ValueError("a number beyond 1.8e308 is none that JSON's readers agree on")
    return number
