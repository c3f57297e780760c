"""Every documented code in every known spelling, and what it means by itself."""

from __future__ import annotations

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
DOCUMENTED = (
    Documented(
        "NonExistentQueue",
        "SendMessage",
        "queue_missing",
        f"{QUERY}NonExistentQueue",
        "QueueDoesNotExist",
    ),
    Documented(
        "QueueDeletedRecently",
        "CreateQueue",
        "invalid_request",
        f"{QUERY}QueueDeletedRecently",
        "QueueDeletedRecently",
    ),
    Documented(
        "QueueAlreadyExists",
        "CreateQueue",
        "invalid_request",
        "QueueAlreadyExists",
        "QueueNameExists",
    ),
    Documented("OverLimit", "ReceiveMessage", "in_flight_limit", "OverLimit", "OverLimit"),
    Documented("OverLimit", "AddPermission", "invalid_request", "OverLimit", "OverLimit"),
    Documented(
        "RequestThrottled",
        "SendMessage",
        "fifo_throttled",
        "RequestThrottled",
        "RequestThrottled",
    ),
    Documented("Throttling", "SendMessage", "fifo_throttled", "Throttling", "ThrottlingException"),
    Documented(
        "KmsThrottled", "SendMessage", "kms_throttled", "KMS.ThrottlingException", "KmsThrottled"
    ),
    Documented(
        "KmsAccessDenied",
        "ReceiveMessage",
        "kms_denied",
        "KMS.AccessDeniedException",
        "KmsAccessDenied",
    ),
    Documented(
        "KmsDisabled", "SendMessage", "kms_key_unusable", "KMS.DisabledException", "KmsDisabled"
    ),
    Documented(
        "KmsInvalidState",
        "SendMessage",
        "kms_key_unusable",
        "KMS.InvalidStateException",
        "KmsInvalidState",
    ),
    Documented(
        "KmsNotFound", "SendMessage", "kms_key_unusable", "KMS.NotFoundException", "KmsNotFound"
    ),
    Documented(
        "KmsOptInRequired",
        "SendMessage",
        "kms_key_unusable",
        "KMS.OptInRequired",
        "KmsOptInRequired",
    ),
    Documented(
        "KmsInvalidKeyUsage",
        "SendMessage",
        "kms_key_unusable",
        "KMS.InvalidKeyUsageException",
        "KmsInvalidKeyUsage",
    ),
    Documented(
        "MessageNotInflight",
        "ChangeMessageVisibility",
        "visibility_timeout_too_short",
        f"{QUERY}MessageNotInflight",
        "MessageNotInflight",
    ),
    Documented(
        "ReceiptHandleIsInvalid",
        "DeleteMessage",
        "invalid_request",
        "ReceiptHandleIsInvalid",
        "ReceiptHandleIsInvalid",
    ),
    Documented(
        "InvalidParameterValue",
        "ReceiveMessage",
        "invalid_request",
        "InvalidParameterValue",
        "InvalidParameterValueException",
    ),
    Documented(
        "MissingParameter",
        "SendMessage",
        "invalid_request",
        "MissingParameter",
        "MissingRequiredParameterException",
    ),
    *(
        Documented(code, event_name, "invalid_request", f"{QUERY}{code}", code)
        for code, event_name in (
            ("BatchRequestTooLong", "SendMessageBatch"),
            ("TooManyEntriesInBatchRequest", "DeleteMessageBatch"),
            ("EmptyBatchRequest", "SendMessageBatch"),
            ("BatchEntryIdsNotDistinct", "ChangeMessageVisibilityBatch"),
            ("InvalidBatchEntryId", "SendMessageBatch"),
            ("UnsupportedOperation", "SendMessage"),
            ("PurgeQueueInProgress", "PurgeQueue"),
        )
    ),
    *(
        Documented(code, event_name, "invalid_request", code, code)
        for code, event_name in (
            ("InvalidMessageContents", "SendMessage"),
            ("InvalidIdFormat", "DeleteMessage"),
            ("InvalidAttributeName", "SetQueueAttributes"),
            ("InvalidAttributeValue", "SetQueueAttributes"),
            ("InvalidAddress", "SendMessage"),
            ("InvalidSecurity", "SendMessage"),
        )
    ),
    Documented(
        "ResourceNotFound",
        "StartMessageMoveTask",
        "invalid_request",
        "ResourceNotFoundException",
        "ResourceNotFoundException",
    ),
    Documented(
        "AccessDenied", "SendMessage", "access_denied", "AccessDenied", "AccessDeniedException"
    ),
    Documented(
        "VpceAccessDenied", "SendMessage", "access_denied", "VpceAccessDenied", "VpceAccessDenied"
    ),
)


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


@pytest.mark.parametrize("unknown", ["Teapot", "TeapotException", "", "aws.simplequeueservice.X"])
def test_an_unknown_code_stays_unknown_and_unlabelled(unknown: str) -> None:
    assert canonical(unknown) not in KNOWN_CODES
    assert match(examples.failed_call("SendMessage", unknown)) is None


@pytest.mark.parametrize("name", ["KMS.", "Exception", QUERY, "#", "KMS.Exception"])
def test_a_prefix_or_suffix_alone_is_no_code(name: str) -> None:
    assert canonical(name) not in KNOWN_CODES


@pytest.mark.parametrize(
    "documented", DOCUMENTED, ids=lambda each: f"{each.code}-{each.event_name}"
)
def test_every_spelling_has_one_code_and_its_label(documented: Documented) -> None:
    for spelling in spellings(documented):
        assert canonical(spelling) == documented.code, spelling
        symptom = match(examples.failed_call(documented.event_name, spelling))
        assert symptom is not None
        assert symptom.name == documented.label, spelling


def test_the_table_holds_every_code() -> None:
    assert {each.code for each in DOCUMENTED} == KNOWN_CODES


def test_every_code_of_the_api_s_model_is_known() -> None:
    model = botocore.session.get_session().get_service_model("sqs")
    modelled = {shape.name for shape in model.error_shapes}
    assert len(modelled) >= 28
    assert {each for each in modelled if canonical(each) not in KNOWN_CODES} == set()


def test_every_label_is_an_entry_that_sees_its_codes() -> None:
    by_name = {entry.name: entry for entry in CATALOGUE}
    for code in CODES:
        seen = {way.error_code for way in by_name[code.label].seen_as}
        assert code.canonical in seen


def test_a_code_stands_once_in_the_list() -> None:
    listed = [each.canonical for each in CODES]
    assert len(listed) == len(set(listed))
    assert {canonical(code) for code in KNOWN_CODES} == KNOWN_CODES


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
