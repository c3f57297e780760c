"""Markdown's tables, read back."""

from __future__ import annotations

import re


def read_tables(page: str) -> list[list[list[str]]]:
    """Tables of rows of cells; the rule below the headings is a row too."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    return [_read_rows(block) for block in blocks]


def _read_rows(block: str) -> list[list[str]]:
    return [_read_cells(line) for line in block.splitlines()]


def _read_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
