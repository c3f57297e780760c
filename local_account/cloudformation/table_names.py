"""Names of tables that a template does not name: new with every creation, as at AWS.

MiniStack derives them from the stack, so that a stack made anew would take the place of a table
that its predecessor left behind; its buckets are named as here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ministack.core.responses import new_uuid
from ministack.services.cloudformation import provisioners

TYPE = "AWS::DynamoDB::Table"


def install() -> None:
    """Once per process."""
    handlers = provisioners._RESOURCE_HANDLERS[TYPE]
    made = handlers["create"]

    def create(logical_id: str, properties: Mapping[str, Any], stack_name: str) -> Any:
        if not properties.get("TableName") and not provisioners._NAME_SEED.get():
            provisioners._NAME_SEED.set(new_uuid()[:8])
        return made(logical_id, properties, stack_name)

    provisioners._RESOURCE_HANDLERS[TYPE] = {**handlers, "create": create}
