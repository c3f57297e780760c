"""Settings that are refused or warned of, as their users would write them."""

from __future__ import annotations

import math
from typing import Any

from mendq.catalogue import CATALOGUE

BAD: tuple[Any, ...] = (
    {"mod": "heal"},
    {"Mode": "heal"},
    {"tag_may_raise_to": "heal"},
    {"zzz": 1},
    {"mode": "Heal"},
    {"mode": True},
    {"tagMayRaiseTo": None},
    {"queues": "orders"},
    {"queues": ["*"]},
    {"queues": ["a", "b*c"]},
    {"queues": ["a*.fifo"]},
    {"queues": ["arn:aws:sqs:eu-west-1:111122223333:orders"]},
    {"queues": ["a b"]},
    {"queues": [""]},
    {"queues": ["x" * 81]},
    {"queues": [7]},
    {"queues": ["a", "a"]},
    {"queues": [f"q{n}" for n in range(201)]},
    {"autonomy": ["visibility_timeout_too_short"]},
    {"autonomy": {"visibility_timeout_too_shrt": "heal"}},
    {"autonomy": {"visibility_timeout_too_short": "off"}},
    {"trail": []},
    {"trail": {"create": "no"}},
    {"trail": {"create": 0}},
    {"trail": {"create": False}},
    {"trail": {"bucket": "logs"}},
    {"trail": {"bucketRegion": "eu-west-1"}},
    {"trail": {"create": False, "bucket": "arn:aws:s3:::logs"}},
    {"trail": {"create": False, "bucket": "logs", "eventNames": ["SendMessage"]}},
    {"trail": {"eventNames": ["SendMesage"]}},
    {"trail": {"eventNames": ["SetQueueAttributes"]}},
    {"trail": {"eventNames": [["x"]]}},
    {"trail": {"queueArnPrefixes": ["arn:aws:sqs:eu-west-1:111122223333:orders*"]}},
    {"trail": {"queueArnPrefixes": ["orders"]}},
    {"limits": {"writesPerMinute": 0}},
    {"limits": {"writesPerMinute": 1.5}},
    {"limits": {"writesPerMinute": "9"}},
    {"limits": {"massSymptomShare": True}},
    {"limits": {"massSymptomShare": 1.1}},
    {"timing": {"soakFactor": math.nan}},
    {"timing": {"soakFactor": math.inf}},
    {"timing": {"propagationSeconds": 59}},
    {"timing": {"cooldown": 30}},
    {"notifications": {"urgent": ["http://x.io"]}},
    {"notifications": {"info": ["on-call"]}},
    {"notifications": {"info": ["a@b"]}},
    {"report": {"sender": "a@b.io\nBcc: c@d.io"}},
    {"report": {"sender": "a b@c.io"}},
    {"report": {"sender": "Mendq <a@b.io>"}},
    {"report": {"sender": "a(b)@c.io"}},
    {"report": {"sender": '"a b"@c.io'}},
    {"report": {"sender": "a..b@c.io"}},
    {"report": {"sender": ".a@b.io"}},
    {"report": {"sender": "a:b@c.io"}},
    {"report": {"sender": "a\\b@c.io"}},
    {"report": {"sender": "ä@b.io"}},
    {"report": {"sender": "a@bä.io"}},
    {"report": {"sender": "a@b.io, c@d.io"}},
    {"report": {"sender": "a@@b.io"}},
    {"report": {"sender": f"{'a' * 65}@b.io"}},
    {"report": {"weekday": "Monday"}},
    {"report": {"hour": 24}},
    {"report": {"timeZone": "CET!"}},
    {"report": {"recipients": ["a@b.io"]}},
    {"nightly": {"hourUtc": -1}},
    {"nightly": {"maximumVcpu": 3}},
    {"freezeCalendars": ["quiet-days"]},
    {
        "freezeCalendars": [
            "arn:aws:ssm:eu-west-1:111122223333:document/quiet-days",
            "arn:aws:ssm:eu-west-1:111122223333:document/quiet-days",
        ]
    },
    {"environments": [{"account": 111122223333, "region": "eu-west-1"}]},
    {"environments": [{"account": "111122223333"}]},
    {"environments": [{"account": "111122223333", "region": "Ireland"}]},
    {
        "environments": [
            {"account": "111122223333", "region": "eu-west-1"},
            {"account": "111122223333", "region": "eu-west-1"},
        ]
    },
    [],
    {"mode": "x" * 5_000},
    {
        "mod": "heal",
        "mode": "Heal",
        "queues": ["*", "orders", 7],
        "trail": {"create": 1, "bucket": "B", "eventNames": ["SendMesage"]},
        "timing": {"propagationSeconds": 5, "soakFactor": math.nan},
        "environments": [{}],
    },
    {"trail": {"create": "false", "bucket": "our-logs"}},
    {"autonomy": {each.name: "heal" for each in CATALOGUE if not each.steps}},
    {"limits": {"scanMetricsPerDay": -1}},
    {"limits": {"visibilityCeilingSeconds": 43_201}},
    {"limits": {"writesPerAttributePerDay": 0}},
    *(
        {"timing": {name: value}}
        for name in (
            "propagationSeconds",
            "watchHours",
            "proposalHours",
            "soakFactor",
            "cooldownMinutes",
            "probeMinutes",
            "measuringMinutes",
        )
        for value in (0, 10**9)
    ),
)

HERE = "arn:aws:sqs:eu-west-1:111122223333:"
TWO = [
    {"account": "111122223333", "region": "eu-west-1"},
    {"account": "111122223333", "region": "eu-central-1"},
]
WARNED: tuple[Any, ...] = (
    {},
    {"mode": "heal"},
    {"tagMayRaiseTo": "propose"},
    {"mode": "heal", "notifications": {"info": ["on-call@example.com"]}},
    {"mode": "heal", "notifications": {"urgent": ["on-call@example.com"]}},
    {"notifications": {"urgent": ["on-call@example.com"]}},
    {"report": {"sender": "mendq@example.com"}},
    {"environments": [{"account": "111122223333", "region": "zz-nowhere-99"}]},
    {"environments": TWO, "trail": {"queueArnPrefixes": ["arn:aws:sqs:us-east-1:", HERE]}},
    {"environments": TWO, "trail": {"queueArnPrefixes": ["arn:aws:sqs:", f"{HERE}billing"]}},
    {"trail": {"create": False, "bucket": "our-logs"}},
    {"freezeCalendars": ["arn:aws:ssm:us-east-1:444455556666:document/quiet-days"]},
)
