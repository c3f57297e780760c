"""Which of five codes it was is not kept, so the page says how to ask KMS."""

from __future__ import annotations

import pytest

from mendq.catalogue import examples, match
from mendq.catalogue.kms_key_unusable import KMS_KEY_UNUSABLE, plan
from mendq.model.case import State
from mendq.model.limits import Limits


@pytest.mark.parametrize(
    "code", ["KmsAccessDenied", "KMS.ThrottlingException", "KMS.Disabled.", "Disabled", "KmsX"]
)
def test_other_codes_of_kms_are_not_caught(code: str) -> None:
    assert match(examples.failed_call("SendMessage", code)) is not KMS_KEY_UNUSABLE


@pytest.mark.parametrize(
    "code", ["Disabled", "InvalidState", "NotFound", "OptInRequired", "InvalidKeyUsage"]
)
def test_both_spellings_of_each_way_are_caught(code: str) -> None:
    for spelling in (f"Kms{code}", f"KMS.{code}Exception", f"KMS.{code}"):
        for event_name in ("SendMessage", "SendMessageBatch", "ReceiveMessage"):
            assert match(examples.failed_call(event_name, spelling)) is KMS_KEY_UNUSABLE


@pytest.mark.parametrize("key", ["alias/orders", "arn:aws:kms:us-east-1:123456789012:key/1"])
def test_the_page_says_what_is_at_stake_and_asks_for_the_key_s_state(key: str) -> None:
    page = plan(examples.queue(KmsMasterKeyId=key), Limits())
    assert page.becomes is State.ESCALATED
    assert "DeletionDate" in page.reason
    assert "lost for good" in page.reason
    assert page.next_command == f"aws kms describe-key --region us-east-1 --key-id {key}"
