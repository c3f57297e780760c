"""Values of the product as plain JSON, and the files that hold them."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path, PurePath
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
MOST_BYTES_UNZIPPED = 500_000
# What stands for a part whose input is not on this machine: it is compared with nothing.
NOT_HERE = "<not here>"


def plain(value: Any) -> Any:
    """`value` as JSON holds it: sorted where it has no order, without anything of this run."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, IntEnum):
        return str(value)
    if isinstance(value, Enum):
        return plain(value.value)
    for kinds, made in _PLAIN:
        if isinstance(value, kinds):
            return made(value)
    if isinstance(value, type) or callable(value):
        return getattr(value, "attribute", "") or getattr(value, "__name__", type(value).__name__)
    return str(value)


def _of_float(value: float) -> Any:
    if not math.isfinite(value):
        return str(value)
    return int(value) if value.is_integer() else round(value, 6)


def _of_mapping(value: Mapping[Any, Any]) -> Any:
    return {str(plain(key)): plain(each) for key, each in value.items()}


def _of_dataclass(value: Any) -> Any:
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(value)
    return {each.name: plain(getattr(value, each.name)) for each in fields(value)}


def _of_set(value: AbstractSet[Any]) -> Any:
    return sorted((plain(each) for each in value), key=json.dumps)


_PLAIN: tuple[tuple[Any, Any], ...] = (
    (str, str),
    (int, int),
    (float, _of_float),
    (Decimal, lambda value: _of_float(float(value))),
    (datetime, lambda value: value.isoformat()),
    (timedelta, lambda value: _of_float(value.total_seconds())),
    (PurePath, lambda value: value.as_posix()),
    (bytes, lambda value: value.decode(errors="replace")),
    (Mapping, _of_mapping),
    (AbstractSet, _of_set),
    ((list, tuple), lambda value: [plain(each) for each in value]),
)


def store(subject: str, document: Any) -> Path:
    """Write a subject's record, zipped where it is large; the file."""
    RECORDED.mkdir(exist_ok=True)
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    for each in _files(subject):
        each.unlink(missing_ok=True)
    unzipped, zipped = _files(subject)
    if len(text.encode()) <= MOST_BYTES_UNZIPPED:
        unzipped.write_text(text)
        return unzipped
    zipped.write_bytes(gzip.compress(text.encode(), mtime=0))
    return zipped


def load(subject: str) -> Any:
    """A subject's record; None where there is none."""
    unzipped, zipped = _files(subject)
    if unzipped.exists():
        return json.loads(unzipped.read_text())
    return json.loads(gzip.decompress(zipped.read_bytes())) if zipped.exists() else None


def _files(subject: str) -> tuple[Path, Path]:
    return RECORDED / f"{subject}.json", RECORDED / f"{subject}.json.gz"
