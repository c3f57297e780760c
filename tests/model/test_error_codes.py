"""Every documented code in every known spelling, and what it means by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE, examples, match
from mendq.model.failed_call import CODES, KNOWN_CODES, canonical
from tests.real_records import SQS_ERRORS, sqs_errors

QUERY = "AWS.SimpleQueueService."


class Documented(NamedTuple):
    """A code, a call that plausibly gets it, its label, and its names in the two protocols."""

    code: str
    event_name: str
    label: str
    query_code: str
    json_name: str


# Names: botocore's model, and the awsQueryError trait of the SDKs' model.
ROWS = json.loads(Path(__file__).with_name("error_codes.json").read_text())
DOCUMENTED = [Documented(*row) for row in ROWS]


def spellings(documented: Documented) -> set[str]:
    """Both protocols' names, bare, with the SDKs' suffix, and with the shapes' namespaces."""
    names = {documented.query_code, documented.json_name}
    suffixed = {each.removesuffix("Exception") + "Exception" for each in names}
    namespaced = {
        f"{namespace}#{each}"
        for namespace in ("com.amazonaws.sqs", "com.amazon.coral.service")
        for each in (documented.json_name, f"{documented.json_name}Exception")
        if not each.endswith("ExceptionException")
    }
    bare = documented.query_code.removeprefix(QUERY)
    return names | suffixed | namespaced | {bare, f"{QUERY}{bare}"}


@pytest.mark.parametrize(
    "unknown",
    [
        *("Teapot", "TeapotException", "", "aws.simplequeueservice.X"),
        *("KMS.", "Exception", QUERY, "#", "KMS.Exception"),
    ],
)
def test_an_unknown_code_stays_unknown_and_unlabelled(unknown: str) -> None:
    assert canonical(unknown) not in KNOWN_CODES
    assert match(examples.failed_call("SendMessage", unknown)) is None


@pytest.mark.parametrize("documented", DOCUMENTED, ids=lambda each: f"{each[0]}-{each[1]}")
def test_every_spelling_has_one_code_and_its_label(documented: Documented) -> None:
    for spelling in spellings(documented):
        assert canonical(spelling) == documented.code, spelling
        symptom = match(examples.failed_call(documented.event_name, spelling))
        assert symptom is not None
        assert symptom.name == documented.label, spelling


def test_every_code_is_documented_and_every_code_of_the_api_s_model_is_known() -> None:
    assert {each.code for each in DOCUMENTED} == KNOWN_CODES
    assert len(KNOWN_CODES) == len(CODES)
    model = botocore.session.get_session().get_service_model("sqs")
    modelled = {shape.name for shape in model.error_shapes}
    assert len(modelled) >= 28
    assert {each for each in modelled if canonical(each) not in KNOWN_CODES} == set()


def test_every_label_is_an_entry_that_sees_its_codes() -> None:
    by_name = {entry.name: entry for entry in CATALOGUE}
    for code in CODES:
        assert code.canonical in {way.error_code for way in by_name[code.label].seen_as}


@given(st.text(max_size=200))
def test_reading_a_code_never_raises(raw_error_code: str) -> None:
    assert canonical(canonical(raw_error_code)) is not None


@pytest.mark.skipif(not SQS_ERRORS.exists(), reason=f"{SQS_ERRORS.name} is not here")
def test_the_real_errors_have_one_known_code_in_both_protocols() -> None:
    errors = sqs_errors()
    assert len(errors) == 89
    for error in errors:
        codes = {canonical(each) for each in (error["code"], error["query"]) if each}
        assert len(codes) == 1
        assert codes <= KNOWN_CODES
