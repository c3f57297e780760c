"""Mendq's events become PagerDuty incidents through the template's EventBridge rules.

The emulator applies the patterns and transformers. The service accepts only the documented format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from ministack.services import eventbridge

from mendq.model.case import EVENT_SOURCE, NOTIFICATION_EVENT, TRANSITION_EVENT
from mendq.model.state import FINAL_STATES, State
from mendq.notifications.sent import NotificationText
from tests.account.account import Account, account
from tests.heal.operators import make_context
from tests.infra.pagerduty import ROUTING_KEY, PagerDutyService
from tests.infra.synthesized import ACCOUNT, REGION, template_of, template_with

__all__ = ["account"]
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:pagerduty-AbCdEf"


def deliver_events(events: Iterable[Mapping[str, Any]], to: PagerDutyService) -> int:
    """Send the events through the rules to PagerDuty and return the number of calls."""
    template = template_of("named")
    calls = 0
    rules = template.all("AWS::Events::Rule")
    (body,) = template.only("AWS::Events::Connection")["AuthParameters"][
        "InvocationHttpParameters"
    ]["BodyParameters"]
    for event in events:
        bus_event = {**event, "Account": ACCOUNT, "Region": REGION, "Time": 1_800_000_000}
        view = eventbridge._pattern_event_view(bus_event)
        for name in sorted(rule for rule in rules if rule.startswith("PagerDuty")):
            rule = rules[name]["Properties"]
            if eventbridge._matches_pattern_view(json.dumps(rule["EventPattern"]), view):
                (target,) = rule["Targets"]
                payload = eventbridge._apply_input_transformer(
                    target["InputTransformer"], rule, view
                )
                to.receive(eventbridge._merge_body_parameters(payload, {body["Key"]: ROUTING_KEY}))
                calls += 1
    return calls


def test_repeated_notification_without_a_case_joins_one_pagerduty_incident_with_unchanged_texts(
    account: Account,
) -> None:
    pagerduty = PagerDutyService()
    text = 'lost "two"\n\tprobes \\ <detail> {"a": 1}\x07'
    with account.bus() as events:
        for hour in range(2):
            notification = NotificationText(f'the "probe" {hour}', text)
            make_context(account).notifier.send_about_account("probe", f"lost {hour}", notification)
            account.later(hours=2)
    assert deliver_events(events, pagerduty) == 2
    ((key, payloads),) = pagerduty.open_incidents.items()
    assert key not in {"", None}
    assert [payload["custom_details"]["text"] for payload in payloads] == [text] * 2
    assert [payload["summary"] for payload in payloads] == ['the "probe" 0', 'the "probe" 1']


@pytest.mark.parametrize("state", State)
def test_case_transition_resolves_a_pagerduty_incident_only_if_final_and_not_the_first(
    state: State,
) -> None:
    def make_transition(n: int) -> dict[str, Any]:
        detail = json.dumps({"case_id": "c", "n": n, "to": state})
        return {"Source": EVENT_SOURCE, "DetailType": TRANSITION_EVENT, "Detail": detail}

    assert deliver_events([make_transition(1)], PagerDutyService()) == 0
    assert deliver_events([make_transition(2)], PagerDutyService()) == (state in FINAL_STATES)


@pytest.mark.parametrize(
    "changes",
    [
        {"DetailType": "any other"},
        {"Source": "another.application"},
        {"Detail": json.dumps({"severity": "info", "dedup_key": "c"})},
    ],
)
def test_event_that_is_not_an_urgent_mendq_notification_opens_no_pagerduty_incident(
    changes: dict[str, str],
) -> None:
    urgent = {"severity": "urgent", "dedup_key": "c", "subject": "s", "symptom": "x"}
    event = {
        "Source": EVENT_SOURCE,
        "DetailType": NOTIFICATION_EVENT,
        "Detail": json.dumps(urgent),
    }
    assert deliver_events([event], PagerDutyService()) == 1
    assert deliver_events([{**event, **changes}], PagerDutyService()) == 0


def test_pagerduty_key_is_read_from_secrets_manager_at_deployment() -> None:
    template = template_of("named").raw
    assert f"{{{{resolve:secretsmanager:{SECRET}:SecretString:::}}}}" in json.dumps(template)


def test_pagerduty_setting_eu_sends_to_the_european_endpoint() -> None:
    given = {"secretArn": SECRET, "serviceRegion": "EU"}
    european = template_with({"notifications": {"pagerduty": given}})
    (endpoint,) = {
        destination["Properties"]["InvocationEndpoint"]
        for destination in european.all("AWS::Events::ApiDestination").values()
    }
    assert endpoint == "https://events.eu.pagerduty.com/v2/enqueue"
