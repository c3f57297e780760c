"""The page of the alarms, from the table that makes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from states_page import table

from infra.alarms import PAGED, WATCHED
from infra.alarms.told import Told

HEAD = """# The alarms

<!-- Derived from infra/alarms by `make docs`: change it there. -->

Mendq tells people in two ways. A **page** is about one case: it has the evidence and the next
command, and comes once. An **alarm** is about a state: it tells when that begins and when it is
over, so that what opens an incident also closes it. Both go to the topic of their severity:
`urgent` wants somebody now, `info` somebody in the morning (settings `pages.urgent` and
`pages.info`).

Every message of an alarm says what it means for people, when it fires, what to type first, and
which page to read. What to type has the stack's own `--region` there, and stands beside the account
that it is for: a profile for that account is the reader's to choose.

"""
PAGING = """## Those that reach people

What has a cause of its own tells of itself, so that a letter that lies for days hides no Lambda
that dies meanwhile. The first three join alarms that one cause makes ring together. Where one is
made for several queues or Lambdas, its name ends in whose it is, as in
`mendq-own-dead-letters-start-night`.

"""
STANDING = """## What they stand on

Each of these is seen in CloudWatch, and reaches nobody by itself.
`mendq-fixes-held-back` is no fault: it joins the two whose names begin with `mendq-fix-`, and while
it stands `mendq-fixes-spike` waits.

"""
TAIL = """
What silence means is said of each metric by itself. No sign of life, no pulse, no sweep and no
night are faults, so their alarms ring when nothing comes. A gauge of open cases that is silent says
what it said last: a follow-up that is down ends no escalation. Where periods are missing CloudWatch
looks further back than an alarm's own periods, how far it does not say: what rings by silence may
ring two or three periods later.

CloudWatch may tell of each of them once, when it is made, that it is OK: some twenty messages after
the very first deployment. Four may tell the truth about a beginning: `mendq-heartbeat-missing`
rings until the first minute was heard of, `mendq-sweep-missing` until the first sweep was, ten
minutes at most, `mendq-pulse-lost` until the first pulse was, an hour at most, and
`mendq-nights-failing` until the first night was written.

## The dashboard

`mendq-REGION` in CloudWatch, one for each stack unless the setting `dashboard` is false: is the
healer well, what is broken now, what did it do today. This is its definition from the template,
drawn with the metrics of a made-up day (`.venv/bin/python docs/dashboard_picture.py`); it is no
screenshot.

![Three rows of graphs below the questions: is the healer well, what is broken now, what did it do
today](dashboard.png)
"""


def alarms_page() -> str:
    """Markdown: who is told of what, and what that stands on."""
    paging = (
        (_code(each), each.severity, each.when, f"`{each.command}`", _link(each)) for each in PAGED
    )
    standing = ((_code(each), each.when, f"`{each.command}`", _link(each)) for each in _each_once())
    return "".join(
        (
            HEAD,
            PAGING,
            table(("alarm", "topic", "fires when", "type first", "read"), paging),
            "\n",
            STANDING,
            table(("alarm", "fires when", "type first", "read"), standing),
            TAIL,
        )
    )


def _each_once() -> Iterable[Told]:
    return dict.fromkeys(WATCHED)


def _code(told: Told) -> str:
    return f"`{told.called()}`"


def _link(told: Told) -> str:
    page = PurePosixPath(told.page)
    return f"[{page.stem}]({page.relative_to('docs')})"
