"""Measure what Mendq costs, as ratios within one run: `python -m bench`.

A goal that is missed is reported; nothing fails because of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.console import Console
from rich.markdown import Markdown

from bench import handler, nightly, pages
from bench.rounds import Measure

PART_NAMES = ("handler", "nightly")


def main(arguments: list[str]) -> int:
    """Measure, store the measures, and print them with the goals. Return 0, also for missed goals.

    With --keep, also write docs/performance.md.
    """
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PART_NAMES, help="measure only these parts")
    parser.add_argument(
        "--peers", action="store_true", help="compare the nightly job with DuckDB and Polars"
    )
    parser.add_argument("--keep", action="store_true", help="rewrite docs/performance.md")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    measures_by_part_name = pages.load_measures_by_part_name()
    measuring_function_by_part_name: dict[str, Callable[[Console], Iterator[Measure]]] = {
        "handler": handler.run_measurements,
        "nightly": partial(nightly.run_measurements, must_measure_peers=options.peers),
    }
    for part_name in options.only or PART_NAMES:
        measures_by_part_name[part_name] = pages.make_part_measures(
            _print_measures(measuring_function_by_part_name[part_name](console), console)
        )
        pages.store_measures_by_part_name(measures_by_part_name)
    measure_by_name = pages.join_measures(measures_by_part_name)
    goal_rows = [
        goal.make_goal_row(measure_by_name)
        for goal in pages.GOALS
        if goal.find_result(measure_by_name) is not None
    ]
    title = "Goals: a machine that misses one is told so, and nothing fails"
    console.print(_make_table(title, ("goal", "asked", "measured", ""), goal_rows))
    console.print(f"measures: {pages.MEASURES_PATH}")
    if options.keep:
        pages.PAGE_PATH.write_text(pages.make_performance_page(measures_by_part_name))
        console.print(f"wrote {pages.PAGE_PATH}")
    return 0


def _print_measures(measures: Iterator[Measure], console: Console) -> Iterator[Measure]:
    """Yield the given measures unchanged, and print each measure as soon as it was taken."""
    for measure in measures:
        console.print(_make_table(measure.title, *pages.make_headings_and_rows(measure)))
        yield measure


def _make_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Markdown:
    return Markdown(f"### {title}\n\n{pages.make_markdown_table(headings, rows)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
