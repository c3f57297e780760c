"""A ceiling that is exceeded is said, with the number, the ceiling and the target."""

from __future__ import annotations

from typing import Any

import pytest

from tests.architecture.ceilings import CEILINGS, ROOMS, Ceiling, exceeded


def _at_the_ceilings() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {"cut": {"rooms_over_15_files": dict(ROOMS)}}
    for each in CEILINGS:
        found.setdefault(each.part, {})[each.key] = each.most
    return found


def test_at_every_ceiling_nothing_is_exceeded() -> None:
    assert list(exceeded(_at_the_ceilings())) == []
    assert all(each.target <= each.most for each in CEILINGS)


@pytest.mark.parametrize("ceiling", CEILINGS, ids=lambda ceiling: ceiling.what)
def test_one_more_is_said(ceiling: Ceiling) -> None:
    found = _at_the_ceilings()
    found[ceiling.part][ceiling.key] += 1
    (said,) = exceeded(found)
    assert said.startswith(f"{ceiling.what}: {ceiling.most + 1:,}, and {ceiling.most:,}")
    assert f"target {ceiling.target:,}" in said


@pytest.mark.parametrize(("room", "files"), [("mendq/catalogue", 38), ("mendq/heal", 16)])
def test_a_room_that_grew_too_large_is_said(room: str, files: int) -> None:
    found = _at_the_ceilings()
    found["cut"]["rooms_over_15_files"][room] = files
    (said,) = exceeded(found)
    assert said.startswith(f"{room} holds {files} files")
