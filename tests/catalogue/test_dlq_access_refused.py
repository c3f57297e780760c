"""Who is let in beside those that are, and who never is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.dlq_source_not_allowed import detect, plan
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, queue
from mendq.model.facts import Facts, SourceQueue
from mendq.model.limits import Limits
from mendq.model.plan import Plan
from mendq.model.queue import MOST_SOURCES, RedriveAllow, allow_of

NAMES = st.integers(0, 24).map(lambda n: f"{STANDARD_ARN}-{n:02}")
SOURCES = st.sets(NAMES, max_size=15)
ALLOWED = st.sets(NAMES, max_size=MOST_SOURCES)


def messages(allowed: str, sources: set[str]) -> Facts:
    return replace(
        queue(queue_arn=DLQ_ARN, RedriveAllowPolicy=allowed),
        dlq_sources=tuple(SourceQueue(each, {}) for each in sources),
    )


@given(ALLOWED, SOURCES)
def test_as_many_are_let_in_as_fit_and_nobody_is_put_out(
    allowed: set[str], sources: set[str]
) -> None:
    facts = messages(RedriveAllow("byQueue", tuple(sorted(allowed))).text, sources)
    answer = plan(facts, Limits())
    if not isinstance(answer, Plan):
        assert answer.code == ("need_already_met" if sources <= allowed else "too_many_sources")
        assert sources <= allowed or len(allowed) == MOST_SOURCES
        return
    (step,) = answer.steps
    assert step.out_of_bounds() is None, "what is planned may be taken"
    assert step.inverse().after == step.before
    wanted = allow_of(str(step.after))
    assert wanted is not None
    assert wanted.permission == "byQueue"
    added = set(wanted.sources) - allowed
    assert allowed < set(wanted.sources) <= allowed | sources
    assert len(added) == min(len(sources - allowed), MOST_SOURCES - len(allowed))
    left = sources - allowed - added
    assert ("would stay out" in answer.reason) is bool(left)
    found = detect(replace(facts, attributes={step.attribute: str(step.after)}))
    assert (found is not None) is bool(left)


def test_two_that_are_left_out_are_one_plan() -> None:
    answer = plan(
        messages('{"redrivePermission":"byQueue"}', {f"{STANDARD_ARN}-1", STANDARD_ARN}), Limits()
    )
    assert isinstance(answer, Plan)
    assert len(answer.steps) == 1


def test_a_word_that_sqs_may_learn_is_nobody_s_to_change() -> None:
    answer = plan(messages('{"redrivePermission":"byAccount"}', {STANDARD_ARN}), Limits())
    assert not isinstance(answer, Plan)
    assert answer.code == "denied_to_all"
