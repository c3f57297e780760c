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

PICTURE_PATH = Path(__file__).parent / "pictures" / "demo.svg"
# The SVG around the lines, with placeholders.
FRAME_TEMPLATE_PATH = PICTURE_PATH.with_name("recording.svg.txt")
COLUMNS = 64
ROWS = 26
LINE_PIXELS = 18
CHARACTER_PIXELS = 7.9
# The waits between two lines are divided by SPEED and kept within these limits.
SHORTEST_WAIT_SECONDS = 0.08
LONGEST_WAIT_SECONDS = 1.5
SPEED_FACTOR = 3


class Line(NamedTuple):
    """A line of output, and the seconds from the start until it was printed."""

    printed_at_seconds: float
    text: str


def record_demo() -> list[Line]:
    """Run the demo and return its output, wrapped to COLUMNS.

    Raises:
        subprocess.CalledProcessError: if the demo fails.
    """
    command = [sys.executable, "-u", "-m", "local_account.demo"]
    environment = {**os.environ, "COLUMNS": f"{COLUMNS}"}
    lines = [Line(0.0, "$ make demo")]
    started_at = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as demo:
        for output in demo.stdout or ():
            seconds = time.monotonic() - started_at
            text = output.rstrip().replace(str(Path.cwd()), ".")
            lines.extend(Line(seconds, line_text) for line_text in wrap(text, COLUMNS) or [""])
    if demo.returncode:
        raise subprocess.CalledProcessError(demo.returncode, command)
    return lines


def draw(lines: Sequence[Line]) -> str:
    """Return an SVG in which each line appears at its time, and older lines scroll up."""
    shown_at = _shorten_waits(lines)
    whole_seconds = shown_at[-1]
    texts: list[str] = []
    scrolls: list[str] = []
    for position, (line, seconds) in enumerate(zip(lines, shown_at, strict=True)):
        y = (position + 1) * LINE_PIXELS + 6
        texts.append(
            f'<text x="12" y="{y}" style="animation-duration:{seconds:.2f}s">'
            f"{escape(line.text)}</text>"
        )
        offset = -max(0, position + 1 - ROWS) * LINE_PIXELS
        percent = 100 * seconds / whole_seconds
        scrolls.append(f"{percent:.2f}%{{transform:translateY({offset}px)}}")
    return Template(FRAME_TEMPLATE_PATH.read_text()).substitute(
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
        wait = (after.printed_at_seconds - before.printed_at_seconds) / SPEED_FACTOR
        waits.append(min(max(wait, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS))
    return list(accumulate(waits, initial=0.0))


if __name__ == "__main__":
    PICTURE_PATH.write_text(draw(record_demo()))
    print(f"written to {PICTURE_PATH.relative_to(Path.cwd())}")
