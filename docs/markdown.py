"""Write Markdown: tables, code and links, for the derived parts of the docs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]


def make_table(heading_text: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table.

    Args:
        heading_text: The headings, separated by `|`. A column whose heading begins with # is
            right-aligned.
        rows: The cells of each row.
    """
    headings: list[str] = []
    alignment_cells: list[str] = []
    for heading in heading_text.split("|"):
        headings.append(heading.lstrip("#"))
        alignment_cells.append("---:" if heading.startswith("#") else "---")
    all_rows = [headings, alignment_cells, *rows]
    return "\n".join(f"| {' | '.join(map(str, row_cells))} |" for row_cells in all_rows)


def format_as_code(words: Iterable[object]) -> str:
    """Return each word as Markdown code, separated by commas. Empty if there are no words."""
    return ", ".join(f"`{word}`" for word in words)


def link_pages(page_paths: Iterable[str], folder: str) -> str:
    """Return a Markdown link to each page, without duplicates.

    Args:
        page_paths: The paths of the pages, relative to the repository's root.
        folder: The folder of the page in which the links are.
    """
    pages = [PurePosixPath(page_path) for page_path in dict.fromkeys(page_paths)]
    return ", ".join(f"[{page.stem}]({page.relative_to(folder)})" for page in pages)
