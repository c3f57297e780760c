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
class ProofResult:
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
    proofs: Sequence[Proof],
    console: Console,
    processes: int = len(os.sched_getaffinity(0)),
    *,
    is_quick: bool = True,
    seed: int = 0,
) -> list[ProofResult]:
    """Run all proofs, each in a process of its own, also if some of them fail.

    As many run at once as there are processors. The long tests begin two processes of their own,
    and some of them fail where consumers get too little time. Proofs that keep all processors busy
    come last, one after another.

    Args:
        proofs: What to run, the longest first.
        console: Where to say which proof holds.
        processes: How many run at once.
        is_quick: Whether only the quick part of each proof is run.
        seed: What proofs with random input begin with.
    """
    found: dict[str, ProofResult] = {}
    together = [proof for proof in proofs if not proof.alone]
    for group in (together, *([proof] for proof in proofs if proof.alone)):
        with ProcessPoolExecutor(
            processes, multiprocessing.get_context("spawn"), max_tasks_per_child=1
        ) as pool:
            for done in as_completed(
                [pool.submit(_prove, proof, is_quick=is_quick, seed=seed) for proof in group]
            ):
                result = done.result()
                found[result.name] = result
                said = f"proof {len(found)}/{len(proofs)} [bold]{result.name}[/] {result.verdict}"
                console.print(f"{said} after {result.seconds:.0f} s")
                for failure in result.failures:
                    console.print(f"  [red]not so:[/] {escape(failure)}", highlight=False)
    return [found[proof.name] for proof in proofs]


def _prove(proof: Proof, *, is_quick: bool, seed: int) -> ProofResult:
    started = time.monotonic()
    proving = Proving(proof.name, seed)
    try:
        proof.run(proving, is_quick=is_quick)
    except Exception:  # noqa: BLE001 - it fails this proof, and the others still run
        proving.failures.append(traceback.format_exc(limit=-3))
    if not proving.claims:
        proving.failures.append("it claims nothing")
    seconds = round(time.monotonic() - started, 1)
    figures, claims, failures = proving.figures, proving.claims, proving.failures
    return ProofResult(proof.name, proof.claim, seconds, figures, claims, failures)


def tabulate(results: Iterable[ProofResult], console: Console) -> None:
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


def keep(results: Sequence[ProofResult], path: Path) -> None:
    """The same, for machines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "schema": 1,
        "holds": all(each.holds for each in results),
        "proofs": [each.document() for each in results],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
