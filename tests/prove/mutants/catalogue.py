"""What would hurt if a call were read otherwise, or a plan went beyond its bounds."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_CALL = "mendq.model.failed_call"
_MESSAGES = "mendq.model.failed_call"
_REFUSALS = "mendq.catalogue._visibility"
_NEEDS = "mendq.catalogue._visibility"
_RACE = "mendq.catalogue.visibility_timeout_too_short"
_STEPS = "mendq.model.steps"
_TAGS = "mendq.model.limits"
_GRANTS = "mendq.catalogue._restore_policy"
_FAILING = "mendq.catalogue._attach_dlq"
_SYMPTOM = "mendq.catalogue.symptom"
_EXAMPLES = "tests.catalogue.test_catalogue"

CATALOGUE = (
    Selection(("tests.model.test_failed_call",), (
        Mutant("an event larger than CloudTrail's is read into memory", _CALL, "MAXIMUM_BYTES",
            "«262_144»262_144_000»"),
        Mutant("a forged event stops the whole batch", _CALL, "read", "(ValueError, TypeError, "
            "LookupError, «AttributeError, RecursionError, »»OverflowError)"),
        Mutant("another service's failed call counts", _CALL, "_read",
            '«detail.get("eventSource") != "sqs.amazonaws.com"»not detail.get("eventSource")»'),
        Mutant("a call that went through counts as failed", _CALL, "_read",
            'raw_error_code «in (None, "")»is None»'),
        Mutant("the name of a session, the caller's own text, decides who called", _CALL,
            "role_arn", "role/{name.«partition('/')[0»rpartition('/')[2»]}"),
        Mutant("a caller asks for more than the longest visibility timeout", _CALL,
            "_requested_visibility", "0 <= value <= «43_200»43_201»"),
        Mutant("a caller fills the case store with a long text", _CALL, "_text",
            "encodable(value«[:maximum]»»)"),
        Mutant("half a character of a caller's stops whoever writes it down", _CALL, "encodable",
            'text«.encode("utf-8", "replace").decode()»»'),
    )),
    Selection(("tests.model.test_error_messages",), (
        Mutant("a caller who writes SQS's sentence into a value decides", _MESSAGES, "reason_given",
            'error_message.«rfind»find»(" for parameter ")'),
        Mutant("the end of a message that CloudTrail cut decides", _MESSAGES, "reason_given",
            'not error_message.startswith("Value ")« or may_be_cut(error_message)»»'),
        Mutant("SQS's reason for another parameter decides", _MESSAGES, "reason_given",
            "not found« or found.group(1) != parameter»»"),
        Mutant("SQS's sentence in the middle of a caller's text decides", _MESSAGES,
            "size_limit_bytes", "_SHORTER_THAN.«fullmatch»search»(error_message)"),
    )),
    Selection((f"{_EXAMPLES}::test_a_near_miss_is_not_touched",), (
        Mutant("people are paged for a queue whose messages in flight are few again",
            "mendq.catalogue.in_flight_limit", "plan", "facts.in_flight < PASSED_BELOW«» - 1»"),
        Mutant("a symptom is seen in calls of another name", _SYMPTOM, "SeenAs.fits",
            "call.event_name« in self.event_names»»"),
        Mutant("a symptom of FIFO queues is seen on standard ones", _SYMPTOM, "SeenAs.fits",
            "«and self.on(call.queue_arn)»»"),
        Mutant("a caller's own mistake is taken for the queue's fault", _SYMPTOM, "SeenAs.fits",
            "«and self.says(call.error_message)»»"),
    )),
    Selection(("tests.catalogue.test_visibility",), (
        Mutant("a visibility timeout goes over the ceiling", _REFUSALS, "against",
            "need.seconds > ceiling_seconds«» + 1»"),
        Mutant("a tag cannot lower the ceiling of its queue", _NEEDS, "ceiling_seconds",
            "«seconds_tag(facts.tags, MAX_VISIBILITY_TAG) or »»limits.visibility_ceiling_seconds"),
        Mutant("guess after guess raises a visibility timeout without a bound", _REFUSALS,
            "against", "base_seconds = current« if person is None else person»»"),
        Mutant("a guess of five times what a person chose is made", _REFUSALS, "GUESS_FACTOR",
            "«4»5»"),
        Mutant("messages expire before their receives are over", _REFUSALS, "against",
            "«2 * »»receives * need.seconds > facts.retention_seconds"),
        Mutant("so many messages are held that SQS gives out no more", _REFUSALS, "against",
            "expected > «»2 * »IN_FLIGHT_BOUND"),
        Mutant("a longer visibility timeout slows the retries of a consumer that fails", _REFUSALS,
            "against_any", "failing_consumer(facts)) is not None«» and not needs»:"),
        Mutant("a queue's timeout is changed that its readers do not use", _REFUSALS,
            "against_any", "reader < «current»0» and"),
        Mutant("a timeout is raised that covers what is asked for", _REFUSALS, "against",
            "if current >«=»» need.enough_seconds:"),
        Mutant("a guess takes the place of a need that a tag names", _NEEDS, "named",
            "seconds_tag(facts.tags, MAX_PROCESSING_TAG)) is not None«» and needs»:"),
        Mutant("of two consumers the quicker one decides", _NEEDS, "largest_unmet",
            "«max»min»(unmet(facts, needs) or needs"),
    )),
    Selection((
        "tests.catalogue.test_visibility",
        f"{_EXAMPLES}::test_a_near_miss_is_not_touched",
    ), (
        Mutant("messages that are moved back are taken for messages handled twice", _RACE,
            "detect", "facts.«move_task_running or facts.»»takes_dlq_messages"),
        Mutant("retries are taken for messages handled twice", _REFUSALS,
            "_pages_of_a_race", "and «»not »measured.may_be_retries:"),
        Mutant("a visibility timeout is guessed for a race that nobody can time", _REFUSALS,
            "_pages_of_a_race", "if «»needs and »not unmet(facts, needs):"),
    )),
    Selection(("tests.model.test_steps", "tests.model.test_limits"), (
        Mutant("a fix lowers a number, which may delete messages", _STEPS,
            "NumberStep.out_of_bounds", "if self.after «<»=»= self.before:"),
        Mutant("a fix goes beyond what SQS takes", _STEPS, "NumberStep.out_of_bounds",
            "<= self.after <= self.maximum«» + 1»"),
        Mutant("a word that SQS may add is overwritten", _STEPS, "WordStep.out_of_bounds",
            "«(self.before, self.after) != (self.shipped, self.wanted)»self.after != self.wanted»"),
        Mutant("a tag of no seconds is taken for a number of seconds", _TAGS, "seconds_tag",
            "«1»0» <= int(text[:6])"),
        Mutant("a tag of other digits than ours is taken for a number of seconds", _TAGS,
            "seconds_tag", "text.«isascii() and text.»»isdecimal()"),
    )),
    Selection(("tests.catalogue.test_policies",), (
        Mutant("a policy under a condition is taken for a grant", _GRANTS, "_allows",
            "«and not statement.conditions»»"),
        Mutant("a statement that denies is not seen", _GRANTS, "grants",
            "_may_deny(each, principal_arn, action, queue_arn) for each in statements«»[:0]»"),
        Mutant("a policy that excepts one principal is not seen as open to the rest", _GRANTS,
            "is_open_to_everybody", 'each.is_for_everybody« or "Principal" in each.excepting»»'),
        Mutant("a policy that cannot be read is taken for a closed one", _GRANTS,
            "is_open_to_everybody", "return «True»False»"),
    )),
    Selection((
        "tests.catalogue.test_keys",
        "tests.catalogue.test_attributes",
        "tests.catalogue.test_measured",
        "tests.catalogue.test_dlq",
        f"{_EXAMPLES}::test_a_near_miss_is_not_touched",
    ), (
        Mutant("a revoked key goes on working for more than an hour", _STEPS,
            "SetKmsDataKeyReusePeriod", "60, «3_600»86_400»"),
        Mutant("data keys are changed of a queue that has none", "mendq.catalogue.kms_throttled",
            "plan", "if facts.kms_key is None«» and not facts.exists»:"),
        Mutant("the throughput of a FIFO queue is set over a value that SQS added",
            "mendq.catalogue.fifo_throttled", "plan", "if stands[step] «!»=»= step.shipped:"),
        Mutant("a message becomes longer than its DLQ takes", "mendq.catalogue.message_too_long",
            "_dlq_first", "if taken >= «MOST_BYTES»1_024»:"),
        Mutant("nobody is asked before messages outgrow their DLQ",
            "mendq.catalogue.message_too_long", "plan", "at_most=Mode.«PROPOSE»HEAL»"),
        Mutant("a backlog that is gone by tonight is taken for messages that expire",
            "mendq.catalogue.messages_about_to_expire", "detect",
            "«or _gone_in_time(measured, retention - age)»»"),
        Mutant("the pace of other messages hides one that never goes",
            "mendq.catalogue.messages_about_to_expire", "_gone_in_time",
            "«measured.oldest_stands_still or»»"),
        Mutant("a DLQ names more sources than SQS takes", "mendq.catalogue.dlq_source_not_allowed",
            "plan", "MOST_SOURCES« - len(allowed.sources)»»"),
        Mutant("a DLQ that denies everybody is opened", "mendq.catalogue.dlq_source_not_allowed",
            "plan", 'if allowed.permission «!= "byQueue»== "»":'),
        Mutant("a handful of messages that are given back again and again pages", _FAILING,
            "_concerns_many",
            "«min»max»(messages, measured.fruitless_receives) >= FEWEST_MESSAGES"),
    )),
    Selection((
        "tests.catalogue.test_dlq",
        f"{_EXAMPLES}::test_a_near_miss_is_not_touched",
    ), (
        Mutant("DLQ messages are kept no longer than their source keeps messages",
            "mendq.catalogue.dlq_retention_too_short", "detect", "retained >«»=» sent_for or"),
        Mutant("the source that keeps messages longest is not the one that is compared",
            "mendq.catalogue.dlq_retention_too_short", "_longest_retained", "«max»min»(others,"),
        Mutant("a retention at its longest is found too short again and again",
            "mendq.catalogue.dlq_retention_too_short", "detect",
            "«or retained >= LONGEST_RETENTION_SECONDS»»"),
        Mutant("a FIFO queue's retention is raised although its time begins anew",
            "mendq.catalogue.dlq_retention_too_short", "detect",
            "«facts.is_fifo or »»longest is None"),
    )),
    Selection(("tests.scan.test_dlq_sources",), (
        Mutant("a tag has a stranger's queue believed of one in a higher mode", "mendq.model.dlq",
            "is_confirmed", "consent.tag_may_raise_to« >= mode»»"),
        Mutant("every queue that names another is believed", "mendq.model.dlq",
            "is_confirmed", 'allowed« and allowed.permission == "byQueue"»»'),
        Mutant("a queue that producers send to is taken for a DLQ", "mendq.model.facts",
            "Facts.takes_dlq_messages", "self.dlq_sources« and not self.is_sent_to»»"),
        Mutant("a DLQ's retention is raised before anybody approved it for its source",
            "mendq.catalogue.dlq_retention_too_short", "plan", "Mode.HEAL« if longest.queue_arn in "
            "facts.approved_sources else Mode.PROPOSE»»"),
    )),
)  # fmt: skip
