"""Print how readable the code is.

    python -m tests.architecture.style                        the table
    python -m tests.architecture.style --worst 20 loop-names  and the worst places of a measure
    python -m tests.architecture.style --path mendq/heal      only one folder or file
    python -m tests.architecture.style --summary              one line, for `make check`

Exit code 1 if an area that is a gate misses a threshold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.style.areas import AREAS, Area, read_sources
from tests.architecture.style.measures import MEASURES
from tests.architecture.style.table import (
    measure_areas,
    summary_line,
    table_lines,
    worst_lines,
)
from tests.source_files import ROOT

PLACES_SHOWN = 20


def main(arguments: Sequence[str], *, root: Path = ROOT, areas: Sequence[Area] = AREAS) -> int:
    """Measure the repository below `root`, print what was asked for, return the exit code."""
    names = [measure.name for measure in MEASURES]
    usage = (__doc__ or "").partition("\n")[2]
    parser = argparse.ArgumentParser(
        prog="make style", epilog=usage, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="MEASURE", help=f"of {', '.join(names)}")
    parser.add_argument("--worst", type=int, metavar="N", help="list the N worst places of each")
    parser.add_argument("--path", metavar="PREFIX", help="measure only files below PREFIX")
    parser.add_argument("--summary", action="store_true", help="print one line and missed gates")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(names))
    if unknown:
        parser.error(f"no measure is called {', '.join(unknown)}: use {', '.join(names)}")

    files = read_sources(root)
    if given.path:
        areas = (Area(given.path, (given.path,)),)
        if not areas[0].select(files):
            parser.error(f"no Python file has a path that begins with {given.path}")
    cells = measure_areas(areas, files)
    failing = [cell for cell in cells if cell.fails_check]
    if given.summary:
        lines = [summary_line(cells), *worst_lines(failing, names, PLACES_SHOWN)]
    else:
        lines = [*table_lines(cells)]
        if given.names or given.worst:
            lines += worst_lines(cells, given.names or names, given.worst or PLACES_SHOWN)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
