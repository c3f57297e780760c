"""Terraform plans as `terraform show -json` writes them, of what the provider is told.

https://developer.hashicorp.com/terraform/internals/json-format
"""

from __future__ import annotations

import json
from typing import Any

# What the provider says of a queue of which nothing is set, and computes when it is made.
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
_COMPUTED = (
    *("arn", "id", "url", "policy", "redrive_policy", "redrive_allow_policy"),
    *("sqs_managed_sse_enabled", "kms_data_key_reuse_period_seconds", "name_prefix"),
)


def change(
    address: str, after: dict[str, Any], unknown: tuple[str, ...] = (), *actions: str
) -> dict[str, Any]:
    """One of `resource_changes`; `unknown` are known after the apply."""
    within, _, own = address.rpartition(".aws_") if address.startswith("module.") else ("", "", "")
    kind, _, name = (f"aws_{own}" if own else address).partition("[")[0].partition(".")
    said = {"actions": list(actions) or ["create"], "before": None, "after": after}
    return {
        "address": address,
        **({"module_address": within} if within else {}),
        "mode": "managed",
        "type": kind,
        "name": name,
        "change": {**said, "after_unknown": dict.fromkeys(unknown, True)},
    }


def new_queue(address: str, **set_: Any) -> dict[str, Any]:
    """A queue that is to be made: what nobody sets is known after the apply."""
    unknown = tuple(each for each in _COMPUTED if each not in set_)
    given = {name: value for name, value in set_.items() if value is not UNKNOWN}
    defaults = {name: value for name, value in _DEFAULTS.items() if name not in set_}
    found = change(address, {**defaults, **given}, unknown)
    found["change"]["after_unknown"] |= {n: True for n, v in set_.items() if v is UNKNOWN}
    return found


UNKNOWN = object()


def queue_there(address: str, name: str, **set_: Any) -> dict[str, Any]:
    """A queue that is there: all of it is known."""
    url = f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}"
    own: dict[str, Any] = {"name": name, "arn": arn(name), "url": url, "id": url, "policy": ""}
    own |= {"redrive_policy": "", "redrive_allow_policy": "", "sqs_managed_sse_enabled": True}
    return change(address, {**_DEFAULTS, **own, **set_}, (), "no-op")


def arn(name: str, service: str = "sqs") -> str:
    return f"arn:aws:{service}:eu-west-1:123456789012:{name}"


def block(address: str, **expressions: Any) -> dict[str, Any]:
    """A resource's block: of each argument the references, or a value that is written out."""
    kind, _, name = address.partition(".")
    said = {
        n: {"references": v} if isinstance(v, list) else {"constant_value": v}
        for n, v in expressions.items()
    }
    return {"address": address, "mode": "managed", "type": kind, "name": name, "expressions": said}


def of(address: str, attribute: str = "arn") -> list[str]:
    """The references of an argument that is another resource's attribute."""
    return [f"{address}.{attribute}", address]


def plan(*changes: dict[str, Any], root: dict[str, Any] | None = None) -> bytes:
    document = {"format_version": "1.2", "terraform_version": "1.9.8"}
    parts = {"resource_changes": list(changes), "configuration": {"root_module": root or {}}}
    return json.dumps({**document, **parts}).encode()
