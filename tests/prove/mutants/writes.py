"""What would hurt if a claim, a snapshot, a comparison or a check before a write were missing."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_CLAIMS = "mendq.cases.transactions"
_APPLYING = "mendq.heal.apply"
_FREEZE = "mendq.aws.clients"
_ROLLBACK = "mendq.heal.undo"
_VIEW = "mendq.cases.view"
_ROLLING_BACK = "mendq.heal.rollback"
_INTERRUPTIONS = "tests.heal.test_interruptions"
_FIXING = "tests.heal.test_assess"
_UNDOING = "tests.heal.test_rollback"
_RECORDER = "mendq.cli.deploy.record_failed_calls"
_RECORDED = "tests.cli.commands.test_record"

WRITES = (
    Selection(("tests.prove.test_races::test_nothing_is_found_where_nothing_is_planted",), (
        Mutant("a freeze between Mendq's look and its claim stops nothing", _CLAIMS,
            "_not_frozen", '"attribute_not_exists(«pk»frozen»)"'),
        Mutant("what a run that died has written is taken for nothing", "mendq.heal.recover",
            "Found.cannot_have_landed", "as_before «»or True »or"),
        Mutant("a claim is let go and not the case that it held", _CLAIMS, "release_parts",
            "if seen.case is «not »»None:"),
    )),
    Selection((
        f"{_INTERRUPTIONS}::test_of_two_runs_that_both_looked_one_writes",
        f"{_INTERRUPTIONS}::test_a_claim_that_still_runs_keeps_the_other_out",
        f"{_INTERRUPTIONS}::test_a_person_between_look_and_write_keeps_the_value",
        f"{_INTERRUPTIONS}::test_a_lost_answer_is_not_sent_again_over_a_persons_value",
        f"{_INTERRUPTIONS}::test_a_release_takes_nobody_elses_snapshot",
        f"{_INTERRUPTIONS}::test_a_write_that_sqs_refuses_is_a_case_for_a_person",
        "tests.heal.test_heal_batch::test_a_claim_without_an_end_has_run_out",
    ), (
        Mutant("a claim that still runs is taken by another run", _CLAIMS, "_hold",
            "now=now«» + timedelta(hours=1)»,"),
        Mutant("a claim without an end locks its queue for ever", _CLAIMS, "_hold",
            '"OR «attribute_not_exists(claim_until) OR »»claim_until <= :now'),
        Mutant("a run lets go of another run's claim and deletes its snapshot", _CLAIMS,
            "release_parts", '"«»attribute_exists(pk) OR »claim_owner = :owner",'),
        Mutant("a person's value is overwritten between look and write", _APPLYING,
            "changed_meanwhile", "found «!= str(step.before)»is None»"),
        Mutant("what AWS refused is recorded as written", _APPLYING, "write",
            'return «Escalate(AWS_REFUSED, f"AWS refused the change: {error}")»None»'),
    )),
    Selection((
        f"{_FIXING}::test_a_queue_that_is_made_anew_while_it_is_looked_at_keeps_its_value",
        f"{_FIXING}::test_over_the_writes_of_a_minute_a_queue_waits_for_its_next_failed_call",
        f"{_FIXING}::test_a_healed_queue_has_a_transition_a_snapshot_and_no_claim",
        f"{_FIXING}::test_an_untagged_queue_is_never_touched",
        f"{_FIXING}::test_drills_are_counted_among_themselves",
        f"{_FIXING}::test_a_drill_does_not_count_among_the_queues_of_a_mass_symptom",
    ), (
        Mutant("a queue that was made anew under the same name is written to", _APPLYING,
            "changed_meanwhile", "facts.created_at «!= seen.created_at»is None»"),
        Mutant("an account's writes of a minute are one more than its settings allow", _CLAIMS,
            "_spend_a_write", "writes <«»=» :most"),
        Mutant("a write is made without a snapshot to go back to", _CLAIMS, "claim_parts",
            '«ClaimPart(_keep_snapshot(claim, snapshot), "claimed", '
            '"its snapshot is being written"),»»'),
        Mutant("a queue that nobody gave to Mendq is changed", "mendq.model.limits",
            "Consent.mode_of", "self.mode« if self.names(queue_name) else None»»"),
        Mutant("a tag on every queue frees all of them from the bound on mass symptoms",
            "mendq.heal.guardrails", "mass_symptom", "drills > MOST_DRILLS«» * 2»"),
        Mutant("practice stops the fixes of real queues", "mendq.model.limits", "counted_as",
            '«f"drill#{symptom}" if DRILL_TAG in tags else »»symptom'),
    )),
    Selection((
        "tests.heal.test_approve::test_another_plan_than_the_approved_one_is_not_carried_out",
        ("tests.follow_up.test_follow_up::"
        "test_a_queue_that_is_no_longer_to_be_healed_is_left_alone"),
        "tests.redrive.test_waiting",
    ), (
        Mutant("another plan than the approved one is written", "mendq.heal.decide", "_plan_again",
            "«_documents(plan.steps) != case»not plan».steps"),
        Mutant("a queue that Mendq may no longer change is written to", "mendq.heal.decide",
            "decide_unlooked", "or situation.«mode is Mode.HEAL»waits.steps»:"),
        Mutant("heal writes what another Lambda owns", "mendq.heal.decide", "_act_on",
            "owner «is situation.whose»in type(owner)»"),
    )),
    Selection(("tests.cases.test_claimed_cases",), (
        Mutant("a case is moved between its write and the record of it", _CLAIMS, "_UNMOVED",
            "claim_owner «»<> :owner OR claim_owner »= :owner"),
        Mutant("who looked before a claim records behind it", _CLAIMS, "_UNMOVED",
            "AND n «=»<= :at_n OR n >» :at_n"),
        Mutant("a clock put forward ends a claim that still runs", _CLAIMS, "record_parts",
            "«entry.claims_now or »»case.at"),
    )),
    Selection(("tests.aws.test_freeze",), (
        Mutant("a calendar that cannot be read freezes nothing", _FREEZE, "closed_calendars",
            'return «f"the change calendar cannot be read ({type(error).__name__})"»None if error '
            "else ''»"),
        Mutant("a closed calendar freezes nothing", _FREEZE, "is_closed",
            '["State"] «!»=»= "OPEN"'),
    )),
    Selection((
        f"{_UNDOING}::test_neither_freeze_nor_budget_nor_tag_stops_it",
        f"{_UNDOING}::test_a_run_that_has_slept_does_not_write",
        f"{_UNDOING}::test_what_aws_refuses_is_answered_and_leaves_no_claim",
        f"{_UNDOING}::test_a_dry_run_says_what_would_be_done_and_changes_nothing",
        f"{_UNDOING}::test_a_case_of_another_account_is_not_touched",
        f"{_UNDOING}::test_another_run_at_work_is_not_disturbed",
        f"{_UNDOING}::test_another_open_case_of_the_queue_comes_first",
        f"{_UNDOING}::test_for_a_week_heal_stays_away_and_says_so_once",
    ), (
        Mutant("a freeze or a budget keeps people from taking back a fix", _CLAIMS, "claim_parts",
            "if «»not »claim.intent.undoes:"),
        Mutant("a run that slept on its claim wakes up and writes", _APPLYING, "apply",
            "remaining_seconds() < «»-»guardrails.SECONDS_TO_RECORD"),
        Mutant("a refused write leaves its claim behind, and nobody else may write", _APPLYING,
            "apply", "«context.case_store.release(case, context.owner, seen)»pass»"),
        Mutant("a dry run of a rollback writes", _ROLLING_BACK, "_Asked.answer",
            "if «self.dry_run or »»not ("),
        Mutant("a case of another account is rolled back", "mendq.heal.approve", "look_up",
            "if not context.is_here(newest.queue_arn)«» and not history»:"),
        Mutant("a rollback writes beside another run at work", _ROLLING_BACK,
            "_Asked._in_other_hands",
            "if self.view.«held_by_another(context.owner, context.now)»frozen == ''»:"),
        Mutant("a rollback takes a later case's value away", _ROLLING_BACK,
            "_Asked._in_other_hands",
            "if «»not »other.is_open(context.now, context.settings.timing):"),
        Mutant("a fix that was rolled back is made again at once", _VIEW,
            "CaseStoreView.records_after", "overridden_until=«until»case.at»,"),
        Mutant("nobody is told that a symptom shows again after a rollback", _VIEW,
            "CaseStoreView.records_after", "owes_a_notification=«True»False»"),
    )),
    Selection(("tests.heal.test_undo",), (
        Mutant("a rollback overwrites what a person set since", _ROLLBACK, "_undo",
            "«now != written.after or »»made_anew or written.was_overridden"),
        Mutant("a rollback writes to another queue of the same name", _ROLLBACK, "_undo",
            "now != written.after or «made_anew or »»written.was_overridden"),
        Mutant("a rollback writes where a person has overruled us", _ROLLBACK, "_undo",
            "now != written.after or made_anew« or written.was_overridden»»"),
        Mutant("a rollback lowers a retention, which deletes messages", _ROLLBACK, "NEVER_PUT_BACK",
            '"«MessageRetentionPeriod", "»»Policy"'),
        Mutant("a rollback puts a policy back that somebody may have revoked", _ROLLBACK,
            "NEVER_PUT_BACK", '"MessageRetentionPeriod"«, "Policy"»»'),
        Mutant("a queue with messages is deleted by a rollback", _ROLLBACK, "_undo",
            "if kind is not None and «»not »kind.stays:"),
        Mutant("a rollback goes behind a value that a person chose in between", _ROLLBACK,
            "Written.joined", "if later.before «!= self.after»== self.before»:"),
        Mutant("a rollback takes a later fix's value for its own", _ROLLBACK, "_unless_overruled",
            "last_written «in (None, found.now)»is None or found.now»"),
        Mutant("the snapshot is not asked what stood there before", _ROLLBACK, "_undo",
            "if «»not snapshot and »snapshot else None"),
        Mutant("a redrive goes on after it was taken back", _ROLLBACK, "_undo",
            "if written.goes_on«» and kind is None»:"),
    )),
    Selection((
        f"{_RECORDED}::test_what_a_killed_run_left_the_next_deletes",
        f"{_RECORDED}::test_ctrl_c_ends_it_with_everything_deleted",
        f"{_RECORDED}::test_a_key_of_which_aws_never_answered_is_deleted_or_left",
        f"{_RECORDED}::test_a_list_of_something_else_deletes_nothing",
    ), (
        Mutant("a killed recorder leaves a trail behind that nobody knows of", _RECORDER,
            "Run.make", "«self._note([*made, name])»pass»"),
        Mutant("a key of which AWS never answered costs a dollar a month", _RECORDER,
            "Run._find_key", '«or next(found, "").rpartition("/")[2]»»'),
        Mutant("the recorder deletes by a list of another account", _RECORDER, "Run.__init__",
            'if «self._state["here"] != here or »»not re.fullmatch'),
    )),
)  # fmt: skip
