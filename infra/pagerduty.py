"""Urgent notifications as incidents of PagerDuty.

A case has at most one open incident, which is resolved when the case ends. Urgent notifications
without a case open one incident for each account, region and symptom, which a person must resolve.

The requests have the format of PagerDuty's Events API v2. They were not tried with PagerDuty.
https://developer.pagerduty.com/docs/events-api-v2-overview
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration, SecretValue
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.lambdas.lambda_function import MAXIMUM_EVENT_RETRIES
from infra.own_queues import DLQ_CONSTRUCT_ID, make_dlq
from infra.roles import make_role
from infra.settings.deployment import PagerDutySettings
from mendq.model.case import EVENT_SOURCE, NOTIFICATION_EVENT, TRANSITION_EVENT, Severity
from mendq.model.names import PAGING_ROLE_PURPOSE
from mendq.model.state import FINAL_STATES

_ENDPOINT_BY_SERVICE_REGION = {
    "US": "https://events.pagerduty.com/v2/enqueue",
    "EU": "https://events.eu.pagerduty.com/v2/enqueue",
}
_make_event_field = events.EventField.from_path
# Body of the request that opens an incident. Each field of the event is a whole JSON value, not a
# part of a quoted text: within quotes EventBridge escapes nothing, so a text could break the JSON.
# Only account and region, which AWS sets, are within a text.
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html
_TRIGGER_BODY = {
    "event_action": "trigger",
    "dedup_key": _make_event_field("$.detail.dedup_key"),
    "client": "Mendq",
    "payload": {
        "summary": _make_event_field("$.detail.subject"),
        "severity": "critical",
        "source": f"Mendq {events.EventField.account} {events.EventField.region}",
        "timestamp": events.EventField.time,
        "class": _make_event_field("$.detail.symptom"),
        "custom_details": _make_event_field("$.detail"),
    },
}
# Body of the request that resolves an incident.
_RESOLVE_BODY = {"event_action": "resolve", "dedup_key": _make_event_field("$.detail.case_id")}
# How long EventBridge retries to open an incident. Later the problem may be over, and the page
# would wake a person for nothing.
_TRIGGER_RETRY_TIME = Duration.hours(4)
# How long EventBridge retries to resolve an incident.
_RESOLVE_RETRY_TIME = Duration.hours(24)


class PagerDuty(Construct):
    """Two EventBridge rules that call PagerDuty's API, and the API destination that they use.

    Attributes:
        dlq: events that EventBridge could not deliver to PagerDuty.
    """

    def __init__(self, scope: Construct, name: str, settings: PagerDutySettings) -> None:
        super().__init__(scope, name)
        self.dlq = make_dlq(self, DLQ_CONSTRUCT_ID)
        self._role = make_role(
            self,
            "Role",
            purpose=PAGING_ROLE_PURPOSE,
            service="events",
            description="Mendq: calls PagerDuty",
        )
        routing_key = events.HttpParameter.from_secret(
            SecretValue.secrets_manager(settings.secret_arn)
        )
        # PagerDuty reads the key from the body. A connection must have a header as well.
        routing_key_authorization = events.Authorization.api_key(
            "X-Mendq", SecretValue.unsafe_plain_text("mendq")
        )
        connection = events.Connection(
            self,
            "Connection",
            authorization=routing_key_authorization,
            body_parameters={"routing_key": routing_key},
        )
        self._destination = events.ApiDestination(
            self,
            "Destination",
            connection=connection,
            endpoint=_ENDPOINT_BY_SERVICE_REGION[settings.service_region],
            http_method=events.HttpMethod.POST,
            rate_limit_per_second=5,
        )
        urgent_pattern = {"severity": [Severity.URGENT]}
        self._add_rule(
            "Trigger", NOTIFICATION_EVENT, urgent_pattern, _TRIGGER_BODY, _TRIGGER_RETRY_TIME
        )
        # A case whose first transition is final never opened an incident.
        final_state_pattern = {"to": sorted(FINAL_STATES), "n": [{"numeric": [">", 1]}]}
        self._add_rule(
            "Resolve", TRANSITION_EVENT, final_state_pattern, _RESOLVE_BODY, _RESOLVE_RETRY_TIME
        )

    def _add_rule(
        self,
        name: str,
        detail_type: str,
        detail_pattern: Mapping[str, Any],
        request_body: Mapping[str, Any],
        retry_time: Duration,
    ) -> None:
        """Add a rule that sends `request_body` to PagerDuty for each matching event of Mendq.

        Args:
            name: Trigger or Resolve; also the id of the rule's construct.
            detail_type: the type of the events.
            detail_pattern: the pattern of the events' detail.
            request_body: the request's body.
            retry_time: how long EventBridge retries before the event goes to the DLQ.
        """
        target = targets.ApiDestination(
            self._destination,
            event=events.RuleTargetInput.from_object(request_body),
            event_role=self._role,
            dead_letter_queue=self.dlq,
            max_event_age=retry_time,
            retry_attempts=MAXIMUM_EVENT_RETRIES,
        )
        events.Rule(
            self,
            name,
            description=f"{name}s incidents of PagerDuty by what Mendq tells",
            event_pattern=events.EventPattern(
                source=[EVENT_SOURCE], detail_type=[detail_type], detail=detail_pattern
            ),
            targets=[target],
        )
