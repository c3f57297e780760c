"""Runs proofs one after another, shows how far they are, and tabulates what they found."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.prove.proof import Figure, Proof, Proving


@dataclass(frozen=True)
class Result:
    """One proof, run."""

    name: str
    claim: str
    seconds: float
    figures: dict[str, Figure]
    claims: list[str]
    failures: list[str]

    @property
    def holds(self) -> bool:
        return not self.failures

    def document(self) -> dict[str, object]:
        return {**vars(self), "holds": self.holds}


def run(proofs: Sequence[Proof], console: Console) -> list[Result]:
    """All of them, whatever the ones before found."""
    results = []
    for n, proof in enumerate(proofs, start=1):
        console.print(f"proof {n}/{len(proofs)} [bold]{proof.name}[/]: {proof.claim}")
        result = _run(proof, console)
        console.print(f"  {_verdict(result)} after {result.seconds:.0f} s")
        for failure in result.failures:
            console.print(f"  [red]not so:[/] {escape(failure)}", highlight=False)
        results.append(result)
    return results


def _run(proof: Proof, console: Console) -> Result:
    columns = (TextColumn("  {task.percentage:>3.0f} %"), BarColumn(), TimeElapsedColumn())
    started = time.monotonic()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(proof.name, total=1.0)
        proving = Proving(progress=lambda share: progress.update(task, completed=share))
        try:
            proof.prove(proving)
        except Exception:  # noqa: BLE001 - it fails this proof, and the others still run
            proving.failures.append(traceback.format_exc(limit=-3))
    if not proving.claims:
        proving.failures.append("it claims nothing")
    seconds = round(time.monotonic() - started, 1)
    figures, claims, failures = proving.figures, proving.claims, proving.failures
    return Result(proof.name, proof.claim, seconds, figures, claims, failures)


def tabulate(results: Iterable[Result], console: Console) -> None:
    """One row a figure, under the proof it bears."""
    table = Table(title="What was proved", show_lines=False)
    for heading in ("proof", "figure", "value"):
        table.add_column(
            heading, overflow="fold", justify="right" if heading == "value" else "left"
        )
    for result in results:
        table.add_section()
        table.add_row(
            f"[bold]{result.name}[/] {_verdict(result)}", "seconds", f"{result.seconds:g}"
        )
        for name, value in result.figures.items():
            table.add_row("", escape(name.replace("_", " ")), escape(_readable(value)))
    console.print(table)
    for result in results:
        for failure in result.failures:
            console.print(
                f"[red]{result.name} fails, not so:[/] {escape(failure)}", highlight=False
            )


def _verdict(result: Result) -> str:
    return "[green]holds[/]" if result.holds else "[red]fails[/]"


def _readable(value: Figure) -> str:
    return f"{value:,}" if isinstance(value, int | float) else value


def keep(results: Sequence[Result], path: Path) -> None:
    """The same, for machines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "schema": 1,
        "holds": all(each.holds for each in results),
        "proofs": [each.document() for each in results],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
