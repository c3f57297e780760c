"""Test the reading of SQS's and IAM's error messages, which contain text that callers chose."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.failed_call import (
    RefusedBy,
    find_parameter_refusal_reason,
    find_refusing_policy,
    find_size_limit_bytes,
    is_missing_deduplication_id_message,
)
from tests.model.tables import table

EXPIRED = "The receipt handle has expired."
TOO_LONG = "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
NO_ID = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


def make_receipt_handle_message(handle: str, reason: str = EXPIRED) -> str:
    return f"Value {handle} for parameter ReceiptHandle is invalid. Reason: {reason}"


@pytest.mark.parametrize(("text", "reason"), table("reasons"))
def test_refusal_reason_is_read_from_sqss_own_words_whatever_text_the_caller_sent(
    text: str, reason: str | None
) -> None:
    assert find_parameter_refusal_reason(text, "ReceiptHandle") == reason


@pytest.mark.parametrize("limit_bytes", [1, 1_024, 1_048_576, 999_999_999])
def test_size_limit_is_read_from_sqss_error_message(limit_bytes: int) -> None:
    assert find_size_limit_bytes(TOO_LONG.replace("1024", str(limit_bytes))) == limit_bytes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(TOO_LONG[:-1], id="without the full stop"),
        pytest.param(
            f"Value {TOO_LONG} for parameter Label is invalid. Reason: {TOO_LONG}",
            id="the caller's own text",
        ),
        pytest.param(f"{'a' * 1000}{TOO_LONG}"[:1024], id="truncated by CloudTrail"),
        *(
            pytest.param(TOO_LONG.replace("1024", number), id=f"number {number!a}")
            for number in ("01024", "-1", "1,024", "1" * 10, "\u0661\u0660", "1024 bytes.\n")
        ),
    ],
)
def test_size_limit_is_not_read_from_a_forged_or_truncated_message(text: str) -> None:
    assert find_size_limit_bytes(text) is None


@pytest.mark.parametrize(
    ("text", "is_recognised"),
    [
        (NO_ID, True),
        ("", False),
        (NO_ID[1:], False),
        (NO_ID[:-1], False),
        (f"{NO_ID}\n", False),
        (f"Value {NO_ID}", False),
    ],
)
def test_missing_deduplication_id_is_recognised_only_in_sqss_exact_message(
    text: str, *, is_recognised: bool
) -> None:
    assert is_missing_deduplication_id_message(text) is is_recognised


QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
ROLE = "arn:aws:sts::123456789012:assumed-role/orders-worker/i-0abc"
ACTION = "sqs:sendmessage"


def make_refusal(ending: str, user: str = ROLE, resource: str = f" on resource: {QUEUE}") -> str:
    return f"User: {user} is not authorized to perform: {ACTION}{resource}{ending}"


def make_missing_allow_ending(kind: str) -> str:
    return f" because no {kind} allows the {ACTION} action"


def make_deny_ending(kind: str, article: str = "a") -> str:
    return f" with an explicit deny in {article} {kind}"


OWN = make_missing_allow_ending("identity-based policy")
FORGED = make_deny_ending("resource-based policy")


@pytest.mark.parametrize("text", table("no policy named"))
def test_access_denied_message_without_a_documented_policy_names_no_policy(text: str) -> None:
    assert find_refusing_policy("AccessDenied", text) is RefusedBy.POLICY_NOT_NAMED


@pytest.mark.parametrize("resource", ["", f" on resource: {QUEUE}", f' on resource: "{QUEUE}"'])
@pytest.mark.parametrize(("ending", "policy"), table("endings"))
def test_documented_ending_of_an_access_denied_message_names_the_refusing_policy(
    ending: str, policy: str, resource: str
) -> None:
    text = make_refusal(ending, resource=resource)
    assert find_refusing_policy("AccessDenied", text) is RefusedBy[policy]


@pytest.mark.parametrize(("ending", "policy"), table("endings"))
def test_access_denied_text_under_another_error_code_names_no_policy(
    ending: str, policy: str
) -> None:
    assert find_refusing_policy("AccessDenied", make_refusal(ending)) is RefusedBy[policy]
    assert find_refusing_policy("KmsAccessDenied", make_refusal(ending)) is None


def test_vpce_access_denied_names_no_policy_as_mendq_reads_no_network_activity_events() -> None:
    assert find_refusing_policy("VpceAccessDenied", "") is None


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_caller_cannot_make_another_policy_look_refusing_by_the_name_of_its_session(
    name: str,
) -> None:
    text = make_refusal(OWN, user=f"{ROLE}{name}")
    assert find_refusing_policy("AccessDenied", text) in {
        RefusedBy.IDENTITY_POLICY,
        RefusedBy.POLICY_NOT_NAMED,
    }


@pytest.mark.parametrize(
    ("length", "policy"),
    [(1_023, RefusedBy.RESOURCE_POLICY_DENIES), (1_024, RefusedBy.POLICY_NOT_NAMED)],
)
def test_message_of_1024_characters_names_no_policy_because_cloudtrail_may_have_cut_it(
    length: int, policy: RefusedBy
) -> None:
    named = make_refusal(f"{FORGED}: arn:", user="u" * 512, resource=f" on resource: {'r' * 256}")
    assert find_refusing_policy("AccessDenied", named + "p" * (length - len(named))) is policy


BEGUN = f"User: x is not authorized to perform: {ACTION}"


@pytest.mark.parametrize(
    ("head", "repeated"),
    [
        ("User: ", "User: a is not authorized to perform: "),
        (BEGUN, "a"),
        (f"{BEGUN} on resource: ", "b"),
        (f"{BEGUN} because no ", "a allows the b action"),
        (f"{BEGUN} with an explicit deny in a ", "a "),
        (f"{BEGUN} with an explicit deny in a b", ": arn:c"),
    ],
)
@pytest.mark.clock
def test_reading_an_access_denied_message_takes_linear_time(head: str, repeated: str) -> None:
    """Quadratic time would let a caller stall heal. CPU time, the best of seven runs."""

    def measure_cpu_seconds(length: int) -> float:
        text = f"{head}{(repeated * length)[: length - len(head) - 1]}\n"
        started = time.process_time()
        for _ in range(200):
            find_refusing_policy("AccessDenied", text)
        return time.process_time() - started

    half = min(measure_cpu_seconds(500) for _ in range(7))
    whole = min(measure_cpu_seconds(1_000) for _ in range(7))
    assert whole < 3 * half + 0.0005
