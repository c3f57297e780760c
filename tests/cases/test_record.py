"""Who is told what about a case, and how often."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.stub import Stubber

from mendq.follow_up.follow_up import Followed, follow_up
from mendq.model.case import NOTIFICATIONS_PER_HOUR
from mendq.model.limits import Mode
from tests.heal.conftest import ACCOUNT, REGION, WORKER, Account, settings
from tests.heal.operators import OWNERS, context_of

PROPOSING = {"visibility_timeout_too_short": Mode.PROPOSE}


def _fail(account: Account, queue: str, word: str = "") -> dict[str, str]:
    return account.late_deletes(queue, f"{word}1", f"{word}2", f"{word}3")


@pytest.fixture
def proposing(account: Account) -> Account:
    account.settings = settings(autonomy=PROPOSING)
    return account


def followed(account: Account) -> Followed:
    """One run of follow_up, which calls nobody."""
    return follow_up(context_of(account), OWNERS, lambda: 60)


def _page_item(account: Account, queue: str) -> dict[str, Any]:
    return account.case_store_items()[queue, "page#visibility_timeout_too_short"]


@pytest.mark.parametrize("tag", ["observe", "heal"])
def test_what_is_only_observed_or_was_fixed_pages_nobody(account: Account, tag: str) -> None:
    account.heal(_fail(account, account.queue(tag=tag, VisibilityTimeout="30")))
    assert len(account.transitions()) == 1
    assert account.transitions()[0]["notified"] is False
    assert account.pages("info") == account.pages("urgent") == []


@pytest.mark.parametrize("tag", ["observe", "propose"])
def test_in_observe_mode_nobody_is_told_of_a_refusal(account: Account, tag: str) -> None:
    account.heal(_fail(account, account.queue(tag=tag, VisibilityTimeout="601")))
    assert account.transitions()[0]["to"] == "refused"
    assert len(account.pages("info")) == (tag == "propose")


def test_a_freeze_pages_nobody(account: Account) -> None:
    freeze = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "Black Friday"}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=freeze)
    account.heal(_fail(account, account.queue(VisibilityTimeout="30")))
    assert account.transitions()[0]["to"] == "refused"
    assert account.pages("info") == []


def test_a_proposal_is_reported_once_with_its_change(proposing: Account) -> None:
    queue = proposing.queue(VisibilityTimeout="30")
    bodies = _fail(proposing, queue)
    proposing.heal(bodies)
    proposing.heal(bodies)
    proposing.later(minutes=40)
    proposing.heal(_fail(proposing, queue, "later"))
    ((subject, body),) = proposing.pages("info")
    (case,) = proposing.transitions()
    assert case["notified"] is True
    assert "orders.fifo" in subject
    assert case["case_id"] in body
    assert "VisibilityTimeout=45" in body
    assert "request-1" in body
    assert _page_item(proposing, queue).keys() == {"pk", "sk", "announced", "at", "urgent"}


def test_the_same_refusal_is_reported_once_a_day_however_often_it_is_written_down(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="601")
    for hour in range(24):
        account.heal(_fail(account, queue, str(hour)))
        account.later(hours=1)
    assert [each["notified"] for each in account.transitions()] == [True, *[False] * 23]
    assert len(account.pages("info")) == 1
    account.heal(_fail(account, queue, "another day"))
    assert len(account.pages("info")) == 2


def test_a_page_that_sns_does_not_take_is_sent_when_the_events_come_again(
    proposing: Account,
) -> None:
    queue = proposing.queue(VisibilityTimeout="30")
    bodies = _fail(proposing, queue)
    with Stubber(proposing.clients.sns) as sns:
        sns.add_client_error("publish", "InternalError")
        healed = proposing.heal(bodies)
    assert {type(each).__name__ for each in healed.errors.values()} == {"NotificationNotSent"}
    assert proposing.transitions()[0]["to"] == "proposed"
    assert "VisibilityTimeout" in _page_item(proposing, queue)["body"]["S"]
    proposing.later(minutes=6)
    assert proposing.heal(bodies).errors == {}
    assert proposing.heal(bodies).errors == {}
    assert len(proposing.pages("info")) == 1
    assert "body" not in _page_item(proposing, queue)


def test_a_page_on_its_way_is_not_sent_by_another_run(proposing: Account) -> None:
    queue = proposing.queue(VisibilityTimeout="30")
    with Stubber(proposing.clients.sns) as sns:
        sns.add_client_error("publish", "InternalError")
        proposing.heal(_fail(proposing, queue))
    proposing.later(seconds=30)
    proposing.heal(_fail(proposing, queue))
    assert proposing.pages("info") == []


def test_beyond_the_pages_of_an_hour_people_are_told_so_and_the_rest_comes_later(
    account: Account,
) -> None:
    names = [f"q{n}.fifo" for n in range(NOTIFICATIONS_PER_HOUR + 3)]
    account.settings = settings(queues=("idle-*",), autonomy=PROPOSING)
    for n in range(600):
        account.clients.sqs.create_queue(QueueName=f"idle-{n}")
    for name in names:
        account.heal(_fail(account, account.queue(name, VisibilityTimeout="30"), name))
    assert [each["to"] for each in account.transitions()] == ["proposed"] * len(names)
    assert len(account.pages("info")) == NOTIFICATIONS_PER_HOUR
    ((_, announced),) = account.pages("urgent")
    assert str(NOTIFICATIONS_PER_HOUR) in announced
    account.later(hours=1)
    for _ in range(3):
        followed(account)
    assert len(account.pages("info")) == len(names)
    assert len(account.pages("urgent")) == 1


def test_news_that_was_held_back_for_a_day_is_none_any_more(proposing: Account) -> None:
    """Each try to send it is noted; the news is as old as it was."""
    queue = proposing.queue(VisibilityTimeout="30")
    with Stubber(proposing.clients.sns) as sns:
        sns.add_client_error("publish", "InternalError")
        proposing.heal(_fail(proposing, queue))
    record = context_of(proposing).case_store.look(queue, "visibility_timeout_too_short", ()).page
    for _ in range(3):
        proposing.later(hours=7)
        notifier = context_of(proposing).notifier
        assert record is not None
        assert record.was_left_unsent(proposing.now)
        assert notifier.pages.take(queue, "visibility_timeout_too_short", record, proposing.now)
        record = (
            context_of(proposing).case_store.look(queue, "visibility_timeout_too_short", ()).page
        )
    proposing.later(hours=7)
    assert record is not None
    assert not record.was_left_unsent(proposing.now)
    assert context_of(proposing).notifier.send_left_unsent(
        queue, "visibility_timeout_too_short", record, None
    )
    assert proposing.pages("info") == []


def test_proposals_take_no_urgent_page_away(account: Account) -> None:
    account.settings = settings(queues=("idle-*",), autonomy=PROPOSING)
    for n in range(600):
        account.clients.sqs.create_queue(QueueName=f"idle-{n}")
    for n in range(NOTIFICATIONS_PER_HOUR + 1):
        account.heal(_fail(account, account.queue(f"q{n}.fifo", VisibilityTimeout="30"), str(n)))
    down = account.queue("down", KmsMasterKeyId="alias/orders")
    account.heal(_denied(account, down, "1", "2", "3"))
    assert [subject for subject, _ in account.pages("urgent") if "down" in subject]


def test_two_kinds_of_refusal_that_take_turns_are_reported_once_each(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="601")
    for hour in range(12):
        ceiling = "600" if hour % 2 else "bad"
        account.tag(queue, **{"mendq:max-visibility-seconds": ceiling})
        account.heal(_fail(account, queue, str(hour)))
        account.later(hours=1)
    assert len(account.transitions()) == 12
    assert len(account.pages("info")) == 2


def test_a_page_about_a_stranger_is_not_held_back_by_an_older_case(account: Account) -> None:
    queue = account.queue(KmsMasterKeyId="alias/orders")
    account.heal(_denied(account, queue, "1", "2", "3"))
    account.later(hours=2)
    account.heal(_denied(account, queue, "4", "5", "6"))
    assert len(account.pages("urgent")) == 1
    other = WORKER.replace("orders-worker", "billing")
    by_another = {"userIdentity": {"sessionContext": {"sessionIssuer": {"arn": other}}}}
    account.heal(_denied(account, queue, "7", **by_another))
    account.later(minutes=1)
    account.heal(_denied(account, queue, "known"))
    account.heal(_denied(account, queue, "8", "9", **by_another))
    account.heal(_denied(account, queue, "a", "b", "c", **by_another))
    assert [each["to"] for each in account.transitions()] == ["escalated", "escalated"]
    assert account.transitions()[-1]["n"] == 2
    (_, (_, body)) = account.pages("urgent")
    assert other in body
    assert set(account.transitions()[-1]["evidence"]["principals"]) == {WORKER, other}


def test_ever_new_strangers_page_once_an_hour(account: Account) -> None:
    queue = account.queue(KmsMasterKeyId="alias/orders")
    for minute in range(0, 180, 5):
        who = WORKER.replace("orders-worker", f"role-{minute}")
        by_another = {"userIdentity": {"sessionContext": {"sessionIssuer": {"arn": who}}}}
        names = (f"{minute}a", f"{minute}b", f"{minute}c")
        account.heal(_denied(account, queue, *names, **by_another))
        account.later(minutes=5)
    assert len(account.pages("urgent")) == 3


def test_a_queue_is_fixed_even_if_an_old_page_cannot_be_sent(account: Account) -> None:
    account.settings = settings(info_topic_arn=f"arn:aws:sns:{REGION}:{ACCOUNT}:gone")
    queue = account.queue(VisibilityTimeout="601")
    account.heal(_fail(account, queue))
    account.set_visibility(queue, 100)
    account.later(hours=1)
    account.heal(_fail(account, queue, "later"))
    assert account.visibility(queue) == 150


def test_another_mass_symptom_on_the_same_day_is_reported(account: Account) -> None:
    for hour, count in ((0, 4), (6, 9), (6, 9)):
        bodies: dict[str, str] = {}
        for n in range(count):
            queue = account.queue(f"q{hour}-{n}", KmsMasterKeyId="alias/orders")
            bodies |= _denied(account, queue, f"{hour}{n}a", f"{hour}{n}b", f"{hour}{n}c")
        account.heal(bodies)
        account.later(hours=5)
    assert len(account.pages("urgent")) == 2


def test_a_mass_symptom_is_one_page_and_no_write(account: Account) -> None:
    queues = [account.queue(f"q{n}.fifo", VisibilityTimeout="10") for n in range(5)]
    bodies: dict[str, str] = {}
    for queue in queues:
        bodies |= _fail(account, queue, queue)
    account.heal(bodies)
    account.heal({key: body.replace("q0", "q1") for key, body in bodies.items()})
    assert [account.visibility(queue) for queue in queues] == [10] * 5
    assert not any(each["notified"] for each in account.transitions())
    ((subject, body),) = account.pages("urgent")
    assert account.pages("info") == []
    assert "5" in subject
    assert "q4.fifo" in body


def test_a_page_says_what_has_changed_since_the_last_case(proposing: Account) -> None:
    queue = proposing.queue(VisibilityTimeout="30")
    proposing.heal(_fail(proposing, queue))
    proposing.clients.sqs.set_queue_attributes(
        QueueUrl=proposing.url(queue), Attributes={"MessageRetentionPeriod": "3600"}
    )
    proposing.later(hours=25)
    proposing.heal(_fail(proposing, queue, "later"))
    (_, first), (_, second) = proposing.pages("info")
    assert "3600" not in first
    assert "MessageRetentionPeriod" in second
    assert "345600" in second


def test_a_page_names_who_changed_the_queue_last(proposing: Account) -> None:
    queue = proposing.queue(VisibilityTimeout="30")
    record = {
        "eventName": "SetQueueAttributes",
        "awsRegion": REGION,
        "userIdentity": {"sessionContext": {"sessionIssuer": {"arn": WORKER}}},
        "requestParameters": {
            "queueUrl": proposing.url(queue),
            "attributes": {"DelaySeconds": "1"},
        },
    }
    proposing.history = [
        {"EventTime": proposing.now, "CloudTrailEvent": json.dumps({**record, **over})}
        for over in ({"errorCode": "AccessDenied"}, {"eventName": "TagQueue"}, {})
    ]
    proposing.heal(_fail(proposing, queue))
    ((_, body),) = proposing.pages("info")
    assert "orders-worker" in body.partition("changed last")[2] or WORKER in body
    assert "DelaySeconds" in body


def test_a_page_goes_out_where_cloudtrail_does_not_answer(proposing: Account) -> None:
    queue = proposing.queue(VisibilityTimeout="30")
    with Stubber(proposing.clients.cloudtrail):
        proposing.heal(_fail(proposing, queue))
    assert len(proposing.pages("info")) == 1


def test_what_somebody_keeps_setting_is_overridden_and_said(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    account.heal(_fail(account, queue))
    account.set_visibility(queue, 10)
    account.later(hours=49)
    account.heal(_fail(account, queue, "later"))
    ((_, body),) = account.pages("info")
    assert "VisibilityTimeout: 45" in body
    assert "visibility_timeout_seconds = 45" in body
    assert "aws sqs get-queue-attributes" in body.partition("NEXT")[2]
    assert account.transitions()[-1]["notified"] is True


def _denied(account: Account, queue: str, *event_ids: str, **by: Any) -> dict[str, str]:
    over = {
        **by,
        "eventName": "SendMessage",
        "errorCode": "KmsAccessDenied",
        "errorMessage": "The ciphertext refers to a customer master key that does not exist.",
    }
    return account.late_deletes(queue, *event_ids, **over)


@pytest.mark.parametrize("tag", ["observe", "heal"])
def test_what_only_pages_opens_as_escalated_and_pages_somebody_now(
    account: Account, tag: str
) -> None:
    freeze = {"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "Black Friday"}}
    account.clients.dynamodb.put_item(TableName="case_store", Item=freeze)
    queue = account.queue(tag=tag, KmsMasterKeyId="alias/orders")
    before = account.attributes(queue)
    account.heal(_denied(account, queue, "1", "2", "3"))
    account.heal(_denied(account, queue, "4", "5", "6"))
    (case,) = account.transitions()
    assert (case["to"], case["steps"], case["notified"]) == ("escalated", [], True)
    assert account.attributes(queue) == before
    ((subject, body),) = account.pages("urgent")
    assert "KMS denied" in subject
    assert "kms:GenerateDataKey" in body
    assert "aws kms get-key-policy" in body


def test_what_only_pages_on_many_queues_is_one_page(account: Account) -> None:
    bodies: dict[str, str] = {}
    for n in range(5):
        queue = account.queue(f"q{n}", KmsMasterKeyId="alias/orders")
        bodies |= _denied(account, queue, f"{n}a", f"{n}b", f"{n}c")
    account.heal(bodies)
    assert {each["to"] for each in account.transitions()} == {"escalated"}
    assert not any(each["notified"] for each in account.transitions())
    assert len(account.pages("urgent")) == 1


def test_a_queue_that_settings_name_and_is_gone_pages(account: Account) -> None:
    account.settings = settings(queues=("orders",))
    over = {"eventName": "SendMessage", "errorCode": "QueueDoesNotExist", "errorMessage": ""}
    gone = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
    account.heal(account.late_deletes(gone, "1", "2", "3", **over))
    ((subject, _),) = account.pages("urgent")
    assert "queue missing on orders" in subject


def test_a_queue_that_was_made_anew_is_not_missing(account: Account) -> None:
    over = {"eventName": "SendMessage", "errorCode": "QueueDoesNotExist", "errorMessage": ""}
    queue = account.queue("orders")
    account.heal(account.late_deletes(queue, "1", "2", "3", **over))
    assert account.transitions() == []
    assert account.pages("urgent") == []


def test_what_is_only_counted_is_not_even_looked_at(account: Account) -> None:
    queue = account.queue()
    over = {"eventName": "SendMessageBatch", "errorCode": "EmptyBatchRequest", "errorMessage": ""}
    healed = account.heal(account.late_deletes(queue, "1", "2", "3", **over))
    assert healed.fixed == {}
    assert healed.intake.failed_calls == 3
    assert account.case_store_items() == {}


def test_a_change_is_shown_even_if_another_case_has_noted_it_first(proposing: Account) -> None:
    queue = proposing.queue(VisibilityTimeout="601", KmsMasterKeyId="alias/orders")
    proposing.heal(_fail(proposing, queue))
    url = proposing.url(queue)
    proposing.clients.sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "7"})
    proposing.later(hours=1)
    proposing.heal(_fail(proposing, queue, "again"))
    proposing.later(hours=1)
    proposing.heal(_denied(proposing, queue, "1", "2", "3"))
    ((_, body),) = proposing.pages("urgent")
    assert "DelaySeconds: 0 -> 7" in body
    proposing.later(days=8)
    proposing.heal(_fail(proposing, queue, "much later"))
    assert "DelaySeconds" not in proposing.pages("info")[-1][1].partition("SINCE LAST KNOWN")[2]
