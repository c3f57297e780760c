"""What would hurt if the nightly job counted, joined or summed otherwise."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_INCIDENTS = "analytics.incidents"
_FILE = "analytics.trail_file"
_CASES = "analytics.cases"
_WEEK = "analytics.week"
_PARTS = "analytics.week_parts"
_WEEK_CASES = "analytics.week_cases"
_RECOMMENDATIONS = "analytics.recommendations"
_NIGHTLY = "analytics.nightly"
_TRAIL_FILE = "tests.analytics.test_trail_file"
_BURSTS = "tests.analytics.test_incidents"

NIGHTLY = (
    Selection((
        f"{_BURSTS}::test_nine_hundred_seconds_join_and_one_more_splits",
        f"{_BURSTS}::test_each_part_of_the_key_has_its_own_bursts",
        f"{_BURSTS}::test_enough_evidence_is_what_heal_asks_for",
    ), (
        Mutant("failed calls exactly 900 s apart become two incidents", _INCIDENTS, "_numbered",
            "gap >«»=» GAP_SECONDS * 1_000_000"),
        Mutant("failed calls 901 s apart become one incident", _INCIDENTS, "GAP_SECONDS",
            "«900»901»"),
        Mutant("incidents of two symptoms become one", _INCIDENTS, "_KEY",
            '"queue_arn"«, "symptom"»»'),
        Mutant("an incident is said to have had too little evidence where heal believed it",
            _INCIDENTS, "_completes_evidence", "sf.lag(moment, DISTINCT_EVENTS« - 1»»)"),
    ), spark=True),
    Selection((f"{_BURSTS}::test_each_incident_has_its_case_or_its_why",), (
        Mutant("an incident is given the outcome of another symptom's case", _INCIDENTS,
            "Known.with_outcome",
            'for each in of_queue« if each.newest.symptom == incident["symptom"]»»'),
        Mutant("an incident is given the outcome of a case from another time", _CASES,
            "Life.overlaps", "since <= last« and until >= first»»"),
        Mutant("an incident of an unmanaged queue is told as an event that was lost", _INCIDENTS,
            "Known._why", '«"not_managed": scanned == "not_managed",»»'),
        Mutant("what a case of the week before keeps silent is told as an event that was lost",
            _INCIDENTS, "Known._why", 'scanned == "managed"« and not of_then»»'),
        Mutant("queues of other accounts are told as not managed", _INCIDENTS, "Known._scanned",
            'if «Home(incident["account"], incident["region"]) not in »not »self.homes:'),
    )),
    Selection((
        "tests.analytics.test_job::test_a_trail_begins_with_its_first_day_whatever_folders_lie_in_it",
    ), (
        Mutant("the folders of an organization's other accounts are read", "analytics.trail",
            "branches", "([home.account] if home«» and not above» else"),
    )),
    Selection((
        f"{_BURSTS}::test_a_call_that_is_delivered_in_two_files_counts_once",
        f"{_BURSTS}::test_own_calls_and_other_places_are_left_out_and_what_heal_ignores_is_not",
        f"{_BURSTS}::test_what_heal_does_not_take_up_is_no_evidence_and_told_where_it_takes_up_nothing",
    ), (
        Mutant("a call that CloudTrail delivers twice counts twice", _INCIDENTS, "_one_per_event",
            'sf.col("copy") «=»>»= 1'),
        Mutant("our own failing calls are told as incidents", _INCIDENTS, "_without_own",
            "calls.where(«»is_own | »~is_own)"),
        Mutant("another account's failed calls are told as ours", _INCIDENTS, "failed_calls",
            'where(«(sf.col("account") == home.account) & »»(sf.col("region")'),
        Mutant("calls that heal drops by design make an event look lost", _INCIDENTS,
            "_completes_evidence", "partitionBy(*_KEY«, is_taken_up»»)"),
    ), spark=True),
    Selection((
        f"{_TRAIL_FILE}::test_an_unreadable_file_names_its_reason",
        f"{_TRAIL_FILE}::test_records_cost_themselves",
    ), (
        Mutant("one corrupt file of a trail ends the whole nightly job", _FILE, "gunzip",
            "except «zlib.error»EOFError» as error:"),
        Mutant("a file that was cut off is taken for a whole one", _FILE, "_members",
            "if not member.eof«» and not text»:"),
        Mutant("a small file unpacks to more than any machine holds", _FILE, "_members",
            "if left < «0»-MAXIMUM_BYTES»:"),
        Mutant("a file of thousands of gzip members takes hours", _FILE, "MAXIMUM_MEMBERS",
            "«16»16_000»"),
        Mutant("a record that cannot be read costs the whole file", _FILE, "judged",
            'read(record)« if isinstance(record, dict) else Unreadable("not_a_record")»»'),
        Mutant("another JSON file is taken for an empty trail file", _FILE, "_records",
            "if «not isinstance(records, list»isinstance(records, int»):"),
    )),
    Selection((
        "tests.analytics.test_case_bucket",
    ), (
        Mutant("an approved fix is claimed as one that nobody had to see", _CASES, "Life.outcome",
            "each.state is State.APPROVED and each.n > «1»2»"),
        Mutant("a case that paged somebody is claimed as healed", _CASES, "Life.outcome",
            "if «not self.is_notified»True»:"),
        Mutant("a fix that nobody listened to any more is claimed as healed", _CASES,
            "Life.outcome", "newest.reason «»not »in _ENDED_UNSEEN"),
        Mutant("the order of files and not of transitions decides an outcome", _CASES, "Life.of",
            "by_age = «sorted(transitions, key=lambda each: (each.n, each.at))»transitions»"),
        Mutant("a case of a scan's is told as one of failed calls", _CASES, "Life.is_scanned",
            "failed_calls «== 0»is None» and"),
        Mutant("a week takes an incident of the next one", _CASES, "is_within",
            "<«»=» days.before_microseconds"),
        Mutant("a word that is not true counts as a notification", _CASES, "Life.pages",
            "each.notified« is True»»"),
    )),
    Selection(("tests.analytics.test_week_cases",), (
        Mutant("nights are counted by another clock", _WEEK_CASES, "urgent_notifications",
            "each«.astimezone(zone)»»"),
        Mutant("who waits longest for an urgent case is listed last", _WEEK_CASES, "_pressing",
            "is_info, «life.opened_at»-life.opened_at.timestamp()», life"),
        Mutant("a fix that was taken back has earned trust", _WEEK_CASES, "_held",
            "«all(each.state in _HELD for each in life.transitions)»True»"),
        Mutant("what nobody read counts as recovered", _WEEK_CASES, "_was_read",
            "«last.date() in read and (last + DAY).date() in read»True»"),
    )),
    Selection(("tests.analytics.test_week",), (
        Mutant("practice is told as incidents", _PARTS, "without_own",
            'if «not is_own_queue(row["queue_arn"]) and »»row["why"]'),
        Mutant("operators' own looks are told as incidents", _PARTS, "without_own",
            '« and row["why"] != OWN_LOOK»»'),
        Mutant("a week's failed calls are counted as incidents", _PARTS, "totals",
            '«sum(row["failed_calls"] for row in »len(»incidents)'),
        Mutant("approved fixes are counted as healed without a person", _PARTS, "totals",
            'row["outcome"] «== HEALED»in (HEALED, "approved")»'),
        Mutant("what could not be resolved counts as a queue", _PARTS, "queues_named",
            "«- {UNRESOLVED}»»"),
        Mutant("a day's failed calls of a symptom are those of its last incident", _PARTS,
            "Weight.add", 'self.failed_calls «+»»= row["failed_calls"]'),
        Mutant("the incidents that a page leaves out are not counted", _WEEK, "summary",
            "max(0, len(incidents) - MAXIMUM_CASES«» - 1»)"),
        Mutant("a page lists what was fixed before what was not", _PARTS, "_worst_first",
            "(outcome «»not »in FIXED)"),
        Mutant("practice that was left out is not said", _WEEK, "summary",
            "«len(rows_of(every)) - len(incidents)»0»"),
        Mutant("nightly runs that were not whole count as whole", _WEEK, "_previous_weeks",
            "whole = «sum(map(seen.is_whole, »len((»days))"),
    )),
    Selection((
        "tests.analytics.test_week",
        "tests.analytics.test_recommendations",
    ), (
        Mutant("what was fixed after approval counts as not healed", _PARTS, "queue_days",
            'row["outcome"] «not in FIXED»!= "healed"»'),
        Mutant("the incidents of queues that a page leaves out are not counted", _PARTS,
            "queue_days", "«sum(weight.incidents for _, weight in »len(»ranked[MAXIMUM_QUEUES:])"),
        Mutant("a case is told by its last notification of the week", _WEEK_CASES, "_notified",
            '"notified_at": time_text(pages[«0»-1»].at)'),
        Mutant("a percentile is told of a handful of times", _PARTS, "LEAST_FOR_A_PERCENTILE",
            "«5»4»"),
        Mutant("a median is a time that nobody measured", _PARTS, "nearest_rank",
            "«ranked[-(-percent * len(ranked) // 100) - 1]»sum(ranked) / len(ranked)»"),
        Mutant("what was not healed is timed", _PARTS, "_was_timed",
            '«row["outcome"] == HEALED and»»'),
        Mutant("a recommendation counts the incidents of other symptoms", _RECOMMENDATIONS,
            "_counted", "«suffered.get((asked.queue_arn, asked.symptom»next(iter(suffered.values("
            ")»), Weight())"),
        Mutant("folded recommendations lose the incidents of all queues but one", _RECOMMENDATIONS,
            "_as_one", "incidents=«sum(each.incidents for each in group)»first.incidents»"),
        Mutant("the recommendation that would have prevented most comes last", _RECOMMENDATIONS,
            "Recommendation.rank", "wide = first, «-»»self.incidents"),
    )),
    Selection((
        "tests.analytics.test_case_bucket::test_a_list_with_one_wrong_field_says_nothing",
        "tests.analytics.test_case_bucket::test_only_a_plain_yes_is_a_whole_list",
    ), (
        Mutant("a broken list says that no queue is managed", _NIGHTLY, "read_round",
            "if not «isinstance(listed, list»listed and not isinstance(listed, list | str | "
            "dict»):"),
        Mutant("a list that is not whole is taken for one", _NIGHTLY, "read_round",
            '«document["managed_whole"] is True»bool(document["managed_whole"])»'),
    )),
)  # fmt: skip
