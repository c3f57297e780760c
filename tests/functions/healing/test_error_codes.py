from __future__ import annotations

import pytest

from functions.healing.error_codes import KNOWN_CODES, canonical
from tests.real_records import SQS_ERRORS, sqs_errors


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("AWS.SimpleQueueService.NonExistentQueue", "NonExistentQueue"),
        ("QueueDoesNotExist", "NonExistentQueue"),
        ("QueueDoesNotExistException", "NonExistentQueue"),
        ("com.amazonaws.sqs#QueueDoesNotExist", "NonExistentQueue"),
        ("QueueNameExists", "QueueAlreadyExists"),
        ("InvalidParameterValueException", "InvalidParameterValue"),
        ("MissingRequiredParameterException", "MissingParameter"),
        ("KMS.ThrottlingException", "KmsThrottled"),
        ("KmsThrottled", "KmsThrottled"),
        ("KMS.OptInRequired", "KmsOptInRequired"),
        ("ThrottlingException", "Throttling"),
        ("AccessDeniedException", "AccessDenied"),
        ("AWS.SimpleQueueService.MessageNotInflight", "MessageNotInflight"),
    ],
)
def test_every_spelling_has_one_code(spelling: str, expected: str) -> None:
    assert canonical(spelling) == expected
    assert expected in KNOWN_CODES


@pytest.mark.parametrize("unknown", ["Teapot", "TeapotException", "", "aws.simplequeueservice.X"])
def test_an_unknown_code_stays_unknown(unknown: str) -> None:
    assert canonical(unknown) not in KNOWN_CODES


def test_a_canonical_code_is_its_own() -> None:
    assert {canonical(code) for code in KNOWN_CODES} == KNOWN_CODES


@pytest.mark.skipif(not SQS_ERRORS.exists(), reason=f"{SQS_ERRORS.name} is not here")
def test_the_real_errors_have_one_known_code_in_both_protocols() -> None:
    errors = sqs_errors()
    assert len(errors) == 89
    for error in errors:
        spellings = {canonical(each) for each in (error["code"], error["query"]) if each}
        assert len(spellings) == 1
        assert spellings <= KNOWN_CODES
