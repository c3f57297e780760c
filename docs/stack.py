"""Make the diagrams and tables of docs/stack.md and the policy in docs/stacksets.md.

All of it is read from the template that would be deployed. docs/derive.py inserts the result of
each public function into the pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from docs.stack_outline import (
    QUEUE,
    REGION,
    WRITES,
    YOUR_QUEUES,
    Resources,
    Start,
    find_access,
    list_grants,
    list_parts,
    list_starts,
    load_resources,
    title_of,
    verb_of,
)
from docs.tables import code, table
from infra.stackset import publishing

_NOTHING = "nothing"
_PERSON = "a person"


def guard() -> str:
    """Return the service control policy that `make stackset` writes, as a block of JSON."""
    return f"```json\n{publishing.fill_guard_policy()}```"


def diagram() -> str:
    """Return a Mermaid diagram of what starts each Lambda and the nightly job."""
    template = load_resources()
    starts = list(list_starts(template))
    started = {start.target for start in starts}
    unstarted = [name for name in list_parts(template) if name not in started]
    starts.extend(Start(_PERSON, "", name) for name in unstarted)
    lines = ["```mermaid", "flowchart LR"]
    for start in starts:
        label = f'|"{start.how}"| ' if start.how else " "
        source = _make_node(start.source, template)
        lines.append(f"    {source} -->{label}{_make_node(start.target, template)}")
    lines.append("```")
    return "\n".join(lines)


def _make_node(name: str, template: Resources) -> str:
    """Return a node of the diagram. Queues are drawn as cylinders, all else as boxes."""
    if name not in template:
        return f'{name.replace(" ", "_")}["{name}"]'
    title = title_of(name, template)
    node_id = title.replace(" ", "_")
    if template[name]["Type"] == QUEUE:
        return f'{node_id}[("{title}")]'
    return f'{node_id}["{title}"]'


def parts() -> str:
    """Return a table of the Lambdas and the nightly job: what each does, and what it may use."""
    template = load_resources()
    rows: list[tuple[str, str, str]] = []
    for name in list_parts(template):
        description = str(template[name]["Properties"].get("Description", ""))
        what_it_does = description.removeprefix("Mendq: ")
        if not what_it_does:
            what_it_does = "Spark on EMR Serverless, started each night"
        uses: list[str] = []
        for target, verbs in find_access(name, template).items():
            target_title = target if target == YOUR_QUEUES else title_of(target, template)
            uses.append(f"{' and '.join(sorted(verbs))} {target_title}")
        rows.append((title_of(name, template), what_it_does, "; ".join(uses)))
    return table("part|what it does|touches", rows)


def roles() -> str:
    """Return a table of the roles: which service assumes each, and what it may change on queues.

    Only queues that are not Mendq's own count. Roles with the same rights share a row.
    """
    template = load_resources()
    roles_of = defaultdict[tuple[str, str], list[str]](list)
    for name, resource in sorted(template.items()):
        if resource["Type"] == "AWS::IAM::Role":
            properties = resource["Properties"]
            rights = code(_list_writes(name, template)) or _NOTHING
            role_name = properties["RoleName"][len("mendq-") : -len(f"-{REGION}")]
            roles_of[rights, _find_service(properties)].append(role_name)
    rows = [(sorted(names), service, rights) for (rights, service), names in roles_of.items()]
    rows.sort(key=lambda row: (row[2] == _NOTHING, row[0]))
    heads = "role|taken on by|what it may do to queues beside reading"
    return table(heads, [(code(names), service, rights) for names, service, rights in rows])


def _list_writes(role: str, template: Resources) -> list[str]:
    """Return the SQS actions, without reads, that a role may call on queues not made by the stack.

    They are sorted.
    """
    actions: set[str] = set()
    for grant in list_grants({role}, template):
        if grant.is_of_your_queues:
            actions.update(grant.actions)
    writes = sorted(
        action for action in actions if action.startswith("sqs:") and verb_of(action) == WRITES
    )
    return [action.removeprefix("sqs:") for action in writes]


def _find_service(role: Mapping[str, Any]) -> str:
    """Return the AWS service that may assume a role, such as `lambda`."""
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    return str(trust["Principal"]["Service"]).removesuffix(".amazonaws.com")
