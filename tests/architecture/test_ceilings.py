"""A ceiling that is exceeded is said, with the number, the ceiling and the target."""

from __future__ import annotations

from typing import Any

from tests.architecture.ceilings import CEILINGS, ROOMS, exceeded


def _at_the_ceilings() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {"cut": {"rooms_over_15_files": dict(ROOMS)}}
    for each in CEILINGS:
        found.setdefault(each.part, {})[each.key] = each.most
    return found


def test_at_every_ceiling_nothing_is_exceeded() -> None:
    assert list(exceeded(_at_the_ceilings())) == []
    assert all(each.target <= each.most for each in CEILINGS)


def test_one_more_of_anything_and_a_room_too_large_are_said() -> None:
    found = _at_the_ceilings()
    found["cut"]["rooms_over_15_files"]["mendq/heal"] = 16
    for each in CEILINGS:
        found[each.part][each.key] += 1
    *said, room = exceeded(found)
    assert [each.partition(":")[0] for each in said] == [each.what for each in CEILINGS]
    assert room.startswith("mendq/heal holds 16 files")
