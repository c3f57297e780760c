"""Markdown's tables, read back."""

from __future__ import annotations

import re


def read_tables(page: str) -> list[list[list[str]]]:
    """Tables of rows of cells; the rule below the headings is a row too."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in blocks
    ]
