"""What logging which calls shows and hides: for docs/deploy.md and docs/cost.md."""

from __future__ import annotations

from states_page import table

from cli.cost.calls import CHOICES, NO_RECEIVES, hidden_by

BEGIN = "<!-- derived: the trail's choices (make docs) -->"
END = "<!-- end: the trail's choices -->"
HIDDEN = "cost.md#what-leaving-calls-out-hides"
HEAD = ("what you choose", "what you see", "what you pay for")
# One of each kind: a symptom may show on one of them alone.
QUEUES = tuple(f"arn:aws:sqs:us-east-1:123456789012:orders{each}" for each in ("", ".fifo"))


def trail_table() -> str:
    """The values of the setting `trail`, the cheapest first but for the last two."""
    return table(
        HEAD,
        (
            (
                "no prefix",
                "what the [sweep](sweep.md) finds, where no call has to fail",
                "nothing for calls",
            ),
            (
                "`trail.queueArnPrefixes` of a few queues",
                "all symptoms of these queues",
                "every call of theirs",
            ),
            (
                "the same, with `trail.eventNames` without `ReceiveMessage`",
                f"what the other calls show. {hidden_by(NO_RECEIVES, QUEUES).words(_code)}",
                "mostly far less: most calls are receives, and most receives find nothing",
            ),
            (
                "the same, with the deletes and `ChangeMessageVisibility` alone",
                f"late deletes of FIFO queues, and [little else]({HIDDEN})",
                "about one call for each message",
            ),
            ("`arn:aws:sqs:`", "every queue", "every call in the region"),
            (
                "`trail.managementEvents`",
                "who changed a queue, from the trail's files too",
                "nothing as the first copy in the region, the dearest of all as a further one",
            ),
            ("`trail.create`: false", "what that trail logs", "no second copy"),
        ),
    ).rstrip("\n")


def hidden_table() -> str:
    """What each choice of `mendq cost` keeps from being seen."""
    found = ((each.name, hidden_by(each, QUEUES)) for each in CHOICES)
    rows = ((name, _linked(each.wholly), _linked(each.in_part)) for name, each in found)
    return table(
        ("a trail that logs", "hides wholly", "hides but where one of these calls meets it"), rows
    ).rstrip("\n")


def _code(name: str) -> str:
    return f"`{name}`"


def _linked(symptoms: tuple[str, ...]) -> str:
    return ", ".join(f"[{each}](runbooks/{each}.md)" for each in symptoms) or "-"
