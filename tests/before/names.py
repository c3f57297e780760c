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
    parts of CamelCase names under `parts` (`Sweep` in `SweepFunction`); what a sentence says in
    other words than an identifier, or leaves as it is, under `phrases`; and the modules that went
    elsewhere under `modules`.
    """

    words: Mapping[str, str]
    parts: Mapping[str, str] = field(default_factory=dict)
    phrases: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Names:
        """No file, no new names."""
        if not file.exists():
            return cls({})
        found = json.loads(file.read_text())
        return cls(
            found["words"],
            found.get("parts", {}),
            found.get("phrases", {}),
            found.get("modules", {}),
        )

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
        whole = self._in_sentences if " " in text else self._in_names
        text = whole.replaced(text)
        if self.parts:
            text = self._camel.sub(lambda found: self.parts[found[0]], text)
        return text

    @cached_property
    def _in_names(self) -> _Whole:
        return _Whole({**self.words, **self.modules})

    @cached_property
    def _in_sentences(self) -> _Whole:
        return _Whole({**self.words, **self.modules, **self.phrases})

    @cached_property
    def _camel(self) -> re.Pattern[str]:
        """A part begins anywhere in a name, and ends where the next part begins, or the name."""
        return re.compile(f"(?:{_either(self.parts)})(?![a-z])")


@dataclass(frozen=True)
class _Whole:
    """Names that are replaced where they stand alone, the longest first."""

    names: Mapping[str, str]

    def replaced(self, text: str) -> str:
        return self._pattern.sub(lambda found: self.names[found[0]], text) if self.names else text

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # A prefix such as `unlabelled:` ends with its colon, whatever follows.
        prefixes = [each for each in self.names if each.endswith(":")]
        names = [each for each in self.names if not each.endswith(":")]
        whole = f"(?:{_either(names)})(?!{_PART})"
        return re.compile(
            f"(?<!{_PART})(?:{whole}|{_either(prefixes)})" if prefixes else f"(?<!{_PART}){whole}"
        )


def _either(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
