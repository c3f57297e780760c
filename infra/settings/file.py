"""A file of settings, as `make account SETTINGS=` and `make cdk SETTINGS=` take it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class FileRefused(Exception):
    """It holds no settings; `str` says in one line why, and what to do about it."""


def object_in(path: Path) -> dict[str, Any]:
    """What stands in `cdk.json` as the object `mendq` of `context`; raise FileRefused."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        line = f"SETTINGS {path} cannot be read ({error.strerror}): name a JSON file"
        raise FileRefused(line) from error
    except ValueError as error:
        raise FileRefused(f"SETTINGS {path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise FileRefused(f"SETTINGS {path} is not an object: write it as {{..}}")
    return content
