"""The translation of a record's old names into the new ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

_PART = r"[A-Za-z0-9_]"


@dataclass(frozen=True)
class Names:
    """Old names and what each is called now.

    `names.json` holds them under `words`, which are replaced where they stand as whole identifiers;
    and, if it likes, parts of CamelCase names under `parts` (`Scan` in `ScanFunction`).
    """

    words: Mapping[str, str]
    parts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Names:
        """No file, no new names."""
        if not file.exists():
            return cls({})
        found = json.loads(file.read_text())
        return cls(found["words"], found.get("parts", {}))

    def translated(self, value: Any) -> Any:
        """`value` with each old name replaced, the longest first, in keys too."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.translated(each) for each in value]
        if isinstance(value, dict):
            return {self._text(name): self.translated(each) for name, each in value.items()}
        return value

    def _text(self, text: str) -> str:
        if self.words:
            text = self._whole.sub(lambda found: self.words[found[0]], text)
        if self.parts:
            text = self._camel.sub(lambda found: self.parts[found[0]], text)
        return text

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(f"(?<!{_PART})(?:{_either(self.words)})(?!{_PART})")

    @cached_property
    def _camel(self) -> re.Pattern[str]:
        """A part begins anywhere in a name, and ends where the next part begins, or the name."""
        return re.compile(f"(?:{_either(self.parts)})(?![a-z])")


def _either(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
