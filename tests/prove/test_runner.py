"""The runner tells failed claims from claims that hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.prove.proof import Proof, Proving
from tests.prove.runner import keep, run


def _fails(proving: Proving) -> None:
    proving.figure("writes", 2)
    proving.holds("one write at most", whether=False)


def _holds(proving: Proving) -> None:
    proving.holds("one write at most", whether=True)


def _notes_whole_run(proving: Proving) -> None:
    proving.figure("ran", "whole")
    proving.figure("seed", proving.seed)
    proving.holds("one write at most", whether=True)


def _notes_quick_run(proving: Proving) -> None:
    proving.figure("ran", "quickly")
    proving.holds("one write at most", whether=True)


def _asks_nothing(_: Proving) -> None:
    pass


def _crashes(proving: Proving) -> None:
    _holds(proving)
    raise ZeroDivisionError


def _show_proofs(tmp_path: Path, *proofs: Callable[[Proving], None]) -> tuple[dict[str, Any], str]:
    """Run these proofs; return the stored figures and the printed text."""
    shown = tmp_path / "shown"
    figures = tmp_path / "build" / "figures.json"
    with shown.open("w") as file:
        made = [Proof(proof.__name__, "It holds.", proof) for proof in proofs]
        keep(run(made, Console(file=file)), figures)
    return json.loads(figures.read_text()), shown.read_text()


def test_proof_holds_only_if_claims_were_made_and_all_held(tmp_path: Path) -> None:
    retained, shown = _show_proofs(tmp_path, _fails, _asks_nothing, _crashes, _holds)
    assert retained["holds"] is False
    assert [proof["holds"] for proof in retained["proofs"]] == [False, False, False, True]
    assert shown.count("not so:") == 3
    retained, shown = _show_proofs(tmp_path, _holds)
    assert retained["holds"] is True
    assert "not so:" not in shown


def test_quick_run_of_a_proof_runs_only_its_quick_part() -> None:
    proof = Proof("writes", "It holds.", _notes_whole_run, prove_quickly=_notes_quick_run)
    (result,) = run([proof], Console(quiet=True))
    assert result.figures["ran"] == "quickly"


def test_evidence_run_runs_the_whole_proof_with_the_given_seed() -> None:
    proof = Proof("writes", "It holds.", _notes_whole_run, prove_quickly=_notes_quick_run)
    (result,) = run([proof], Console(quiet=True), is_quick=False, seed=12)
    assert result.figures == {"ran": "whole", "seed": 12}
