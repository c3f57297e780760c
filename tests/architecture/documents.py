"""The commands and the inline code that the documents show."""

from __future__ import annotations

import re
from pathlib import Path

from tests.source_files import ROOT, list_files

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *list_files("docs/*.md")]
CODE_BLOCK = re.compile(r"^ *```[a-z]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`([^`\n]+)`")


def read_command_lines(page: Path) -> list[str]:
    """Return the lines of a page's code blocks, continued lines joined and comments removed."""
    blocks = "\n".join(CODE_BLOCK.findall(page.read_text())).replace("\\\n", " ")
    return [re.split(r"(?<!\S)#", line)[0].strip() for line in blocks.splitlines()]


def read_inline_code(page: Path) -> list[str]:
    """Return the code within a page's sentences and tables."""
    return _INLINE_CODE.findall(CODE_BLOCK.sub("", page.read_text()))
