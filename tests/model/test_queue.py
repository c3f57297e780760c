"""Names, ARNs and URLs of queues, their defaults, and the DLQs that go with them."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mendq.catalogue.examples import QUEUE_ARN, STANDARD_ARN, queue
from mendq.model.dlq import attributes_of_dlq
from mendq.model.queue import (
    DEFAULTS,
    Redrive,
    RedriveAllow,
    allow_of,
    arn_of,
    arn_of_dlq,
    arn_of_url,
    name_of_dlq,
    not_on_fifo,
    number_in,
    on_fifo,
    public_url,
    redrive_of,
    why_unfit_as_dlq,
)
from tests.heal.conftest import moto_account

DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = st.from_regex(r"\A[A-Za-z0-9_-]{1,75}(\.fifo)?\Z").filter(lambda name: len(name) <= 80)


@given(NAMES)
def test_the_name_is_one_of_the_same_type(name: str) -> None:
    source = f"arn:aws:sqs:us-east-1:123456789012:{name}"
    assert arn_of(arn_of_dlq(source)) == arn_of_dlq(source)
    assert why_unfit_as_dlq(source, arn_of_dlq(source)) is None


@given(NAMES, NAMES)
def test_no_two_queues_get_the_same(one: str, other: str) -> None:
    assume(one != other)
    assert name_of_dlq(one) != name_of_dlq(other)


def test_a_name_that_fits_is_retained_whole_and_long_ones_stay_apart() -> None:
    fitting = ("orders", "orders.fifo", "o" * 76)
    assert [*map(name_of_dlq, fitting)] == ["orders-dlq", "orders-dlq.fifo", "o" * 76 + "-dlq"]
    one, other = name_of_dlq("o" * 79 + "1"), name_of_dlq("o" * 79 + "2")
    assert one != other
    assert {len(each) for each in (one, other, name_of_dlq("o" * 75 + ".fifo"))} == {80}


@pytest.mark.parametrize(
    ("dlq_arn", "because"),
    [
        (STANDARD_ARN, "itself"),
        (DEAD.replace("us-east-1", "us-east-2"), "account or region"),
        (DEAD.replace("123456789012", "210987654321"), "account or region"),
        (f"{DEAD}.fifo", "type"),
        ("arn:aws:sns:us-east-1:123456789012:orders", "no queue"),
        ("", "no queue"),
    ],
)
def test_two_queues_that_do_not_fit_say_why(dlq_arn: str, because: str) -> None:
    assert because in (why_unfit_as_dlq(STANDARD_ARN, dlq_arn) or "")


def test_a_new_queue_is_as_its_source() -> None:
    source = queue(KmsMasterKeyId="alias/orders", ContentBasedDeduplication="true")
    assert attributes_of_dlq(source, arn_of_dlq(QUEUE_ARN)) == {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "true",
        "KmsMasterKeyId": "alias/orders",
        "MessageRetentionPeriod": "1209600",
        "RedriveAllowPolicy": RedriveAllow("byQueue", (QUEUE_ARN,)).text,
    }


def test_one_made_anew_stays_open_to_others_and_is_encrypted_without_a_key_of_ours() -> None:
    source = queue(queue_arn=STANDARD_ARN, RedrivePolicy=Redrive(DEAD, 5).text)
    encrypted = {"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true"}
    assert attributes_of_dlq(source, DEAD) == encrypted


@given(st.text() | ANY_JSON.map(json.dumps))
def test_no_text_makes_a_reader_raise(text: str) -> None:
    redrive, allowed = redrive_of(text), allow_of(text)
    assert redrive is None or redrive_of(redrive.text) == redrive
    assert allowed is None or allow_of(allowed.text) == allowed


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 100_000, "null", "", '{"maxReceiveCount":5}'),
        *(
            f'{{"deadLetterTargetArn":"a","maxReceiveCount":{count}}}'
            for count in ("1e999", "true")
        ),
        '{"deadLetterTargetArn":["a"],"maxReceiveCount":5}',
    ],
)
def test_what_is_no_redrive_policy_says_nothing(text: str) -> None:
    assert redrive_of(text) is None


@pytest.mark.parametrize("count", ['"5"', "5"])
def test_a_count_may_be_a_number_or_its_text(count: str) -> None:
    text = f'{{"maxReceiveCount": {count}, "deadLetterTargetArn": "a"}}'
    assert redrive_of(text) == Redrive("a", 5)


@pytest.mark.parametrize(
    ("text", "allows"),
    [
        ("", True),
        ('{"redrivePermission":"allowAll"}', True),
        ('{"redrivePermission":"byQueue"}', False),
        (RedriveAllow("byQueue", (STANDARD_ARN,)).text, True),
        (RedriveAllow("byQueue", (QUEUE_ARN,)).text, False),
        (RedriveAllow("denyAll", (STANDARD_ARN,)).text, False),
        *(("{", None), ("[]", None), ('{"redrivePermission":1}', None)),
        ('{"redrivePermission":"byQueue","sourceQueueArns":[1]}', None),
        ('{"redrivePermission":"byQueue","sourceQueueArns":"a"}', None),
    ],
)
def test_who_may_name_it_and_what_cannot_be_read_is_not_guessed(
    text: str, allows: bool | None
) -> None:
    allowed = allow_of(text)
    assert (allowed and allowed.allows(STANDARD_ARN)) is allows


@pytest.mark.parametrize("arn", [None, "", STANDARD_ARN, f"{STANDARD_ARN}-fifo"])
def test_a_fifo_queue_says_so_in_its_name_and_nothing_else_is_one(arn: str | None) -> None:
    assert on_fifo(QUEUE_ARN)
    assert not_on_fifo(arn)


def test_defaults_are_what_sqs_says_of_a_new_queue() -> None:
    with moto_account() as account:
        made = account.attributes(account.queue("plain", tag=None))
    announced = {name: int(made[name]) for name in DEFAULTS if name in made}
    assert announced == {name: DEFAULTS[name] for name in announced}
    assert len(announced) >= 5
    assert number_in({}, "VisibilityTimeout") == 30
    assert number_in({"VisibilityTimeout": "0"}, "VisibilityTimeout") == 0


@pytest.mark.parametrize(
    ("partition", "region", "host"),
    [
        ("aws", "eu-west-1", "amazonaws.com"),
        ("aws-cn", "cn-north-1", "amazonaws.com.cn"),
    ],
)
def test_a_public_url_leads_back_to_its_queue(partition: str, region: str, host: str) -> None:
    arn = f"arn:{partition}:sqs:{region}:123456789012:orders"
    assert public_url(arn) == f"https://sqs.{region}.{host}/123456789012/orders"
    assert arn_of_url(public_url(arn), region) == arn
    with pytest.raises(ValueError, match="not the ARN"):
        public_url(f"{arn};ls")
