"""Terraform plans as `terraform show -json` writes them.

https://developer.hashicorp.com/terraform/internals/json-format
"""

from __future__ import annotations

import json
from typing import Any

# The provider's defaults for a queue without arguments.
_DEFAULTS = {
    "visibility_timeout_seconds": 30,
    "message_retention_seconds": 345_600,
    "delay_seconds": 0,
    "receive_wait_time_seconds": 0,
    "fifo_queue": False,
    "content_based_deduplication": False,
    "kms_master_key_id": None,
    "tags": None,
}
# The attributes that the provider computes when it makes a queue.
_COMPUTED = (
    *("arn", "id", "url", "policy", "redrive_policy", "redrive_allow_policy"),
    *("sqs_managed_sse_enabled", "kms_data_key_reuse_period_seconds", "name_prefix"),
)
# Stands for a value that is known only after the apply.
UNKNOWN = object()


def make_change(
    address: str, after: dict[str, Any], unknown: tuple[str, ...] = (), *actions: str
) -> dict[str, Any]:
    """Return an entry of `resource_changes`. `unknown` names attributes known after the apply."""
    module_address = ""
    own_address = address
    if address.startswith("module."):
        module_address, _, own_address = address.rpartition(".aws_")
        own_address = f"aws_{own_address}"
    kind, _, name = own_address.partition("[")[0].partition(".")
    entry: dict[str, Any] = {"address": address}
    if module_address:
        entry["module_address"] = module_address
    return {
        **entry,
        "mode": "managed",
        "type": kind,
        "name": name,
        "change": {
            "actions": list(actions) or ["create"],
            "before": None,
            "after": after,
            "after_unknown": dict.fromkeys(unknown, True),
        },
    }


def make_new_queue(address: str, **arguments: Any) -> dict[str, Any]:
    """Return the change that creates a queue. UNKNOWN marks an argument known after the apply."""
    unknown = [name for name in _COMPUTED if name not in arguments]
    after = {name: value for name, value in _DEFAULTS.items() if name not in arguments}
    for name, value in arguments.items():
        if value is UNKNOWN:
            unknown.append(name)
        else:
            after[name] = value
    return make_change(address, after, tuple(unknown))


def make_existing_queue(address: str, name: str, **attributes: Any) -> dict[str, Any]:
    """Return the change of an existing queue, whose attributes are all known."""
    url = f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}"
    after = {
        **_DEFAULTS,
        "name": name,
        "arn": make_arn(name),
        "url": url,
        "id": url,
        "policy": "",
        "redrive_policy": "",
        "redrive_allow_policy": "",
        "sqs_managed_sse_enabled": True,
        **attributes,
    }
    return make_change(address, after, (), "no-op")


def make_arn(name: str, service: str = "sqs") -> str:
    return f"arn:aws:{service}:eu-west-1:123456789012:{name}"


def make_block(address: str, **expressions: Any) -> dict[str, Any]:
    """Return a resource's block. An argument is a list of references or a constant value."""
    kind, _, name = address.partition(".")
    arguments = {}
    for argument, value in expressions.items():
        key = "references" if isinstance(value, list) else "constant_value"
        arguments[argument] = {key: value}
    return {
        "address": address,
        "mode": "managed",
        "type": kind,
        "name": name,
        "expressions": arguments,
    }


def make_references(address: str, attribute: str = "arn") -> list[str]:
    """Return the references of an argument that is an attribute of another resource."""
    return [f"{address}.{attribute}", address]


def make_plan(*changes: dict[str, Any], root: dict[str, Any] | None = None) -> bytes:
    """Return the plan as JSON. `root` is the configuration's root module."""
    plan = {
        "format_version": "1.2",
        "terraform_version": "1.9.8",
        "resource_changes": list(changes),
        "configuration": {"root_module": root or {}},
    }
    return json.dumps(plan).encode()
