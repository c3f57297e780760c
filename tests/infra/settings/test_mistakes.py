"""Each mistake alone: the field as the user wrote it, what is wrong, and the remedy."""

from __future__ import annotations

import math
from typing import Any

import pytest

from infra.settings.deployment import read
from infra.settings.reading import SettingsRefused, parse
from mendq.catalogue import CATALOGUE

ARN = "arn:aws:sqs:eu-west-1:111122223333:orders"
CALENDAR = "arn:aws:ssm:eu-west-1:111122223333:document/quiet-days"

# what the user wrote, the field, a part of the fault, a part of the remedy
ALONE: list[tuple[dict[str, Any], str, str, str]] = [
    ({"mod": "heal"}, "mod", "no such setting", "did you mean mode?"),
    ({"Mode": "heal"}, "Mode", "no such setting", "did you mean mode?"),
    ({"tag_may_raise_to": "heal"}, "tag_may_raise_to", "no such", "did you mean tagMayRaiseTo?"),
    ({"zzz": 1}, "zzz", "no such setting", "say one of autonomy, dashboard"),
    ({"mode": "Heal"}, "mode", '"Heal" is not observe', "did you mean heal?"),
    ({"mode": True}, "mode", "true is not observe", "say one of heal, observe, propose"),
    ({"tagMayRaiseTo": None}, "tagMayRaiseTo", "null is not", "say one of"),
    ({"queues": "orders"}, "queues", '"orders" is not a list', "write it as [..]"),
    ({"queues": ["*"]}, "queues[0]", '"*" is not a queue', "no setting manages every queue"),
    ({"queues": ["a", "b*c"]}, "queues[1]", '"b*c" is not', "only once, at the end"),
    ({"queues": ["a*.fifo"]}, "queues[0]", '"a*.fifo" is not', "only once, at the end"),
    ({"queues": [ARN]}, "queues[0]", "is not a queue", "the queue's name alone, such as orders"),
    ({"queues": ["a b"]}, "queues[0]", '"a b" is not', "orders or orders-*"),
    ({"queues": [""]}, "queues[0]", '"" is not', "orders or orders-*"),
    ({"queues": ["x" * 81]}, "queues[0]", "is not a queue", "orders or orders-*"),
    ({"queues": [7]}, "queues[0]", "7 is not a queue", "orders or orders-*"),
    ({"queues": ["a", "a"]}, "queues[1]", '"a" is there twice', "leave one out"),
    ({"queues": [f"q{n}" for n in range(201)]}, "queues", "201 entries", "keep at most 200"),
    (
        {"autonomy": ["visibility_timeout_too_short"]},
        "autonomy",
        "is not an object",
        "write it as {..}",
    ),
    (
        {"autonomy": {"visibility_timeout_too_shrt": "heal"}},
        "autonomy.visibility_timeout_too_shrt",
        "no such symptom",
        "did you mean visibility_timeout_too_short?",
    ),
    (
        {"autonomy": {"visibility_timeout_too_short": "off"}},
        "autonomy.visibility_timeout_too_short",
        '"off" is not',
        "say one of",
    ),
    ({"trail": []}, "trail", "[] is not an object", "write it as {..}"),
    ({"trail": {"create": "no"}}, "trail.create", '"no" is not true or false', "without quotes"),
    ({"trail": {"create": 0}}, "trail.create", "0 is not true or false", "without quotes"),
    ({"trail": {"create": False}}, "trail.bucket", "is missing", "name the bucket"),
    ({"trail": {"bucket": "logs"}}, "trail.bucket", "although create is true", "create: false"),
    (
        {"trail": {"bucketRegion": "eu-west-1"}},
        "trail.bucketRegion",
        "although create is true",
        "leave it out",
    ),
    (
        {"trail": {"create": False, "bucket": "arn:aws:s3:::logs"}},
        "trail.bucket",
        "is not a bucket's name",
        "leave out arn:aws:s3:::",
    ),
    (
        {"trail": {"create": False, "bucket": "logs", "eventNames": ["SendMessage"]}},
        "trail",
        "selects events although create is false",
        "leave managementEvents, queueArnPrefixes and eventNames out",
    ),
    (
        {"trail": {"eventNames": ["SendMesage"]}},
        "trail.eventNames[0]",
        '"SendMesage" is not a data event of SQS',
        "did you mean SendMessage?",
    ),
    (
        {"trail": {"eventNames": ["SetQueueAttributes"]}},
        "trail.eventNames[0]",
        "is not a data event of SQS",
        "did you mean GetQueueAttributes?",
    ),
    ({"trail": {"eventNames": [["x"]]}}, "trail.eventNames[0]", "is not a data event", "one of"),
    (
        {"trail": {"queueArnPrefixes": [f"{ARN}*"]}},
        "trail.queueArnPrefixes[0]",
        "is not the start of a queue's ARN",
        "leave out the *",
    ),
    (
        {"trail": {"queueArnPrefixes": ["orders"]}},
        "trail.queueArnPrefixes[0]",
        "is not the start of a queue's ARN",
        "say one such as arn:aws:sqs:",
    ),
    ({"limits": {"writesPerMinute": 0}}, "limits.writesPerMinute", "out of range", "1 to 100"),
    (
        {"limits": {"writesPerMinute": 1.5}},
        "limits.writesPerMinute",
        "1.5 is not a whole number",
        "1 to 100",
    ),
    (
        {"limits": {"writesPerMinute": "9"}},
        "limits.writesPerMinute",
        '"9" is not a whole number',
        "1 to",
    ),
    (
        {"limits": {"visibilityCeilingSeconds": 43_201}},
        "limits.visibilityCeilingSeconds",
        "out of range",
        "30 to 43200",
    ),
    ({"limits": {"massSymptomShare": True}}, "limits.massSymptomShare", "true is not", "0 to 1"),
    ({"limits": {"massSymptomShare": 1.1}}, "limits.massSymptomShare", "out of range", "0 to 1"),
    ({"timing": {"soakFactor": math.nan}}, "timing.soakFactor", "NaN is out of range", "1.2 to 10"),
    (
        {"timing": {"soakFactor": math.inf}},
        "timing.soakFactor",
        "Infinity is out of range",
        "1.2 to 10",
    ),
    (
        {"timing": {"propagationSeconds": 59}},
        "timing.propagationSeconds",
        "59 is out of range",
        "whole number from 60 to 900",
    ),
    ({"timing": {"cooldown": 30}}, "timing.cooldown", "no such", "did you mean cooldownMinutes?"),
    (
        {"notifications": {"urgent": ["http://x.io"]}},
        "notifications.urgent[0]",
        "is not an e-mail",
        "use https://",
    ),
    (
        {"notifications": {"info": ["on-call"]}},
        "notifications.info[0]",
        "is not an e-mail",
        "on-call@example.com",
    ),
    (
        {"notifications": {"info": ["a@b"]}},
        "notifications.info[0]",
        "is not an e-mail",
        "on-call@example.com",
    ),
    *(
        ({"report": {"sender": each}}, "report.sender", "is not an e-mail", "sqs@example.com")
        for each in (
            "a@b.io\nBcc: c@d.io",
            "a b@c.io",
            "Mendq <a@b.io>",
            "a(b)@c.io",
            '"a b"@c.io',
            "a..b@c.io",
            ".a@b.io",
            "a:b@c.io",
            "a\\b@c.io",
            "ä@b.io",
            "a@bä.io",
            "a@b.io, c@d.io",
            "a@@b.io",
            f"{'a' * 65}@b.io",
        )
    ),
    ({"report": {"weekday": "Monday"}}, "report.weekday", "is not a weekday", "mean MONDAY?"),
    ({"report": {"hour": 24}}, "report.hour", "24 is out of range", "from 0 to 23"),
    ({"report": {"timeZone": "CET!"}}, "report.timeZone", "is not a time zone", "Europe/Berlin"),
    (
        {"report": {"timeZone": "Europe/Rom"}},
        "report.timeZone",
        "is not a time",
        "Europe/Berlin",
    ),
    ({"environments": [7]}, "environments[0]", "7 is not an object", "write it as {..}"),
    ({"report": {"recipients": ["a@b.io"]}}, "report.sender", "is missing", "name it"),
    ({"nightly": {"hourUtc": -1}}, "nightly.hourUtc", "-1 is out of range", "from 0 to 23"),
    ({"nightly": {"maximumVcpu": 3}}, "nightly.maximumVcpu", "3 is out of range", "from 4 to 400"),
    ({"freezeCalendars": ["quiet-days"]}, "freezeCalendars[0]", "is not the ARN", "arn:aws:ssm"),
    ({"freezeCalendars": [CALENDAR] * 2}, "freezeCalendars[1]", "is there twice", "leave one out"),
    (
        {"environments": [{"account": 111122223333, "region": "eu-west-1"}]},
        "environments[0].account",
        "111122223333 is not an account id",
        "twelve digits in quotes",
    ),
    (
        {"environments": [{"account": "111122223333"}]},
        "environments[0].region",
        "is missing",
        "say a region",
    ),
    (
        {"environments": [{"account": "111122223333", "region": "Ireland"}]},
        "environments[0].region",
        '"Ireland" is not a region',
        "eu-west-1",
    ),
    (
        {"environments": [{"account": "111122223333", "region": "eu-west-1"}] * 2},
        "environments[1]",
        "is there twice",
        "leave one out",
    ),
]


@pytest.mark.parametrize(("raw", "path", "fault", "remedy"), ALONE)
def test_a_mistake_alone(raw: dict[str, Any], path: str, fault: str, remedy: str) -> None:
    with pytest.raises(SettingsRefused) as refused:
        read(raw)
    (mistake,) = refused.value.mistakes
    assert mistake.path == path
    assert fault in mistake.fault
    assert remedy in mistake.remedy
    assert str(refused.value) == f"{path}: {mistake.fault}; {mistake.remedy}"


def test_all_mistakes_at_once_one_a_line() -> None:
    raw = {
        "mod": "heal",
        "mode": "Heal",
        "queues": ["*", "orders", 7],
        "trail": {"create": 1, "bucket": "B", "eventNames": ["SendMesage"]},
        "timing": {"propagationSeconds": 5, "soakFactor": math.nan},
        "environments": [{}],
    }
    with pytest.raises(SettingsRefused) as refused:
        read(raw)
    assert [mistake.path for mistake in refused.value.mistakes] == [
        "mod",
        "mode",
        "queues[0]",
        "queues[2]",
        "trail.create",
        "trail.bucket",
        "trail.eventNames[0]",
        "timing.propagationSeconds",
        "timing.soakFactor",
        "environments[0].account",
        "environments[0].region",
    ]
    assert len(str(refused.value).splitlines()) == 11


def test_a_field_that_is_wrong_is_not_judged_against_others() -> None:
    with pytest.raises(SettingsRefused) as refused:
        read({"trail": {"create": "false", "bucket": "our-logs"}})
    assert [mistake.path for mistake in refused.value.mistakes] == ["trail.create"]


def test_settings_that_are_no_object_are_refused() -> None:
    with pytest.raises(SettingsRefused, match=r"^mendq: \[\] is not an object"):
        read([])  # type: ignore[arg-type]


def test_a_long_value_is_shown_short() -> None:
    with pytest.raises(SettingsRefused) as refused:
        read({"mode": "x" * 5_000})
    assert len(str(refused.value)) < 200


def test_what_only_pages_or_is_counted_takes_no_mode() -> None:
    never = {each.name: each.ships_as for each in CATALOGUE if not each.steps}
    with pytest.raises(SettingsRefused) as refused:
        read({"autonomy": {"no_such_symptom": "heal", **dict.fromkeys(never, "observe")}})
    faults = {
        "page only": "only pages",
        "count only": "is only counted",
        "report only": "is only reported",
    }
    expected = {f"autonomy.{name}: {faults[ships]}; leave it out" for name, ships in never.items()}
    said = {str(each) for each in refused.value.mistakes}
    assert {each for each in said if "no_such_symptom" not in each} == expected


def test_duplicate_keys_are_named_with_all_else() -> None:
    raw = parse(
        """{"mode": "heal", "queues": ["a"], "mode": "heal", "zzz": 1, "autonomy":
        {"visibility_timeout_too_short": "heal", "visibility_timeout_too_short": "observe"},
        "trail": {"create": true, "bucket": "our-logs", "create": false}, "limits": {},
        "limits": {"writesPerMinute": 0},
        "environments": [{"region": "eu-west-1", "region": "eu-west-1"}]}"""
    )
    with pytest.raises(SettingsRefused) as refused:
        read(raw)
    twice = [
        "mode",
        "autonomy.visibility_timeout_too_short",
        "trail.create",
        "limits",
        "environments[0].region",
    ]
    said = [str(each) for each in refused.value.mistakes]
    assert [each for each in said if each.endswith("is there twice; leave one out")] == [
        f"{path}: is there twice; leave one out" for path in twice
    ]
    assert [each.path for each in refused.value.mistakes if "twice" not in each.fault] == [
        "zzz",
        "environments[0].account",
    ]
