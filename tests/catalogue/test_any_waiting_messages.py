"""Whatever is true of messages and their source, what is planned cannot make things worse."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE, examples
from mendq.catalogue._redrive_causes import CAUSES, REDRIVE_TAG
from mendq.catalogue.dlq_messages_waiting import DLQ_MESSAGES_WAITING, detect, plan
from mendq.model.case import FINAL, Case, State
from mendq.model.facts import Facts, LambdaConsumer, SourceQueue
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import RedriveMessages, SetMessageRetention

BASE = DLQ_MESSAGES_WAITING.detected[1].facts
(SOURCE,) = BASE.dlq_sources or ()
NAMES = st.sampled_from(sorted(CAUSES)) | st.sampled_from([each.name for each in CATALOGUE])
FIXED = (
    [State.APPLIED, State.WATCHING],
    [State.WATCHING, State.CLOSED],
    [State.ESCALATED, State.CLOSED],
)
ANY = st.lists(st.sampled_from(list(State)), min_size=1, max_size=3)
STATES = st.sampled_from(FIXED) | st.sampled_from(FIXED) | ANY
AGES = st.timedeltas(timedelta(0), timedelta(hours=1)) | st.timedeltas(
    timedelta(0), timedelta(days=20)
)
ODD = st.integers(0, 19).map(lambda number: number == 7)
WORDS = [*["on"] * 10, "off", "?"]
TAGS = st.none() | st.sampled_from(WORDS)
HANDLER = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:messages", 30, 0)


def _tagged(word: str | None) -> dict[str, str]:
    return {} if word is None else {REDRIVE_TAG: word}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    made = examples.case(draw(NAMES), *draw(STATES))
    actor = draw(st.sampled_from(["follow_up", "arn:aws:iam::123456789012:user/ada"]))
    return replace(made, at=examples.AT - draw(AGES), actor=actor)


@st.composite
def messages(draw: st.DrawFn) -> Facts:
    """Mostly as they should be: else nothing would ever be planned."""
    assert BASE.measured is not None
    assert BASE.sole_source is not None
    measured = examples.recounted(
        BASE.measured,
        oldest_age_seconds_now=draw(st.sampled_from([0, 60, 7_200, 86_400, 900_000])),
        deleted=int(draw(ODD)),
        visible_before=draw(st.sampled_from([0, 200])),
        least_visible=draw(st.sampled_from([0, 200])),
    )
    sole = replace(
        BASE.sole_source,
        tags=draw(TAGS.map(_tagged)),
        mode=draw(st.sampled_from([*Mode, *Mode, *Mode, None])),
    )
    second = SourceQueue(f"{SOURCE.queue_arn}-2", SOURCE.attributes)
    retained = str(draw(st.sampled_from([60, 345_600, 1_209_600])))
    return replace(
        BASE,
        tags=draw(TAGS.map(_tagged)),
        attributes={**BASE.attributes, "MessageRetentionPeriod": retained},
        measured=None if draw(ODD) else measured,
        sole_source=None if draw(ODD) else sole,
        dlq_sources=(SOURCE, second) if draw(ODD) else (SOURCE,),
        lambda_consumers=(HANDLER,) if draw(ODD) else (),
        move_task_running=draw(ODD),
        source_cases=tuple(draw(st.lists(cases(), max_size=3))),
        open_symptoms=draw(st.frozensets(NAMES, max_size=1)) if draw(ODD) else frozenset(),
    )


@settings(max_examples=1_000)
@given(messages())
@example(BASE)
def test_what_is_planned_has_nothing_against_it(facts: Facts) -> None:
    found = plan(facts, Limits())
    if isinstance(found, Refusal):
        assert found.becomes in (None, State.REFUSED)
        return
    proven = (State.VERIFIED, State.WATCHING)
    assert all(each.state in FINAL or each.state in proven for each in facts.source_cases)
    assert any(
        each.symptom in CAUSES and each.state in (*proven, State.CLOSED)
        for each in facts.source_cases
    )
    source = facts.sole_source
    assert source is not None
    assert source.mode is not None
    assert len(facts.dlq_sources or ()) == 1
    assert {tags.get(REDRIVE_TAG, "on") for tags in (facts.tags, source.tags)} == {"on"}
    assert not facts.lambda_consumers
    assert not facts.move_task_running
    _assert_bounded(facts, found)


def _assert_bounded(facts: Facts, found: Plan) -> None:
    first, *retained = found.steps
    assert first == RedriveMessages("held", SOURCE.queue_arn)
    assert all(step.out_of_bounds() is None for step in found.steps)
    assert all(isinstance(each, SetMessageRetention) for each in retained)
    assert facts.sole_source is not None
    assert found.at_most <= (facts.sole_source.mode or Mode.OBSERVE)
    if found.at_most is Mode.HEAL:
        assert facts.measured is not None
        assert facts.measured.now.oldest_age_seconds
        closed = [e for e in facts.source_cases if e.symptom in CAUSES and e.state is State.CLOSED]
        began_at = examples.AT - timedelta(seconds=facts.measured.now.oldest_age_seconds)
        proven = [e.came_from is State.WATCHING and e.actor == "follow_up" for e in closed]
        of_then = [is_so for e, is_so in zip(closed, proven, strict=True) if e.at >= began_at]
        assert all(of_then)


@settings(max_examples=300)
@given(messages())
def test_what_is_found_has_a_cause_that_is_fixed_and_a_time(facts: Facts) -> None:
    found = detect(facts)
    if found is None:
        return
    assert any(each.symptom in CAUSES for each in facts.source_cases)
    assert found.seconds_left is not None
    assert 0 <= found.seconds_left <= facts.retention_seconds
    assert len(found.because) <= 300
