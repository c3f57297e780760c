"""What SQS and IAM say in their messages, and what callers may do to them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.failed_call import (
    RefusedBy,
    asks_for_deduplication_id,
    caller_in,
    reason_given,
    refused_by,
    size_limit_bytes,
)

EXPIRED = "The receipt handle has expired."


def message(handle: str, reason: str = EXPIRED) -> str:
    return f"Value {handle} for parameter ReceiptHandle is invalid. Reason: {reason}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        EXPIRED,
        f"Reason: {EXPIRED}",
        f"One or more parameters are invalid. Reason: {EXPIRED}",
        f"Value x for parameter Label is invalid. Reason: {EXPIRED}",
        message("x") + "\n",
        message("x", f"{EXPIRED} Reason: Already exists."),
    ],
)
def test_another_form_gives_no_reason(text: str) -> None:
    assert reason_given(text, "ReceiptHandle") is None


def test_the_callers_own_reason_is_not_sqs_s() -> None:
    forged = message(message("x"), "can't find label.")
    assert reason_given(forged, "ReceiptHandle") == "can't find label."


@pytest.mark.parametrize("handle", ["AQEB", "", "a" * 900, "x Reason: y for parameter Label"])
def test_sqs_s_reason_is_found_behind_any_handle(handle: str) -> None:
    assert reason_given(message(handle), "ReceiptHandle") == EXPIRED


@pytest.mark.parametrize("handle", ["a" * 1024, "\u00e9" * 480])
def test_a_message_that_may_be_cut_gives_no_reason(handle: str) -> None:
    """Cut off, the caller's own sentence could be the end of it."""
    assert reason_given(message(handle + message("x"))[:1024], "ReceiptHandle") is None


TOO_LONG = "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
NO_ID = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


@pytest.mark.parametrize(
    "text",
    [
        *("", TOO_LONG[:-1], TOO_LONG + "\n"),
        *(
            TOO_LONG.replace("1024", number)
            for number in ("01024", "-1", "1,024", "1" * 10, "\u0661\u0660")
        ),
        f"Value {TOO_LONG} for parameter Label is invalid. Reason: {TOO_LONG}",
        f"{'a' * 1000}{TOO_LONG}"[:1024],
    ],
)
def test_another_form_names_no_size_limit(text: str) -> None:
    assert size_limit_bytes(text) is None


@pytest.mark.parametrize("limit", [1, 1_024, 1_048_576, 999_999_999])
def test_sqs_s_size_limit_is_read(limit: int) -> None:
    assert size_limit_bytes(TOO_LONG.replace("1024", str(limit))) == limit


@pytest.mark.parametrize("text", ["", NO_ID[1:], NO_ID[:-1], f"{NO_ID}\n", f"Value {NO_ID}"])
def test_another_sentence_asks_for_no_deduplication_id(text: str) -> None:
    assert asks_for_deduplication_id(NO_ID)
    assert not asks_for_deduplication_id(text)


QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
ROLE = "arn:aws:sts::123456789012:assumed-role/orders-worker/i-0abc"
ACTION = "sqs:sendmessage"


def refusal(ending: str, user: str = ROLE, resource: str = f" on resource: {QUEUE}") -> str:
    return f"User: {user} is not authorized to perform: {ACTION}{resource}{ending}"


def silent(kind: str) -> str:
    return f" because no {kind} allows the {ACTION} action"


def denies(kind: str, article: str = "a") -> str:
    return f" with an explicit deny in {article} {kind}"


SCP = "arn:aws:organizations::111122223333:policy/o-abc/service_control_policy/p-abc"
IDENTITY = "arn:aws:iam::123456789012:policy/no-orders"


def test_another_code_is_no_denial() -> None:
    assert refused_by("KmsAccessDenied", refusal(silent("identity-based policy"))) is None
    assert refused_by("", "") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Access to the resource https://sqs.us-east-1.amazonaws.com/ is denied.",
        "Access Denied",
        refusal(""),
        refusal(" with an explicit deny"),
        refusal(denies("role trust policy", "the")),
        refusal(silent("role trust policy")),
        refusal(silent("identity-based policy")) + "\n",
        refusal(silent("identity-based policy")).removeprefix("User: "),
        silent("identity-based policy"),
    ],
)
def test_what_names_no_policy_of_ours_says_nothing(text: str) -> None:
    assert refused_by("AccessDenied", text) is RefusedBy.NOT_SAID


@pytest.mark.parametrize(
    ("ending", "policy"),
    [
        (silent("service control policy"), "ABOVE_THE_ACCOUNT"),
        (denies("service control policy") + f": {SCP}", "ABOVE_THE_ACCOUNT"),
        (denies("resource control policy"), "ABOVE_THE_ACCOUNT"),
        (silent("VPC endpoint policy"), "VPC_ENDPOINT_POLICY"),
        (denies("VPC endpoint policy"), "VPC_ENDPOINT_POLICY"),
        (
            denies("VPC endpoint policy transitively through a service control policy"),
            "ABOVE_THE_ACCOUNT",
        ),
        (silent("permissions boundary"), "PERMISSIONS_BOUNDARY"),
        (denies("permissions boundary") + f": {IDENTITY}", "PERMISSIONS_BOUNDARY"),
        (silent("session policy"), "SESSION_POLICY"),
        (denies("sessions policy"), "SESSION_POLICY"),
        (silent("resource-based policy"), "NO_RESOURCE_POLICY"),
        (denies("resource-based policy"), "RESOURCE_POLICY_DENIES"),
        (silent("identity-based policy") + ".", "IDENTITY_POLICY"),
        (denies("identity-based policy", "an") + f": {IDENTITY}", "IDENTITY_POLICY_DENIES"),
    ],
)
@pytest.mark.parametrize("resource", ["", f" on resource: {QUEUE}", f' on resource: "{QUEUE}"'])
def test_aws_s_documented_endings_name_the_policy(ending: str, policy: str, resource: str) -> None:
    assert refused_by("AccessDenied", refusal(ending, resource=resource)) is RefusedBy[policy]


def test_a_call_through_a_vpc_endpoint_says_it_with_its_code() -> None:
    assert refused_by("VpceAccessDenied", "") is RefusedBy.VPC_ENDPOINT_POLICY


FORGED = denies("resource-based policy")


@pytest.mark.parametrize("ending", ["", silent("identity-based policy")])
def test_a_caller_whose_name_holds_the_sentence_does_not_decide(ending: str) -> None:
    """With IAM's own ending behind it, and without one, as callers from elsewhere get it."""
    text = refusal(ending, user=f"arn:aws:sts::123456789012:assumed-role/x/{FORGED}")
    assert refused_by("AccessDenied", text) is RefusedBy.NOT_SAID


def test_a_resource_that_holds_the_sentence_gives_no_verdict_of_its_own() -> None:
    text = refusal(silent("identity-based policy"), resource=f" on resource: {QUEUE}{FORGED}")
    assert refused_by("AccessDenied", text) is RefusedBy.NOT_SAID


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_no_caller_s_name_moves_the_verdict_to_another_policy(name: str) -> None:
    text = refusal(silent("identity-based policy"), user=f"{ROLE}{name}")
    assert refused_by("AccessDenied", text) in {RefusedBy.IDENTITY_POLICY, RefusedBy.NOT_SAID}


@pytest.mark.parametrize(
    ("length", "policy"),
    [(1_023, RefusedBy.RESOURCE_POLICY_DENIES), (1_024, RefusedBy.NOT_SAID)],
)
def test_a_message_that_may_be_cut_says_nothing(length: int, policy: RefusedBy) -> None:
    named = refusal(f"{FORGED}: arn:", user="u" * 512, resource=f" on resource: {'r' * 256}")
    text = named + "p" * (length - len(named))
    assert refused_by("AccessDenied", text) is policy


BEGUN = f"User: x is not authorized to perform: {ACTION}"


@pytest.mark.parametrize(
    ("head", "repeated"),
    [
        ("User: ", "a"),
        ("User: ", "User: a is not authorized to perform: "),
        (BEGUN, "a"),
        (f"{BEGUN} on resource: ", "b"),
        (f"{BEGUN} because no ", "a "),
        (f"{BEGUN} because no ", "a allows the b action"),
        (f"{BEGUN} with an explicit deny in a ", "a "),
        (f"{BEGUN} with an explicit deny in a b", ": arn:c"),
    ],
)
def test_twice_the_text_takes_less_than_three_times_as_long(head: str, repeated: str) -> None:
    """As long as a message that is not cut can be; CPU time, the best of several."""

    def seconds(length: int) -> float:
        text = f"{head}{(repeated * length)[: length - len(head) - 1]}\n"
        started = time.process_time()
        for _ in range(500):
            refused_by("AccessDenied", text)
        return time.process_time() - started

    once, twice = (min(seconds(length) for _ in range(7)) for length in (500, 1_000))
    assert twice < 3 * once + 0.0005


def test_the_caller_is_named_where_the_whole_message_is_iam_s() -> None:
    assert caller_in("AccessDenied", refusal(silent("resource-based policy"))) == ROLE


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("InvalidParameterValue", refusal(silent("resource-based policy"))),
        ("AccessDenied", f"{refusal(silent('resource-based policy'))} and more"),
        ("AccessDenied", f"x {refusal(silent('resource-based policy'))}"),
        ("AccessDenied", refusal(silent("resource-based policy"), user="an arn with spaces")),
        ("AccessDenied", "Access to the resource is denied."),
        ("AccessDenied", refusal(silent("resource-based policy"), user="u" * 1_000)),
    ],
)
def test_and_nowhere_else(code: str, text: str) -> None:
    assert caller_in(code, text) == ""
