"""Writes a case down and tells the people it concerns: ledger, case bucket, then the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256

from functions.aws.desk import Desk
from functions.aws.filing import file_new
from functions.aws.ledger_items import page_key
from functions.aws.ledger_writes import Entry
from functions.aws.recent_changes import last_change
from functions.aws.run import Run
from functions.catalogue.symptom import Symptom
from functions.healing import account_pages, page
from functions.healing.advance import due_at
from functions.healing.case import Case
from functions.healing.every_step import is_kept
from functions.healing.facts import Facts
from functions.healing.ledger_view import AttributeRecord, LedgerView
from functions.healing.managed import DRILL_TAG
from functions.healing.page_record import PageRecord
from functions.healing.paging import PAGES_PER_HOUR, Severity
from functions.healing.plain_text import moment
from functions.healing.signs import Signs
from functions.healing.spread import Reach
from functions.healing.states import State

# Another hour has pages of its own.
HELD_BACK = timedelta(hours=1)
# When follow_up looks whether the run that wrote a case down came to its end.
LOOK_AFTER = timedelta(minutes=2)
# That another case came to the same before is not this one's news.
_NEWS_OF_ITS_OWN = frozenset({State.ESCALATED, State.EXPIRED})


@dataclass(frozen=True)
class Telling:
    """What there is to say about a queue's case, beyond the case itself.

    `news` tells apart what state and refusal alone would not. Without a symptom nobody is paged.
    """

    symptom: Symptom | None
    facts: Facts
    severity: Severity | None = None
    next_command: str = ""
    first: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    changes: Mapping[str, AttributeRecord] = field(default_factory=dict)
    news: str = ""

    def configuration(self, case: Case) -> Mapping[str, str]:
        """The queue's, with what this case has written."""
        attributes = self.facts.attributes
        if self.facts.exists and case.has_written:
            attributes = {**attributes, **{each["attribute"]: each["after"] for each in case.steps}}
        return {name: text for name, text in attributes.items() if text and not is_kept(name)}


def tell(case: Case, seen: LedgerView, telling: Telling, desk: Desk, owner: str) -> Case:
    """The case as it was written down.

    Raises CaseMoved, LedgerUnavailable or PageNotSent: then the events are to come again.
    """
    page_record = _page_of(case, seen, telling, desk)
    told = replace(case, paged=page_record is not None)
    due = due_at(told, Signs(desk.settings.timing), told.at)
    soon = min(due, told.at + LOOK_AFTER)
    entry = Entry(
        told,
        seen,
        owner,
        written_by=desk.owner,
        changes=telling.changes,
        attributes=telling.configuration(case),
        due_at=soon,
        page=page_record,
        claims_now=desk.real_now,
    )
    desk.ledger.record(entry)
    file_new(told, seen, soon if told.paged else due, soon, desk)
    if page_record and not desk.pager.send(case.queue_arn, case.symptom, page_record):
        hold_back(told, desk)
    return told


def tell_held_up(case: Case, seen: LedgerView, telling: Telling, desk: Desk) -> None:
    """Once, that a case waits to be taken up; raises LedgerUnavailable or PageNotSent."""
    if telling.symptom is None or seen.hold_up is None:
        return
    news = f"held_up:{case.case_id}"
    if seen.page and seen.page.says_or_said(news, desk.now):
        return
    reason = f"it waits since {moment(seen.hold_up.since)}: {seen.hold_up.reason}"
    waits = replace(case, reason=f"{case.reason}; {reason}")
    record = _record(waits, seen, telling, telling.symptom, desk, news)
    if desk.pager.pages.put(page_key(case.queue_arn, case.symptom), record, seen.page):
        desk.pager.send(case.queue_arn, case.symptom, record)


def hold_back(case: Case, desk: Desk) -> None:
    """Say once an hour that there are more pages than people can read; this one comes later."""
    account, region = desk.settings.account, desk.clients.region
    text = account_pages.of_held_back(account, region, desk.now, PAGES_PER_HOUR)
    desk.open_cases.postpone(case, desk.now + HELD_BACK)
    desk.pager.send_about_account("held_back", f"{desk.now:%Y-%m-%dT%H}", text)


def tell_mass_symptom(symptom: Symptom, reach: Reach, run: Run) -> None:
    """One page for all queues; raises LedgerUnavailable or PageNotSent."""
    spread = reach.queue_arns
    text = account_pages.of_mass_symptom(
        symptom.name,
        symptom.sentence,
        symptom.runbook,
        queue_arns=spread,
        managed_queues=reach.managed_queues,
        now=run.now,
        account=run.home.account,
        region=run.home.region,
        advice=symptom.mass_advice,
        next_command=symptom.mass_look(min(spread)),
    )
    names = " ".join(sorted(spread))
    news = f"mass_symptom:{sha256(names.encode()).hexdigest()[:12]}"
    run.pager.send_about_account(symptom.name, news, text)


def _page_of(case: Case, seen: LedgerView, telling: Telling, desk: Desk) -> PageRecord | None:
    """None where nobody is to be paged, or people have had this news; a drill pages nobody."""
    one_case = case.case_id if case.state in _NEWS_OF_ITS_OWN else ""
    news = f"{case.news}:{telling.news}:{one_case}"
    symptom = telling.symptom
    if symptom is None or telling.severity is None or DRILL_TAG in telling.facts.tags:
        return None
    if seen.page and seen.page.has_told(news, desk.now):
        return None
    return _record(case, seen, telling, symptom, desk, news)


def _record(  # noqa: PLR0913, PLR0917 - each is one thing that a page is made of
    case: Case, seen: LedgerView, telling: Telling, symptom: Symptom, desk: Desk, news: str
) -> PageRecord:
    text = page.of_case(
        replace(case, paged=True),
        sentence=symptom.sentence,
        runbook=symptom.runbook,
        attributes=telling.facts.attributes,
        tags=telling.facts.tags,
        event_names=telling.facts.event_names,
        known=seen.known.to_compare(telling.facts.attributes, desk.now) if seen.known else None,
        last_change=last_change(desk.clients, case.queue_arn),
        next_command=telling.next_command,
        first=telling.first,
        beyond=telling.beyond,
        shown=symptom.shows,
    )
    urgent = telling.severity is Severity.URGENT
    return PageRecord.after(
        seen.page, news, text, urgent=urgent, at=desk.now, about=case.transition
    )
