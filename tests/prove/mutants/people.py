"""What would hurt if people were told too much, too little, or what is not so."""

from __future__ import annotations

from tests.prove.mutants.mutant import Mutant, Selection

_ADVANCE = "mendq.model.lifecycle"
_ALARMS = "mendq.catalogue.alarm_missing"
_SIZED = "mendq.cli.queues.alarms"
_PAGING = "mendq.model.case"
_RECORD = "mendq.notifications.sent"
_PAGES = "mendq.cases.outbox"
_NOTIFICATION = "mendq.cases.record"
_BATCH = "mendq.heal.batch"
_PACE = "mendq.heal.repeats"
_TEXT = "mendq.notifications.text"
_VERDICT = "mendq.report.verdict"
_WORDS = "mendq.report.words"
_PAGE = "mendq.report.html_page"
_MAIL = "mendq.report.mail"
_TO_DO = "mendq.report.to_do"
_TILES = "mendq.report.tiles"
_TABLES = "mendq.report.tables"
_SUMMARY = "mendq.report.summary"
_PARTS = "mendq.report.summary_parts"
_LIMITS = "mendq.model.limits"
_READING = "infra.settings.reading"
_SAID = "tests.cases.test_record"

PEOPLE = (
    Selection(("tests.catalogue.test_catalogue", "tests.cli.commands.test_alarms"), (
        Mutant("an alarm on what SQS does not count passes for one on a DLQ", _ALARMS, "unwatched",
            "not dlq.alarmed« & _OF_A_DLQ»»:"),
        Mutant("a band is printed that would ring each day", _SIZED, "sized",
            "_rings(points, periods, width)) <= «»10 * »MOST_RINGS:"),
    )),
    Selection(("tests.model.test_advance",), (
        Mutant("a fix is verified though no message was handled since", _ADVANCE, "_held",
            "_was_quiet(case, evidence_since, now)« and bool(evidence_since.deletes)»»"),
        Mutant("what was measured is verified before it was measured anew", _ADVANCE, "quiet_at",
            "CLOUDTRAIL_LAG« if stands_on_calls else A_SCAN_AND_ITS_WINDOW»»"),
        Mutant("one late call undoes a fix", _ADVANCE, "_failed_again",
            "evidence_since.timing))«.suffices».sightings != ()»"),
        Mutant("messages received before a fix speak against it", _ADVANCE, "counts_from",
            "timing.propagation_seconds« + max(visibilities, default=0)»»"),
        Mutant("a proposal that nobody answered stays for ever", _ADVANCE, "_waited",
            "longest is not None and now >= case.at + «»2 * »longest"),
        Mutant("calls that fail now and then to the end reach nobody", _ADVANCE,
            "_fails_to_the_end",
            "_waited(case, evidence_since, now) and «bool(lately.sightings)»not lately.sightings»"),
        Mutant("an escalated case is closed while calls fail", _ADVANCE, "_stayed_away",
            "«quiet_since(case, evidence_since)»case.at» + timedelta(days=SILENT_DAYS)"),
        Mutant("a redrive at work is ended by time", _ADVANCE, "advance",
            "if case.goes_on and evidence_since.stands is «not »»Stands.GONE:"),
        Mutant("a configuration is verified that does not stand", _ADVANCE, "_stands_unfound",
            "evidence_since.of_configuration« and evidence_since.stands is Stands.OURS»»"),
        Mutant("what ends at once is looked at an hour later", _ADVANCE, "due_at",
            "return now «if now <= case.at else now + again»+ ASK_AGAIN»"),
    )),
    Selection((
        "tests.follow_up.test_follow_up::test_a_persons_newer_value_is_overridden_and_retained",
    ), (
        Mutant("a value that somebody set since is called verified", _ADVANCE, "_overruled",
            "evidence_since.stands is Stands.«OVERRULED»GONE»"),
    )),
    Selection((
        f"{_SAID}::test_what_is_only_observed_or_was_fixed_pages_nobody",
        f"{_SAID}::test_in_observe_mode_nobody_is_told_of_a_refusal",
        f"{_SAID}::test_the_same_refusal_is_reported_once_a_day_however_often_it_is_written_down",
        f"{_SAID}::test_a_page_on_its_way_is_not_sent_by_another_run",
        f"{_SAID}::test_beyond_the_pages_of_an_hour_people_are_told_so_and_the_rest_comes_later",
        f"{_SAID}::test_news_that_was_held_back_for_a_day_is_none_any_more",
    ), (
        Mutant("the same news wakes somebody again and again", _NOTIFICATION, "_notification_of",
            "if seen.page and «»not »seen.page.has_said(news, context.now):"),
        Mutant("one run sends what another is sending", _RECORD,
            "NotificationRecord.was_left_unsent", "now - self.at > «»-»SENDING"),
        Mutant("news of a day ago wakes somebody", _RECORD, "NotificationRecord.was_left_unsent",
            "not self.is_sent and« is_news and»»"),
        Mutant("people get more notifications in an hour than they can read", _PAGES,
            "Notifier._spend", "NOTIFICATIONS_PER_HOUR «- page.urgent»+ 1 - page.urgent»"),
        Mutant("proposals use up what an hour has for urgent notifications", _PAGES,
            "Notifier.send", "items.notifications_key(«severity»Severity.URGENT», self.now)"),
        Mutant("where Mendq only watches, refusals wake people", _PAGING, "severity_of",
            "of_the_plan« and mode >= Mode.PROPOSE»»"),
    )),
    Selection(("tests.cases.test_budget",), (
        Mutant("one caller's many queues leave the hour no notification for another's", _PAGES,
            "Notifier._spend", "OR (pages < :most« AND NOT ({had_one})»»)"),
        Mutant("a caller among others who had one has none of its own", _PAGES,
            "Notifier._spend", '"« AND » OR »".join('),
        Mutant("a queue that people know of takes what is kept for others", _PAGES,
            "Notifier._spend", "most=«0 if page.announced else »»NOTIFICATIONS_PER_HOUR"),
        Mutant("one caller's queues fill the sum of what waits", _NOTIFICATION, "hold_back",
            "spread_to(«case.callers»[case.queue_arn]»,"),
    )),
    Selection(("tests.heal.test_flood",), (
        Mutant("a flood of names keeps managed queues from being looked at", _BATCH,
            "_Batch._in_turn", "MOST_UNKNOWN« + [*turn_of.values()].count(0)»»"),
        Mutant("one caller's names take every turn of a batch", _BATCH,
            "_Batch._in_turn", "in_turn = «sorted(groups, key=turn_of.__getitem__)»groups»"),
    )),
    Selection(("tests.scan.test_daily_pace",), (
        Mutant("people are told of more faults in a day than they can read", _PACE,
            "paced", "not in known][: max(«0»1», room)]"),
        Mutant("a fault that people know of is closed because the day is full", _PACE,
            "paced", "if «each in known or »»each in new]"),
    )),
    Selection(("tests.notifications.test_plain_text",), (
        Mutant("a notification holds a link that somebody else wrote", _TEXT, "plain",
            '«_LINK.sub(lambda found: f"[{found.group()}]", _spelled(text)»_spelled(text»)'),
        Mutant("somebody else's text opens a line of its own in a notification", _TEXT, "_spelled",
            '«" ".join(str(text)[:_MOST_READ].split())»str(text)[:_MOST_READ]»'),
        Mutant("a character that nobody sees hides in a notification", _TEXT, "_spelled",
            'one_line«.encode("ascii", "backslashreplace").decode()»»'),
        Mutant("half a command is shown, which does something else", _TEXT, "command_line",
            "«len(command) <= MOST_COMMAND and»»"),
        Mutant("a command of two lines is shown", _TEXT, "command_line",
            "_PRINTABLE.«fullmatch»match»(command)"),
        Mutant("what may not be cut is cut from a long notification", _TEXT, "Section.droppable",
            "«if self.cut else 0»»"),
    )),
    Selection((
        "tests.report.test_sentences::test_each_week_is_said_in_these_words",
        "tests.report.test_verdict",
    ), (
        Mutant("a week of which nothing was read is reported as quiet", _VERDICT, "headline",
            "if summary.nothing_was_read«» and summary.totals.incidents»:"),
        Mutant("a week of which days are missing is reported as whole", _VERDICT, "headline",
            'where = "" if summary.«every_day_was_read»week»'),
        Mutant("fixes that a person approved are reported as made alone", _VERDICT, "_healed",
            "if approved«» > fixed»:"),
        Mutant("it is said that nobody was paged where somebody was", _VERDICT, "_healed",
            "if «not »»summary.paged:"),
        Mutant("it is said that an incident healed before anyone was paged, which nobody knows",
            _VERDICT, "_healed", "summary.totals.urgent <= incidents - fixed«» + 1»"),
        Mutant("an outcome that the report does not know is left out of its sum", _VERDICT,
            "_not_healed", "for each in «(*known, *unknown)»known»"),
        Mutant("the healed count leaves out those that a person approved", _SUMMARY,
            "Summary.fixed", "self.totals.healed« + self.approved»»"),
        Mutant("a clock that goes backwards gives a negative time", _TABLES, "lasted",
            "max(«0.0»-1e9»,"),
        Mutant("a week of few nightly runs is what others are measured by", _TILES, "_whole_weeks",
            "«if each.is_whole»»"),
        Mutant("a week with days missing is judged better than whole ones", _TILES, "_judged",
            "if not summary.«is_whole»days»:"),
        Mutant("more incidents than usual are shown as good news", _TILES, "_judged",
            '«{"good": "bad", "bad": "good"}[rise]»rise»'),
    )),
    Selection(("tests.report.test_page::test_no_name_becomes_markup_a_link_or_a_header",), (
        Mutant("a queue's name becomes markup in the report's page", _PAGE, "template",
            "autoescape=«True»False»"),
    )),
    Selection((
        "tests.report.test_page::test_each_payload_in_every_place_of_a_mail",
    ), (
        Mutant("a name becomes a link in the report's mail", _MAIL, "_in_a_mail",
            "together(«unlinked(plain(value)»plain(value»))"),
    )),
    Selection(("tests.report.test_to_do",), (
        Mutant("what somebody wrote into a summary becomes a command", _TO_DO, "_command",
            " CASE_ID.«fullmatch»match»(asked.case_id)"),
        Mutant("a report's command approves another symptom's case", _TO_DO, "_command",
            'case« and case["symptom"] == asked.symptom»»'),
        Mutant("a report's command is for another account", _TO_DO, "_command",
            'queue« and (queue["region"], queue["account"]) == here[:2]»»'),
    )),
    Selection((
        "tests.report.test_words",
        "tests.report.test_mail",
    ), (
        Mutant("a character that turns the text round hides in a name", _WORDS, "_UNSEEN",
            '"Cc"«, "Cf"»»'),
        Mutant("a name of a million characters fills a page", _WORDS, "visible",
            "for each in text«[:most]»»"),
        Mutant("a domain in a name becomes a link in a mail", _WORDS, "_DOMAIN", "[«.»»"),
        Mutant("nobody can copy a FIFO queue's name out of a mail", _WORDS, "_DOMAIN",
            "«(?!fifo\\b)»»"),
        Mutant("a recipient's name adds a header to a mail", _MAIL, "_address",
            "if not _ADDRESS.«fullmatch»search»(text):"),
    )),
    Selection((
        "tests.report.test_read_summary::test_a_mistake_is_named_with_its_place",
        "tests.report.test_read_summary::test_another_schema_is_refused_in_one_sentence",
    ), (
        Mutant("a text passes for a number in a summary", _SUMMARY, "read",
            "msgspec.json.decode(content, type=Summary«», strict=False»)"),
        Mutant("a number below nothing is reported", _PARTS, "Whole",
            "Meta(«ge=0, »»le=LARGEST)"),
        Mutant("a document of another release is reported", _SUMMARY, "read",
            "if «schema != SCHEMA or »»isinstance(schema, bool):"),
    )),
    Selection((
        "tests.infra.settings.test_mistakes",
        "tests.infra.settings.test_deployment",
    ), (
        Mutant("a fix may be watched for no time at all", _LIMITS, "Timing",
            "Range(0, 336, «24»0»)"),
        Mutant("a setting makes a soak shorter than a poison message takes to come back",
            _LIMITS, "Timing", "Range(0, 10, «LOWEST_SOAK_FACTOR»0.1»)"),
        Mutant("a setting takes away the time between two writes", _LIMITS, "Timing",
            "Range(0, 1_440, «30»0»)"),
        Mutant("a setting lets a visibility timeout go beyond what SQS takes", _LIMITS,
            "Limits", "Range(30, «43_200»432_000»)"),
        Mutant("floors are lifted without being asked to", _READING, "Reading._leaf",
            "bounds.begins(floors=«»not »self.floors)"),
        Mutant("a mode that does not exist is deployed", _READING, "Reading._leaf",
            "if isinstance(raw, str)« and raw in names»»:"),
        Mutant("a queue is named twice and one of the two is a typing error", _READING,
            "Reading._list", "if each in raw[:«index»0»]:"),
        Mutant("more queues are named than a Lambda's environment holds", _READING, "Reading._list",
            "if «len(raw) >»not» (most := bounds.max_length or 0):"),
        Mutant("a setting of a name that does not exist is passed over", _READING,
            "Reading._section",
            '«self.note(join(path, name), "no such setting", nearest(name, known))»continue»'),
        Mutant("the mode of a symptom that does not exist is passed over", _READING,
            "Reading._by_name",
            '«self.note(f"{path}.{name}", *wrong)»continue»'),
        Mutant("settings that contradict each other are deployed", _READING, "Reading._section",
            "if «»wrong and »not wrong.intersection(needs):"),
        Mutant("a setting that is there twice counts with its last value", _READING, "_object",
            "«{_TWICE: True} if times[key] > 1 else »»value"),
    )),
    Selection(("tests.scan.test_baselines",), (
        Mutant("a fault that came since is taken for well, and no page tells of the change",
            "mendq.scan.store", "is_new", "now[0] != before[0]« and {*now[1:]} <= {*before[1:]}»»"),
        Mutant("what nobody could measure is taken for well", "mendq.scan.scan",
            "_measured_together", "batch« if measured[each.facts.queue_arn] is not None»»)"),
        Mutant("what was changed just now is taken for well", "mendq.scan.scan", "_look_at",
            "suspected or failed« or window is None»»"),
    )),
    Selection(("tests.heal.test_since_it_worked",), (
        Mutant("a change that broke it hours later is not told", "mendq.notifications.queue_lines",
            "baseline_lines", "found or «now - each.at > CHANGED_LATELY»True»:"),
    )),
)  # fmt: skip
