"""Which names are free, and which queue CreateQueue answers with."""

from __future__ import annotations

import json

from local_account.sqs.queue_names import REUSE_AFTER_SECONDS, DeletedNames, name_refusal

ARN = "arn:aws:sqs:us-east-1:000000000000:orders"
POLICY = {"deadLetterTargetArn": f"{ARN}-dlq", "maxReceiveCount": 5}


class _Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_deleted_name_is_free_again_after_a_minute() -> None:
    clock = _Clock()
    names = DeletedNames(clock=clock)
    assert names.refusal(ARN) is None
    names.deleted(ARN)
    clock.now += REUSE_AFTER_SECONDS - 1
    refusal = names.refusal(ARN)
    assert refusal is not None
    assert refusal.name == "QueueDeletedRecently"
    assert names.refusal(f"{ARN}-2") is None
    clock.now += 1
    assert names.refusal(ARN) is None


def test_the_wait_can_be_shortened() -> None:
    names = DeletedNames(reuse_after_seconds=0, clock=_Clock())
    names.deleted(ARN)
    assert names.refusal(ARN) is None


def test_the_queue_that_is_there_has_to_stand_as_asked() -> None:
    stands = {"VisibilityTimeout": "30", "RedrivePolicy": json.dumps(POLICY)}
    same = {"VisibilityTimeout": "30", "RedrivePolicy": json.dumps(POLICY, indent=2)}
    assert name_refusal(stands, same) is None
    assert name_refusal(stands, {}) is None
    assert name_refusal(stands, {"KmsDataKeyReusePeriodSeconds": "300"}) is None
    for other in ({"VisibilityTimeout": "31"}, {"RedriveAllowPolicy": "{}"}):
        refusal = name_refusal(stands, other)
        assert refusal is not None
        assert refusal.name == "QueueNameExists"
        assert refusal.message.endswith(f"attribute {next(iter(other))}")
