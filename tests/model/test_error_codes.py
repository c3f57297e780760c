"""Every documented code in every known spelling, and what it means by itself."""

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
    make_canonical_error_code,
)

QUERY = "AWS.SimpleQueueService."
# A code, a call that plausibly gets it, its label, and its names in the two protocols: botocore's
# model, and the awsQueryError trait of the SDKs' model.
DOCUMENTED = json.loads(Path(__file__).with_name("error_codes.json").read_text())


@pytest.mark.parametrize(
    "unknown",
    [
        *("Teapot", "TeapotException", "", "aws.simplequeueservice.X"),
        *("KMS.", "Exception", QUERY, "#", "KMS.Exception"),
    ],
)
def test_an_unknown_code_stays_unknown_and_unlabelled(unknown: str) -> None:
    assert make_canonical_error_code(unknown) not in KNOWN_ERROR_CODES
    assert find_symptom_of(examples.failed_call("SendMessage", unknown)) is None


@pytest.mark.parametrize("documented", DOCUMENTED, ids=lambda each: f"{each[0]}-{each[1]}")
def test_every_spelling_has_one_code_and_its_label(documented: list[str]) -> None:
    """Both protocols' names, bare, with the SDKs' suffix, and with the shapes' namespaces."""
    code, event_name, label, query_code, json_name = documented
    bare = query_code.removeprefix(QUERY)
    suffixed = {f"{each.removesuffix('Exception')}Exception" for each in (query_code, json_name)}
    spaces = ("com.amazonaws.sqs", "com.amazon.coral.service")
    namespaced = {f"{space}#{json_name}" for space in spaces}
    for spelling in {query_code, json_name, bare, f"{QUERY}{bare}", *suffixed, *namespaced}:
        assert make_canonical_error_code(spelling) == code, spelling
        symptom = find_symptom_of(examples.failed_call(event_name, spelling))
        assert symptom is not None
        assert symptom.name == label, spelling


def test_every_code_is_documented_known_to_the_api_s_model_and_seen_by_its_entry() -> None:
    assert {each[0] for each in DOCUMENTED} == KNOWN_ERROR_CODES
    assert len(KNOWN_ERROR_CODES) == sum(map(len, ERROR_CODES_BY_SYMPTOM.values()))
    model = botocore.session.get_session().get_service_model("sqs")
    modelled = {shape.name for shape in model.error_shapes}
    assert len(modelled) >= 28
    assert {
        each for each in modelled if make_canonical_error_code(each) not in KNOWN_ERROR_CODES
    } == set()
    for label, codes in ERROR_CODES_BY_SYMPTOM.items():
        assert {*codes} <= {way.error_code for way in SYMPTOM_BY_NAME[label].seen_as}


@given(st.text(max_size=200))
def test_reading_a_code_never_raises(raw_error_code: str) -> None:
    assert make_canonical_error_code(make_canonical_error_code(raw_error_code)) is not None
