"""What would hurt if a pinned policy, or a DLQ, were written with less care."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_PIN = "mendq.model.policy"
_PINS = "mendq.cases.pins"
_CHANGES = "mendq.aws.recent_changes"
_ANALYZER = "mendq.heal.restore_policy"
_RESTORING = "mendq.catalogue._restore_policy"
_ATTACH = "mendq.heal.apply"
_FIT = "mendq.aws.dlqs"
_ATTACHING = "mendq.catalogue._attach_dlq"
_STEPS = "mendq.model.steps"
_RESTORED = "tests.heal.test_restore_policy"
_ATTACHED = "tests.heal.test_attach_dlq"

POLICIES = (
    Selection(("tests.model.test_pin",), (
        Mutant("a policy is restored that is not byte for byte the pinned one", _PIN, "digest_of",
            "policy.«»strip().»encode()"),
        Mutant("a pin whose text was tampered with is restored", _PIN, "doubt_at_once",
            "«digest_of(pin.policy) !=»not» pin.digest"),
        Mutant("a policy is restored into another queue of that name", _PIN, "doubt_at_once",
            "«(pin.queue_arn, pin.queue_created_at) != (queue_arn, created_at)»pin.queue_arn != "
            "queue_arn»"),
        Mutant("a pin of more than 30 days is restored", _PIN, "doubt_at_once",
            "now >«=»» pin.expires_at"),
        Mutant("a pin from the future lets no change speak against it", _PIN, "doubt_at_once",
            "pin.pinned_at «> now + MOST_CLOCK_AHEAD»< now - HOLDS»"),
        Mutant("a person's revocation is undone", _PIN, "judged",
            "if not _deploys(each, pin)«» and not each.principal_arn»"),
        Mutant("a role whose name begins as a deployment's is taken for it", _PIN, "_deploys",
            "change.principal_arn« in pin.automation».startswith(pin.automation or "
            "'arn:aws:iam')»"),
        Mutant("a policy is restored before CloudTrail has told who changed it", _PIN,
            "_unheard_of", "if «now - last < CLOUDTRAIL_TELLS_WITHIN»last > now»:"),
        Mutant("a change that CloudTrail never told of is overwritten", _PIN, "_unheard_of",
            "if not later« or later[-1].at < modified_at - CLOCK_SKEW»»:"),
    )),
    Selection(("tests.aws.test_queue_changes",), (
        Mutant("our own reads hide who changed a queue last", _CHANGES, "_events",
            '"AttributeKey": "EventName", "AttributeValue": «name»SQS»'),
        Mutant("a change is called the last though later ones were not read", _CHANGES,
            "RecentChanges.last_of", "(newest is None« or newest.at < max(may_hide)»»)"),
    )),
    Selection(("tests.cases.test_pins",), (
        Mutant("of two who pin at once the first is lost without a word", _PINS, "Pins.put",
            "generation «»>»= :before"),
        Mutant("a lost answer locks whoever pins out of the own pin", _PINS, "Pins.put",
            'OR «pin = :mine»(pin = :mine AND generation = :before)»"'),
        Mutant("a pin that was taken away gives its number to the next", _PINS, "Pins.remove",
            "«{**_key(found.queue_arn), **retained}»_key(found.queue_arn)»"),
    )),
    Selection((
        f"{_RESTORED}::test_a_check_that_does_not_pass_writes_nothing",
        f"{_RESTORED}::test_a_check_that_does_not_answer_writes_nothing_and_one_that_may_later_is_waited_for",
        f"{_RESTORED}::test_whatever_settings_say_a_person_approves_what_it_adds",
    ), (
        Mutant("a policy that Access Analyzer finds public is written", _ANALYZER,
            "refusal_to_write", 'answer.get("result") «!= PASSED»is None»'),
        Mutant("a policy is written that Access Analyzer did not answer about", _ANALYZER,
            "refusal_to_write", 'return «Retry("access_not_checked", reason)»None»'),
        Mutant("a policy that adds access is put back and nobody is asked", _RESTORING,
            "restoration", "reason«, at_most=Mode.PROPOSE»»)"),
    )),
    Selection((
        "tests.catalogue.test_policies",
        "tests.catalogue.test_catalogue",
    ), (
        Mutant("a pinned policy is restored that lets everybody in", _RESTORING, "_pointless",
            "if is_open_to_everybody(policy)«» and not facts.exists»:"),
        Mutant("a pinned policy is restored that does not help who was refused", _RESTORING,
            "_grants_it_to_all", "bool(pairs) «and»or» all("),
        Mutant("a pinned policy is restored before it is known who changed the queue", _RESTORING,
            "restoration", "if against := pointless« or pinned.doubt»»:"),
    )),
    Selection((
        f"{_ATTACHED}::test_one_that_somebody_attached_meanwhile_is_retained_and_nothing_is_made",
        f"{_ATTACHED}::test_a_queue_of_that_name_with_a_policy_is_somebodys",
        f"{_ATTACHED}::test_what_the_source_does_not_name_is_not_made",
        f"{_ATTACHED}::test_what_does_not_fit_is_refused_however_it_was_planned",
        f"{_ATTACHED}::test_messages_that_would_come_round_or_go_on_without_an_end_are_refused",
        f"{_ATTACHED}::test_whoever_does_not_name_it_or_does_not_fit_is_not_let_in",
        f"{_ATTACHED}::test_steps_of_others_are_not_taken",
    ), (
        Mutant("a queue is made beside the one that somebody attached meanwhile", _ATTACH, "attach",
            "«changed_meanwhile(now, seen, to_set) or »»misfit(clients, now, steps)"),
        Mutant("somebody's queue with a policy of its own gets the messages", _ATTACH, "_made",
            "if «»not »theirs else None"),
        Mutant("a queue is made that its source does not name", _FIT, "_fault",
            "!= step.after«» and attached»:"),
        Mutant("a DLQ of the wrong type or region is attached", _FIT, "_fault",
            "«why_unfit_as_dlq(*ends) or »»_leads_back"),
        Mutant("messages go round in a ring of DLQs", _FIT, "_leads_back",
            "if following == «source_arn»behind»:"),
        Mutant("a chain of DLQs has no end", _FIT, "_leads_back",
            'return «f"more than {LONGEST_CHAIN} DLQs stand behind one another"»None»'),
        Mutant("a queue that does not name it is let in as a source", _FIT, "_not_its_sources",
            "dlq_arn «!»=»= queue_arn:"),
        Mutant("the Lambda of DLQs writes another's attributes", _FIT, "_fault",
            'return «"this Lambda does not own it"»None»'),
    )),
    Selection((
        "tests.catalogue.test_dlq",
        "tests.catalogue.test_catalogue::test_a_near_miss_is_not_touched",
    ), (
        Mutant("the backlog of a consumer that fails is dumped into a new DLQ", _ATTACHING,
            "_cause", "if «opened := sorted(FIXED_FIRST & facts.open_symptoms)»opened := ()»:"),
        Mutant("a DLQ is attached though nothing was measured", _ATTACHING, "_cause_first",
            "«facts.measured is not None and »»not facts.move_task_running"),
        Mutant("a queue of that name that somebody made otherwise is attached", _ATTACHING,
            "_name_is_taken", "not namesake.exists or _is_as_made«(facts, namesake)»»"),
        Mutant("a quarantine is made as a DLQ", _ATTACHING, "make_again",
            "if «»not »is_quarantine("),
    )),
    Selection(("tests.model.test_steps",), (
        Mutant("a DLQ that is attached is replaced by another", _STEPS, "AttachDlq.out_of_bounds",
            "«self.before or »»redrive is None"),
        Mutant("messages go to the DLQ after one receive", _STEPS, "AttachDlq.out_of_bounds",
            "«FEWEST_RECEIVES»0» <= redrive.max_receive_count"),
        Mutant("a source is put out of a DLQ", _STEPS, "AllowRedriveFrom.out_of_bounds",
            "if not set(«before.sources) < set(»»after.sources):"),
        Mutant("a DLQ that lets nobody in is opened", _STEPS, "AllowRedriveFrom.out_of_bounds",
            '«(before.permission, after.permission) != ("byQueue", "byQueue")»after.permission != '
            '"byQueue"»'),
        Mutant("a DLQ names more sources than SQS takes", _STEPS, "AllowRedriveFrom.out_of_bounds",
            "len(after.sources) > MOST_SOURCES«» + 1»"),
    )),
)  # fmt: skip
