"""A group that stands still, and what its DLQ is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue.fifo_group_blocked import FIFO_GROUP_BLOCKED, detect, plan
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal

BLOCKED = FIFO_GROUP_BLOCKED.detected[0].facts


def found(facts: Facts) -> Facts:
    it = detect(facts)
    assert it is not None
    return replace(facts, found=it.because)


def test_the_page_tells_what_waits_and_what_becomes_of_the_order() -> None:
    answer = plan(found(BLOCKED), Limits())
    assert isinstance(answer, Plan)
    assert answer.reason.startswith("its oldest message has waited 22,200 s; in 6.0 h 720 receives")
    assert "one group is in flight, 59 messages waiting" in answer.reason
    assert "handled without it" in answer.reason
    assert "orders-dlq.fifo" in answer.reason


def test_a_group_that_moves_on_by_now_gets_none() -> None:
    answer = plan(replace(found(BLOCKED), measured=None), Limits())
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.becomes) == ("need_already_met", None)


@pytest.mark.parametrize("unknown", ["dlq_sources", "measured"])
def test_what_nobody_could_look_at_is_not_found(unknown: str) -> None:
    assert detect(replace(BLOCKED, **{unknown: None})) is None  # type: ignore[arg-type]
