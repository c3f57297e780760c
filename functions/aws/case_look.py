"""What is seen of an open case's queue: whether its fix stands, and whether anybody works there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from functions.aws.desk import ManagingDesk
from functions.aws.errors import FactsUnavailable, QueueGone, QueueRefusesUs
from functions.aws.messages_deleted import messages_deleted
from functions.aws.queue_look import attributes_of, tags_of
from functions.aws.standing import standing
from functions.catalogue.symptom import Symptom
from functions.healing.advance import WAITED_OUT
from functions.healing.case import Case
from functions.healing.facts import Facts
from functions.healing.ledger_view import LedgerView
from functions.healing.queue_names import parts_of
from functions.healing.signs import PROVING, Signs, Stands, quiet_since
from functions.healing.states import State


@dataclass(frozen=True)
class CaseLook:
    """One open case, what the ledger says of it, and a way to look at its queue."""

    symptom: Symptom
    case: Case
    view: LedgerView
    desk: ManagingDesk

    def signs(self) -> Signs:
        """As far as the case's state asks for them. What goes on its owner looks at itself."""
        timing, needed = self.desk.settings.timing, self.symptom.evidence
        signs = Signs(timing, needed, self.view.failures)
        if self.case.state in WAITED_OUT or self.case.goes_on:
            return replace(signs, stands=self._taken_away())
        if self.case.state not in PROVING:
            return signs
        return replace(
            signs,
            deletes=self._deletes(signs),
            stands=self._stands(),
            of_configuration=self._was_of_configuration,
        )

    def facts(self) -> Facts:
        """For a page: a queue that cannot be looked at is told of as gone."""
        nothing = Facts(self.case.queue_arn, {}, {}, event_names=self.view.failures.event_names())
        try:
            tags = tags_of(self.desk.clients, self.case.queue_arn) or {}
            attributes = attributes_of(self.desk.clients, self.case.queue_arn)
        except (FactsUnavailable, QueueRefusesUs):
            return nothing
        return replace(nothing, attributes=attributes, tags=tags)

    @property
    def _was_of_configuration(self) -> bool:
        detection = self.symptom.detection
        no_call_failed = not self.case.evidence["failed_calls"]
        return no_call_failed and detection is not None and detection.of_configuration

    def _deletes(self, signs: Signs) -> int | None:
        """None where CloudWatch does not say: that proves nothing, and ends nothing either."""
        since = quiet_since(self.case, signs)
        try:
            return messages_deleted(self.desk.clients, self.case.queue_arn, since, self.desk.now)
        except FactsUnavailable:
            return None

    def _stands(self) -> Stands | None:
        """Whether what was written stands there; None where the queue cannot be looked at."""
        try:
            attributes = standing(self.desk.clients, self.case.queue_arn, self.case.steps)
            tags = tags_of(self.desk.clients, self.case.queue_arn) or {}
        except QueueGone:
            return Stands.GONE
        except (FactsUnavailable, QueueRefusesUs):
            return None
        now = Facts(self.case.queue_arn, attributes, {})
        if now.created_at is not None and now.created_at > self.case.at:
            return Stands.GONE
        if not self._is_managed(tags):
            return Stands.UNMANAGED
        steps = {step.attribute: step for step in self.symptom.steps}
        ours = all(
            steps[each["attribute"]].standing_in(attributes) == each["after"]
            for each in self.case.steps
            if each["attribute"] in steps
        )
        return Stands.OURS if ours else Stands.OVERRULED

    def _taken_away(self) -> Stands | None:
        """Whether nobody listens for it any more; that it is missing may be what people were told.

        None as well where the queue cannot be looked at.
        """
        try:
            tags = tags_of(self.desk.clients, self.case.queue_arn)
        except (FactsUnavailable, QueueRefusesUs):
            return None
        managed = self._is_managed(tags or {})
        if tags is None:
            is_what_was_told = managed and self.case.state in (State.CONTESTED, State.ESCALATED)
            return None if is_what_was_told else Stands.GONE
        return None if managed else Stands.UNMANAGED

    def _is_managed(self, tags: Mapping[str, str]) -> bool:
        name = parts_of(self.case.queue_arn).name
        return self.desk.settings.consent.mode_of(name, tags) is not None
