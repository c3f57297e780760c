"""Cases as PagerDuty's incidents: our events through the template's rules into a receiver.

Patterns and transformers are applied by the emulator; the receiver takes what the documented format
allows and nothing else.
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


def delivered(events: Iterable[Mapping[str, Any]], to: PagerDutyService) -> int:
    """Every event through the rules; the routing key is what the secret holds."""
    template, calls = template_of("named"), 0
    rules = template.all("AWS::Events::Rule")
    (body,) = template.only("AWS::Events::Connection")["AuthParameters"][
        "InvocationHttpParameters"
    ]["BodyParameters"]
    for each in events:
        record = {**each, "Account": ACCOUNT, "Region": REGION, "Time": 1_800_000_000}
        view = eventbridge._pattern_event_view(record)
        for name in sorted(rule for rule in rules if rule.startswith("PagerDuty")):
            rule = rules[name]["Properties"]
            if eventbridge._matches_pattern_view(json.dumps(rule["EventPattern"]), view):
                (target,) = rule["Targets"]
                said = eventbridge._apply_input_transformer(target["InputTransformer"], rule, view)
                to.receive(eventbridge._merge_body_parameters(said, {body["Key"]: ROUTING_KEY}))
                calls += 1
    return calls


def test_repeated_notification_without_a_case_joins_one_pagerduty_incident(
    account: Account,
) -> None:
    receiver, text = PagerDutyService(), 'lost "two"\n\tprobes \\ <detail> {"a": 1}\x07'
    with account.bus() as events:
        for hour in range(2):
            page = NotificationText(f'the "probe" {hour}', text)
            make_context(account).notifier.send_about_account("probe", f"lost {hour}", page)
            account.later(hours=2)
    assert delivered(events, receiver) == 2
    ((key, payloads),) = receiver.open_incidents.items()
    assert key not in {"", None}
    assert [each["custom_details"]["text"] for each in payloads] == [text] * 2
    assert [each["summary"] for each in payloads] == ['the "probe" 0', 'the "probe" 1']


@pytest.mark.parametrize("state", State)
def test_case_transition_resolves_a_pagerduty_incident_only_if_final_and_not_the_first(
    state: State,
) -> None:
    def event(n: int) -> dict[str, Any]:
        detail = json.dumps({"case_id": "c", "n": n, "to": state})
        return {"Source": EVENT_SOURCE, "DetailType": TRANSITION_EVENT, "Detail": detail}

    assert delivered([event(1)], PagerDutyService()) == 0
    assert delivered([event(2)], PagerDutyService()) == (state in FINAL_STATES)


@pytest.mark.parametrize(
    "over",
    [
        {"DetailType": "any other"},
        {"Source": "somebody"},
        {"Detail": json.dumps({"severity": "info", "dedup_key": "c"})},
    ],
)
def test_event_that_is_not_an_urgent_mendq_notification_opens_no_pagerduty_incident(
    over: dict[str, str],
) -> None:
    urgent = {"severity": "urgent", "dedup_key": "c", "subject": "s", "symptom": "x"}
    event = {
        "Source": EVENT_SOURCE,
        "DetailType": NOTIFICATION_EVENT,
        "Detail": json.dumps(urgent),
    }
    assert delivered([event], PagerDutyService()) == 1
    assert delivered([{**event, **over}], PagerDutyService()) == 0


def test_pagerduty_key_comes_from_secrets_manager_and_the_eu_endpoint_can_be_chosen() -> None:
    template = template_of("named").raw
    assert f"{{{{resolve:secretsmanager:{SECRET}:SecretString:::}}}}" in json.dumps(template)
    given = {"secretArn": SECRET, "serviceRegion": "EU"}
    european = template_with({"notifications": {"pagerduty": given}})
    (endpoint,) = {
        each["Properties"]["InvocationEndpoint"]
        for each in european.all("AWS::Events::ApiDestination").values()
    }
    assert endpoint == "https://events.eu.pagerduty.com/v2/enqueue"
