"""The writer that creates a DLQ and attaches it to its source queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from mendq.aws.dlqs import LONGEST_DLQ_CHAIN
from mendq.aws.errors import CaseStoreUnavailable, StepFailed
from mendq.cases.receivers import Receivers
from mendq.heal.apply import DlqWriter
from mendq.model.dlq import make_dlq_attributes
from mendq.model.facts import Facts
from mendq.model.plan import Refusal
from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy, arn_of_dlq, parse_queue_arn
from mendq.model.steps import (
    AllowRedriveFrom,
    AttachDlq,
    AttributeStep,
    CreateDlq,
    SetVisibilityTimeout,
)
from tests.account.account import Account
from tests.account.faults import calls_of
from tests.account.receivers import confirm_receiver, open_receivers
from tests.scan.scanner import deny_operation
from tests.waiting import replace_sleep

OTHER_ACCOUNT = "arn:aws:sqs:us-east-1:444455556666:orders-dlq"
FOURTEEN_DAYS_SECONDS = "1209600"


def make_plan(queue_arn: str, dlq_arn: str = "") -> tuple[AttributeStep, ...]:
    """Return the steps that the catalogue plans for a queue without a DLQ."""
    target = dlq_arn or arn_of_dlq(queue_arn)
    return (CreateDlq("", target), AttachDlq("", RedrivePolicy(target, 5).text))


def read_facts(account: Account, queue_arn: str) -> Facts:
    return Facts(queue_arn, account.attributes(queue_arn), {})


def attach_dlq(account: Account, queue_arn: str, steps: Sequence[AttributeStep]) -> Refusal | None:
    return write_dlq(account, read_facts(account, queue_arn), steps)


def write_dlq(account: Account, looked_at: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    receivers = Receivers(account.clients.dynamodb, account.settings.case_table)
    return DlqWriter(receivers, account.now).write(account.clients, looked_at, steps)


def code_of(refusal: Refusal | None) -> str:
    return refusal.code if refusal else ""


def list_queue_names(account: Account) -> set[str]:
    """Return the names of all queues."""
    urls = account.clients.sqs.list_queues().get("QueueUrls", [])
    return {url.rpartition("/")[2] for url in urls}


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_attach_dlq_creates_a_dlq_with_the_sources_type_and_kms_key_and_attaches_it(
    account: Account, name: str
) -> None:
    queue = account.queue(name, KmsMasterKeyId="alias/orders")
    assert attach_dlq(account, queue, make_plan(queue)) is None
    made = arn_of_dlq(queue)
    attributes = account.attributes(made)
    assert attributes["KmsMasterKeyId"] == "alias/orders"
    assert attributes.get("FifoQueue") == ("true" if name.endswith(".fifo") else None)
    assert AttachDlq.value_in(account.attributes(queue)) == RedrivePolicy(made, 5).text


def test_new_dlq_keeps_messages_for_fourteen_days_and_allows_only_its_source(
    account: Account,
) -> None:
    queue = account.queue("orders")
    assert attach_dlq(account, queue, make_plan(queue)) is None
    attributes = account.attributes(arn_of_dlq(queue))
    assert attributes["MessageRetentionPeriod"] == FOURTEEN_DAYS_SECONDS
    assert attributes["RedriveAllowPolicy"] == RedriveAllowPolicy("byQueue", (queue,)).text


def test_new_dlq_has_none_of_the_sources_tags(account: Account) -> None:
    """Otherwise the tag `mendq` would let Mendq change the DLQ too."""
    queue = account.queue("orders", tag="heal")
    account.tag(queue, team="billing")
    assert attach_dlq(account, queue, make_plan(queue)) is None
    made = account.url(arn_of_dlq(queue))
    assert not account.clients.sqs.list_queue_tags(QueueUrl=made).get("Tags")


def test_attach_dlq_retried_after_a_failed_attach_uses_the_dlq_already_created(
    account: Account,
) -> None:
    queue = account.queue("orders")
    away = ConnectTimeoutError(endpoint_url="sqs")
    let_through = deny_operation(
        account.clients.sqs_for_writing, "SetQueueAttributes", unreachable=away
    )
    with pytest.raises(StepFailed):
        attach_dlq(account, queue, make_plan(queue))
    assert list_queue_names(account) == {"orders", "orders-dlq"}
    assert "RedrivePolicy" not in account.attributes(queue)
    let_through()
    assert attach_dlq(account, queue, make_plan(queue)) is None
    assert AttachDlq.value_in(account.attributes(queue))


@pytest.mark.parametrize("is_reached", [True, False])
def test_source_queue_is_unchanged_if_create_queue_of_its_dlq_fails_and_gets_one_on_retry(
    account: Account, *, is_reached: bool
) -> None:
    """A source whose redrive policy names a missing queue could not move its failing messages."""
    queue = account.queue("orders")
    before = account.attributes(queue)
    calls = calls_of(account)
    away = ConnectTimeoutError(endpoint_url="sqs")
    busy: Any = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
    error = ClientError(busy, "CreateQueue") if is_reached else away
    let_through = deny_operation(account.clients.sqs_for_writing, "CreateQueue", unreachable=error)
    with pytest.raises(StepFailed, match="failed: "):
        attach_dlq(account, queue, make_plan(queue))
    assert list_queue_names(account) == {"orders"}
    assert "SetQueueAttributes" not in calls
    assert account.attributes(queue) == before
    let_through()
    assert attach_dlq(account, queue, make_plan(queue)) is None, "it may be tried again"


def test_attach_dlq_creates_nothing_if_a_person_attached_a_dlq_meanwhile(
    account: Account,
) -> None:
    queue = account.queue("orders")
    theirs = account.queue("theirs")
    looked_at = read_facts(account, queue)
    policy = RedrivePolicy(theirs, 9).text
    account.set(queue, RedrivePolicy=policy)
    assert code_of(write_dlq(account, looked_at, make_plan(queue))) == "changed_meanwhile"
    assert AttachDlq.value_in(account.attributes(queue)) == policy
    assert list_queue_names(account) == {"orders", "theirs"}


@pytest.mark.parametrize(
    "theirs",
    [
        {"MessageRetentionPeriod": "345600"},
        {"RedriveAllowPolicy": '{"redrivePermission":"allowAll"}'},
        {"KmsMasterKeyId": "alias/theirs"},
    ],
)
def test_attach_dlq_refuses_a_confirmed_queue_with_other_attributes_and_changes_nothing(
    account: Account, theirs: dict[str, str]
) -> None:
    queue = account.queue("orders")
    existing_queue = account.queue("orders-dlq", **theirs)
    confirm_receiver(account, existing_queue)
    before = account.attributes(existing_queue)
    assert code_of(attach_dlq(account, queue, make_plan(queue))) == "name_taken"
    assert "RedrivePolicy" not in account.attributes(queue)
    assert account.attributes(existing_queue) == before


def test_attach_dlq_refuses_the_dlq_that_it_made_if_it_has_a_policy_by_now_even_if_confirmed(
    account: Account,
) -> None:
    """Messages would leak if others may read the queue."""
    queue = account.queue("orders")
    assert attach_dlq(account, queue, make_plan(queue)) is None
    account.set(queue, RedrivePolicy="")
    anybody = '{"Statement":[{"Effect":"Allow","Principal":"*"}]}'
    account.set(arn_of_dlq(queue), Policy=anybody)
    assert code_of(attach_dlq(account, queue, make_plan(queue))) == "receiver_unconfirmed"
    assert not account.attributes(queue).get("RedrivePolicy")
    confirm_receiver(account, arn_of_dlq(queue))
    assert code_of(attach_dlq(account, queue, make_plan(queue))) == "name_taken"
    assert not account.attributes(queue).get("RedrivePolicy")


def make_like_mendq(account: Account, queue: str) -> str:
    """Create a queue with the name and the attributes of the DLQ that Mendq would make."""
    attributes = make_dlq_attributes(read_facts(account, queue), arn_of_dlq(queue))
    return account.queue(parse_queue_arn(arn_of_dlq(queue)).name, tag=None, **attributes)


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_attach_dlq_attaches_a_queue_that_another_principal_made_only_once_it_is_confirmed(
    account: Account, name: str
) -> None:
    queue = account.queue(name)
    squatted = make_like_mendq(account, queue)
    refusal = attach_dlq(account, queue, make_plan(queue))
    assert code_of(refusal) == "receiver_unconfirmed"
    assert refusal is not None
    assert refusal.next_command == f"mendq confirm {squatted.rpartition(':')[2]} --region us-east-1"
    assert not account.attributes(queue).get("RedrivePolicy")
    confirm_receiver(account, squatted)
    assert attach_dlq(account, queue, make_plan(queue)) is None
    assert account.attributes(queue)["RedrivePolicy"]


def test_attach_dlq_refuses_a_confirmed_queue_that_was_deleted_and_created_again(
    account: Account,
) -> None:
    queue = account.queue("orders")
    squatted = make_like_mendq(account, queue)
    confirm_receiver(account, squatted)
    receiver = open_receivers(account).load(squatted)
    assert receiver is not None
    assert receiver.created_at is not None
    created_earlier = receiver.created_at - timedelta(minutes=2)
    open_receivers(account).put(replace(receiver, created_at=created_earlier))
    refusal = attach_dlq(account, queue, make_plan(queue))
    assert code_of(refusal) == "receiver_unconfirmed"
    assert refusal is not None
    assert "it was deleted and created again since" in refusal.reason
    assert not account.attributes(queue).get("RedrivePolicy")


@pytest.mark.parametrize("theirs", ["policy", "tag"])
def test_attach_dlq_refuses_a_queue_with_a_policy_or_tag_that_another_principal_made_meanwhile(
    account: Account, theirs: str
) -> None:
    """CreateQueue succeeds for it: SQS compares neither policies nor tags."""
    queue = account.queue("orders")
    events = account.clients.sqs_for_writing.meta.events

    def make_first(**_: Any) -> None:
        events.unregister("before-call.sqs.CreateQueue", make_first)
        squatted = make_like_mendq(account, queue)
        if theirs == "tag":
            account.tag(squatted, team="others")
        else:
            account.set(squatted, Policy='{"Statement":[{"Effect":"Allow","Principal":"*"}]}')

    events.register("before-call.sqs.CreateQueue", make_first)
    assert code_of(attach_dlq(account, queue, make_plan(queue))) == "receiver_unconfirmed"
    assert not account.attributes(queue).get("RedrivePolicy")


def test_attach_dlq_makes_no_queue_if_the_case_store_does_not_answer(account: Account) -> None:
    queue = account.queue("orders")
    away = ConnectTimeoutError(endpoint_url="dynamodb")
    deny_operation(account.clients.dynamodb, "UpdateItem", unreachable=away)
    with pytest.raises(CaseStoreUnavailable):
        attach_dlq(account, queue, make_plan(queue))
    assert list_queue_names(account) == {"orders"}


def test_attach_dlq_is_retried_later_if_a_queue_of_the_dlqs_name_was_just_deleted(
    account: Account,
) -> None:
    queue = account.queue("orders")
    recently: Any = {"Error": {"Code": "AWS.SimpleQueueService.QueueDeletedRecently"}}
    error = ClientError(recently, "CreateQueue")
    deny_operation(account.clients.sqs_for_writing, "CreateQueue", unreachable=error)
    refusal = attach_dlq(account, queue, make_plan(queue))
    assert refusal is not None
    assert (refusal.code, refusal.is_retried, refusal.case_state) == (
        "deleted_recently",
        True,
        None,
    )
    assert "RedrivePolicy" not in account.attributes(queue)


class HiddenQueue:
    """Let SQS answer `times` reads of a new queue as if the queue did not exist."""

    def __init__(self, account: Account, queue_arn: str, times: int) -> None:
        self.url = account.url(queue_arn)
        self.left = times
        self.is_made = False
        account.clients.sqs.meta.events.register_first(
            "before-call.sqs.GetQueueAttributes", self._answer
        )
        account.clients.sqs_for_writing.meta.events.register(
            "after-call.sqs.CreateQueue", self._note_made
        )

    def _note_made(self, **_: Any) -> None:
        self.is_made = True

    def _answer(self, params: dict[str, Any], **_: Any) -> None:
        if self.is_made and self.left and json.loads(params["body"])["QueueUrl"] == self.url:
            self.left -= 1
            none: Any = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue"}}
            raise ClientError(none, "GetQueueAttributes")


@pytest.fixture
def waited_seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each sleep. No test really sleeps."""
    return replace_sleep(monkeypatch)


@pytest.mark.parametrize("reads_too_early", [0, 1, 2])
def test_attach_dlq_waits_up_to_two_seconds_until_the_new_dlq_can_be_read(
    account: Account, waited_seconds: list[float], reads_too_early: int
) -> None:
    """SQS: "You must wait at least one second after the queue is created"."""
    queue = account.queue("orders")
    hidden = HiddenQueue(account, arn_of_dlq(queue), reads_too_early)
    assert attach_dlq(account, queue, make_plan(queue)) is None
    assert waited_seconds == [1] * reads_too_early
    assert hidden.left == 0
    assert AttachDlq.value_in(account.attributes(queue)) == RedrivePolicy(arn_of_dlq(queue), 5).text


def test_attach_dlq_gives_up_after_two_seconds_on_an_unreadable_dlq_and_attaches_it_on_retry(
    account: Account, waited_seconds: list[float]
) -> None:
    """Nobody knows yet if that queue is fit for the source's messages."""
    queue = account.queue("orders")
    hidden = HiddenQueue(account, arn_of_dlq(queue), 100)
    refusal = attach_dlq(account, queue, make_plan(queue))
    assert refusal is not None
    assert (refusal.code, refusal.is_retried, refusal.case_state) == ("not_usable_yet", True, None)
    assert f"{arn_of_dlq(queue)} was made and cannot be used yet" in refusal.reason
    assert waited_seconds == [1, 1], "it gives up without waiting for nothing"
    assert "RedrivePolicy" not in account.attributes(queue)
    hidden.left = 0
    assert attach_dlq(account, queue, make_plan(queue)) is None, "the queue that was made is taken"
    assert list_queue_names(account) == {"orders", "orders-dlq"}
    assert AttachDlq.value_in(account.attributes(queue))


def _make_queue_with_deleted_dlq(account: Account, name: str = "orders") -> tuple[str, str]:
    """Make a queue and delete its DLQ. Return both ARNs."""
    ending = ".fifo" if name.endswith(".fifo") else ""
    queue = account.queue(name)
    named = account.queue(f"any-name{ending}")
    account.set(queue, RedrivePolicy=RedrivePolicy(named, 3).text)
    account.clients.sqs.delete_queue(QueueUrl=account.url(named))
    return queue, named


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_deleted_dlq_is_recreated_under_its_name_without_changing_the_source(
    account: Account, name: str
) -> None:
    queue, named = _make_queue_with_deleted_dlq(account, name)
    before = account.attributes(queue)
    account.later(minutes=1)
    assert attach_dlq(account, queue, (CreateDlq("", named),)) is None
    assert account.attributes(named)["QueueArn"] == named
    assert account.attributes(queue) == before, "the source is not written"


def test_recreated_dlq_keeps_messages_for_fourteen_days_and_allows_any_source(
    account: Account,
) -> None:
    queue, named = _make_queue_with_deleted_dlq(account)
    account.later(minutes=1)
    assert attach_dlq(account, queue, (CreateDlq("", named),)) is None
    assert account.attributes(named)["MessageRetentionPeriod"] == FOURTEEN_DAYS_SECONDS
    assert "RedriveAllowPolicy" not in account.attributes(named), "others may name it too"


def test_create_dlq_without_an_attach_step_is_refused_if_the_source_names_no_dlq(
    account: Account,
) -> None:
    queue = account.queue("orders")
    assert code_of(attach_dlq(account, queue, make_plan(queue)[:1])) == "dlq_unfit"
    assert list_queue_names(account) == {"orders"}


def test_create_dlq_refuses_a_name_that_the_sources_redrive_policy_does_not_name(
    account: Account,
) -> None:
    queue, _ = _make_queue_with_deleted_dlq(account)
    another = CreateDlq("", arn_of_dlq(queue))
    assert code_of(attach_dlq(account, queue, (another,))) == "dlq_unfit"
    assert list_queue_names(account) == {"orders"}


@pytest.mark.parametrize("target", ["orders-dlq.fifo", "orders", OTHER_ACCOUNT])
def test_attach_dlq_refuses_a_fifo_mismatch_the_queue_itself_and_another_accounts_queue(
    account: Account, target: str
) -> None:
    queue = account.queue("orders")
    arn = target if target.startswith("arn:") else f"{queue.rpartition(':')[0]}:{target}"
    for steps in (make_plan(queue, arn), make_plan(queue, arn)[1:]):
        assert code_of(attach_dlq(account, queue, steps)) == "dlq_unfit"
    assert list_queue_names(account) == {"orders"}
    assert "RedrivePolicy" not in account.attributes(queue)


def make_attach_step(account: Account, dlqs_before: int, last_queue: str) -> AttachDlq:
    """Make a chain of DLQs that ends at `last_queue`, and the step that attaches the chain."""
    behind = last_queue
    for hop in range(dlqs_before):
        behind = account.queue(f"dlq-{hop}", RedrivePolicy=RedrivePolicy(behind, 5).text)
    return AttachDlq("", RedrivePolicy(behind, 5).text)


@pytest.mark.parametrize("dlqs_between", [1, 3])
def test_attach_dlq_refuses_a_chain_of_dlqs_that_leads_back_to_the_source(
    account: Account, dlqs_between: int
) -> None:
    queue = account.queue("orders")
    step = make_attach_step(account, dlqs_between, queue)
    assert code_of(attach_dlq(account, queue, (step,))) == "dlq_unfit"
    assert "RedrivePolicy" not in account.attributes(queue)


def test_attach_dlq_refuses_a_chain_with_more_dlqs_than_the_longest_allowed(
    account: Account,
) -> None:
    queue = account.queue("orders")
    step = make_attach_step(account, LONGEST_DLQ_CHAIN, account.queue("last"))
    assert code_of(attach_dlq(account, queue, (step,))) == "dlq_unfit"
    assert "RedrivePolicy" not in account.attributes(queue)


def test_attach_dlq_attaches_a_chain_of_the_longest_allowed_length(account: Account) -> None:
    queue = account.queue("orders")
    step = make_attach_step(account, LONGEST_DLQ_CHAIN - 1, account.queue("last"))
    assert attach_dlq(account, queue, (step,)) is None
    assert AttachDlq.value_in(account.attributes(queue)) == step.after


def _make_dlq_and_allow_step(account: Account, *sources: str) -> tuple[str, AllowRedriveFrom]:
    """Make a DLQ that allows only another source, and the step that allows `sources` too."""
    others = RedriveAllowPolicy("byQueue", ("arn:aws:sqs:us-east-1:123456789012:others",))
    messages = account.queue("messages", RedriveAllowPolicy=others.text)
    wanted = others
    for source in sources:
        wanted = wanted.with_sources(source)
    return messages, AllowRedriveFrom(others.text, wanted.text)


def test_allow_redrive_step_adds_a_source_to_the_redrive_allow_policy(account: Account) -> None:
    messages, _ = _make_dlq_and_allow_step(account)
    queue = account.queue("orders", RedrivePolicy=RedrivePolicy(messages, 5).text)
    account.clients.sqs.delete_queue(QueueUrl=account.url(messages))
    messages, step = _make_dlq_and_allow_step(account, queue)
    assert attach_dlq(account, messages, (step,)) is None
    assert account.attributes(messages)["RedriveAllowPolicy"] == step.after


@pytest.mark.parametrize(
    ("name", "because"),
    [
        ("orders", "does not name it as its DLQ"),
        ("orders.fifo", "cannot be a source: it names a queue of the other type"),
    ],
)
def test_allow_redrive_step_refuses_a_queue_that_is_no_source_of_the_dlq(
    account: Account, name: str, because: str
) -> None:
    messages, step = _make_dlq_and_allow_step(account, account.queue(name))
    refusal = attach_dlq(account, messages, (step,))
    assert code_of(refusal) == "dlq_unfit"
    assert refusal is not None
    assert because in refusal.reason
    assert account.attributes(messages)["RedriveAllowPolicy"] == step.before


def test_writer_of_dlqs_refuses_a_visibility_timeout_step_and_writes_nothing(
    account: Account,
) -> None:
    queue = account.queue("orders", VisibilityTimeout="30")
    assert code_of(attach_dlq(account, queue, (SetVisibilityTimeout(30, 45),))) == "dlq_unfit"
    assert account.visibility(queue) == 30
