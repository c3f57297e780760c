"""The queues, keys and mail identities that roles may write to, by settings and tags.

test_roles proves that each role has exactly the actions that its function calls. expected_rights
lists how tags, names and other conditions change the decision.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from infra.queue_grants import WRITING_MODES
from mendq.catalogue.dlq.redrive_causes import REDRIVE_TAG, is_redrive_off
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG, MAX_VISIBILITY_TAG
from mendq.model.consent import Consent
from mendq.model.message_calls import MESSAGE_ACTIONS
from mendq.model.mode import MODE_BY_TEXT
from mendq.model.steps import STEP_CLASSES, list_write_actions
from mendq.model.tags import MODE_TAG
from tests.infra.expected_rights import (
    FURTHER_SETTINGS,
    RIGHTS,
    SET_ATTRIBUTES,
    TAKE_MESSAGES,
    WRITERS,
    ExpectedRights,
    StackResource,
)
from tests.infra.permissions import decision
from tests.infra.synthesized import QUEUE_ARNS, SETTINGS, Template, template_of, template_with


@cache
def _template(name: str) -> Template:
    if name in FURTHER_SETTINGS:
        return template_with({"queues": ["orders"], **FURTHER_SETTINGS[name]})
    return template_of(name)


def _find_arn(template: Template, resource: str | StackResource) -> str:
    if isinstance(resource, str):
        return resource
    logical_id = next(
        logical_id
        for logical_id in template.raw["Resources"]
        if logical_id.startswith(resource.id_prefix)
    )
    return f"arn:{logical_id}{resource.path}"


def _name_rights(rights: ExpectedRights) -> str:
    roles = " ".join(rights.roles)
    return f"{' '.join(rights.settings)}, {roles}: {rights.actions[0]} {rights.answers[0]}"


@pytest.mark.parametrize("rights", RIGHTS, ids=_name_rights)
def test_iam_answers_each_role_action_resource_and_tag_as_the_expected_rights_say(
    rights: ExpectedRights,
) -> None:
    for settings_name, role, action, resource, context in product(
        rights.settings, rights.roles, rights.actions, rights.resources, rights.contexts
    ):
        template = _template(settings_name)
        statements = template.statements(f"{role}Role")
        arn = _find_arn(template, resource)
        answer = decision(statements, action, arn, dict(context.tags), dict(context.keys))
        assert answer in rights.answers, (settings_name, role, action, arn, context, answer)


NAMED_QUEUES = ["orders", "billing-*"]
# Each mode for named and for tagged queues. All pairs would need too many stacks.
MODE_PAIRS = [
    *(("observe", raised) for raised in MODE_BY_TEXT),
    *(("propose", "observe"), ("heal", "propose"), ("propose", "heal")),
]
QUEUE_NAMES = ("orders", "orders-eu", "billing", "billing-eu.fifo", "others", "orders-quarantine")


@cache
def _read_statements(mode: str, raised: str) -> dict[str, list[dict[str, Any]]]:
    template = template_with({"mode": mode, "tagMayRaiseTo": raised, "queues": NAMED_QUEUES})
    return {role: template.statements(f"{role}Role") for role in WRITERS}


@settings(deadline=None)
@given(
    modes=st.sampled_from(MODE_PAIRS),
    name=st.sampled_from(QUEUE_NAMES),
    tags=st.fixed_dictionaries(
        {},
        optional={
            MODE_TAG: st.sampled_from([*MODE_BY_TEXT, "off", "Heal", ""]),
            REDRIVE_TAG: st.sampled_from(["on", "ON", " on", "off", ""]),
            MAX_VISIBILITY_TAG: st.just("43200"),
            MAX_PROCESSING_TAG: st.just("43200"),
        },
    ),
)
@example(("propose", "observe"), "others", {MODE_TAG: "heal", MAX_VISIBILITY_TAG: "43200"})
def test_iam_roles_may_write_exactly_the_queues_that_consent_allows(
    modes: tuple[str, str], name: str, tags: dict[str, str]
) -> None:
    mode, raised = modes
    consent = Consent(MODE_BY_TEXT[mode], MODE_BY_TEXT[raised], tuple(NAMED_QUEUES))
    statements_by_role = _read_statements(mode, raised)
    may_write = consent.mode_of(name, tags) in WRITING_MODES
    for role in set(WRITERS) - {"Redrive"}:
        answer = decision(statements_by_role[role], SET_ATTRIBUTES, f"{QUEUE_ARNS}{name}", tags)
        assert (answer == "Allow") is may_write, (role, answer)
    may_redrive = may_write and not is_redrive_off(tags)
    for action in (SET_ATTRIBUTES, *TAKE_MESSAGES):
        answer = decision(statements_by_role["Redrive"], action, f"{QUEUE_ARNS}{name}", tags)
        assert (answer == "Allow") is may_redrive, (action, answer)


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_role_may_write_mendqs_own_queues(settings: str) -> None:
    """Every queue of the template is checked, so a new queue must be denied too."""
    template = template_of(settings)
    own_queues = template.all("AWS::SQS::Queue")
    assert any("Probe" in name for name in own_queues)
    for role, queue, tags in product(WRITERS, own_queues, ({}, {"mendq": "heal"})):
        message_actions = MESSAGE_ACTIONS if role == "Redrive" else ()
        for action in (*list_write_actions(STEP_CLASSES), *message_actions):
            statements = template.statements(f"{role}Role")
            assert decision(statements, action, f"{QUEUE_ARNS}{queue}", tags) == "Deny"


# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
MOST_INLINE_CHARACTERS_PER_ROLE = 10_240
MOST_CHARACTERS_PER_MANAGED_POLICY = 6_144
MOST_MANAGED_POLICIES_PER_ROLE = 10


def test_iam_policies_for_200_named_queues_stay_below_iams_size_limits() -> None:
    names = [f"orders-{number:03}" for number in range(200)]
    template = template_with({"mode": "heal", "queues": names})
    inline_policies = _list_policy_sizes_by_role(template, "AWS::IAM::Policy")
    managed_policies = _list_policy_sizes_by_role(template, "AWS::IAM::ManagedPolicy")
    assert inline_policies
    assert managed_policies
    for role, sizes in inline_policies.items():
        assert sum(sizes) <= MOST_INLINE_CHARACTERS_PER_ROLE, role
    for role, sizes in managed_policies.items():
        assert max(sizes) <= MOST_CHARACTERS_PER_MANAGED_POLICY, role
        assert len(sizes) <= MOST_MANAGED_POLICIES_PER_ROLE, role


def _list_policy_sizes_by_role(template: Template, kind: str) -> dict[str, list[int]]:
    """Return the number of characters of each policy without spaces, which IAM does not count."""
    sizes_by_role = defaultdict[str, list[int]](list)
    for policy in template.all(kind).values():
        document = json.dumps(policy["Properties"]["PolicyDocument"], separators=(",", ":"))
        for role in policy["Properties"]["Roles"]:
            sizes_by_role[role].append(len(document))
    return sizes_by_role
