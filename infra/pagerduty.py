"""Urgent notifications as incidents of PagerDuty: one for each case, resolved when the case ends.

The format is that of its Events API v2, which was not tried from here.
https://developer.pagerduty.com/docs/events-api-v2-overview
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration, SecretValue
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.lambdas.lambda_function import MOST_TRIES
from infra.own_queues import DLQ, dlq
from infra.roles import own_role
from infra.settings.deployment import PagerDutySettings
from mendq.model.case import EVENT_SOURCE, FINAL, NOTIFICATION_EVENT, TRANSITION_EVENT, Severity
from mendq.model.names import PAGING

_ENDPOINTS = {
    "US": "https://events.pagerduty.com/v2/enqueue",
    "EU": "https://events.eu.pagerduty.com/v2/enqueue",
}
_of_event = events.EventField.from_path
# Each field stands alone for its value, without quotes, so that EventBridge keeps it JSON: between
# quotes it escapes nothing. Account and region are its own words.
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html
_TRIGGER = {
    "event_action": "trigger",
    "dedup_key": _of_event("$.detail.dedup_key"),
    "client": "Mendq",
    "payload": {
        "summary": _of_event("$.detail.subject"),
        "severity": "critical",
        "source": f"Mendq {events.EventField.account} {events.EventField.region}",
        "timestamp": events.EventField.time,
        "class": _of_event("$.detail.symptom"),
        "custom_details": _of_event("$.detail"),
    },
}
_RESOLVE = {"event_action": "resolve", "dedup_key": _of_event("$.detail.case_id")}
# An older page wakes somebody for what may be over; what ends a case is worth its day.
_TRIGGERED_WITHIN, _RESOLVED_WITHIN = Duration.hours(4), Duration.hours(24)


class PagerDuty(Construct):
    """Its API destination, the two rules that call it, and the DLQ of what it does not take."""

    def __init__(self, scope: Construct, name: str, settings: PagerDutySettings) -> None:
        super().__init__(scope, name)
        self.dlq = dlq(self, DLQ)
        self._role = own_role(
            self, "Role", purpose=PAGING, service="events", description="Mendq: calls PagerDuty"
        )
        key = events.HttpParameter.from_secret(SecretValue.secrets_manager(settings.secret_arn))
        # A connection wants a header of its own; PagerDuty reads the key in the body alone.
        header = events.Authorization.api_key("X-Mendq", SecretValue.unsafe_plain_text("mendq"))
        connection = events.Connection(
            self, "Connection", authorization=header, body_parameters={"routing_key": key}
        )
        self._destination = events.ApiDestination(
            self,
            "Destination",
            connection=connection,
            endpoint=_ENDPOINTS[settings.service_region],
            http_method=events.HttpMethod.POST,
            rate_limit_per_second=5,
        )
        urgent = {"severity": [Severity.URGENT]}
        self._rule("Trigger", NOTIFICATION_EVENT, urgent, _TRIGGER, _TRIGGERED_WITHIN)
        # A case that was over when it was opened never paged.
        ended = {"to": sorted(FINAL), "n": [{"numeric": [">", 1]}]}
        self._rule("Resolve", TRANSITION_EVENT, ended, _RESOLVE, _RESOLVED_WITHIN)

    def _rule(
        self,
        name: str,
        detail_type: str,
        detail: Mapping[str, Any],
        body: Mapping[str, Any],
        patience: Duration,
    ) -> None:
        target = targets.ApiDestination(
            self._destination,
            event=events.RuleTargetInput.from_object(body),
            event_role=self._role,
            dead_letter_queue=self.dlq,
            max_event_age=patience,
            retry_attempts=MOST_TRIES,
        )
        events.Rule(
            self,
            name,
            description=f"{name}s incidents of PagerDuty by what Mendq tells",
            event_pattern=events.EventPattern(
                source=[EVENT_SOURCE], detail_type=[detail_type], detail=detail
            ),
            targets=[target],
        )
