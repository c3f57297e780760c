"""Make the diagrams and tables of docs/stack.md and the policy in docs/stacksets.md.

The content comes from the stack's synthesized template. docs/derive.py inserts the result of each
public function into the pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from docs.markdown import format_as_code, make_table
from docs.stack_outline import (
    QUEUE_TYPE,
    QUEUES_OUTSIDE_TEMPLATE,
    REGION,
    WRITES_VERB,
    Resources,
    StartArrow,
    choose_verb,
    find_verbs_by_used_resource,
    list_grants,
    list_part_ids,
    list_start_arrows,
    load_resources,
    make_resource_title,
    synthesize_template,
)
from infra.stackset import publishing

_NO_RIGHTS = "nothing"
_PERSON_NODE = "a person"


def guard() -> str:
    """Return the service control policy that `make stackset` writes, as a block of JSON."""
    return f"```json\n{publishing.fill_guard_policy()}```"


def diagram() -> str:
    """Return a Mermaid diagram of what starts each Lambda and the nightly job."""
    resources = load_resources()
    arrows = list(list_start_arrows(resources))
    started_part_ids = {arrow.target for arrow in arrows}
    unstarted_part_ids = [
        logical_id for logical_id in list_part_ids(resources) if logical_id not in started_part_ids
    ]
    arrows.extend(StartArrow(_PERSON_NODE, "", logical_id) for logical_id in unstarted_part_ids)
    diagram_lines = ["```mermaid", "flowchart LR"]
    for arrow in arrows:
        arrow_label = f'|"{arrow.trigger_text}"| ' if arrow.trigger_text else " "
        source_node = _make_node(arrow.source, resources)
        diagram_lines.append(
            f"    {source_node} -->{arrow_label}{_make_node(arrow.target, resources)}"
        )
    diagram_lines.append("```")
    return "\n".join(diagram_lines)


# The resources of the scan-only role's statements, by the service of their first action.
_SCAN_ONLY_RESOURCE_BY_SERVICE = {
    "cloudwatch": "everything, because these actions have no resource",
    "dynamodb": "the partition `account` of the stack's table",
    "kms": "the keys of the account and region",
    "lambda": "the functions of the account and region",
    "logs": "its own log group",
    "sns": "the stack's topic",
    "sqs": "the queues of the account and region",
}


def scan_only_rights() -> str:
    """Return a table of what the role of a scan-only stack's Lambda may do.

    Raises:
        KeyError: A statement is about a service that `_SCAN_ONLY_RESOURCE_BY_SERVICE` lacks.
    """
    rows: list[tuple[str, str]] = []
    for logical_id, resource in synthesize_template(scanOnly=True)["Resources"].items():
        if resource["Type"] != "AWS::IAM::Policy" or not logical_id.startswith("ScanRole"):
            continue
        for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
            actions = statement["Action"]
            if isinstance(actions, str):
                actions = [actions]
            service = actions[0].partition(":")[0]
            rows.append((format_as_code(actions), _SCAN_ONLY_RESOURCE_BY_SERVICE[service]))
    return make_table("actions|on", rows)


def _make_node(node_name: str, resources: Resources) -> str:
    """Return a node of the diagram: a cylinder for a queue, a box for everything else."""
    if node_name not in resources:
        return f'{node_name.replace(" ", "_")}["{node_name}"]'
    title = make_resource_title(node_name, resources)
    node_id = title.replace(" ", "_")
    if resources[node_name]["Type"] == QUEUE_TYPE:
        return f'{node_id}[("{title}")]'
    return f'{node_id}["{title}"]'


def parts() -> str:
    """Return a table of the parts: what each Lambda and the nightly job does and may use."""
    resources = load_resources()
    rows: list[tuple[str, str, str]] = []
    for part_id in list_part_ids(resources):
        description = str(resources[part_id]["Properties"].get("Description", ""))
        purpose = description.removeprefix("Mendq: ")
        if not purpose:
            purpose = "Spark on EMR Serverless, started each night"
        access_texts: list[str] = []
        for used_resource_id, verbs in find_verbs_by_used_resource(part_id, resources).items():
            used_resource_title = (
                used_resource_id
                if used_resource_id == QUEUES_OUTSIDE_TEMPLATE
                else make_resource_title(used_resource_id, resources)
            )
            access_texts.append(f"{' and '.join(sorted(verbs))} {used_resource_title}")
        rows.append((make_resource_title(part_id, resources), purpose, "; ".join(access_texts)))
    return make_table("part|what it does|touches", rows)


def roles() -> str:
    """Return a table of the roles: the service that assumes each, and its rights to change queues.

    Only rights on queues outside the template count. Roles with the same service and rights share a
    row.
    """
    resources = load_resources()
    role_names_by_rights = defaultdict[tuple[str, str], list[str]](list)
    for logical_id, resource in sorted(resources.items()):
        if resource["Type"] == "AWS::IAM::Role":
            role_properties = resource["Properties"]
            rights_text = format_as_code(_list_write_actions(logical_id, resources)) or _NO_RIGHTS
            role_name = role_properties["RoleName"][len("mendq-") : -len(f"-{REGION}")]
            role_names_by_rights[rights_text, _find_trusted_service(role_properties)].append(
                role_name
            )
    rows = [
        (sorted(role_names), trusted_service, rights_text)
        for (rights_text, trusted_service), role_names in role_names_by_rights.items()
    ]
    rows.sort(key=lambda row: (row[2] == _NO_RIGHTS, row[0]))
    headings = "role|taken on by|what it may do to queues beside reading"
    return make_table(
        headings,
        [
            (format_as_code(role_names), trusted_service, rights_text)
            for role_names, trusted_service, rights_text in rows
        ],
    )


def _list_write_actions(role_id: str, resources: Resources) -> list[str]:
    """Return the SQS actions that a role may call on queues outside the template, without reads.

    The names are sorted and have no prefix `sqs:`.
    """
    actions: set[str] = set()
    for grant in list_grants({role_id}, resources):
        if grant.is_about_queues_outside_template:
            actions.update(grant.actions)
    write_actions = sorted(
        action
        for action in actions
        if action.startswith("sqs:") and choose_verb(action) == WRITES_VERB
    )
    return [action.removeprefix("sqs:") for action in write_actions]


def _find_trusted_service(role_properties: Mapping[str, Any]) -> str:
    """Return the AWS service that may assume a role, such as `lambda`."""
    (trust_statement,) = role_properties["AssumeRolePolicyDocument"]["Statement"]
    return str(trust_statement["Principal"]["Service"]).removesuffix(".amazonaws.com")
