"""Sections of cards as an SVG: one column for a phone, two for a desk; light and dark."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product

from infra.diagram.card import Card, Section

COLUMN, GAP, MARGIN = 420, 24, 12
LINE, PILL, PAD = 18, 24, 10
# What 13 px of a sans-serif face take at most, on the average of a line.
CHARACTER = 6.9
# And what one takes of its own; 8.1 the others.
WIDTHS = dict.fromkeys("mwMW→", 11.5) | dict.fromkeys("ijl .,:;'|", 4.3) | dict.fromkeys("frt", 5.6)
STYLE = """
text{font:13px -apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;fill:#1f2328}
.h{font-size:17px;font-weight:700}.t{font-size:15px;font-weight:600}.s{fill:#57606a}
.back{fill:#fff}.card{fill:#f6f8fa;stroke:#8c959f}.pill{fill:#ddf4ff;stroke:#0969da}
.chip{fill:#fff;stroke:#8c959f}.queues{fill:#fff8c5;stroke:#9a6700}.line{stroke:#57606a;fill:none}
.head{fill:#57606a}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}.back{fill:#0d1117}
.card{fill:#161b22;stroke:#3d444d}.pill{fill:#121d2f;stroke:#4493f8}
.chip{fill:#0d1117;stroke:#3d444d}.queues{fill:#272115;stroke:#9e6a03}
.line{stroke:#9198a1}.head{fill:#9198a1}}
""".strip()


@dataclass(frozen=True)
class Drawn:
    """Part of the picture, and how high it is."""

    marks: str
    height: int


def drawing(sections: Sequence[Section], columns: int, title: str) -> str:
    """The picture; `title` is what it says to whom cannot see it."""
    placed: list[list[str]] = [[] for _ in range(columns)]
    heights = [MARGIN] * columns
    drawn = [_section(each) for each in sections]
    for column, each in zip(_columns(drawn, columns), drawn, strict=True):
        placed[column].append(_moved(each, MARGIN + column * (COLUMN + GAP), heights[column]))
        heights[column] += each.height
    width = 2 * MARGIN + columns * COLUMN + (columns - 1) * GAP
    height = max(heights) + MARGIN
    marks = "\n".join(mark for part in placed for mark in part)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'role="img" aria-labelledby="t"><title id="t">{escape(title)}</title>'
        f"<style>{STYLE}</style>\n"
        f'<rect class="back" width="{width}" height="{height}"/>\n{marks}\n</svg>\n'
    )


def _columns(drawn: Sequence[Drawn], columns: int) -> Sequence[int]:
    """Which column each goes to, so that the longest is as short as it can be.

    The first stays at the top of the first, and in each column they keep their order.
    """
    ways = product(range(columns), repeat=len(drawn))
    return min(ways, key=lambda way: max(_heights(drawn, way, columns)))


def _heights(drawn: Sequence[Drawn], way: Sequence[int], columns: int) -> list[int]:
    placed = list(zip(way, drawn, strict=True))
    return [sum(each.height for n, each in placed if n == column) for column in range(columns)]


def _section(section: Section) -> Drawn:
    marks, y = [_text(section.title, 0, 20, "h")], 34
    for card in section.cards:
        drawn = _card(card)
        marks.append(_moved(drawn, 0, y))
        y += drawn.height + 16
    return Drawn("\n".join(marks), y + 8)


def _card(card: Card) -> Drawn:
    """What starts it above, an arrow into it, and in it what it touches."""
    starts = _pills(card.started_by, "pill", 0, COLUMN)
    top = starts.height + (14 if card.started_by else 0)
    marks = [starts.marks, _arrow(starts.height, top)] if card.started_by else []
    inner = [_text(card.title, PAD, top + 22, "t")]
    y = top + 30
    for line in textwrap.wrap(card.says, int((COLUMN - 2 * PAD) / CHARACTER)):
        inner.append(_text(line, PAD, y + 12, "s"))
        y += LINE
    touches = _pills(card.touches, "chip", PAD, COLUMN - 2 * PAD)
    inner.append(_moved(touches, 0, y + 2))
    bottom = y + 2 + touches.height + PAD
    box = _box("card", 0, top, COLUMN, bottom - top)
    return Drawn("\n".join([*marks, box, *inner]), bottom)


def _pills(texts: Iterable[str], kind: str, left: int, width: int) -> Drawn:
    """Rounded boxes, as many in a row as fit; long ones of several lines."""
    marks: list[str] = []
    x, y, row = left, 0, 0
    for text in texts:
        lines = textwrap.wrap(text, int((width - 18) / CHARACTER))
        wide = min(width, max(map(_wide, lines)) + 18)
        high = PILL + (len(lines) - 1) * LINE
        if x > left and x + wide > left + width:
            x, y = left, y + row + 5
            row = 0
        marks.append(_box(_kind_of(text, kind), x, y, wide, high))
        marks += [_text(line, x + 9, y + 17 + n * LINE) for n, line in enumerate(lines)]
        x, row = x + wide + 5, max(row, high)
    return Drawn("\n".join(marks), y + row)


def _wide(text: str) -> int:
    """Of a line at 13 px, in the widest of the faces that STYLE names."""
    return int(sum(WIDTHS.get(each, 8.1) for each in text)) + 1


def _kind_of(text: str, kind: str) -> str:
    return "queues" if text.endswith("writes your queues") else kind


def _arrow(start: int, end: int) -> str:
    return (
        f'<path class="line" d="M24 {start}V{end - 5}"/>'
        f'<path class="head" d="M19 {end - 7}h10l-5 7z"/>'
    )


def _box(kind: str, x: int, y: int, width: int, height: int) -> str:
    radius = 8 if kind == "card" else PILL // 2
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>'


def _text(text: str, x: int, y: int, kind: str = "") -> str:
    said = f' class="{kind}"' if kind else ""
    return f'<text{said} x="{x}" y="{y}">{escape(text)}</text>'


def _moved(drawn: Drawn, x: int, y: int) -> str:
    return f'<g transform="translate({x} {y})">\n{drawn.marks}\n</g>'


def in_words(sections: Iterable[Section]) -> Iterator[str]:
    """The same as Markdown, for whoever reads instead of looking."""
    for section in sections:
        yield f"\n## {section.title}\n"
        yield "| part | what it does | started or filled by | touches |"
        yield "|---|---|---|---|"
        for card in section.cards:
            lists = ("; ".join(each) for each in (card.started_by, card.touches))
            cells = (card.title, card.says, *lists)
            yield f"| {' | '.join(each.replace('|', '/') for each in cells)} |"
