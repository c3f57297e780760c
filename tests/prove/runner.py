"""Runs proofs side by side, says how far they are, and tabulates what they found."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
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

    @property
    def verdict(self) -> str:
        return "[green]holds[/]" if self.holds else "[red]fails[/]"

    def document(self) -> dict[str, object]:
        return {**vars(self), "holds": self.holds}


def run(
    proofs: Sequence[Proof], console: Console, processes: int = 1 + len(os.sched_getaffinity(0))
) -> list[Result]:
    """All of them, whatever the ones before found, each in a process of its own.

    One more at once than there are processors, because the long tests mostly wait; one that keeps
    all of them busy by itself comes last.
    """
    found: dict[str, Result] = {}
    together = [proof for proof in proofs if not proof.alone]
    for group in (together, *([proof] for proof in proofs if proof.alone)):
        with ProcessPoolExecutor(
            processes, multiprocessing.get_context("spawn"), max_tasks_per_child=1
        ) as pool:
            for done in as_completed([pool.submit(_proved, proof) for proof in group]):
                result = done.result()
                found[result.name] = result
                said = f"proof {len(found)}/{len(proofs)} [bold]{result.name}[/] {result.verdict}"
                console.print(f"{said} after {result.seconds:.0f} s")
                for failure in result.failures:
                    console.print(f"  [red]not so:[/] {escape(failure)}", highlight=False)
    return [found[proof.name] for proof in proofs]


def _proved(proof: Proof) -> Result:
    started, proving = time.monotonic(), Proving(proof.name)
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
    table = Table("proof", "figure", title="What was proved", show_lines=False)
    table.add_column("value", overflow="fold", justify="right")
    for result in results:
        table.add_section()
        table.add_row(f"[bold]{result.name}[/] {result.verdict}", "seconds", f"{result.seconds:g}")
        for name, value in result.figures.items():
            readable = f"{value:,}" if isinstance(value, int | float) else escape(value)
            table.add_row("", escape(name.replace("_", " ")), readable)
    console.print(table)
    for result in results:
        for failure in result.failures:
            said = f"[red]{result.name} fails, not so:[/] {escape(failure)}"
            console.print(said, highlight=False)


def keep(results: Sequence[Result], path: Path) -> None:
    """The same, for machines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "schema": 1,
        "holds": all(each.holds for each in results),
        "proofs": [each.document() for each in results],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
