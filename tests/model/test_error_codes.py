"""Test that each documented error code is recognised in each spelling of SQS's two protocols."""

from __future__ import annotations

import json
from pathlib import Path

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import SYMPTOM_BY_NAME, examples, find_symptom_of
from mendq.model.failed_call import (
    ERROR_CODES_BY_SYMPTOM,
    KNOWN_ERROR_CODES,
    REFUSED_MAPPING_CODE,
    make_canonical_error_code,
)

QUERY = "AWS.SimpleQueueService."
# A code, a call that plausibly gets it, its label, and its names in the two protocols: botocore's
# model, and the awsQueryError trait of the SDKs' model.
DOCUMENTED = json.loads(Path(__file__).with_name("error_codes.json").read_text())


@pytest.mark.parametrize(
    "unknown",
    [
        "Teapot",
        "TeapotException",
        "",
        "aws.simplequeueservice.X",
        "KMS.",
        "Exception",
        QUERY,
        "#",
        "KMS.Exception",
    ],
)
def test_unknown_error_code_matches_no_known_code_and_no_symptom(unknown: str) -> None:
    assert make_canonical_error_code(unknown) not in KNOWN_ERROR_CODES
    assert find_symptom_of(examples.failed_call("SendMessage", unknown)) is None


@pytest.mark.parametrize(
    "documented", DOCUMENTED, ids=[f"{code}-{event_name}" for code, event_name, *_ in DOCUMENTED]
)
def test_every_spelling_of_an_error_code_gives_one_canonical_code_and_one_symptom(
    documented: list[str],
) -> None:
    """Spellings: both protocols' names, bare, with the SDKs' suffix, and with a namespace."""
    code, event_name, label, query_code, json_name = documented
    bare = query_code.removeprefix(QUERY)
    suffixed = {f"{name.removesuffix('Exception')}Exception" for name in (query_code, json_name)}
    spaces = ("com.amazonaws.sqs", "com.amazon.coral.service")
    namespaced = {f"{space}#{json_name}" for space in spaces}
    for spelling in {query_code, json_name, bare, f"{QUERY}{bare}", *suffixed, *namespaced}:
        assert make_canonical_error_code(spelling) == code, spelling
        symptom = find_symptom_of(examples.failed_call(event_name, spelling))
        assert symptom is not None
        assert symptom.name == label, spelling


def test_known_error_codes_are_exactly_the_documented_ones() -> None:
    assert {code for code, *_ in DOCUMENTED} == KNOWN_ERROR_CODES - {REFUSED_MAPPING_CODE}


def test_known_error_codes_include_every_error_in_botocores_model_of_sqs() -> None:
    model = botocore.session.get_session().get_service_model("sqs")
    modelled = {shape.name for shape in model.error_shapes}
    assert len(modelled) >= 28
    assert {make_canonical_error_code(name) for name in modelled} <= KNOWN_ERROR_CODES


def test_each_known_error_code_belongs_to_one_symptom_that_recognises_it() -> None:
    assert len(KNOWN_ERROR_CODES) == sum(map(len, ERROR_CODES_BY_SYMPTOM.values()))
    for label, codes in ERROR_CODES_BY_SYMPTOM.items():
        assert {*codes} <= {pattern.error_code for pattern in SYMPTOM_BY_NAME[label].seen_as}


@given(st.text(max_size=200))
def test_canonical_error_code_is_a_text_for_any_text(raw_error_code: str) -> None:
    assert isinstance(make_canonical_error_code(raw_error_code), str)


@pytest.mark.parametrize("code", sorted(KNOWN_ERROR_CODES))
def test_canonical_error_code_of_a_known_code_is_the_code_itself(code: str) -> None:
    assert make_canonical_error_code(code) == code
