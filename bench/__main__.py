"""What Mendq costs, in ratios taken in one run: `python -m bench`. Measures, and never judges."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from rich.console import Console

from bench import handler, kept, night, pages
from bench.goals import GOALS
from bench.rounds import Measure
from bench.taking import goal_table, table, taker

PARTS = ("handler", "night")


def main(words: list[str]) -> int:
    given = _parser().parse_args(words)
    console = Console(width=None if sys.stdout.isatty() else 120)
    parts = kept.read()
    for name in given.only or PARTS:
        measures = _shown(_measures(name, given.peers, console), console)
        parts[name] = kept.part(measures, _command(given))
        kept.write(parts)
    every = {name: each for part in parts.values() for name, each in part.measures.items()}
    console.print(goal_table(GOALS, every))
    console.print(f"measures: {kept.MEASURES}")
    if given.keep:
        for path in pages.write(parts):
            console.print(f"wrote {path}")
    return 0


def _measures(name: str, with_peers: bool, console: Console) -> Iterator[Measure]:
    take = taker(console)
    return (
        handler.measures(take) if name == "handler" else night.measures(take, with_peers=with_peers)
    )


def _shown(measures: Iterator[Measure], console: Console) -> Iterator[Measure]:
    for each in measures:
        console.print(table(each))
        yield each


def _command(given: argparse.Namespace) -> str:
    """As a person would type it."""
    switches = {"PEERS": given.peers, "KEEP": given.keep}
    only = [f"ONLY={' '.join(given.only)}"] if given.only else []
    return " ".join(["make bench", *only, *(f"{name}=1" for name, on in switches.items() if on)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PARTS, help="instead of all parts")
    parser.add_argument("--peers", action="store_true", help="DuckDB and Polars beside the night")
    parser.add_argument("--keep", action="store_true", help="write the pages in docs/ anew")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
