"""The first notification of a case lists what changed since a scan found its queue healthy."""

from __future__ import annotations

from mendq.cases.baselines import Baselines
from mendq.model.facts import Facts
from mendq.model.queue import make_public_queue_url
from mendq.notifications.queue_lines import describe_configuration
from tests.account.account import Account
from tests.heal.policy_events import ALICE, make_policy_event
from tests.notifications.pages import list_section_lines


def _store_baseline(account: Account, queue: str, tags: dict[str, str]) -> None:
    facts = Facts(queue, account.attributes(queue), tags)
    Baselines(account.clients.dynamodb, "case_store").put(
        queue, describe_configuration(facts), account.now
    )


def _read_notification(account: Account, queue: str) -> str:
    account.later(minutes=5)
    calls = {"sourceIPAddress": "192.0.2.7", "userAgent": "Boto3/1.40.0 exec-env/AWS_Lambda_x"}
    account.heal(account.late_deletes(queue, "a", "b", "c", **calls))
    ((_, body),) = account.pages()
    return body


def _make_queue_changed_by_alice(account: Account) -> str:
    """Make a queue whose visibility timeout and tag changed within a day after its baseline."""
    queue = account.queue(tag="propose", VisibilityTimeout="90")
    account.tag(queue, team="shop")
    _store_baseline(account, queue, {"mendq": "propose", "team": "till"})
    account.later(days=1)
    account.set_visibility(queue, 30)
    asked = {"queueUrl": make_public_queue_url(queue), "attributes": {"VisibilityTimeout": "30"}}
    account.history = [make_policy_event(account, queue, requestParameters=asked)]
    return queue


def test_notification_lists_attributes_and_tags_that_changed_since_the_baseline(
    account: Account,
) -> None:
    at = account.now
    body = _read_notification(account, _make_queue_changed_by_alice(account))
    well, *changed = list_section_lines(body, "SINCE IT WORKED")
    assert f"well at {at:%Y-%m-%d %H:%M:%S} UTC; changed since, of its attributes, tags:" in well
    assert changed == ["VisibilityTimeout: 90 -> 30", "tag team: till -> shop"]


def test_notification_names_the_principal_and_the_attribute_of_the_queues_last_change(
    account: Account,
) -> None:
    body = _read_notification(account, _make_queue_changed_by_alice(account))
    who, when = list_section_lines(body, "CHANGED LAST BY")
    assert who == ALICE
    assert when.endswith("VisibilityTimeout")


def test_notification_names_the_address_and_the_client_of_the_failed_calls(
    account: Account,
) -> None:
    body = _read_notification(account, account.queue(tag="propose", VisibilityTimeout="30"))
    assert list_section_lines(body, "EVIDENCE")[-2:] == [
        "from address 192.0.2.7",
        'with "Boto3/1.40.0 exec-env/AWS_Lambda_x"',
    ]


def test_notification_says_that_nothing_changed_since_the_baseline(account: Account) -> None:
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    _store_baseline(account, queue, {"mendq": "propose"})
    (line,) = list_section_lines(_read_notification(account, queue), "SINCE IT WORKED")
    assert line.endswith("; nothing changed since of its attributes, tags")


def test_notification_lists_a_change_that_a_later_scan_accepted_as_baseline(
    account: Account,
) -> None:
    """Calls may begin to fail hours after the change."""
    queue = account.queue(tag="propose", VisibilityTimeout="90")
    _store_baseline(account, queue, {"mendq": "propose"})
    account.later(days=3)
    account.set_visibility(queue, 30)
    _store_baseline(account, queue, {"mendq": "propose"})
    lines = list_section_lines(_read_notification(account, queue), "SINCE IT WORKED")
    assert "nothing changed since" in lines[0]
    assert lines[2] == "VisibilityTimeout: 90 -> 30"


def test_notification_of_a_queue_without_a_baseline_has_no_since_it_worked_section(
    account: Account,
) -> None:
    body = _read_notification(account, account.queue(tag="propose", VisibilityTimeout="30"))
    assert list_section_lines(body, "SINCE IT WORKED") == []
