"""Follow up open cases: move on each that is due, by what was seen since or by time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field

from mendq.aws.clients import SECONDS_OF_A_HUNG_CALL
from mendq.aws.cloudwatch import messages_deleted
from mendq.aws.errors import (
    CaseMoved,
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    FactsUnavailable,
    QueueGone,
    QueueRefusesUs,
)
from mendq.aws.queue import attributes_of, tags_of
from mendq.cases.context import CaseContext, ManagingContext
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.record import Notification, file, hold_back, notify_held_up, record_transition
from mendq.cases.table import OpenCase
from mendq.cases.view import HELD_UP, CaseStoreView
from mendq.catalogue import BY_NAME
from mendq.catalogue.dlq.dlq_messages_arriving import DLQ_MESSAGES_ARRIVING
from mendq.catalogue.symptom import Symptom
from mendq.follow_up.harm import signs_since
from mendq.heal.context import Functions, Outcome, call_owner
from mendq.heal.recover import settle_whosever, standing
from mendq.model.case import FINAL, MADE_FOR, PROVING, Case, Severity, State, severity_of
from mendq.model.facts import Facts
from mendq.model.harms import (
    OWN_CHANGE,
    Sign,
    dlq_named,
    own_change,
    sign_in,
    sign_of,
    step_to_watch,
)
from mendq.model.lifecycle import (
    CALLING,
    HARM_WATCHED,
    WAITED_OUT,
    Stands,
    VerificationEvidence,
    advance,
    due_at,
    quiet_since,
)
from mendq.model.limits import Limits, Mode
from mendq.model.names import HEARTBEAT, OwnMetric, fixes_being_verified
from mendq.model.queue import arn_of, parts_of
from mendq.notifications.own_change import say_what_arrived, say_what_shows

# A case that cannot be looked at now is looked at again then, behind those that can.
TRY_AGAIN = timedelta(minutes=5)
# The version that knows it may be deployed again.
UNKNOWN_AGAIN = timedelta(hours=1)
# Where one service hangs, a case calls it twice before it is given up.
SECONDS_FOR_A_CASE = 2 * SECONDS_OF_A_HUNG_CALL


class Followed(Struct):
    """What became of the cases that were due, and how many are open.

    The `unknown` are of symptoms that another version of Mendq knows: they wait for it, or for a
    person who closes them.
    """

    open_cases: list[OpenCase]
    moved: list[Case] = field(default_factory=list)
    called: list[Case] = field(default_factory=list)
    unknown: list[OpenCase] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)

    def gauges(self, now: datetime, limits: Limits) -> dict[OwnMetric, int]:
        """How many are open that people and alarms wait for."""
        by_state = Counter(each.state for each in self.open_cases)
        open_cases = ((each.state, each.opened_at) for each in self.open_cases)
        return {
            OwnMetric.ESCALATED_CASES_OPEN: by_state[State.ESCALATED],
            OwnMetric.PROPOSED_CASES_OPEN: by_state[State.PROPOSED],
            OwnMetric.FIXES_BEING_VERIFIED: fixes_being_verified(open_cases, now, limits),
        }

    def counts(self) -> dict[OwnMetric, int]:
        """What came back once it was fixed, was escalated, or could not be followed."""
        back = [each for each in self.moved if each.state is State.INEFFECTIVE]
        recurred = sum(each.came_from is State.WATCHING for each in back)
        return {
            OwnMetric.RECURRENCES: recurred,
            OwnMetric.ESCALATIONS: sum(each.state is State.ESCALATED for each in self.moved),
            OwnMetric.FOLLOW_UP_ERRORS: len(self.errors),
        }

    def seconds(self, now: datetime) -> Iterator[tuple[str, float]]:
        """How old the oldest open case is, and how long each fix took that has proved."""
        ages = ((now - each.opened_at).total_seconds() for each in self.open_cases)
        yield HEARTBEAT, max([0, *ages])
        for case in self.moved:
            if case.state is State.VERIFIED:
                healing = case.at - datetime.fromisoformat(case.evidence["first_at"])
                yield OwnMetric.TIME_TO_HEAL, max(0.0, healing.total_seconds())


def follow_up(
    context: ManagingContext, functions: Functions, remaining_seconds: Callable[[], float]
) -> Followed:
    """Raises CaseStoreUnavailable where the open cases cannot be listed; a case costs only
    itself.
    """
    listed = context.open_cases.list_unsettled()
    followed = Followed([each for each in listed if each.state not in FINAL])
    # Filing has half of what there is beyond one case, however many are due.
    until = max(SECONDS_FOR_A_CASE, (remaining_seconds() + SECONDS_FOR_A_CASE) / 2)
    for each in (due for due in listed if due.due_at <= context.now):
        if remaining_seconds() < until:
            break
        try:
            _follow(each, context, functions, followed)
        except CaseMoved:
            continue
        except Exception as error:  # noqa: BLE001 - kept whole for the handler, which logs it
            followed.errors[each.case_id] = error
        if each.case_id in followed.errors:
            # Where even that fails, the next minute finds it where it was.
            with suppress(CaseStoreUnavailable):
                context.open_cases.postpone_unread(each, context.now + TRY_AGAIN)
    _file_owed(context, remaining_seconds, followed)
    return followed


def _file_owed(
    context: CaseContext, remaining_seconds: Callable[[], float], followed: Followed
) -> None:
    """File what whichever run wrote down; what fails makes way for the others.

    A bucket that is down is tried once.
    """
    try:
        for key in context.open_cases.list_unfiled_transitions(context.now):
            if remaining_seconds() < SECONDS_FOR_A_CASE:
                return
            try:
                case = context.open_cases.transition(key)
                if case is not None:
                    file(case, key, context)
            except Exception as error:  # noqa: BLE001 - kept whole for the handler, which logs it
                followed.errors[f"filing {key['pk']['S']}"] = error
                context.open_cases.file_later(key, context.now + TRY_AGAIN)
                if isinstance(error, BotoCoreError | ClientError):
                    return
    except CaseStoreUnavailable as error:
        followed.errors["filing"] = error


def _follow(
    due: OpenCase, context: ManagingContext, functions: Functions, followed: Followed
) -> None:
    symptom = BY_NAME.get(due.symptom)
    attributes = symptom.attributes if symptom else ()
    view = context.case_store.look(due.queue_arn, due.symptom, attributes)
    sent = context.notifier.send_left_unsent(due.queue_arn, due.symptom, view.page, view.case)
    if view.held_by_another(context.owner, context.claims_now):
        return
    if view.intent is not None:
        settled = settle_whosever(view, view.intent, symptom, context)
        if isinstance(settled, Outcome):
            followed.moved += [settled.case] if settled.case else []
            return
        view = settled
    if view.case is not None and view.case.is_final:
        # Looked at no more, once people have had the notification.
        if not sent:
            hold_back(view.case, context)
        elif view.page is None or not view.page.is_on_its_way(context.now):
            context.open_cases.mark_announced(view.case, context.claims_now)
        return
    if symptom is None:
        followed.unknown.append(due)
        context.open_cases.postpone_unread(due, context.now + UNKNOWN_AGAIN)
    elif view.case is not None:
        _OpenCase(symptom, view.case, view, context).go_on(functions, followed)
        if not sent and not view.case.goes_on:
            hold_back(view.case, context)


class _OpenCase(Struct, frozen=True):
    """One open case, what the case store says of it, and a way to look at its queue."""

    symptom: Symptom
    case: Case
    view: CaseStoreView
    context: ManagingContext

    def go_on(self, functions: Functions, followed: Followed) -> None:
        """Move it where there is reason to; call the owner of the write that it waits for."""
        evidence_since = self._evidence_since()
        moved = advance(self.case, evidence_since, self.context.now)
        if moved is not None:
            followed.moved.append(self._tell(moved))
        case = moved or self.case
        if case.state in CALLING or case.goes_on:
            call_owner(self.context.clients, functions, case)
            followed.called.append(case)
        if moved is None:
            self._postpone(due_at(case, evidence_since, self.context.now))
            self._tell_what_holds_it_up()

    def _tell(self, moved: Case) -> Case:
        held_up = self.view.hold_up if moved.state is State.EXPIRED else None
        if held_up is not None:
            moved = replace(moved, reason=f"{moved.reason}: {held_up.reason}")
        severity = severity_of(moved, Mode.HEAL, of_the_plan=True)
        if moved.code == OWN_CHANGE and self._is_reported_at_dlq():
            severity = None
        overridden = moved.state is State.OVERRIDDEN
        facts = self._facts() if severity else Facts(self.case.queue_arn, {}, {})
        changes = self.view.overridden(moved, moved.at) if overridden else {}
        notification = Notification(self.symptom, facts, severity, changes=changes)
        return record_transition(moved, self.view, notification, self.context)

    def _postpone(self, until: datetime) -> None:
        later = self.context.now + TRY_AGAIN if until <= self.context.now else until
        self.context.open_cases.postpone(self.case, later)

    def _tell_what_holds_it_up(self) -> None:
        held_up = self.view.hold_up if self.case.state in CALLING else None
        if held_up is not None and self.context.now - held_up.since >= HELD_UP:
            notification = Notification(self.symptom, self._facts(), Severity.INFO)
            notify_held_up(self.case, self.view, notification, self.context)

    @property
    def _is_proving(self) -> bool:
        """Its owner looks at what goes on."""
        return self.case.state in PROVING and not self.case.goes_on

    def _evidence_since(self) -> VerificationEvidence:
        """The evidence that the case's state asks for."""
        evidence_since = VerificationEvidence(self.context.settings.timing, self.view.failures)
        if self.case.state in (*PROVING, *WAITED_OUT):
            evidence_since = replace(evidence_since, stands=self._stands())
        if self.case.state in HARM_WATCHED and not self.case.goes_on:
            evidence_since = replace(evidence_since, harm=self._harm())
        if not self._is_proving:
            return evidence_since
        no_call_failed = not self.case.evidence["failed_calls"]
        return replace(
            evidence_since,
            deletes=self._deletes(quiet_since(self.case, evidence_since)),
            of_configuration=no_call_failed and self.symptom.is_of_configuration,
        )

    def _facts(self) -> Facts:
        """The facts for a notification; a queue that cannot be looked at is told of as gone."""
        arn, clients = self.case.queue_arn, self.context.clients
        facts = Facts(arn, {}, {}, event_names=self.view.failures.event_names())
        with suppress(FactsUnavailable, QueueRefusesUs):
            attributes = attributes_of(clients, arn)
            return replace(facts, attributes=attributes, tags=tags_of(clients, arn) or {})
        return facts

    def _deletes(self, since: datetime) -> int | None:
        """The deletes, None where CloudWatch does not say: that proves and ends nothing."""
        clients = self.context.clients
        with suppress(FactsUnavailable):
            return messages_deleted(clients, self.case.queue_arn, since, self.context.now)
        return None

    def _has_managed_source(self, tags: Mapping[str, str]) -> bool:
        """True if the queue is a DLQ that Mendq made for a source that is still managed.

        True as well if that cannot be read: what nobody could look at ends no case.
        """
        source_arn = arn_of(str(self.case.evidence.get(MADE_FOR, "")))
        if source_arn is None:
            return False
        made, consent = self.context.stored(MadeDlqs), self.context.settings.consent
        dlq_arn, clients = self.case.queue_arn, self.context.clients
        try:
            return bool(made.managed_source(dlq_arn, tags, [source_arn], clients, consent))
        except (FactsUnavailable, CaseStoreUnreadable):
            return True

    def _harm(self) -> str | None:
        """The change and what shows that it may do harm; empty if nothing does.

        None if it could not be measured.
        """
        step = step_to_watch(self.case)
        if step is None:
            return ""
        written_at = self._written_at()
        try:
            if not self._stands_as_written():
                return ""
            signs = signs_since(self.context.clients, self.case, written_at, self.context.now)
        except QueueGone:
            return ""
        except (FactsUnavailable, QueueRefusesUs):
            return None
        shown = sign_in(self.case, signs)
        if not shown:
            return ""
        change = own_change(replace(self.case, at=written_at), step, self.case)
        moves_messages = sign_of(self.case) is Sign.DLQ_ARRIVALS
        say = say_what_arrived if moves_messages else say_what_shows
        return say(change, shown, self.context.now)

    def _stands_as_written(self) -> bool:
        """Return False if a person changed the value that the case wrote.

        Return True while the fix is being verified: the lifecycle table checks the value then.
        Raises FactsUnavailable, QueueGone or QueueRefusesUs.
        """
        if self._is_proving:
            return True
        return self._is_ours(standing(self.context.clients, self.case.queue_arn, self.case.steps))

    def _is_ours(self, shown: Mapping[str, str]) -> bool:
        """Return True if the queue's attributes still have the values that the case wrote."""
        after = {each["attribute"]: each["after"] for each in self.case.steps}
        known = [step for step in self.symptom.steps if step.attribute in after]
        return all(step.standing_in(shown) == after[step.attribute] for step in known)

    def _written_at(self) -> datetime:
        """Return when the case last wrote to the queue.

        `case.at` would be later: it is the time of the newest transition. It is the answer only if
        no write is on record.
        """
        names = [step["attribute"] for step in self.case.steps]
        writes = [write for name in names for write in self.view.record_of(name).writes]
        return max((write.at for write in writes), default=self.case.at)

    def _is_reported_at_dlq(self) -> bool:
        """Return True if an open `dlq_messages_arriving` case names this change already."""
        dlq_arn = dlq_named(self.case.steps)
        if not dlq_arn:
            return False
        case = self.context.case_store.look(dlq_arn, DLQ_MESSAGES_ARRIVING.name, ()).case
        if case is None or not case.is_open(self.context.now, self.context.settings.timing):
            return False
        return case.code == OWN_CHANGE and self.case.case_id in case.reason

    def _stands(self) -> Stands | None:
        """What became of the queue and what was written there; None where nobody can look.

        Of what waits, it is enough whether anybody listens for it any more. That the queue is
        missing may be what was notified.
        """
        case, clients = self.case, self.context.clients
        try:
            tags = tags_of(clients, case.queue_arn)
            shown = standing(clients, case.queue_arn, case.steps) if self._is_proving else {}
        except QueueGone:
            return Stands.GONE
        except (FactsUnavailable, QueueRefusesUs):
            return None
        name = parts_of(case.queue_arn).name
        if Facts(case.queue_arn, shown, {}).made_after(case.at):
            return Stands.GONE
        is_managed = self.context.settings.consent.mode_of(name, tags or {}) is not None
        if not is_managed and not self._has_managed_source(tags or {}):
            return Stands.GONE if tags is None else Stands.UNMANAGED
        if not self._is_proving:
            was_announced = case.state in (State.OVERRIDDEN, State.ESCALATED)
            return Stands.GONE if tags is None and not was_announced else None
        return Stands.OURS if self._is_ours(shown) else Stands.OVERRULED
