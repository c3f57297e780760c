"""Record `make demo` and draw it as the animation in the README: `python -m docs.recording`.

Waits are shortened; nothing else is left out. The picture first shows the end and then starts at
the beginning, so that readers who turned animations off, and programs that draw only the first
frame, see the end. It is narrow, for phones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from html import escape
from itertools import accumulate, pairwise
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import NamedTuple

PICTURE = Path(__file__).parent / "pictures" / "demo.svg"
# The SVG around the lines, with placeholders.
FRAME = PICTURE.with_name("recording.svg.txt")
COLUMNS = 64
ROWS = 26
LINE_PIXELS = 18
CHARACTER_PIXELS = 7.9
# The waits between two lines are divided by SPEED and kept within these limits.
SHORTEST_SECONDS = 0.08
LONGEST_SECONDS = 1.5
SPEED = 3


class Line(NamedTuple):
    """A line of output, and the seconds from the start until it was printed."""

    at: float
    text: str


def record_demo() -> list[Line]:
    """Run the demo and return its output, wrapped to COLUMNS.

    Raises:
        subprocess.CalledProcessError: if the demo fails.
    """
    command = [sys.executable, "-u", "-m", "local_account.demo"]
    environment = {**os.environ, "COLUMNS": f"{COLUMNS}"}
    lines = [Line(0.0, "$ make demo")]
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as demo:
        for output in demo.stdout or ():
            at = time.monotonic() - started
            text = output.rstrip().replace(str(Path.cwd()), ".")
            lines.extend(Line(at, part) for part in wrap(text, COLUMNS) or [""])
    if demo.returncode:
        raise subprocess.CalledProcessError(demo.returncode, command)
    return lines


def draw(lines: Sequence[Line]) -> str:
    """Return an SVG in which each line appears at its time, and older lines scroll up."""
    shown_at = _shorten_waits(lines)
    whole_seconds = shown_at[-1]
    texts: list[str] = []
    scrolls: list[str] = []
    for position, (line, at) in enumerate(zip(lines, shown_at, strict=True)):
        y = (position + 1) * LINE_PIXELS + 6
        texts.append(
            f'<text x="12" y="{y}" style="animation-duration:{at:.2f}s">{escape(line.text)}</text>'
        )
        offset = -max(0, position + 1 - ROWS) * LINE_PIXELS
        percent = 100 * at / whole_seconds
        scrolls.append(f"{percent:.2f}%{{transform:translateY({offset}px)}}")
    return Template(FRAME.read_text()).substitute(
        width=round(COLUMNS * CHARACTER_PIXELS) + 24,
        height=ROWS * LINE_PIXELS + 24,
        end=-max(0, len(lines) - ROWS) * LINE_PIXELS,
        seconds=f"{whole_seconds:.2f}",
        scrolls="".join(scrolls),
        texts="\n".join(texts),
    )


def _shorten_waits(lines: Sequence[Line]) -> list[float]:
    """Return the seconds at which the picture shows each line."""
    waits: list[float] = []
    for before, after in pairwise(lines):
        wait = (after.at - before.at) / SPEED
        waits.append(min(max(wait, SHORTEST_SECONDS), LONGEST_SECONDS))
    return list(accumulate(waits, initial=0.0))


if __name__ == "__main__":
    PICTURE.write_text(draw(record_demo()))
    print(f"written to {PICTURE.relative_to(Path.cwd())}")
