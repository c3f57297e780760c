"""Print how readable the code is.

    python -m tests.architecture.style                        the table
    python -m tests.architecture.style --worst 20 loop-names  and the worst places of a measure
    python -m tests.architecture.style --path mendq/heal      only one folder or file
    python -m tests.architecture.style --summary              one line, for `make check`

Exit code 1 if an area that is a gate is above a threshold (`areas`), or if an exception for a name
is not needed any more (`exceptions`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.style.areas import AREAS, Area, read_sources
from tests.architecture.style.exceptions import (
    NAME_EXCEPTIONS,
    NameException,
    describe_unneeded_exceptions,
)
from tests.architecture.style.measures import MEASURES
from tests.architecture.style.table import (
    Cell,
    measure_areas,
    summary_line,
    table_lines,
    worst_lines,
)
from tests.source_files import ROOT

PLACES_SHOWN = 20
_MEASURE_NAMES = [measure.name for measure in MEASURES]


def main(
    arguments: Sequence[str],
    *,
    root: Path = ROOT,
    areas: Sequence[Area] = AREAS,
    exceptions: Sequence[NameException] = NAME_EXCEPTIONS,
) -> int:
    """Measure the repository below `root`, print what was asked for, return the exit code."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(_MEASURE_NAMES))
    if unknown:
        known = ", ".join(_MEASURE_NAMES)
        parser.error(f"no measure is called {', '.join(unknown)}: use {known}")

    files = read_sources(root, exceptions)
    if options.path:
        areas = (Area(options.path, (options.path,)),)
        if not areas[0].select(files):
            parser.error(f"no Python file has a path that begins with {options.path}")

    cells = measure_areas(areas, files)
    failing = [cell for cell in cells if cell.fails_check]
    faults = list(describe_unneeded_exceptions(exceptions, files))
    lines = _make_lines(options, cells)
    sys.stdout.writelines(f"{line}\n" for line in [*lines, *faults])
    return 1 if failing or faults else 0


def _make_lines(options: argparse.Namespace, cells: Sequence[Cell]) -> list[str]:
    """Return the lines to print: the summary and missed gates, or the table and worst places."""
    if options.summary:
        failing = [cell for cell in cells if cell.fails_check]
        return [summary_line(cells), *worst_lines(failing, _MEASURE_NAMES, PLACES_SHOWN)]
    lines = [*table_lines(cells)]
    if options.names or options.worst:
        names = options.names or _MEASURE_NAMES
        lines += worst_lines(cells, names, options.worst or PLACES_SHOWN)
    return lines


def _make_parser() -> argparse.ArgumentParser:
    usage = (__doc__ or "").partition("\n")[2]
    parser = argparse.ArgumentParser(
        prog="make style", epilog=usage, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    measures = ", ".join(_MEASURE_NAMES)
    parser.add_argument("names", nargs="*", metavar="MEASURE", help=f"of {measures}")
    parser.add_argument("--worst", type=int, metavar="N", help="list the N worst places of each")
    parser.add_argument("--path", metavar="PREFIX", help="measure only files below PREFIX")
    parser.add_argument("--summary", action="store_true", help="print one line and missed gates")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
