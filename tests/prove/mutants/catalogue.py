"""What would hurt if a call were read otherwise, or a plan went beyond its bounds."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_CALL = "functions.healing.failed_call"
_MESSAGES = "functions.healing.error_messages"
_REFUSALS = "functions.healing.lease_refusals"
_NEEDS = "functions.healing.lease_needs"
_RACE = "functions.healing.lease_race"
_STEPS = "functions.healing.steps"
_TAGS = "functions.healing.tags"
_GRANTS = "functions.healing.policy_grants"
_FAILING = "functions.healing.failing"
_SYMPTOM = "functions.catalogue.symptom"
_EXAMPLES = "tests.functions.catalogue.test_catalogue"

CATALOGUE = (
    Selection(
        ("tests.functions.healing.test_failed_call",),
        (
            Mutant(
                "an event larger than CloudTrail's is read into memory",
                _CALL,
                "MAXIMUM_BYTES",
                "262_144",
                "262_144_000",
            ),
            Mutant(
                "a forged event stops the whole batch",
                _CALL,
                "read",
                "(ValueError, TypeError, LookupError, AttributeError, RecursionError, "
                "OverflowError)",
                "(ValueError, TypeError, LookupError, OverflowError)",
            ),
            Mutant(
                "another service's failed call counts",
                _CALL,
                "_read",
                'detail.get("eventSource") != "sqs.amazonaws.com"',
                'not detail.get("eventSource")',
            ),
            Mutant(
                "a call that went through counts as failed",
                _CALL,
                "_read",
                'raw_error_code in (None, "")',
                "raw_error_code is None",
            ),
            Mutant(
                "the name of a session, the caller's own text, decides who called",
                _CALL,
                "_principal_arn",
                "role/{name.partition('/')[0]}",
                "role/{name.rpartition('/')[2]}",
            ),
            Mutant(
                "a caller asks for more than the longest visibility timeout",
                _CALL,
                "_requested_visibility",
                "0 <= value <= 43_200",
                "0 <= value <= 43_201",
            ),
            Mutant(
                "a caller fills the case store with a long text",
                _CALL,
                "_text",
                "encodable(value[:maximum])",
                "encodable(value)",
            ),
            Mutant(
                "half a character of a caller's stops whoever writes it down",
                _CALL,
                "encodable",
                'text.encode("utf-8", "replace").decode()',
                "text",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_error_messages",),
        (
            Mutant(
                "a caller who writes SQS's sentence into a value decides",
                _MESSAGES,
                "reason_given",
                'error_message.rfind(" for parameter ")',
                'error_message.find(" for parameter ")',
            ),
            Mutant(
                "the end of a message that CloudTrail cut decides",
                _MESSAGES,
                "reason_given",
                'not error_message.startswith("Value ") or may_be_cut(error_message)',
                'not error_message.startswith("Value ")',
            ),
            Mutant(
                "SQS's reason for another parameter decides",
                _MESSAGES,
                "reason_given",
                "not found or found.group(1) != parameter",
                "not found",
            ),
            Mutant(
                "SQS's sentence in the middle of a caller's text decides",
                _MESSAGES,
                "size_limit_bytes",
                "_SHORTER_THAN.fullmatch(error_message)",
                "_SHORTER_THAN.search(error_message)",
            ),
        ),
    ),
    Selection(
        (f"{_EXAMPLES}::test_a_near_miss_is_not_touched",),
        (
            Mutant(
                "people are paged for a queue whose messages in flight are few again",
                "functions.catalogue.in_flight_limit",
                "plan",
                "facts.in_flight < PASSED_BELOW",
                "facts.in_flight < PASSED_BELOW - 1",
            ),
            Mutant(
                "a symptom is seen in calls of another name",
                _SYMPTOM,
                "SeenAs.fits",
                "call.event_name in self.event_names",
                "call.event_name",
            ),
            Mutant(
                "a symptom of FIFO queues is seen on standard ones",
                _SYMPTOM,
                "SeenAs.fits",
                "and self.on(call.queue_arn)",
                "",
            ),
            Mutant(
                "a caller's own mistake is taken for the queue's fault",
                _SYMPTOM,
                "SeenAs.fits",
                "and self.says(call.error_message)",
                "",
            ),
        ),
    ),
    Selection(
        ("tests.functions.catalogue.test_lease_expired",),
        (
            Mutant(
                "a visibility timeout goes over the ceiling",
                _REFUSALS,
                "over_ceiling",
                "need.seconds <= ceiling_seconds",
                "need.seconds <= ceiling_seconds + 1",
            ),
            Mutant(
                "a tag cannot lower the ceiling of its queue",
                _NEEDS,
                "ceiling_seconds",
                "seconds_tag(facts.tags, MAX_VISIBILITY_TAG) or limits.visibility_ceiling_seconds",
                "limits.visibility_ceiling_seconds",
            ),
            Mutant(
                "guess after guess raises a visibility timeout without a bound",
                _REFUSALS,
                "over_guess",
                "facts.visibility_seconds if person is None else person",
                "facts.visibility_seconds",
            ),
            Mutant(
                "a guess of five times what a person chose is made",
                _REFUSALS,
                "GUESS_FACTOR",
                "4",
                "5",
            ),
            Mutant(
                "messages expire before their receives are over",
                _REFUSALS,
                "over_retention",
                "2 * receives * need.seconds <= facts.retention_seconds",
                "receives * need.seconds <= facts.retention_seconds",
            ),
            Mutant(
                "so many messages are held that SQS gives out no more",
                _REFUSALS,
                "over_in_flight",
                "expected <= IN_FLIGHT_BOUND",
                "expected <= 2 * IN_FLIGHT_BOUND",
            ),
            Mutant(
                "a longer visibility timeout slows the retries of a consumer that fails",
                _REFUSALS,
                "consumer_fails",
                "if failing is None:",
                "if failing is None or need is None:",
            ),
            Mutant(
                "a queue's timeout is changed that its readers do not use",
                _REFUSALS,
                "readers_decide",
                "reader >= facts.visibility_seconds",
                "reader >= 0",
            ),
            Mutant(
                "a timeout is raised that covers what is asked for",
                _REFUSALS,
                "already_met",
                "if current < need.enough_seconds:",
                "if current <= need.enough_seconds:",
            ),
            Mutant(
                "a guess takes the place of a need that a tag names",
                _NEEDS,
                "named",
                "[*_lambda_needs(facts), *_tagged_need(facts)]",
                "[*_lambda_needs(facts)]",
            ),
            Mutant(
                "of two consumers the quicker one decides",
                _NEEDS,
                "largest_unmet",
                "max(unmet(facts, needs) or needs",
                "min(unmet(facts, needs) or needs",
            ),
        ),
    ),
    Selection(
        (
            "tests.functions.healing.test_lease_race",
            f"{_EXAMPLES}::test_a_near_miss_is_not_touched",
        ),
        (
            Mutant(
                "messages that are moved back are taken for messages handled twice",
                _RACE,
                "race_in",
                "facts.move_task_running or facts.takes_dead_letters",
                "facts.takes_dead_letters",
            ),
            Mutant(
                "retries are taken for messages handled twice",
                _RACE,
                "race_or_retries",
                "not measured.may_be_retries",
                "measured.may_be_retries",
            ),
            Mutant(
                "a visibility timeout is guessed for a race that nobody can time",
                _RACE,
                "without_named_need",
                "if not facts.found or lease_needs.unmet(facts, needs):",
                "if not facts.found or not needs or lease_needs.unmet(facts, needs):",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_steps", "tests.functions.healing.test_tags"),
        (
            Mutant(
                "a fix lowers a number, which may delete messages",
                _STEPS,
                "NumberStep.out_of_bounds",
                "if self.after <= self.before:",
                "if self.after == self.before:",
            ),
            Mutant(
                "a fix goes beyond what SQS takes",
                _STEPS,
                "NumberStep.out_of_bounds",
                "<= self.after <= self.maximum",
                "<= self.after <= self.maximum + 1",
            ),
            Mutant(
                "a word that SQS may add is overwritten",
                _STEPS,
                "WordStep.out_of_bounds",
                "(self.before, self.after) != (self.shipped, self.wanted)",
                "self.after != self.wanted",
            ),
            Mutant(
                "a tag of no seconds is taken for a number of seconds",
                _TAGS,
                "seconds_tag",
                "1 <= int(text[:6])",
                "0 <= int(text[:6])",
            ),
            Mutant(
                "a tag of other digits than ours is taken for a number of seconds",
                _TAGS,
                "seconds_tag",
                "text.isascii() and text.isdecimal()",
                "text.isdecimal()",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_policy_grants",),
        (
            Mutant(
                "a policy under a condition is taken for a grant",
                _GRANTS,
                "_allows",
                "and not statement.conditions",
                "",
            ),
            Mutant(
                "a statement that denies is not seen",
                _GRANTS,
                "grants",
                "_may_deny(each, principal_arn, action, queue_arn) for each in statements",
                "_may_deny(each, principal_arn, action, queue_arn) for each in statements[:0]",
            ),
            Mutant(
                "a policy that excepts one principal is not seen as open to the rest",
                _GRANTS,
                "is_open_to_everybody",
                'each.is_for_everybody or "Principal" in each.excepting',
                "each.is_for_everybody",
            ),
            Mutant(
                "a policy that cannot be read is taken for a closed one",
                _GRANTS,
                "is_open_to_everybody",
                "return True",
                "return False",
            ),
        ),
    ),
    Selection(
        (
            "tests.functions.catalogue.test_kms_throttled",
            "tests.functions.catalogue.test_in_flight_limit",
            "tests.functions.catalogue.test_fifo_throttled",
            "tests.functions.catalogue.test_message_too_long",
            "tests.functions.catalogue.test_messages_about_to_expire",
            "tests.functions.catalogue.test_dead_letter_access_refused",
            "tests.functions.catalogue.test_consumer_failing",
        ),
        (
            Mutant(
                "a revoked key goes on working for more than an hour",
                _STEPS,
                "SetKmsDataKeyReusePeriod",
                "maximum = 3_600",
                "maximum = 86_400",
            ),
            Mutant(
                "data keys are changed of a queue that has none",
                "functions.catalogue.kms_throttled",
                "_not_encrypted",
                "if facts.kms_key is not None:",
                "if facts.kms_key is not None or facts.exists:",
            ),
            Mutant(
                "the throughput of a FIFO queue is set over a value that SQS added",
                "functions.catalogue.fifo_throttled",
                "_unknown_value",
                "if standing != step.shipped:",
                "if standing == step.shipped:",
            ),
            Mutant(
                "a message becomes longer than its dead-letter queue takes",
                "functions.catalogue.message_too_long",
                "_dead_letters_first",
                "if taken >= MOST_BYTES:",
                "if taken >= 1_024:",
            ),
            Mutant(
                "nobody is asked before messages outgrow their dead-letter queue",
                "functions.catalogue.message_too_long",
                "_raise",
                "at_most=Mode.PROPOSE",
                "at_most=Mode.HEAL",
            ),
            Mutant(
                "a backlog that is gone by tonight is taken for messages that expire",
                "functions.catalogue.messages_about_to_expire",
                "detect",
                "or _gone_in_time(measured, retention - age)",
                "",
            ),
            Mutant(
                "the pace of other messages hides one that never goes",
                "functions.catalogue.messages_about_to_expire",
                "_gone_in_time",
                "measured.oldest_stands_still or",
                "",
            ),
            Mutant(
                "a dead-letter queue names more sources than SQS takes",
                "functions.catalogue.dead_letter_access_refused",
                "plan",
                "MOST_SOURCES - len(allowed.sources)",
                "MOST_SOURCES",
            ),
            Mutant(
                "a dead-letter queue that denies everybody is opened",
                "functions.catalogue.dead_letter_access_refused",
                "plan",
                'if allowed.permission != "byQueue":',
                'if allowed.permission == "":',
            ),
            Mutant(
                "a handful of messages that are given back again and again pages",
                _FAILING,
                "_concerns_many",
                "min(messages, measured.fruitless_receives) >= FEWEST_MESSAGES",
                "max(messages, measured.fruitless_receives) >= FEWEST_MESSAGES",
            ),
        ),
    ),
    Selection(
        (
            "tests.functions.catalogue.test_dead_letters_expire_first",
            f"{_EXAMPLES}::test_a_near_miss_is_not_touched",
        ),
        (
            Mutant(
                "dead-letter messages are kept no longer than their source keeps messages",
                "functions.catalogue.dead_letters_expire_first",
                "detect",
                "kept > sent_for or",
                "kept >= sent_for or",
            ),
            Mutant(
                "the source that keeps messages longest is not the one that is compared",
                "functions.catalogue.dead_letters_expire_first",
                "_longest_kept",
                "max(others,",
                "min(others,",
            ),
            Mutant(
                "a retention at its longest is found too short again and again",
                "functions.catalogue.dead_letters_expire_first",
                "detect",
                "or kept >= LONGEST_RETENTION_SECONDS",
                "",
            ),
            Mutant(
                "a FIFO queue's retention is raised although its time begins anew",
                "functions.catalogue.dead_letters_expire_first",
                "detect",
                "facts.is_fifo or longest is None",
                "longest is None",
            ),
        ),
    ),
)
