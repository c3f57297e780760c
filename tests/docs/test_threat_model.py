"""Threat model pages: every claim links to a test or proof, and roles are minimal."""

from __future__ import annotations

import re

import pytest

from docs.stack_outline import list_grants
from tests.infra.synthesized import template_of
from tests.prove.__main__ import PROOFS
from tests.source_files import ROOT

DOCS = ROOT / "docs"
BY_OTHERS = "".join(path.read_text() for path in sorted(DOCS.glob("threats-from-*.md")))
PAGE = (DOCS / "threat-model.md").read_text() + BY_OTHERS
# A test's name is a sentence, and told as one; what is no single test is told as "held by".
TESTS = [
    (f"test_{name.replace(' ', '_')}", path)
    for name, path in re.findall(r"\[([^]]+)\]\(\.\./(tests/[\w/.]+\.py)\)", PAGE)
    if name not in {"held by", "each role's run", "reason written down"}
]
NEVER = re.compile(
    r"sqs:(?:\*|DeleteQueue|PurgeQueue|AddPermission|RemovePermission|TagQueue|UntagQueue)"
    r"|iam:(?!PassRole$|ListAccountAliases$).*|kms:(?!Decrypt$|DescribeKey$|GenerateDataKey$).*|.*:?\*"
)


def test_every_test_named_in_the_threat_model_exists() -> None:
    assert len(set(TESTS)) == len(TESTS) > 30
    for name, path in TESTS:
        assert re.search(rf"^def {name}\(", (DOCS.parent / path).read_text(), re.MULTILINE), name


def test_every_threat_model_row_links_to_a_test_or_a_proof() -> None:
    rows = re.findall(r"^\| .*\|$", BY_OTHERS, re.MULTILINE)
    claims = [row for row in rows if not re.match(r"\| (they try|what happens) \|", row)]
    assert len(claims) > 20
    for claim in claims:
        held = claim.split("|")[-2]
        assert re.search(r"\]\(\.\./tests/|`make prove NAMES=|^ AWS $", held), claim


def test_every_proof_named_in_the_threat_model_exists() -> None:
    lists = re.findall(r'make prove NAMES=(?:"([^"]+)"|([\w-]+))', PAGE)
    named = {name for quoted, bare in lists for name in (quoted or bare).split()}
    assert named
    assert named <= {proof.name for proof in PROOFS}


@pytest.mark.parametrize("settings", ["tagged", "named"])
def test_no_role_of_the_stack_may_call_actions_that_mendq_never_needs(settings: str) -> None:
    resources = template_of(settings).raw["Resources"]
    roles = [name for name, resource in resources.items() if resource["Type"] == "AWS::IAM::Role"]
    granted = {
        a for role in roles for grant in list_grants({role}, resources) for a in grant.actions
    }
    assert "sqs:SetQueueAttributes" in granted
    assert sorted(action for action in granted if NEVER.fullmatch(action)) == []
