"""Record `make demo` and draw it as the animation in the README: `python -m docs.recording`.

The waits between lines are changed; nothing is left out. The animation first shows the end of the
output, and then starts at the beginning. So readers who turned animations off, and programs that
draw only the first frame, see the end. The picture is narrow, for phones.
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
ANIMATION_TEMPLATE_PATH = PICTURE_PATH.with_name("recording.svg.txt")
TERMINAL_COLUMNS = 64
SHOWN_LINE_COUNT = 26
LINE_HEIGHT_PIXELS = 18
CHARACTER_WIDTH_PIXELS = 7.9
# The wait between two lines is divided by SPEED_FACTOR, and then kept within these limits.
SHORTEST_WAIT_SECONDS = 0.08
LONGEST_WAIT_SECONDS = 1.5
SPEED_FACTOR = 3


class OutputLine(NamedTuple):
    """A line of output, and the seconds from the start of the demo until it was printed."""

    printed_at_seconds: float
    text: str


def record_demo() -> list[OutputLine]:
    """Run the demo and return its output, wrapped to TERMINAL_COLUMNS.

    The first line is `$ make demo`. The path of the current folder is replaced by a dot.

    Raises:
        subprocess.CalledProcessError: The demo failed.
    """
    command = [sys.executable, "-u", "-m", "local_account.demo"]
    environment = {**os.environ, "COLUMNS": f"{TERMINAL_COLUMNS}"}
    lines = [OutputLine(0.0, "$ make demo")]
    started_at = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as demo_process:
        for output_line in demo_process.stdout or ():
            seconds_since_start = time.monotonic() - started_at
            output_text = output_line.rstrip().replace(str(Path.cwd()), ".")
            lines.extend(
                OutputLine(seconds_since_start, line_text)
                for line_text in wrap(output_text, TERMINAL_COLUMNS) or [""]
            )
    if demo_process.returncode:
        raise subprocess.CalledProcessError(demo_process.returncode, command)
    return lines


def draw_recording(lines: Sequence[OutputLine]) -> str:
    """Return an SVG document in which the lines appear one after the other and scroll up."""
    seconds_until_lines_shown = _shorten_waits(lines)
    total_seconds = seconds_until_lines_shown[-1]
    text_elements: list[str] = []
    scroll_keyframes: list[str] = []
    for position, (line, seconds_until_line_shown) in enumerate(
        zip(lines, seconds_until_lines_shown, strict=True)
    ):
        text_y = (position + 1) * LINE_HEIGHT_PIXELS + 6
        text_elements.append(
            f'<text x="12" y="{text_y}" style="animation-duration:{seconds_until_line_shown:.2f}s">'
            f"{escape(line.text)}</text>"
        )
        scroll_offset_pixels = -max(0, position + 1 - SHOWN_LINE_COUNT) * LINE_HEIGHT_PIXELS
        animation_percent = 100 * seconds_until_line_shown / total_seconds
        scroll_keyframes.append(
            f"{animation_percent:.2f}%{{transform:translateY({scroll_offset_pixels}px)}}"
        )
    return Template(ANIMATION_TEMPLATE_PATH.read_text()).substitute(
        width=round(TERMINAL_COLUMNS * CHARACTER_WIDTH_PIXELS) + 24,
        height=SHOWN_LINE_COUNT * LINE_HEIGHT_PIXELS + 24,
        end=-max(0, len(lines) - SHOWN_LINE_COUNT) * LINE_HEIGHT_PIXELS,
        seconds=f"{total_seconds:.2f}",
        scrolls="".join(scroll_keyframes),
        texts="\n".join(text_elements),
    )


def _shorten_waits(lines: Sequence[OutputLine]) -> list[float]:
    """Return for each line after how many seconds the animation shows it.

    Each wait is divided by SPEED_FACTOR, and is then made SHORTEST_WAIT_SECONDS at least and
    LONGEST_WAIT_SECONDS at most.
    """
    waits_in_seconds: list[float] = []
    for line_before, line_after in pairwise(lines):
        wait_seconds = (
            line_after.printed_at_seconds - line_before.printed_at_seconds
        ) / SPEED_FACTOR
        waits_in_seconds.append(min(max(wait_seconds, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS))
    return list(accumulate(waits_in_seconds, initial=0.0))


if __name__ == "__main__":
    PICTURE_PATH.write_text(draw_recording(record_demo()))
    print(f"written to {PICTURE_PATH.relative_to(Path.cwd())}")
