"""The runner tells a claim that fails from one that holds; the proofs run, made small."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from tests.prove.__main__ import main
from tests.prove.budgets import budgets
from tests.prove.fault_points import in_pairs, singly
from tests.prove.fuzz import middle_never_decides, never_raises
from tests.prove.mass_symptoms import at_once, in_tens
from tests.prove.proof import Proof, Proving
from tests.prove.races import races
from tests.prove.redrive_faults import struck_everywhere
from tests.prove.redrive_stops import SCENES as SCENES_TO_STOP
from tests.prove.redrive_stops import stopped
from tests.prove.redrives import conserved
from tests.prove.runner import keep, run
from tests.prove.scans import scanned
from tests.prove.scenes import SCENES
from tests.prove.storms import fixed, observed
from tests.prove.window import window


def _fails(proving: Proving) -> None:
    proving.figure("writes", 2)
    proving.holds("one write at most", whether=False)


def _holds(proving: Proving) -> None:
    proving.holds("one write at most", whether=True)


def _asks_nothing(_: Proving) -> None:
    pass


def _crashes(proving: Proving) -> None:
    _holds(proving)
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("prove", "holds"), [(_fails, False), (_asks_nothing, False), (_crashes, False), (_holds, True)]
)
def test_a_proof_holds_when_every_claim_was_asked_and_held(
    tmp_path: Path, prove: Callable[[Proving], None], holds: bool
) -> None:
    console = Console(file=(tmp_path / "shown").open("w"))
    results = run(
        [Proof("it", "It holds.", prove), Proof("other", "So does this.", _holds)], console
    )
    keep(results, tmp_path / "build" / "figures.json")
    retained = json.loads((tmp_path / "build" / "figures.json").read_text())
    console.file.close()
    assert retained["holds"] is holds
    assert [each["holds"] for each in retained["proofs"]] == [holds, True]
    assert ("not so:" in (tmp_path / "shown").read_text()) is not holds


def test_a_proof_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["strom"])
    assert "no proof is called strom" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prove", "size"),
    [
        (fixed, 3_000),
        (observed, 3_000),
        (at_once, 5),
        (in_tens, 12),
        (never_raises, 2),
        (middle_never_decides, 0.3),
        (partial(singly, scenes=SCENES[-1:]), 0.5),
        (partial(in_pairs, scenes=SCENES[-2:]), 2),
        (races, 3),
        (window, 2),
        (budgets, 0.2),
        (scanned, 200),
        (conserved, 1_500),
        (struck_everywhere, 0.02),
        (partial(stopped, scenes=SCENES_TO_STOP[1:2]), 0.15),
    ],
)
def test_a_small_one_holds(prove: Callable[[Proving, float], None], size: float) -> None:
    proving = Proving()
    prove(proving, size)
    assert proving.claims
    assert proving.failures == []
