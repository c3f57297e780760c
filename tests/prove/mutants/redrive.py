"""What would hurt if a redrive went on where it has to stop, or lost sight of a message."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_MACHINE = "functions.healing.redrive"
_BOUNDS = "functions.healing.redrive_bounds"
_SIGHT = "functions.healing.redrive_sight"
_WHEN = "functions.healing.redrive_when"
_DEEDS = "functions.healing.redrive_deeds"
_COURSE = "functions.healing.redrive_course"
_LETTERS = "functions.healing.redrive_letters"
_MARKS = "functions.healing.marks"
_QUARANTINES = "functions.healing.quarantines"
_REFUSALS = "functions.healing.redrive_refusals"
_CLOCK = "functions.healing.retention_clock"
_TRUTH = "functions.healing.where_truth"
_READING = "functions.healing.where_reading"
_TICKS = "tests.functions.aws.test_redrive_tick"

REDRIVE = (
    Selection(
        (f"{_TICKS}::test_the_first_tick_sends_a_canary_of_five_marked_letters",),
        (
            Mutant(
                "a redrive begins with more messages than a canary batch",
                _COURSE,
                "begun",
                "size=canary",
                "size=canary * 2",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_redrive",),
        (
            Mutant(
                "one in ten messages comes back and the redrive goes on",
                _BOUNDS,
                "Bounds",
                "halt_share: float = 0.05",
                "halt_share: float = 0.1",
            ),
            Mutant(
                "eleven messages have to come back before a redrive halts",
                _BOUNDS,
                "Bounds",
                "halt_returned: int = 10",
                "halt_returned: int = 11",
            ),
            Mutant(
                "a share that is reached and not passed does not halt it",
                _SIGHT,
                "Sight.too_many_are_back",
                "back >= self.bounds.halts_at(self.course.moved)",
                "back > self.bounds.halts_at(self.course.moved)",
            ),
            Mutant(
                "new messages die by the dozen and the redrive goes on",
                _SIGHT,
                "Sight.too_many_are_back",
                "is_many or self.newly_dead >= self.bounds.halt_returned",
                "is_many",
            ),
            Mutant(
                "messages that are back in a FIFO group's tail are not seen",
                _SIGHT,
                "Sight.unseen",
                "census.is_whole and not self.look.is_fifo",
                "census.is_whole",
            ),
            Mutant(
                "a setting makes a soak shorter than a poison message takes to come back",
                _BOUNDS,
                "Bounds.soak",
                "max(self.soak_factor, LOWEST_SOAK_FACTOR)",
                "self.soak_factor",
            ),
            Mutant(
                "a soak forgets that a message is received several times",
                _BOUNDS,
                "Bounds.soak",
                "factor * receives * lease_seconds",
                "factor * lease_seconds",
            ),
            Mutant(
                "the next stage is larger than what the last one proved",
                _SIGHT,
                "Sight.next_size",
                "min(course.size, course.moved_in_stage - course.unsure_in_stage)",
                "course.size",
            ),
            Mutant(
                "messages go back faster than a tenth of what consumers delete",
                _BOUNDS,
                "Bounds",
                "rate_share: float = 0.1",
                "rate_share: float = 0.2",
            ),
            Mutant(
                "a redrive goes on where nobody handles its messages",
                _WHEN,
                "nobody",
                "not sight.look.source.is_handled",
                "sight.look.source.is_handled is None",
            ),
            Mutant(
                "what stands unread in the source passes for handled",
                _SIGHT,
                "Sight.is_worked_off",
                "(source.deleted_since or 0) >= course.stood - course.returned",
                "(source.deleted_since or 0) >= 0",
            ),
            Mutant(
                "a frozen account's redrive goes on",
                _WHEN,
                "frozen",
                "bool(sight.look.frozen)",
                "sight.look.frozen is None",
            ),
            Mutant(
                "a redrive goes on beside somebody else's task",
                _SIGHT,
                "Sight.has_foreign_task",
                "task is not None and task.is_active and self.task is None",
                "task is not None and task.is_active and self.task is task",
            ),
            Mutant(
                "what a run that died had in hand proves the stage",
                _SIGHT,
                "Sight.after_a_crash",
                "unsure_in_stage=course.unsure_in_stage + course.in_hand,",
                "",
            ),
            Mutant(
                "a redrive that cannot see its messages waits for ever",
                _WHEN,
                "hindered_for_long",
                "sight.is_hindered_for_long",
                "not sight.look and sight.is_hindered_for_long",
            ),
            Mutant(
                "a redrive that sends nothing for an hour tells nobody",
                _SIGHT,
                "Sight._is_long_ago",
                "since is not None and self.now >= since + patience",
                "since is not None and self.now >= since + 2 * patience",
            ),
            Mutant(
                "a redrive is verified while messages are left",
                _SIGHT,
                "Sight.left",
                "max(0, held - census.stuck)",
                "max(0, held - census.stuck - census.seen)",
            ),
            Mutant(
                "a redrive is verified before its soak is over",
                _WHEN,
                "not_soaked",
                "not sight.is_soaked",
                "not sight.is_soaked and sight.left > 0",
            ),
            Mutant(
                "what came back is counted before it was sent",
                _MACHINE,
                "counted",
                "if not course.is_opened:",
                "if course.is_opened is None:",
            ),
            Mutant(
                "what cannot be kept apart is counted twice",
                _MACHINE,
                "settled",
                "returned = course.returned - census.still_back",
                "returned = course.returned",
            ),
            Mutant(
                "what is in hand is not written down before it goes",
                _DEEDS,
                "move",
                "in_hand=letters,",
                "",
            ),
            Mutant(
                "a damaged record of a redrive is read as a good one",
                _COURSE,
                "_number",
                "if not 0 <= value < _MOST:",
                "if not value < _MOST:",
            ),
            Mutant(
                "a soak without an end is read",
                _COURSE,
                "Course.from_document",
                "course.stage is Stage.SOAK and course.soak_ends_at is None",
                "course.stage is Stage.DONE and course.soak_ends_at is None",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_redrive_letters", "tests.functions.healing.test_marks"),
        (
            Mutant(
                "a message that came back is sent back again",
                _LETTERS,
                "standing_of",
                "if letter.hops or known.finds(letter, course):",
                "if known.finds(letter, course):",
            ),
            Mutant(
                "another source's message is sent to this one",
                _LETTERS,
                "standing_of",
                "if letter.source_arn != course.source_arn:",
                "if letter.source_arn is None:",
            ),
            Mutant(
                "a message that is too long for its source is sent",
                _LETTERS,
                "standing_of",
                "letter.size_bytes > most_bytes",
                "letter.size_bytes < 0",
            ),
            Mutant(
                "the order of a FIFO group is lost",
                _LETTERS,
                "sorted_out",
                "blocked |= {letter.group_id} if is_fifo else set()",
                "pass",
            ),
            Mutant(
                "one fingerprint makes every message of that text come back",
                _LETTERS,
                "Known.finds",
                "self.left[fingerprint] -= 1",
                "self.left[fingerprint] -= 0",
            ),
            Mutant(
                "a message goes round without being counted",
                _MARKS,
                "hopped",
                "max(letter.hops, kept.hops if kept else 0) + 1",
                "max(letter.hops, kept.hops if kept else 0)",
            ),
            Mutant(
                "out of the quarantine a message's redrives are forgotten",
                _MARKS,
                "hopped",
                "max(letter.hops, kept.hops if kept else 0)",
                "letter.hops",
            ),
            Mutant(
                "a forged mark is read as ours",
                _MARKS,
                "kept_because",
                "isinstance(hops, bool) or hops < 0",
                "isinstance(hops, bool)",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_quarantines",),
        (
            Mutant(
                "quarantined messages leave by being read",
                _QUARANTINES,
                "unfit",
                'if attributes.get("RedrivePolicy"):',
                'if attributes.get("RedrivePolicy") and readers:',
            ),
            Mutant(
                "a function handles quarantined messages unasked",
                _QUARANTINES,
                "unfit",
                "if readers:",
                "if readers and not attributes:",
            ),
            Mutant(
                "quarantined messages lie in a queue of a policy for everybody",
                _QUARANTINES,
                "_lets_others_in",
                'each.is_for_everybody or "Principal" in each.excepting',
                "each.is_for_everybody and each.excepting",
            ),
            Mutant(
                "quarantined messages are deleted before 14 days",
                _QUARANTINES,
                "_keeps_otherwise",
                "< LONGEST_RETENTION_SECONDS:",
                "< LONGEST_RETENTION_SECONDS // 14:",
            ),
            Mutant(
                "encrypted messages lie in a quarantine with a weaker key",
                _QUARANTINES,
                "_encrypted_otherwise",
                "if key and is_aws_managed(key) and is_owners:",
                "if not key and is_aws_managed(key) and is_owners:",
            ),
        ),
    ),
    Selection(
        (
            "tests.functions.healing.test_redrive_refusals",
            "tests.functions.catalogue.test_catalogue::test_a_near_miss_is_not_touched",
        ),
        tuple(
            Mutant(
                hurts,
                _REFUSALS,
                "_AGAINST",
                f"{guard},",
                "",
            )
            for guard, hurts in (
                ("_nothing_waits", "a redrive of nothing is proposed"),
                ("_shared", "another source's messages are sent back with one's own"),
                ("_forbidden", "messages are sent back although a tag forbids it"),
                ("_dies_further", "messages that are only held die further on"),
                ("_read", "messages are sent back that somebody reads already"),
                ("_taken", "messages are sent back that a person is taking out"),
                ("_moves", "a redrive begins beside a message movement task"),
                ("_cause_first", "messages are sent back while their cause is open"),
                ("_not_mended", "messages are sent back that nobody fixed anything for"),
                ("_arrive", "messages are sent back while others go on dying"),
                ("_for_one_network", "messages are sent back through a policy that denies it"),
            )
        ),
    ),
    Selection(
        ("tests.functions.healing.test_retention_clock",),
        (
            Mutant(
                "messages expire while a redrive that is too slow goes on",
                _CLOCK,
                "could_lose",
                "max(SAFETY * (lasts or timedelta()), UNHURRIED)",
                "UNHURRIED",
            ),
            Mutant(
                "the age of dead-letter messages is taken from when they were moved",
                _CLOCK,
                "left_by_age",
                "at_most - timedelta(seconds=source_kept_seconds)",
                "at_most",
            ),
        ),
    ),
    Selection(
        ("tests.functions.healing.test_where",),
        (
            Mutant(
                "what cannot be said of a message counts as true once it is negated",
                _TRUTH,
                "Not.truth",
                "None if found is None else not found",
                "not found",
            ),
            Mutant(
                "a text that looks like a number is compared as one",
                _TRUTH,
                "Comparison.truth",
                "type(found) is not type(self.wanted)",
                "found is None",
            ),
            Mutant(
                "one part that cannot be said makes the whole filter true",
                _TRUTH,
                "Joined.truth",
                "None if unsaid else not self.decides",
                "not self.decides",
            ),
            Mutant(
                "JSON's null passes for a value",
                _READING,
                "_shown",
                "if found is None:",
                "if found is MISSING:",
            ),
            Mutant(
                "a negative step leads to the last member of a list",
                _READING,
                "_has",
                "isinstance(inside, list) and step < len(inside)",
                "isinstance(inside, list) and step <= len(inside)",
            ),
            Mutant(
                "a body that is nested too deep stops the filter",
                _READING,
                "_parsed",
                "(ValueError, ArithmeticError, RecursionError)",
                "(ValueError, ArithmeticError)",
            ),
        ),
    ),
)
