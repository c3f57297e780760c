"""Add Terraform resources that are only a part of another resource to that resource.

Such a part is a target of a rule, a bucket's notification, the attachment of a policy to a role or
the policy of a key. CloudFormation has each of them in a property of the rule, bucket, role or key.
If the rule or the bucket is not declared, it is taken as one that has nothing but this part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mendq.lint import terraform_types
from mendq.lint.producers import MANAGED_POLICY_TYPE
from mendq.lint.template import UNKNOWN_VALUE_FUNCTION, to_list
from mendq.lint.values import BUCKET_TYPE, KEY_TYPE, ROLE_TYPE, RULE_TYPE

_UNKNOWN_ATTACHMENT = {UNKNOWN_VALUE_FUNCTION: "whether a policy is attached to the role"}


def add_parts(
    definition_by_address: dict[str, Any], may_be_missing: Callable[[str, str], bool]
) -> None:
    """Add each resource that is only a part of another one to that other resource.

    Args:
        definition_by_address: The CloudFormation definitions of all resources; it is changed.
        may_be_missing: Returns True if a resource, given by its address, may be missing although
            another one exists.
    """
    _PartLinker(definition_by_address, may_be_missing).add_parts()


class _PartLinker:
    """Linker of parts to their owners."""

    def __init__(
        self,
        definition_by_address: dict[str, Any],
        may_be_missing: Callable[[str, str], bool],
    ) -> None:
        self._definition_by_address = definition_by_address
        self._may_be_missing = may_be_missing

    def add_parts(self) -> None:
        """Add all parts, and remove their own definitions."""
        for address, definition in list(self._definition_by_address.items()):
            part_properties = definition["Properties"]
            match definition["Type"]:
                case terraform_types.EVENT_TARGET_TYPE:
                    self._add_target(address, part_properties)
                case terraform_types.BUCKET_NOTIFICATION_TYPE:
                    self._add_notification(address, part_properties)
                case terraform_types.POLICY_ATTACHMENT_TYPE:
                    self._attach_policy(address, part_properties)
                case terraform_types.KEY_POLICY_TYPE:
                    self._add_key_policy(address, part_properties)

    def _add_target(self, part_address: str, target: dict[str, Any]) -> None:
        rule_node = target.pop("Rule", None)
        bus_node = target.pop("EventBusName", None)
        rule_address = self._find_owner(rule_node, RULE_TYPE, "Name")
        if rule_address is not None:
            del self._definition_by_address[part_address]
            rule = self._definition_by_address[rule_address]["Properties"]
            rule.setdefault("Targets", []).append(target)
            return
        rule = {"Name": rule_node, "EventBusName": bus_node, "Targets": [target]}
        self._definition_by_address[part_address] = _make_definition(RULE_TYPE, rule)

    def _add_notification(self, part_address: str, part: dict[str, Any]) -> None:
        bucket_node = part.pop("Bucket", None)
        bucket_address = self._find_owner(bucket_node, BUCKET_TYPE, "BucketName")
        if bucket_address is not None:
            del self._definition_by_address[part_address]
            bucket = self._definition_by_address[bucket_address]["Properties"]
            bucket["NotificationConfiguration"] = part
            return
        bucket = {"BucketName": bucket_node, "NotificationConfiguration": part}
        self._definition_by_address[part_address] = _make_definition(BUCKET_TYPE, bucket)

    def _attach_policy(self, part_address: str, part: dict[str, Any]) -> None:
        """Add a policy to the roles that it is attached to.

        If these are not known, every role may have it: all get a policy with unknown statements.
        """
        del self._definition_by_address[part_address]
        policy_nodes = [self._make_policy_node(node) for node in to_list(part.get("PolicyArns"))]
        for role_node in to_list(part.get("Roles")):
            role_address = self._find_owner(role_node, ROLE_TYPE, "RoleName")
            addresses = [role_address] if role_address else self._list_addresses(ROLE_TYPE)
            if not role_address and not isinstance(role_node, dict):
                # A role that is written out, and that the files do not declare.
                continue
            for address in addresses:
                role = self._definition_by_address[address]["Properties"]
                is_certain = role_address and not self._may_be_missing(part_address, address)
                new_nodes = policy_nodes if is_certain else [_UNKNOWN_ATTACHMENT]
                role["ManagedPolicyArns"] = [*to_list(role.get("ManagedPolicyArns")), *new_nodes]

    def _make_policy_node(self, node: Any) -> Any:
        """Return a policy's ARN as a managed policy of CloudFormation is referred to."""
        address = find_address(node)
        definition = self._definition_by_address.get(address, {"Type": ""})
        return {"Ref": address} if definition["Type"] == MANAGED_POLICY_TYPE else node

    def _add_key_policy(self, part_address: str, part: dict[str, Any]) -> None:
        """Set the policy of a key, or of all keys to an unknown one if the key is not known."""
        del self._definition_by_address[part_address]
        key_address = self._find_owner(part.get("KeyId"), KEY_TYPE, "")
        is_certain = key_address and not self._may_be_missing(part_address, key_address)
        unknown_policy = {UNKNOWN_VALUE_FUNCTION: f"{part_address} may set it"}
        policy = part.get("KeyPolicy", unknown_policy) if is_certain else unknown_policy
        for address in [key_address] if key_address else self._list_addresses(KEY_TYPE):
            self._definition_by_address[address]["Properties"]["KeyPolicy"] = policy

    def _list_addresses(self, resource_type: str) -> list[str]:
        return [
            address
            for address, definition in self._definition_by_address.items()
            if definition["Type"] == resource_type
        ]

    def _find_owner(self, node: Any, owner_type: str, name_property: str) -> str | None:
        """Return the address of the resource to which a node refers, or which has this name.

        None if there is none or several.
        """
        address = find_address(node)
        if self._definition_by_address.get(address, {}).get("Type") == owner_type:
            return address
        if not isinstance(node, str):
            return None
        addresses = [
            address
            for address in self._list_addresses(owner_type)
            if self._definition_by_address[address]["Properties"].get(name_property) == node
        ]
        return addresses[0] if len(addresses) == 1 else None


def _make_definition(resource_type: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    known_properties = {name: value for name, value in properties.items() if value is not None}
    return {"Type": resource_type, "Properties": known_properties}


def find_address(node: Any) -> str:
    """Return the address to which a reference node refers. Empty if it is none."""
    match node:
        case {"Fn::GetAtt": [str() as address, _]}:
            return address
    return get_referred_address(node) or ""


def get_referred_address(node: Any) -> str | None:
    """Return the address in a node `{"Ref": address}`. None for any other node."""
    address = node.get("Ref") if isinstance(node, dict) else None
    return address if isinstance(address, str) else None
