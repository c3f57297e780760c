"""What speaks against sending letters back: one thing is enough, and is told with its cure."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from functions.catalogue import CATALOGUE
from functions.healing import examples
from functions.healing.examples import case
from functions.healing.facts import Facts, SourceQueue
from functions.healing.plan import Refusal
from functions.healing.redriving import first_against
from functions.healing.states import State
from tests.functions.healing.dead_letters import WATCHED, with_source


def refused(facts: Facts) -> Refusal:
    found = first_against(facts)
    assert isinstance(found, Refusal)
    return found


def test_nothing_speaks_against_what_is_mended_and_watched() -> None:
    assert first_against(WATCHED) is None


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda each: each.name)
@pytest.mark.parametrize("state", [State.PROPOSED, State.APPLIED, State.ESCALATED])
def test_any_open_case_of_the_source_holds_it_up(entry: object, state: State) -> None:
    name = entry.name  # type: ignore[attr-defined]
    facts = replace(WATCHED, source_cases=(*WATCHED.source_cases, case(name, state)))
    assert refused(facts).code == "cause_first"


def test_a_shared_queue_is_told_of_and_shows_how_one_source_goes_back() -> None:
    sources = (WATCHED.dead_letter_sources or ())[0]
    second = SourceQueue(f"{examples.STANDARD_ARN}-2", sources.attributes)
    found = refused(replace(WATCHED, dead_letter_sources=(second, sources), sole_source=None))
    assert found.becomes is State.REFUSED
    assert found.next_command.startswith("mendq redrive orders --all --dry-run")


@pytest.mark.parametrize("of_source", [True, False])
def test_a_network_s_policy_is_refused_with_the_cure(*, of_source: bool) -> None:
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": "*",
        "Condition": {"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}},
    }
    text = json.dumps({"Statement": deny})
    letters = replace(WATCHED, attributes={**WATCHED.attributes, "Policy": text})
    found = refused(with_source(WATCHED, Policy=text) if of_source else letters)
    assert found.code == "network_only_policy"
    assert '"aws:CalledViaLast": "sqs.amazonaws.com"' in found.reason
    assert "aws:ViaAWSService" in found.reason
    deny["Condition"] |= {"BoolIfExists": {"aws:ViaAWSService": "false"}}  # type: ignore[operator]
    excepted = json.dumps({"Statement": deny})
    assert first_against(with_source(WATCHED, Policy=excepted)) is None
