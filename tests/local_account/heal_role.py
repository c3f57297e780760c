"""Take permissions away from the heal Lambda's role in a local account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local_account.process import LocalAccount

ROLE = "mendq-heal-us-east-1"


@contextmanager
def remove_action_from_heal_role(account: LocalAccount, action: str) -> Iterator[None]:
    """Remove `action` from every policy of the heal role. Restore the policies afterwards."""
    iam = account.client("iam")
    documents = dict[str, Any]()
    for name in iam.list_role_policies(RoleName=ROLE)["PolicyNames"]:
        policy = iam.get_role_policy(RoleName=ROLE, PolicyName=name)
        documents[name] = policy["PolicyDocument"]

    def put_policy(name: str, text: str) -> None:
        iam.put_role_policy(RoleName=ROLE, PolicyName=name, PolicyDocument=text)

    for name, document in documents.items():
        put_policy(name, json.dumps(document).replace(f'"{action}"', '"sqs:Nothing"'))
    try:
        yield
    finally:
        for name, document in documents.items():
            put_policy(name, json.dumps(document))
