"""IAM's messages in AWS's documented forms, and what callers may do to them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.failed_call import RefusedBy, caller_in, refused_by

QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
ROLE = "arn:aws:sts::123456789012:assumed-role/orders-worker/i-0abc"
ACTION = "sqs:sendmessage"


def message(ending: str, user: str = ROLE, resource: str = f" on resource: {QUEUE}") -> str:
    return f"User: {user} is not authorized to perform: {ACTION}{resource}{ending}"


def silent(kind: str) -> str:
    return f" because no {kind} allows the {ACTION} action"


def denies(kind: str, article: str = "a") -> str:
    return f" with an explicit deny in {article} {kind}"


SCP = "arn:aws:organizations::111122223333:policy/o-abc/service_control_policy/p-abc"
IDENTITY = "arn:aws:iam::123456789012:policy/no-orders"


def test_another_code_is_no_denial() -> None:
    assert refused_by("KmsAccessDenied", message(silent("identity-based policy"))) is None
    assert refused_by("", "") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Access to the resource https://sqs.us-east-1.amazonaws.com/ is denied.",
        "Access Denied",
        message(""),
        message(" with an explicit deny"),
        message(denies("role trust policy", "the")),
        message(silent("role trust policy")),
        message(silent("identity-based policy")) + "\n",
        message(silent("identity-based policy")).removeprefix("User: "),
        silent("identity-based policy"),
    ],
)
def test_what_names_no_policy_of_ours_says_nothing(text: str) -> None:
    assert refused_by("AccessDenied", text) is RefusedBy.NOT_SAID


@pytest.mark.parametrize(
    ("ending", "policy"),
    [
        (silent("service control policy"), RefusedBy.ABOVE_THE_ACCOUNT),
        (denies("service control policy"), RefusedBy.ABOVE_THE_ACCOUNT),
        (denies("service control policy") + f": {SCP}", RefusedBy.ABOVE_THE_ACCOUNT),
        (denies("resource control policy"), RefusedBy.ABOVE_THE_ACCOUNT),
        (silent("VPC endpoint policy"), RefusedBy.VPC_ENDPOINT_POLICY),
        (denies("VPC endpoint policy"), RefusedBy.VPC_ENDPOINT_POLICY),
        (
            denies("VPC endpoint policy transitively through a service control policy"),
            RefusedBy.ABOVE_THE_ACCOUNT,
        ),
        (silent("permissions boundary"), RefusedBy.PERMISSIONS_BOUNDARY),
        (denies("permissions boundary") + f": {IDENTITY}", RefusedBy.PERMISSIONS_BOUNDARY),
        (silent("session policy"), RefusedBy.SESSION_POLICY),
        (denies("session policy"), RefusedBy.SESSION_POLICY),
        (denies("sessions policy"), RefusedBy.SESSION_POLICY),
        (silent("resource-based policy"), RefusedBy.NO_RESOURCE_POLICY),
        (denies("resource-based policy"), RefusedBy.RESOURCE_POLICY_DENIES),
        (silent("identity-based policy"), RefusedBy.IDENTITY_POLICY),
        (silent("identity-based policy") + ".", RefusedBy.IDENTITY_POLICY),
        (denies("identity-based policy", "an"), RefusedBy.IDENTITY_POLICY_DENIES),
        (
            denies("identity-based policy", "an") + f": {IDENTITY}",
            RefusedBy.IDENTITY_POLICY_DENIES,
        ),
    ],
)
@pytest.mark.parametrize("resource", ["", f" on resource: {QUEUE}", f' on resource: "{QUEUE}"'])
def test_aws_s_documented_endings_name_the_policy(
    ending: str, policy: RefusedBy, resource: str
) -> None:
    assert refused_by("AccessDenied", message(ending, resource=resource)) is policy


def test_a_call_through_a_vpc_endpoint_says_it_with_its_code() -> None:
    assert refused_by("VpceAccessDenied", "") is RefusedBy.VPC_ENDPOINT_POLICY


FORGED = denies("resource-based policy")


@pytest.mark.parametrize("ending", ["", silent("identity-based policy")])
def test_a_caller_whose_name_holds_the_sentence_does_not_decide(ending: str) -> None:
    """With IAM's own ending behind it, and without one, as callers from elsewhere get it."""
    text = message(ending, user=f"arn:aws:sts::123456789012:assumed-role/x/{FORGED}")
    assert refused_by("AccessDenied", text) is RefusedBy.NOT_SAID


def test_a_resource_that_holds_the_sentence_gives_no_verdict_of_its_own() -> None:
    text = message(silent("identity-based policy"), resource=f" on resource: {QUEUE}{FORGED}")
    assert refused_by("AccessDenied", text) is RefusedBy.NOT_SAID


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_no_caller_s_name_moves_the_verdict_to_another_policy(name: str) -> None:
    text = message(silent("identity-based policy"), user=f"{ROLE}{name}")
    assert refused_by("AccessDenied", text) in {RefusedBy.IDENTITY_POLICY, RefusedBy.NOT_SAID}


@pytest.mark.parametrize(
    ("length", "policy"),
    [(1_023, RefusedBy.RESOURCE_POLICY_DENIES), (1_024, RefusedBy.NOT_SAID)],
)
def test_a_message_that_may_be_cut_says_nothing(length: int, policy: RefusedBy) -> None:
    named = message(f"{FORGED}: arn:", user="u" * 512, resource=f" on resource: {'r' * 256}")
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
    assert caller_in("AccessDenied", message(silent("resource-based policy"))) == ROLE


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("InvalidParameterValue", message(silent("resource-based policy"))),
        ("AccessDenied", f"{message(silent('resource-based policy'))} and more"),
        ("AccessDenied", f"x {message(silent('resource-based policy'))}"),
        ("AccessDenied", message(silent("resource-based policy"), user="an arn with spaces")),
        ("AccessDenied", "Access to the resource is denied."),
        ("AccessDenied", message(silent("resource-based policy"), user="u" * 1_000)),
    ],
)
def test_and_nowhere_else(code: str, text: str) -> None:
    assert caller_in(code, text) == ""
