"""A Terraform plan as a template: its queues and what they depend on, as CloudFormation resources.

In this form the same code maps a plan and a CloudFormation template to facts. A value that
Terraform computes when it applies the plan is not known here. The exception is an argument that is
nothing but a reference to a queue, a function or a key of the same plan. An argument that the
configuration does not set counts as AWS's default, even if the provider computes it.
https://developer.hashicorp.com/terraform/internals/json-format
https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/sqs_queue
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mendq.lint.queues import COUNT, MAPPING, POLICY, REDRIVE, TARGET
from mendq.lint.template import (
    BYTES_PER_STEP,
    MOST_RESOURCES,
    NotATemplate,
    Place,
    Template,
    WorkBudget,
    get_mapping,
    scalars_to_text,
    to_list,
)
from mendq.lint.values import FUNCTION, QUEUE, NotKnown
from mendq.model.queue import arn_of, parts_of
from mendq.notifications.change_lines import NUMBER, terraform_name

# A plan also contains the prior state and the planned values, which lint does not read.
MOST_PLAN_BYTES = 16 * 1024 * 1024
_REMEDY = "make one: terraform plan -out plan.bin; terraform show -json plan.bin"
_QUEUE = "aws_sqs_queue"
_QUEUE_POLICY = "aws_sqs_queue_policy"
_FUNCTION = "aws_lambda_function"
_ALLOW = "RedriveAllowPolicy"
_KEY = "KmsMasterKeyId"


@dataclass(frozen=True)
class _ResourceType:
    """A CloudFormation resource type and the properties that checks read."""

    name: str
    properties: tuple[str, ...]


# CloudFormation's type of each Terraform type.
_TYPES: Mapping[str, _ResourceType] = {
    _QUEUE: _ResourceType(
        QUEUE,
        (
            "QueueName",
            "FifoQueue",
            "ContentBasedDeduplication",
            "DeduplicationScope",
            "FifoThroughputLimit",
            "VisibilityTimeout",
            "MessageRetentionPeriod",
            "MaximumMessageSize",
            "DelaySeconds",
            "ReceiveMessageWaitTimeSeconds",
            "SqsManagedSseEnabled",
            _KEY,
            "KmsDataKeyReusePeriodSeconds",
        ),
    ),
    _QUEUE_POLICY: _ResourceType("AWS::SQS::QueuePolicy", ("Queues", "PolicyDocument")),
    "aws_lambda_event_source_mapping": _ResourceType(
        MAPPING, ("EventSourceArn", "FunctionName", "Enabled", "MaximumBatchingWindowInSeconds")
    ),
    _FUNCTION: _ResourceType(FUNCTION, ("FunctionName", "Timeout")),
    "aws_lambda_alias": _ResourceType("AWS::Lambda::Alias", ("FunctionName",)),
    "aws_kms_key": _ResourceType("AWS::KMS::Key", ()),
}
# Terraform types of resources that set one attribute of a queue. Without such a resource the
# queue's own argument of that name counts.
ATTRIBUTE_BY_TYPE = {
    "aws_sqs_queue_redrive_policy": REDRIVE,
    "aws_sqs_queue_redrive_allow_policy": _ALLOW,
}
# Properties whose value is a JSON document in a text.
_DOCUMENTS = frozenset({"PolicyDocument", POLICY, *ATTRIBUTE_BY_TYPE.values()})
# Properties whose value is another resource's name, URL or ARN, or contains its ARN.
_REFERRING = frozenset({"EventSourceArn", "FunctionName", "Queues", _KEY, REDRIVE})
# Variables and outputs that are followed from one reference.
_MOST_REFERENCES = 20
_INDEX_PATTERN = r'\[(?:[0-9]{1,9}|"[^"\\]{0,256}")\]'
_INDEX = re.compile(_INDEX_PATTERN)
_MODULES = re.compile(rf"(?:module\.[\w-]{{1,128}}(?:{_INDEX_PATTERN})?\.)*")
# An index that may be written into HCL as it is. Terraform would evaluate `${` in a key.
_SAFE_INDEX_PATTERN = r'\[(?:[0-9]{1,9}|"(?:[ !#&-\[\]-~]|[$%](?!\{)){0,256}")\]'
_SAFE_ADDRESS = re.compile(rf"[\w-]+(?:\.[\w-]+|{_SAFE_INDEX_PATTERN})*", re.ASCII)
# An index before a suffix, as in `aws_sqs_queue.x["a"]Dlq`, the name of a new resource.
_INDEX_BEFORE_SUFFIX = re.compile(rf"{_SAFE_INDEX_PATTERN}(?=\w)", re.ASCII)
# Names of the modules around a resource, from the root module down.
Modules = tuple[str, ...]


@dataclass(frozen=True)
class TerraformPlan(Template):
    """A plan as a template. The logical ID of a resource is its address in Terraform."""

    # Addresses of the queues that exist already, by ARN.
    arns: Mapping[str, str] = field(default_factory=dict)
    # Address of the separate resource that sets an attribute, by the queue's address and attribute.
    set_by: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def spell_attribute(self, attribute: str) -> str:
        """Return Terraform's name of an attribute, such as `visibility_timeout_seconds`."""
        return terraform_name(attribute) if attribute[:1].isupper() else attribute

    def find_place(self, *keys: str | int) -> Place:
        """Return the address of a resource or of its argument. A plan has no lines.

        `keys` are `Resources`, the address, `Properties` and the property, or fewer of them.
        """
        address = str(keys[1]) if len(keys) > 1 else ""
        attribute = str(keys[3]) if len(keys) > 3 else ""
        address = self.set_by.get((address, attribute), address)
        # A queue's own argument `policy` is read as a separate resource (`_add_own_arguments`).
        is_own_policy = (
            attribute == "PolicyDocument" and address.removesuffix(".policy") in self.resources
        )
        if not attribute or is_own_policy:
            return Place(address, None)
        return Place(f"{address}.{self.spell_attribute(attribute)}", None)

    def render(self, name: str, document: Any) -> tuple[str, ...]:
        """Return the HCL lines of an argument or of a new resource called `name`.

        If `name` is empty, return the line of a list item.
        """
        if not (isinstance(document, dict) and "Properties" in document):
            if not name:
                return (_to_expression(document),)
            return (f"{self.spell_attribute(name)} = {to_hcl(document)}",)
        (terraform_type,) = (
            terraform_type
            for terraform_type, resource_type in _TYPES.items()
            if resource_type.name == document["Type"]
        )
        label = _to_reference(name).rpartition(".")[2]
        arguments = (
            f"  {self.spell_attribute(property_name)} = {to_hcl(value)}"
            for property_name, value in document["Properties"].items()
        )
        return (f'resource "{terraform_type}" "{label}" {{', *arguments, "}")


def to_hcl(value: Any) -> str:
    """Return the HCL of a property's value.

    A JSON document becomes `jsonencode(...)`. A list becomes its first item: a policy names a list
    of queues in CloudFormation and one queue in Terraform.
    """
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str) and (NUMBER.fullmatch(value) or value in ("true", "false")):
        return value
    expression = _to_expression(value)
    return f"jsonencode({expression})" if expression.startswith("{") else expression


def _to_expression(node: Any) -> str:
    """Return the HCL expression of a value, with references in place of `Ref` and `Fn::GetAtt`."""
    match node:
        case {"Ref": str() as address}:
            return f"{_to_reference(address)}.{'url' if _QUEUE in address else 'arn'}"
        case {"Fn::GetAtt": [str() as address, str() as argument]}:
            return f"{_to_reference(address)}.{argument.lower()}"
        case dict():
            items = (f"{_to_text(key)}: {_to_expression(value)}" for key, value in node.items())
            return f"{{{', '.join(items)}}}"
        case list():
            return f"[{', '.join(map(_to_expression, node))}]"
    return _to_text(node)


def to_hcl_literal(document: Any) -> str:
    """Return the HCL of a value that AWS returned, so that Terraform evaluates nothing in it."""
    return f"jsonencode({_to_text(document)})" if isinstance(document, dict) else _to_text(document)


def _to_text(node: Any) -> str:
    """Return a value as JSON, with `${` and `%{` escaped so that Terraform evaluates nothing."""
    return json.dumps(node).replace("${", "$${").replace("%{", "%%{")


def _to_reference(address: str) -> str:
    """Return the address by which code in a resource's own module refers to the resource.

    Raises NotKnown if the address is not one that can be written into HCL safely.
    """
    own_address = _MODULES.sub("", _INDEX_BEFORE_SUFFIX.sub("", address), count=1)
    if not _SAFE_ADDRESS.fullmatch(own_address):
        raise NotKnown(f"how to write {address}")
    return own_address


def _referred_address(node: Any) -> str | None:
    """Return the address in `{"Ref": ...}`. None if the node is anything else."""
    address = node.get("Ref") if isinstance(node, dict) else None
    return address if isinstance(address, str) else None


def is_plan(content: bytes) -> bool:
    """Return True if the bytes look like Terraform's JSON, such as a plan."""
    if content.lstrip()[:1] != b"{" or b'"format_version"' not in content:
        return False
    return b'"resource_changes"' in content or b'"root_module"' in content


def read_plan(content: bytes, work: WorkBudget) -> TerraformPlan:
    """Return the plan that `terraform show -json` printed.

    Raises NotATemplate if the bytes are no plan, or if the plan is too large.
    """
    if len(content) > MOST_PLAN_BYTES:
        less = "jq 'del(.prior_state, .planned_values)' leaves out what is not read"
        raise NotATemplate(f"a plan longer than {MOST_PLAN_BYTES:,} bytes: {less}")
    work.take(len(content) // BYTES_PER_STEP)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise NotATemplate(f"no JSON: {' '.join(why.split())[:200]}") from error
    version = document.get("format_version")
    if not (isinstance(version, str) and version.startswith("1.")):
        raise NotATemplate(f"format_version {str(version)[:20]!r} is not known: 1.x is")
    if not isinstance(document.get("resource_changes", []), list) or "values" in document:
        raise NotATemplate(f"no plan of Terraform's: it has no resource_changes; {_REMEDY}")
    return _PlanReader(document, work).make_plan()


@dataclass(frozen=True)
class _PlannedResource:
    """A resource as it will be once the plan is applied."""

    address: str
    # Terraform's type.
    kind: str
    # The modules around the block that declares it, and the block's type and name.
    block: tuple[Modules, str]
    # Address of the module instance that contains it. Empty for the root module.
    module_address: str
    # Arguments with their values.
    after: Mapping[str, Any]
    # Arguments whose value is not known before the plan is applied.
    unknown: Mapping[str, Any]
    # The block's arguments as expressions. None if the plan does not contain the block.
    expressions: Mapping[str, Any] | None


class _PlanReader:
    """Reads one plan and makes a template from it."""

    def __init__(self, document: Mapping[str, Any], work: WorkBudget) -> None:
        self.work = work
        self.root_module = get_mapping(document, "configuration", "root_module") or {}
        self._blocks: dict[Modules, Mapping[str, Any]] = {}
        changes = to_list(document.get("resource_changes"))
        work.take(len(changes))
        self.resources = [self._read_resource(change) for change in changes if _is_relevant(change)]
        if len(self.resources) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} queues, functions and their like")
        # Resources that the same block declares, which are several with `count` and `for_each`.
        self.instances = defaultdict[Any, list[_PlannedResource]](list)
        for resource in self.resources:
            self.instances[resource.block].append(resource)
        queues = [resource for resource in self.resources if resource.kind == _QUEUE]
        # Addresses of the queues by ARN, if they exist already.
        self.arns = dict[str, str]()
        for queue in queues:
            if arn := arn_of(queue.after.get("arn")):
                self.arns[arn] = queue.address
        # References that replace a queue's ARN or URL, wherever it is in a value.
        self.references = {arn: _make_getatt(address, "Arn") for arn, address in self.arns.items()}
        for queue in queues:
            for name in ("url", "id"):
                url = queue.after.get(name)
                if isinstance(url, str):
                    self.references[url] = {"Ref": queue.address}

    def make_plan(self) -> TerraformPlan:
        """Return the plan as a template."""
        resources: dict[str, Any] = {}
        for resource in self.resources:
            if resource.kind in _TYPES:
                resources[resource.address] = self._to_cloudformation(resource)
        set_by = self._add_separate_attributes(resources)
        self._add_own_arguments(resources)
        deploy_target = dict[str, str]()
        if self.arns:
            parts = parts_of(next(iter(self.arns)))
            deploy_target = {"account": parts.account, "region": parts.region}
        return TerraformPlan({"Resources": resources}, self.work, deploy_target, self.arns, set_by)

    def _to_cloudformation(self, resource: _PlannedResource) -> dict[str, Any]:
        """Return type, properties and tags of a resource."""
        resource_type = _TYPES[resource.kind]
        properties = dict[str, Any]()
        for name in resource_type.properties:
            value = self._property_value(resource, name)
            if value is not None:
                properties[name] = value
        tags = get_mapping(resource.after, "tags_all") or get_mapping(resource.after, "tags") or {}
        known_tags = [
            {"Key": key, "Value": value} for key, value in tags.items() if isinstance(value, str)
        ]
        if known_tags:
            properties["Tags"] = known_tags
        return {"Type": resource_type.name, "Properties": properties}

    def _add_separate_attributes(self, resources: dict[str, Any]) -> dict[tuple[str, str], str]:
        """Copy what separate resources set into the properties of their queues.

        Such a resource is `aws_sqs_queue_redrive_policy`. The attribute becomes unknown in a queue
        if two resources set it, and in every queue if it is not known which queue is meant.

        Returns:
            Address of the separate resource, by the queue's address and the attribute.
        """
        set_by: dict[tuple[str, str], str] = {}
        for resource in self.resources:
            attribute = ATTRIBUTE_BY_TYPE.get(resource.kind)
            if attribute is None:
                continue
            queue_url = self._property_value(resource, "Queues")
            value = self._property_value(resource, attribute)
            unknown = _make_getatt(resource.address, "queue_url")
            is_queue_unknown = isinstance(queue_url, dict) and _referred_address(queue_url) is None
            if is_queue_unknown:
                value = unknown
            for address in _addresses_of_queues(queue_url, resources):
                is_set_twice = (address, attribute) in set_by
                properties = resources[address]["Properties"]
                properties[attribute] = unknown if is_set_twice else value
                set_by[address, attribute] = resource.address
        return set_by

    def _add_own_arguments(self, resources: dict[str, Any]) -> None:
        """Copy what the queues' own arguments set, except attributes that a separate resource sets.

        The argument `policy` becomes a policy resource of its own.
        """
        queues_with_policy = set[str]()
        for definition in resources.values():
            for node in to_list(definition["Properties"].get("Queues")):
                if (address := _referred_address(node)) is not None:
                    queues_with_policy.add(address)
        for queue in self.resources:
            if queue.kind != _QUEUE:
                continue
            properties = resources[queue.address]["Properties"]
            for attribute in ATTRIBUTE_BY_TYPE.values():
                value = self._property_value(queue, attribute)
                if attribute not in properties and value is not None:
                    properties[attribute] = value
            if queue.address in queues_with_policy:
                continue
            policy = self._property_value(queue, POLICY)
            if policy is not None:
                resources[f"{queue.address}.policy"] = {
                    "Type": _TYPES[_QUEUE_POLICY].name,
                    "Properties": {"Queues": [{"Ref": queue.address}], "PolicyDocument": policy},
                }

    def _property_value(self, resource: _PlannedResource, name: str) -> Any:
        """Return the value of a CloudFormation property, or None if nothing sets it.

        A value that is not known before the plan is applied is returned as a reference. If the
        argument refers to a resource of the plan, the reference is to that resource. Otherwise it
        is to the argument itself, which no check can resolve.
        """
        argument = terraform_name(name)
        value = resource.after.get(argument)
        if value is None and resource.unknown.get(argument):
            return self._unknown_value(resource, name, argument)
        if isinstance(value, str) and name in _DOCUMENTS:
            # SQS would refuse a text that is no JSON; the check of the attribute reports it.
            with suppress(ValueError, RecursionError):
                value = json.loads(value) if value else None
        return None if value == "" else scalars_to_text(value, self.work, self.references)

    def _unknown_value(self, resource: _PlannedResource, name: str, argument: str) -> Any:
        """Return a reference for an argument whose value is not known, or None if it is not set."""
        if resource.expressions is not None and argument not in resource.expressions:
            return None
        unknown = _make_getatt(resource.address, argument)
        if name not in _REFERRING:
            return unknown
        target = self._follow_expression(resource, get_mapping(resource.expressions, argument))
        if name == REDRIVE and target:
            target = {TARGET: target, COUNT: unknown} if "Fn::GetAtt" in target else None
        return target or unknown

    def _read_resource(self, change: Mapping[str, Any]) -> _PlannedResource:
        """Convert one entry of the plan's `resource_changes`."""
        self.work.take(len(change["address"]))
        module_address = change.get("module_address") or ""
        path = ""
        if isinstance(module_address, str) and module_address:
            path = _INDEX.sub("", f"{module_address}.")
        modules = tuple(path.split(".")[1::2]) if _MODULES.fullmatch(path) else ("?",)
        block = f"{change['type']}.{change.get('name')}"
        values = change["change"]
        return _PlannedResource(
            address=change["address"],
            kind=change["type"],
            block=(modules, block),
            module_address=str(module_address),
            after=values["after"],
            unknown=get_mapping(values, "after_unknown") or {},
            expressions=get_mapping(self._blocks_in(modules).get(block), "expressions"),
        )

    def _blocks_in(self, modules: Modules) -> Mapping[str, Any]:
        """Return the resource blocks in a module's configuration, by `type.name`."""
        if modules not in self._blocks:
            blocks = to_list((self._find_module(modules) or {}).get("resources"))
            self.work.take(1 + len(blocks))
            self._blocks[modules] = {
                f"{block.get('type')}.{block.get('name')}": block
                for block in blocks
                if isinstance(block, dict)
            }
        return self._blocks[modules]

    def _find_module(self, modules: Modules) -> Mapping[str, Any] | None:
        """Return a module's configuration. Empty if the plan does not contain it."""
        module = self.root_module
        for name in modules:
            module = get_mapping(module, "module_calls", name, "module") or {}
        return module

    def _follow_expression(
        self, resource: _PlannedResource, expression: Mapping[str, Any] | None
    ) -> Any:
        """Return a reference to the resource that an expression refers to.

        None if it refers to several things or to no resource of the plan. Variables and outputs of
        modules are followed, up to _MOST_REFERENCES of them.
        """
        modules = resource.block[0]
        for _ in range(_MOST_REFERENCES):
            references = to_list((expression or {}).get("references"))
            texts = [reference for reference in references if isinstance(reference, str)]
            longest = max(texts, key=len, default="")
            self.work.take(1 + sum(map(len, texts)))
            # Terraform lists a reference with its prefixes. Any other text is a second reference.
            is_one_reference = all(longest.startswith(text) for text in texts)
            if not longest or not is_one_reference:
                return None
            match _INDEX.sub("", longest).split("."):
                case ["var", name] if modules:
                    *outer, call_name = modules
                    modules = tuple(outer)
                    call = get_mapping(self._find_module(modules), "module_calls", call_name)
                    expression = get_mapping(call, "expressions", name)
                case ["module", name, output]:
                    modules = (*modules, name)
                    module = self._find_module(modules)
                    expression = get_mapping(module, "outputs", output, "expression")
                case [kind, name, _]:
                    return self._refer_to_instance(resource, (modules, f"{kind}.{name}"), longest)
                case _:
                    return None
        return None

    def _refer_to_instance(
        self, resource: _PlannedResource, block: tuple[Modules, str], reference: str
    ) -> Any:
        """Return a reference to the resource of `block` that the text `reference` means.

        None if the plan has no such resource or several, or if checks do not read its type.
        """
        instances = self.instances.get(block, [])
        address, _, attribute = reference.rpartition(".")
        address_here = f"{resource.module_address}.{address}".lstrip(".")
        candidates = [instance for instance in instances if instance.address == address_here]
        if not candidates:
            # In the resource's own module the reference means exactly that address, and it is not
            # in the plan. Another instance of the block is a different resource.
            own_modules = resource.block[0]
            candidates = [instance for instance in instances if instance.block[0] != own_modules]
        if len(candidates) != 1 or candidates[0].kind not in _TYPES:
            return None
        (target,) = candidates
        is_queue_arn = target.kind == _QUEUE and attribute == "arn"
        if is_queue_arn or target.kind == _FUNCTION:
            return _make_getatt(target.address, "Arn")
        return {"Ref": target.address}


def _addresses_of_queues(queue_url: Any, resources: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the queues that a `queue_url` may mean.

    That is the queue that it refers to, or every queue if its value is not known. Empty if it is
    the URL of a queue outside the plan.
    """
    address = _referred_address(queue_url)
    if address is not None and address in resources:
        return [address]
    if not isinstance(queue_url, dict):
        return []
    return [address for address in resources if resources[address]["Type"] == QUEUE]


def _make_getatt(address: str, name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [address, name]}


def _is_relevant(change: Any) -> bool:
    """Return True if the resource is of a type that is read and the plan does not delete it."""
    return (
        get_mapping(change, "change", "after") is not None
        and change.get("mode") == "managed"
        and change.get("type") in (*_TYPES, *ATTRIBUTE_BY_TYPE)
        and isinstance(change.get("address"), str)
    )
