"""What would hurt if one reason not to act were not asked."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_GUARDRAILS = "functions.healing.guardrails"
_WRITE = "functions.healing.write_guardrails"
_EVIDENCE = "functions.healing.evidence"
_VIEW = "functions.healing.ledger_view"
_CASE = "functions.healing.case"
_PROPOSAL = "functions.healing.proposal"
_MANAGED = "functions.healing.managed"
_EXCUSED = "functions.healing.excused"
_SPREAD = "functions.healing.spread"

GUARDRAILS = (
    Selection(
        ("tests.functions.healing.test_guardrails",),
        (
            Mutant(
                "Mendq acts on its own failing calls, and so on itself",
                _GUARDRAILS,
                "own_call",
                "call.principal_arn in home.own_roles",
                "call.principal_arn in home.own_roles[1:]",
            ),
            Mutant(
                "whoever has a role whose name begins as ours is never helped",
                _GUARDRAILS,
                "own_call",
                "call.principal_arn in home.own_roles",
                "call.principal_arn.startswith(home.own_roles)",
            ),
            Mutant(
                "a queue of another account is changed",
                _GUARDRAILS,
                "elsewhere",
                "queue[:3] != here",
                "queue[:2] != here[:2]",
            ),
            Mutant(
                "a queue of another region is changed",
                _GUARDRAILS,
                "elsewhere",
                "queue[:3] != here",
                "queue[2] != here[2]",
            ),
            Mutant(
                "a freeze is asked after what would page: a frozen account is told of old calls",
                _GUARDRAILS,
                "ON_CASE",
                "frozen, stale_or_future",
                "stale_or_future, frozen",
            ),
            Mutant(
                "a frozen account is written to",
                _GUARDRAILS,
                "frozen",
                "situation.view.frozen is not None",
                "situation.view.frozen == ''",
            ),
            Mutant(
                "calls that say nothing of the queue any more start a fix",
                _GUARDRAILS,
                "stale_or_future",
                "if not situation.fresh_calls:",
                "if situation.fresh_calls < 0:",
            ),
            Mutant(
                "a call of an hour and a second ago counts",
                _GUARDRAILS,
                "is_fresh",
                "now - call.event_time <= STALE_AFTER",
                "now - call.event_time <= STALE_AFTER + FUTURE_AFTER",
            ),
            Mutant(
                "a call from the far future counts",
                _GUARDRAILS,
                "is_fresh",
                "-FUTURE_AFTER <= now - call.event_time <= STALE_AFTER",
                "now - call.event_time <= STALE_AFTER",
            ),
            Mutant(
                "a call whose sender's clock is ahead by seconds is lost",
                _GUARDRAILS,
                "FUTURE_AFTER",
                "timedelta(minutes=5)",
                "timedelta(minutes=0)",
            ),
            Mutant(
                "fewer failed calls than a symptom needs start a fix",
                _GUARDRAILS,
                "too_little_evidence",
                "if not situation.evidence.suffices(situation.evidence_needed):",
                "if not situation.evidence.sightings:",
            ),
            Mutant(
                "two cases are open for the same queue and symptom",
                _GUARDRAILS,
                "case_already_open",
                "case.is_open(situation.now, situation.timing)",
                "case.is_final",
            ),
            Mutant(
                "two runs write the same attribute at once",
                _GUARDRAILS,
                "claimed_by_another",
                "situation.view.held_by_another(situation.owner, situation.now)",
                "situation.view.held_by_another(situation.owner, situation.now) is None",
            ),
            Mutant(
                "a run that another's claim stops never comes again",
                _GUARDRAILS,
                "claimed_by_another",
                "again=True",
                "again=False",
            ),
            Mutant(
                "a step out of AWS's bounds is written",
                _GUARDRAILS,
                "out_of_bounds",
                "if fault:",
                "if not fault and step is None:",
            ),
            Mutant(
                "five per cent of the queues at once are taken for single faults",
                _GUARDRAILS,
                "are_many",
                "queues > max(FEW_QUEUES, limits.mass_symptom_share * managed_queues)",
                "queues > FEW_QUEUES + limits.mass_symptom_share * managed_queues",
            ),
            Mutant(
                "a mass symptom of a small account is fixed queue by queue",
                _GUARDRAILS,
                "FEW_QUEUES",
                "3",
                "4",
            ),
            Mutant(
                "a mass symptom stops nothing",
                _GUARDRAILS,
                "mass_symptom",
                "if not are_many(",
                "if are_many(",
            ),
            Mutant(
                "a write begins that the Lambda has no time to record",
                _GUARDRAILS,
                "SECONDS_TO_WRITE",
                "15",
                "14",
            ),
            Mutant(
                "a value that a person set is overwritten",
                _WRITE,
                "_contested",
                "record.contested_until is None and not was_ours",
                "record.contested_until is not None and not was_ours",
            ),
            Mutant(
                "Mendq comes back before its days of silence are over",
                _WRITE,
                "_contested",
                "proposal.now < record.contested_until",
                "proposal.now > record.contested_until",
            ),
            Mutant(
                "an overridden value is found only in the last step of a plan",
                _WRITE,
                "contested",
                "next((each for each in refusals if each is not None), None)",
                "next((each for each in refusals if each is None), None)",
            ),
            Mutant(
                "an attribute is written twice within the cooldown",
                _WRITE,
                "too_soon",
                "if written:",
                "if written > 1:",
            ),
            Mutant(
                "an attribute is written a fourth time in a day",
                _WRITE,
                "too_often",
                "written >= most",
                "written > most",
            ),
            Mutant(
                "messages are sent back twice a day",
                _WRITE,
                "_more_than_its_own_bound",
                ">= most:",
                "> most:",
            ),
            Mutant(
                "the writes of a day count for half of it",
                _WRITE,
                "A_DAY",
                "hours=24",
                "hours=12",
            ),
            Mutant(
                "a write of exactly a day ago still counts",
                _PROPOSAL,
                "Proposal.written_since",
                "self.now - write.at < age",
                "self.now - write.at <= age",
            ),
            Mutant(
                "a claim that ran out holds its queue for ever",
                _VIEW,
                "AttributeRecord.held_by_another",
                "now < self.claim_until",
                "now <= self.claim_until",
            ),
            Mutant(
                "a run is stopped by its own claim",
                _VIEW,
                "AttributeRecord.held_by_another",
                "self.claim_owner != owner",
                "self.claim_owner is not owner.upper()",
            ),
            Mutant(
                "a follow-up that is down keeps a queue from being fixed for ever",
                _CASE,
                "Case.is_open",
                "now < self.at + patience + GRACE",
                "now < self.at + patience * 2 + GRACE",
            ),
            Mutant(
                "an escalated case ends by time alone, before a person saw it",
                _CASE,
                "Case.is_open",
                "patience is None or",
                "patience is not None and",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_evidence",),
        (
            Mutant(
                "one call delivered three times counts as three",
                _EVIDENCE,
                "Evidence.of",
                "by_event.setdefault(each.event_id, each)",
                "by_event.setdefault(each.event_id + str(len(by_event)), each)",
            ),
            Mutant(
                "one failed call fewer than asked is enough",
                _EVIDENCE,
                "Evidence.suffices",
                "last = needed.distinct_events - 1",
                "last = needed.distinct_events - 2",
            ),
            Mutant(
                "failed calls far apart are taken for one fault",
                _EVIDENCE,
                "Evidence.suffices",
                "later - first <= window",
                "later - first <= 2 * window",
            ),
            Mutant(
                "failed calls exactly as close as asked are lost",
                _EVIDENCE,
                "Evidence.suffices",
                "later - first <= window",
                "later - first < window",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_managed",),
        (
            Mutant(
                "a tag raises a queue's mode above what the account consented to",
                _MANAGED,
                "Consent.mode_of",
                "min(wanted, max(self.mode, self.tag_may_raise_to))",
                "wanted",
            ),
            Mutant(
                "a tag cannot lower a queue's mode",
                _MANAGED,
                "Consent.mode_of",
                "min(wanted, max(self.mode, self.tag_may_raise_to))",
                "max(self.mode, min(wanted, self.tag_may_raise_to))",
            ),
            Mutant(
                "a tag with a typing error hands a queue over",
                _MANAGED,
                "Consent.mode_of",
                "return Mode.OBSERVE",
                "return max(self.mode, self.tag_may_raise_to)",
            ),
            Mutant(
                "a queue that its owner tagged off is managed",
                _MANAGED,
                "Consent.mode_of",
                "if tag == OFF:",
                "if tag == OFF and not self._names(queue_name):",
            ),
            Mutant(
                "a quarantine's messages are sent back",
                _MANAGED,
                "Consent.mode_of",
                "if is_quarantine(queue_name):",
                "if is_quarantine(queue_name) and MODE_TAG not in tags:",
            ),
            Mutant(
                "a bare star manages every queue of an account",
                _MANAGED,
                "_fits",
                'prefix not in ("", pattern)',
                "prefix != pattern",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_excused",),
        (
            Mutant(
                "a queue that is changed all day is never told of",
                _EXCUSED,
                "keeps_changing",
                "len(lately) < MOST_CHANGES",
                "len(lately) <= MOST_CHANGES",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_spread",),
        (
            Mutant(
                "queues of the hour before last count as a mass symptom",
                _SPREAD,
                "Spread.queues",
                "slot >= oldest",
                "slot >= oldest - WINDOW",
            ),
            Mutant(
                "the notes of a mass symptom that lasts run out, and it looks like a few faults",
                _SPREAD,
                "Spread.missing",
                "slot >= slot_of(now) - SLOT",
                "slot >= slot_of(now) - WINDOW",
            ),
            Mutant(
                "one note that cannot be read stops an account",
                _SPREAD,
                "_note_of",
                "(moment, queue_arn) if moment.tzinfo else None",
                "(moment, queue_arn)",
            ),
        ),
    ),
)
