"""What would hurt if one reason not to act were not asked."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_GUARDRAILS = "mendq.heal.guardrails"
_WRITE = "mendq.heal.guardrails"
_EVIDENCE = "mendq.model.evidence"
_VIEW = "mendq.cases.view"
_CASE = "mendq.model.case"
_PROPOSAL = "mendq.heal.guardrails"
_MANAGED = "mendq.model.limits"
_SPREAD = "mendq.cases.view"
_CATALOGUE = "mendq.catalogue"

GUARDRAILS = (
    Selection(("tests.catalogue.test_matching",), (
        Mutant("Mendq acts on its own failing calls, and so on itself", _CATALOGUE, "why_ignored",
            '"own_call": «home.purpose_of(call.principal_arn)»None»'),
        Mutant("whoever has a role whose name begins as ours is never helped", _CATALOGUE,
            "Home.purpose_of", "if name« == role_name(each, self.region)».startswith("
            "role_name(each, self.region))»"),
        Mutant("another account's role of the same name is taken for ours", _CATALOGUE,
            "Home.purpose_of", 'EVERY if «head.endswith(f":iam::{self.account}")»head» else'),
        Mutant("a queue of another account is changed", _CATALOGUE, "Home.holds",
            "[:«3] == (partition_of(self.region), self.region, self.account)»2] == "
            "(partition_of(self.region), self.region)»"),
        Mutant("a queue of another region is changed", _CATALOGUE, "Home.holds",
            "[«:3] == (partition_of(self.region), self.region, self.account)»2] == self.account»"),
        Mutant("a refused look at a queue is evidence", _CATALOGUE, "why_ignored",
            '"no_evidence": symptom and not «symptom.speaks(call)»queue_arn»'),
    )),
    Selection(("tests.probe.test_probe",), (
        Mutant("whoever calls on the probe's queue hides that failed calls are lost", _GUARDRAILS,
            "is_probe", "if «home.purpose_of(call.principal_arn) != PROBE or »»call.event_name"),
        Mutant("a probe that came without a queue counts as lost", _GUARDRAILS, "is_probe",
            "in («None, »»arn_of_name(QUEUE_NAME, home.region, home.account)«»,»)"),
    )),
    Selection(("tests.heal.test_guardrails",), (
        Mutant("a case says that a freeze kept Mendq from a write that stands", _GUARDRAILS,
            "ON_CASE", "«claimed_by_another, frozen»frozen, claimed_by_another»"),
        Mutant("a frozen account is written to", _GUARDRAILS, "frozen",
            "situation.view.frozen «is not None»== ''»"),
        Mutant("calls that say nothing of the queue any more start a fix", _GUARDRAILS,
            "stale_or_future", "if «not situation.fresh»situation.fresh is None»:"),
        Mutant("a call of an hour and a second ago counts", _GUARDRAILS, "is_fresh",
            "now - call.event_time <= STALE_AFTER«» + FUTURE_AFTER»"),
        Mutant("a call from the far future counts", _GUARDRAILS, "is_fresh",
            "«-FUTURE_AFTER <= »»now - call.event_time <= STALE_AFTER"),
        Mutant("a call whose sender's clock is ahead by seconds is lost", _GUARDRAILS,
            "FUTURE_AFTER", "timedelta(minutes=«5»0»)"),
        Mutant("fewer failed calls than a symptom needs start a fix", _GUARDRAILS,
            "too_little_evidence",
            "if not situation.evidence.«suffices»sightings»:"),
        Mutant("two cases are open for the same queue and symptom", _GUARDRAILS,
            "Situation.open_case", "case.«is_open(self.now, self.timing)»is_final»"),
        Mutant("two runs write the same attribute at once", _GUARDRAILS, "claimed_by_another",
            "situation.view.held_by_another(situation.owner, situation.now)«» is None»"),
        Mutant("a run that another's claim stops never comes again", _GUARDRAILS,
            "claimed_by_another", "«Retry»Ignore»("),
        Mutant("a step out of AWS's bounds is written", _GUARDRAILS, "out_of_bounds",
            "if «fault»not fault and step is None»:"),
        Mutant("five per cent of the queues at once are taken for single faults", _GUARDRAILS,
            "why_many", "«max(FEW_QUEUES, share * of)»FEW_QUEUES + share * of»"),
        Mutant("so many managed queues that a hundred at once are few are fixed one by one",
            _GUARDRAILS, "why_many", "shown > «min»max»(most, max(FEW_QUEUES, share * of))"),
        Mutant("queues that a stranger made and tagged dilute a mass symptom", _VIEW,
            "Reach.among", "if theirs «>= mode»in Mode»"),
        Mutant("a mass symptom of a small account is fixed queue by queue", _GUARDRAILS,
            "FEW_QUEUES", "«3»4»"),
        Mutant("queues that nobody manages any more count in a mass symptom", _VIEW,
            "Reach.among", "spread« & managed.keys()» | spread»"),
        Mutant("a mass symptom stops nothing", _GUARDRAILS, "mass_symptom",
            "if «»not »many else None"),
        Mutant("a write begins that the Lambda has no time to record", _GUARDRAILS,
            "SECONDS_TO_WRITE", "«15»14»"),
        Mutant("a value that a person set is overwritten", _WRITE, "_overridden",
            "record.overridden_until is «»not »None and not was_ours"),
        Mutant("Mendq comes back before its days of silence are over", _WRITE, "_overridden",
            "situation.now «<»>» record.overridden_until"),
        Mutant("an overridden value is found only in the last step of a plan", _WRITE, "overridden",
            "next((each for each in refusals if each is «not »»None), None)"),
        Mutant("an attribute is written twice within the cooldown", _WRITE, "too_soon",
            "if written«» > 1»:"),
        Mutant("an attribute is written a fourth time in a day", _WRITE, "too_often",
            "written >«=»» most"),
        Mutant("messages are sent back twice a day", _WRITE, "too_often", ">«=»» own:"),
        Mutant("the writes of a day count for half of it", _WRITE, "A_DAY", "hours=«24»12»"),
        Mutant("a write of exactly a day ago still counts", _PROPOSAL, "Situation.written_since",
            "self.now - each.at <«»=» age"),
        Mutant("a claim that ran out holds its queue for ever", _VIEW,
            "AttributeRecord.held_by_another", "now <«»=» self.claim_until"),
        Mutant("a run is stopped by its own claim", _VIEW, "AttributeRecord.held_by_another",
            "self.claim_owner «in (None, owner)»is None»"),
        Mutant("a follow-up that is down keeps a queue from being fixed for ever", _CASE,
            "Case.is_open", "now < self.at + patience «»* 2 »+ GRACE"),
        Mutant("a queue that is changed all day is never told of", _GUARDRAILS, "keeps_changing",
            "len(lately) <«»=» MOST_CHANGES"),
        Mutant("an escalated case ends by time alone, before a person saw it", _CASE,
            "Case.is_open", "patience is «None or»not None and»"),
    )),
    Selection(("tests.model.test_evidence",), (
        Mutant("one call delivered three times counts as three", _EVIDENCE, "Evidence.of",
            "by_event.setdefault(each.event_id«» + str(len(by_event))», each)"),
        Mutant("one failed call fewer than asked is enough", _EVIDENCE, "Evidence.suffices",
            "last = DISTINCT_EVENTS - «1»2»"),
        Mutant("failed calls far apart are taken for one fault", _EVIDENCE, "Evidence.suffices",
            "later - first <= «»2 * »window"),
        Mutant("failed calls exactly as close as asked are lost", _EVIDENCE, "Evidence.suffices",
            "later - first <«=»» window"),
    )),
    Selection(("tests.model.test_limits",), (
        Mutant("a tag raises a queue's mode above what the account consented to", _MANAGED,
            "Consent.mode_of",
            "«min(wanted, max(begins or Mode.OBSERVE, self.tag_may_raise_to))»wanted»"),
        Mutant("a tag gives a queue that nobody named the account's mode", _MANAGED,
            "Consent.mode_of", "max(«begins or Mode.OBSERVE»self.mode», self.tag_may_raise_to)"),
        Mutant("a tag cannot lower a queue's mode", _MANAGED, "Consent.mode_of",
            "«min(wanted, max(begins or Mode.OBSERVE»max(begins or Mode.OBSERVE, min(wanted», "
            "self.tag_may_raise_to))"),
        Mutant("a tag with a typing error hands a queue over", _MANAGED, "Consent.mode_of",
            "MODES.get(tag, Mode.«OBSERVE»HEAL»)"),
        Mutant("a queue that its owner tagged off is managed", _MANAGED, "Consent.mode_of",
            "return begins if tag is None «»or begins »else None"),
        Mutant("a quarantine's messages are sent back", _MANAGED, "Consent.mode_of",
            "if is_quarantine(queue_name)«» and MODE_TAG not in tags»:"),
        Mutant("a bare star manages every queue of an account", _MANAGED, "_fits",
            'prefix «not in ("", pattern)»!= pattern»'),
    )),
    Selection(("tests.cases.test_spread",), (
        Mutant("queues of the hour before last count as a mass symptom", _SPREAD, "Spread.queues",
            "slot >= oldest«» - WINDOW»"),
        Mutant("the notes of a mass symptom that lasts run out, and it looks like a few faults",
            _SPREAD, "Spread.missing", "noted >= slot - «SLOT»WINDOW»"),
        Mutant("one note that cannot be read stops an account", _SPREAD, "Spread.from_texts",
            "if (moment := datetime.fromisoformat(slot))«.tzinfo»»:"),
    )),
)  # fmt: skip
