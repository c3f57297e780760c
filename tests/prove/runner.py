"""Runs proofs side by side, shows how far they are, and tabulates what they found."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
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


def run(
    proofs: Sequence[Proof], console: Console, processes: int = len(os.sched_getaffinity(0))
) -> list[Result]:
    """All of them, whatever the ones before found, each in a process of its own.

    As many at once as there are processors; one that keeps all of them busy by itself comes last.
    """
    together = [proof for proof in proofs if not proof.alone]
    alone = [[proof] for proof in proofs if proof.alone]
    found: dict[str, Result] = {}
    columns = (TextColumn("  {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        for group in (together, *alone):
            for result in _side_by_side(group, progress, processes):
                found[result.name] = result
                done = f"proof {len(found)}/{len(proofs)} [bold]{result.name}[/]"
                console.print(f"{done} {_verdict(result)} after {result.seconds:.0f} s")
                for failure in result.failures:
                    console.print(f"  [red]not so:[/] {escape(failure)}", highlight=False)
    return [found[proof.name] for proof in proofs]


def _side_by_side(proofs: Sequence[Proof], progress: Progress, processes: int) -> Iterator[Result]:
    context = multiprocessing.get_context("spawn")
    shares = context.SimpleQueue()
    tasks: dict[str, TaskID] = {}
    with ProcessPoolExecutor(processes, context, _tell, (shares,)) as pool:
        running = {pool.submit(_proved, proof) for proof in proofs}
        while running:
            done, running = wait(running, timeout=0.5)
            while not shares.empty():
                name, share = shares.get()
                if name not in tasks:
                    tasks[name] = progress.add_task(name, total=1.0)
                progress.update(tasks[name], completed=share)
            for future in done:
                result = future.result()
                if result.name in tasks:
                    progress.remove_task(tasks.pop(result.name))
                yield result


def _tell(shares: SimpleQueue[tuple[str, float]]) -> None:
    """Keep, in a process of its own, where to say how far its proof is."""
    global _shares  # noqa: PLW0603 - a queue goes to a process when that begins, and not later
    _shares = shares


_shares: SimpleQueue[tuple[str, float]]


def _proved(proof: Proof) -> Result:
    started = time.monotonic()
    proving = Proving(progress=lambda share: _shares.put((proof.name, share)))
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
