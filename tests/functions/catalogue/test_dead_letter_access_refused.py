"""Who is let in beside those that are, and who never is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from functions.catalogue.dead_letter_access_refused import detect, plan
from functions.healing.dead_letters import MOST_SOURCES, RedriveAllow, allow_of
from functions.healing.examples import DEAD_LETTER_ARN, STANDARD_ARN, queue
from functions.healing.facts import Facts, SourceQueue
from functions.healing.limits import Limits
from functions.healing.plan import Plan

SOURCES = st.sets(st.integers(0, 14).map(lambda n: f"{STANDARD_ARN}-{n}"), max_size=10)


def letters(allowed: str, sources: set[str]) -> Facts:
    return replace(
        queue(queue_arn=DEAD_LETTER_ARN, RedriveAllowPolicy=allowed),
        dead_letter_sources=tuple(SourceQueue(each, {}) for each in sources),
    )


@given(SOURCES, SOURCES)
def test_all_that_name_it_are_let_in_or_none_more(allowed: set[str], sources: set[str]) -> None:
    facts = letters(RedriveAllow("byQueue", tuple(sorted(allowed))).text, sources)
    answer = plan(facts, Limits())
    if not isinstance(answer, Plan):
        too_many = len(allowed | sources) > MOST_SOURCES
        assert answer.code == ("too_many_sources" if too_many else "need_already_met")
        assert too_many or sources <= allowed
        return
    (step,) = answer.steps
    wanted = allow_of(str(step.after))
    assert wanted is not None
    assert wanted.permission == "byQueue"
    assert set(wanted.sources) == allowed | sources
    assert detect(replace(facts, attributes={step.attribute: str(step.after)})) is None
    assert step.out_of_bounds() is None


def test_two_that_are_left_out_are_one_plan() -> None:
    answer = plan(
        letters('{"redrivePermission":"byQueue"}', {f"{STANDARD_ARN}-1", STANDARD_ARN}), Limits()
    )
    assert isinstance(answer, Plan)
    assert len(answer.steps) == 1


def test_a_word_that_sqs_may_learn_is_nobody_s_to_change() -> None:
    answer = plan(letters('{"redrivePermission":"byAccount"}', {STANDARD_ARN}), Limits())
    assert not isinstance(answer, Plan)
    assert answer.code == "denied_to_all"
