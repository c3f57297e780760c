"""The recording of `make demo` in the README: `python -m docs.recording` runs it and draws it.

Waits are shortened, and nothing else is left out. The end stands there first, then it begins: who
wants no motion, or draws the picture without it, sees the end. It is narrow, for phones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from string import Template
from textwrap import wrap

PICTURE = Path(__file__).parent / "pictures" / "demo.svg"
FRAME = PICTURE.with_name("recording.svg.txt")
COLUMNS, ROWS = 64, 26
LINE_PIXELS, CHARACTER_PIXELS = 18, 7.9
SHORTEST_SECONDS, LONGEST_SECONDS, FASTER = 0.08, 1.5, 3
Line = tuple[float, str]


def recorded() -> list[Line]:
    """Each line with the seconds until it came; raises CalledProcessError where the demo fails."""
    command = [sys.executable, "-u", "-m", "local_account.demo"]
    environment = {**os.environ, "COLUMNS": f"{COLUMNS}"}
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
        came = ((time.monotonic() - begun, line.rstrip()) for line in run.stdout or ())
        said = ((at, line.replace(str(Path.cwd()), ".")) for at, line in came)
        lines = [(at, part) for at, line in said for part in wrap(line, COLUMNS) or [""]]
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, command)
    return [(0.0, "$ make demo"), *lines]


def drawn(lines: Sequence[Line]) -> str:
    """An SVG document in which each line is hidden until it comes, and all scroll."""
    waits = ((after - before) / FASTER for (before, _), (after, _) in pairwise(lines))
    shortened = [min(max(each, SHORTEST_SECONDS), LONGEST_SECONDS) for each in waits]
    shown_at = [sum(shortened[:n]) for n in range(len(lines))]
    width, height = round(COLUMNS * CHARACTER_PIXELS) + 24, ROWS * LINE_PIXELS + 24
    texts = "\n".join(
        f'<text x="12" y="{(n + 1) * LINE_PIXELS + 6}" style="animation-duration:{at:.2f}s">'
        f"{escape(text)}</text>"
        for n, (at, (_, text)) in enumerate(zip(shown_at, lines, strict=True))
    )
    whole = shown_at[-1]
    scrolls = "".join(
        f"{100 * at / whole:.2f}%{{transform:translateY({-max(0, n + 1 - ROWS) * LINE_PIXELS}px)}}"
        for n, at in enumerate(shown_at)
    )
    end = -max(0, len(lines) - ROWS) * LINE_PIXELS
    return Template(FRAME.read_text()).substitute(
        width=width, height=height, end=end, seconds=f"{whole:.2f}", scrolls=scrolls, texts=texts
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(recorded()))
    print(f"written to {PICTURE.relative_to(Path.cwd())}")
