"""What Mendq costs, in ratios taken in one run: `python -m bench`. Measures, and never judges."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.console import Console
from rich.markdown import Markdown

from bench import handler, nightly, pages
from bench.rounds import Measure

PARTS = ("handler", "nightly")


def main(words: list[str]) -> int:
    """Measure the parts, keep and show what was found."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PARTS, help="instead of all parts")
    parser.add_argument("--peers", action="store_true", help="DuckDB and Polars beside the job")
    parser.add_argument("--keep", action="store_true", help="write docs/performance.md anew")
    given = parser.parse_args(words)
    console = Console(width=None if sys.stdout.isatty() else 120)
    parts = pages.read()
    measures: dict[str, Callable[[Console], Iterator[Measure]]] = {
        "handler": handler.measures,
        "nightly": partial(nightly.measures, with_peers=given.peers),
    }
    for name in given.only or PARTS:
        parts[name] = pages.part(_shown(measures[name](console), console))
        pages.keep(parts)
    every = pages.measures_of(parts)
    rows = [each.row(every) for each in pages.GOALS if each.found(every) is not None]
    title = "Goals: a machine that misses one is told so, and nothing fails"
    console.print(_titled(title, ("goal", "asked", "measured", ""), rows))
    console.print(f"measures: {pages.MEASURES}")
    if given.keep:
        pages.PAGE.write_text(pages.performance(parts))
        console.print(f"wrote {pages.PAGE}")
    return 0


def _shown(measures: Iterator[Measure], console: Console) -> Iterator[Measure]:
    for each in measures:
        console.print(_titled(each.title, *pages.shown(each)))
        yield each


def _titled(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Markdown:
    return Markdown(f"### {title}\n\n{pages.markdown_table(headings, rows)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
