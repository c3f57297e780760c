"""The stack in diagrams and tables, from the template that would be deployed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from docs.stack_outline import (
    QUEUE,
    REGION,
    WRITES,
    YOUR_QUEUES,
    granted_to,
    resources,
    starts,
    title,
    touched,
    verb_of,
)
from docs.stack_outline import parts as parts_of
from docs.tables import code, table
from infra.stackset import publishing

NOTHING, PERSON = "nothing", "a person"


def guard() -> str:
    """The service control policy that `make stackset` writes."""
    return f"```json\n{publishing.guard()}```"


def picture() -> str:
    """What starts each part, as GitHub draws it."""
    template = resources()

    def node(name: str) -> str:
        said = title(name, template) if name in template else name
        shape = '[("{0}")]' if name in template and template[name]["Type"] == QUEUE else '["{0}"]'
        return said.replace(" ", "_") + shape.format(said)

    found = list(starts(template))
    started = {target for _, _, target in found}
    found += [(PERSON, "", name) for name in parts_of(template) if name not in started]
    lines = [
        f"    {node(source)} -->" + (f'|"{how}"| ' if how else " ") + node(target)
        for source, how, target in found
    ]
    return "\n".join(["```mermaid", "flowchart LR", *lines, "```"])


def parts() -> str:
    """What each part does, and what its role lets it touch."""
    template = resources()

    def rows() -> Iterator[tuple[str, str, str]]:
        for name in parts_of(template):
            said = str(template[name]["Properties"].get("Description", ""))
            does = said.removeprefix("Mendq: ") or "Spark on EMR Serverless, started each night"
            touches = (
                f"{' and '.join(sorted(verbs))} "
                + (target if target == YOUR_QUEUES else title(target, template))
                for target, verbs in touched(name, template).items()
            )
            yield title(name, template), does, "; ".join(touches)

    return table("part|what it does|touches", rows())


def roles() -> str:
    """Who may be which role, and what it may change on queues that are not Mendq's own."""
    template, by_what = resources(), defaultdict[tuple[str, str], list[str]](list)
    for name, each in sorted(template.items()):
        if each["Type"] == "AWS::IAM::Role":
            given = each["Properties"]
            (trust,) = given["AssumeRolePolicyDocument"]["Statement"]
            service = str(trust["Principal"]["Service"]).removesuffix(".amazonaws.com")
            granted = [each for each in granted_to({name}, template) if each.is_of_your_queues]
            actions = {action for each in granted for action in each.actions}
            writes = sorted(a for a in actions if a.startswith("sqs:") and verb_of(a) == WRITES)
            named = code(each.removeprefix("sqs:") for each in writes) or NOTHING
            by_what[named, service].append(given["RoleName"][len("mendq-") : -len(f"-{REGION}")])
    rows = sorted(by_what.items(), key=lambda row: (row[0][0] == NOTHING, sorted(row[1])))
    heads = "role|taken on by|what it may do to queues beside reading"
    return table(heads, ((code(sorted(names)), by, what) for (what, by), names in rows))
