"""Test that a planned redrive records who can reach its source, for the redrive to compare."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import DAY_SECONDS, dlq_with_messages, source
from mendq.heal.decide import RecordTransition, decide
from mendq.model.case import SOURCE_ACCESS_KEY
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.mode import Mode
from mendq.model.receiver import make_access_digest
from mendq.model.state import State
from mendq.model.steps import SetMessageRetention
from tests.heal.situations import NOW, make_read_situation

KEY = "alias/orders"


def open_case(facts: Facts, symptom: str, mode: Mode) -> RecordTransition:
    decision = decide(
        make_read_situation(
            symptom=SYMPTOM_BY_NAME[symptom],
            facts=facts,
            mode=mode,
            evidence=Evidence.of([Sighting.from_scan(NOW)]),
        )
    )
    assert isinstance(decision, RecordTransition)
    return decision


@pytest.mark.parametrize(
    ("mode", "state"), [(Mode.PROPOSE, State.PROPOSED), (Mode.HEAL, State.APPROVED)]
)
def test_case_that_plans_a_redrive_records_the_sources_policy_and_key(
    mode: Mode, state: State
) -> None:
    facts = replace(dlq_with_messages(dlq_sources=(source(KmsMasterKeyId=KEY),)), found="200 wait")
    case = open_case(facts, "dlq_messages_waiting", mode).case
    assert case.state is state
    assert case.evidence[SOURCE_ACCESS_KEY] == make_access_digest({"KmsMasterKeyId": KEY})


def test_case_of_a_dlq_without_a_redrive_step_records_no_source() -> None:
    facts = dlq_with_messages(
        dlq_sources=(source(MessageRetentionPeriod=str(SetMessageRetention.maximum)),),
        MessageRetentionPeriod=DAY_SECONDS,
        found="messages expire",
    )
    case = open_case(facts, "dlq_retention_too_short", Mode.PROPOSE).case
    assert case.steps
    assert SOURCE_ACCESS_KEY not in case.evidence
