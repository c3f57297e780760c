"""A Terraform plan as a template: what the checks ask about, as CloudFormation's resources.

So one mapping leads to the facts. What Terraform knows only once it has applied is not known here,
but for what a sole reference leads to: a queue, a function or a key of the same plan. An argument
that the configuration does not set counts as AWS's default, also where the provider computes it.
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
    A_BYTE_READ,
    MOST_RESOURCES,
    NotATemplate,
    Place,
    Template,
    WorkBudget,
    get_mapping,
    scalars_as_text,
    to_list,
)
from mendq.lint.values import FUNCTION, QUEUE, NotKnown
from mendq.model.queue import arn_of, parts_of
from mendq.notifications.change_lines import NUMBER, terraform_name

# A plan repeats itself in what is not read: the state before, the planned values.
MOST_PLAN_BYTES = 16 * 1024 * 1024
_REMEDY = "make one: terraform plan -out plan.bin; terraform show -json plan.bin"
_QUEUE, _ALLOW, _KEY = "aws_sqs_queue", "RedriveAllowPolicy", "KmsMasterKeyId"
_OF_QUEUE = (
    *("QueueName", "FifoQueue", "ContentBasedDeduplication", "DeduplicationScope"),
    *("FifoThroughputLimit", "VisibilityTimeout", "MessageRetentionPeriod", "MaximumMessageSize"),
    *("DelaySeconds", "ReceiveMessageWaitTimeSeconds", "SqsManagedSseEnabled"),
    *(_KEY, "KmsDataKeyReusePeriodSeconds"),
)
_OF_MAPPING = ("EventSourceArn", "FunctionName", "Enabled", "MaximumBatchingWindowInSeconds")
_TYPES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    _QUEUE: (QUEUE, _OF_QUEUE),
    "aws_sqs_queue_policy": ("AWS::SQS::QueuePolicy", ("Queues", "PolicyDocument")),
    "aws_lambda_event_source_mapping": (MAPPING, _OF_MAPPING),
    "aws_lambda_function": (FUNCTION, ("FunctionName", "Timeout")),
    "aws_lambda_alias": ("AWS::Lambda::Alias", ("FunctionName",)),
    "aws_kms_key": ("AWS::KMS::Key", ()),
}
# Resources that set an attribute of a queue's. Without one its own argument of that name counts.
BESIDE = {"aws_sqs_queue_redrive_policy": REDRIVE, "aws_sqs_queue_redrive_allow_policy": _ALLOW}
_DOCUMENTS = frozenset({"PolicyDocument", POLICY, *BESIDE.values()})
# The arguments whose value is another resource, whichever of its names is given, or holds its ARN.
_NAMING = frozenset({"EventSourceArn", "FunctionName", "Queues", _KEY, REDRIVE})
_MOST_STEPS = 20
_ONE = r'\[(?:[0-9]{1,9}|"[^"\\]{0,256}")\]'
_INDEX, _MODULES = re.compile(_ONE), re.compile(rf"(?:module\.[\w-]{{1,128}}(?:{_ONE})?\.)*")
# A key that can be written, whatever prints it; `${` in one would be worked out.
_KEYED = r'\[(?:[0-9]{1,9}|"(?:[ !#&-\[\]-~]|[$%](?!\{)){0,256}")\]'
_WRITTEN = re.compile(rf"[\w-]+(?:\.[\w-]+|{_KEYED})*", re.ASCII)
_MADE_OF = re.compile(rf"{_KEYED}(?=\w)", re.ASCII)
Modules = tuple[str, ...]


@dataclass(frozen=True)
class TerraformPlan(Template):
    """A plan; `arns` are the addresses of its queues by the ARN that they have.

    `set_by` is the address of what sets a queue's attribute, where that is another resource.
    """

    arns: Mapping[str, str] = field(default_factory=dict)
    set_by: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def named(self, attribute: str) -> str:
        return terraform_name(attribute) if attribute[:1].isupper() else attribute

    def place(self, *keys: str | int) -> Place:
        """The address of a resource or of its argument; a plan has no lines."""
        address, argument = (*map(str, keys[1:2]), "")[0], "".join(map(str, keys[3:4]))
        address = self.set_by.get((address, argument), address)
        is_own = argument == "PolicyDocument" and address.removesuffix(".policy") in self.resources
        shown = f".{self.named(argument)}" if argument and not is_own else ""
        return Place(f"{address}{shown}", None)

    def written(self, name: str, document: Any) -> tuple[str, ...]:
        """As HCL: an argument, a resource to add, or one of a list."""
        if not (isinstance(document, dict) and "Properties" in document):
            return (f"{self.named(name)} = {hcl_of(document)}" if name else _expression(document),)
        (kind,) = (terraform for terraform, (of, _) in _TYPES.items() if of == document["Type"])
        label = _reference(name).rpartition(".")[2]
        own = document["Properties"].items()
        lines = (f"  {self.named(each)} = {hcl_of(value)}" for each, value in own)
        return (f'resource "{kind}" "{label}" {{', *lines, "}")


def hcl_of(value: Any) -> str:
    """HCL of a property: a document as Terraform wants it, the queues of a policy as the one."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str) and (NUMBER.fullmatch(value) or value in ("true", "false")):
        return value
    said = _expression(value)
    return f"jsonencode({said})" if said.startswith("{") else said


def _expression(node: Any) -> str:
    match node:
        case {"Ref": str() as address}:
            return f"{_reference(address)}.{'url' if _QUEUE in address else 'arn'}"
        case {"Fn::GetAtt": [str() as address, str() as argument]}:
            return f"{_reference(address)}.{argument.lower()}"
        case dict():
            return f"{{{', '.join(f'{_text(k)}: {_expression(v)}' for k, v in node.items())}}}"
        case list():
            return f"[{', '.join(map(_expression, node))}]"
    return _text(node)


def literal_of(document: Any) -> str:
    """HCL of what stands in AWS: whatever is in it, Terraform works nothing of it out."""
    return f"jsonencode({_text(document)})" if isinstance(document, dict) else _text(document)


def _text(node: Any) -> str:
    return json.dumps(node).replace("${", "$${").replace("%{", "%%{")


def _reference(address: str) -> str:
    """As its own module says it; raises NotKnown where that could be another's, or no address."""
    own = _MODULES.sub("", _MADE_OF.sub("", address), count=1)
    if not _WRITTEN.fullmatch(own):
        raise NotKnown(f"how to write {address}")
    return own


def _ref_in(queue: Any) -> str | None:
    """The address that a queue's URL refers to, if it is nothing else."""
    named = queue.get("Ref") if isinstance(queue, dict) else None
    return named if isinstance(named, str) else None


def is_plan(content: bytes) -> bool:
    """Whether some JSON says that it is Terraform's."""
    begins = content.lstrip()[:1] == b"{" and b'"format_version"' in content
    return begins and any(each in content for each in (b'"resource_changes"', b'"root_module"'))


def read_plan(content: bytes, work: WorkBudget) -> TerraformPlan:
    """The plan in some bytes; raises NotATemplate."""
    if len(content) > MOST_PLAN_BYTES:
        less = "jq 'del(.prior_state, .planned_values)' leaves out what is not read"
        raise NotATemplate(f"a plan longer than {MOST_PLAN_BYTES:,} bytes: {less}")
    work.take(len(content) // A_BYTE_READ)
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
    return _Reading(document, work).plan()


@dataclass(frozen=True)
class _Change:
    """A resource as it is to be; `expressions` is None where the plan does not show its block."""

    address: str
    kind: str
    of: tuple[Modules, str]
    within: str
    after: Mapping[str, Any]
    unknown: Mapping[str, Any]
    expressions: Mapping[str, Any] | None


class _Reading:
    def __init__(self, document: Mapping[str, Any], work: WorkBudget) -> None:
        self.work = work
        self.root = get_mapping(document, "configuration", "root_module") or {}
        self._blocks: dict[Modules, Mapping[str, Any]] = {}
        changes = to_list(document.get("resource_changes"))
        work.take(len(changes))
        self.changes = [self._change(each) for each in changes if _is_to_be(each)]
        if len(self.changes) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} queues, functions and their like")
        self.instances = defaultdict[Any, list[_Change]](list)
        for each in self.changes:
            self.instances[each.of].append(each)
        queues = [each for each in self.changes if each.kind == _QUEUE]
        self.arns = {arn: each.address for each in queues if (arn := arn_of(each.after.get("arn")))}
        # What a queue is called, anywhere in a value.
        self.nodes = {arn: _attribute(address, "Arn") for arn, address in self.arns.items()}
        for each in queues:
            urls = (each.after.get(name) for name in ("url", "id"))
            self.nodes |= {url: {"Ref": each.address} for url in urls if isinstance(url, str)}

    def plan(self) -> TerraformPlan:
        made: dict[str, Any] = {}
        for each in self.changes:
            if each.kind in _TYPES:
                kind, names = _TYPES[each.kind]
                found = {name: self._value(each, name) for name in names}
                tags = get_mapping(each.after, "tags_all") or get_mapping(each.after, "tags") or {}
                texts = {key: each for key, each in tags.items() if isinstance(each, str)}
                found["Tags"] = [{"Key": key, "Value": texts[key]} for key in texts] or None
                own = {name: value for name, value in found.items() if value is not None}
                made[each.address] = {"Type": kind, "Properties": own}
        set_by = self._set_beside(made)
        self._set_itself(made)
        where = [parts_of(arn) for arn in self.arns][:1]
        said = {"account": where[0].account, "region": where[0].region} if where else {}
        return TerraformPlan({"Resources": made}, self.work, said, self.arns, set_by)

    def _set_beside(self, made: dict[str, Any]) -> dict[tuple[str, str], str]:
        """What a resource of its own sets; of one whose queue is not known any queue's."""
        set_by: dict[tuple[str, str], str] = {}
        queues = [each for each in made if made[each]["Type"] == QUEUE]
        for each in self.changes:
            if (attribute := BESIDE.get(each.kind)) is None:
                continue
            queue, value = self._value(each, "Queues"), self._value(each, attribute)
            named = _ref_in(queue)
            if isinstance(queue, dict) and named is None:
                value = _attribute(each.address, "queue_url")
            for address in [named] if named in made else queues if isinstance(queue, dict) else ():
                own = made[address]["Properties"]
                is_twice = (address, attribute) in set_by
                own[attribute] = _attribute(each.address, "queue_url") if is_twice else value
                set_by[address, attribute] = each.address
        return set_by

    def _set_itself(self, made: dict[str, Any]) -> None:
        """What the queue's own arguments say where no other resource does."""
        named = {
            name
            for one in made.values()
            for each in to_list(one["Properties"].get("Queues"))
            if (name := _ref_in(each)) is not None
        }
        for each in [each for each in self.changes if each.kind == _QUEUE]:
            own = made[each.address]["Properties"]
            for attribute in BESIDE.values():
                value = self._value(each, attribute)
                own |= {} if attribute in own or value is None else {attribute: value}
            if each.address not in named and (value := self._value(each, POLICY)) is not None:
                policy = {"Queues": [{"Ref": each.address}], "PolicyDocument": value}
                kind = _TYPES["aws_sqs_queue_policy"][0]
                made[f"{each.address}.policy"] = {"Type": kind, "Properties": policy}

    def _value(self, change: _Change, name: str) -> Any:
        """None where nobody sets it."""
        argument = terraform_name(name)
        value = change.after.get(argument)
        if value is None and change.unknown.get(argument):
            if change.expressions is not None and argument not in change.expressions:
                return None
            said = get_mapping(change.expressions, argument)
            unknown = _attribute(change.address, argument)
            led_to = self._led_to(change, said) if name in _NAMING else None
            if name == REDRIVE and led_to:
                led_to = {TARGET: led_to, COUNT: unknown} if "Fn::GetAtt" in led_to else None
            return led_to or unknown
        if isinstance(value, str) and name in _DOCUMENTS:
            with suppress(ValueError, RecursionError):  # SQS would not take it: then it is said
                value = json.loads(value) if value else None
        return None if value == "" else scalars_as_text(value, self.work, self.nodes)

    def _change(self, said: Mapping[str, Any]) -> _Change:
        self.work.take(len(said["address"]))
        within = said.get("module_address") or ""
        path = _INDEX.sub("", f"{within}.") if isinstance(within, str) and within else ""
        modules = tuple(path.split(".")[1::2]) if _MODULES.fullmatch(path) else ("?",)
        own = f"{said['type']}.{said.get('name')}"
        change = said["change"]
        expressions = get_mapping(self._blocks_in(modules).get(own), "expressions")
        return _Change(
            said["address"],
            said["type"],
            (modules, own),
            str(within),
            change["after"],
            get_mapping(change, "after_unknown") or {},
            expressions,
        )

    def _blocks_in(self, modules: Modules) -> Mapping[str, Any]:
        """The resources of a module as they are written, by type and name."""
        if modules not in self._blocks:
            every = to_list((self._module(modules) or {}).get("resources"))
            found = [each for each in every if isinstance(each, dict)]
            self.work.take(1 + len(every))
            self._blocks[modules] = {f"{e.get('type')}.{e.get('name')}": e for e in found}
        return self._blocks[modules]

    def _module(self, modules: Modules) -> Mapping[str, Any] | None:
        found = self.root
        for name in modules:
            found = get_mapping(found, "module_calls", name, "module") or {}
        return found

    def _led_to(self, change: _Change, said: Mapping[str, Any] | None) -> Any:
        """The one resource that an expression leads to, through variables and outputs."""
        modules = change.of[0]
        for _ in range(_MOST_STEPS):
            references = to_list((said or {}).get("references"))
            texts = [each for each in references if isinstance(each, str)]
            first = max(texts, key=len, default="")
            self.work.take(1 + sum(map(len, texts)))
            # Each is followed by what it begins with; anything else is a second one.
            if not first or not all(first.startswith(each) for each in texts):
                return None
            words = _INDEX.sub("", first).split(".")
            match words:
                case ["var", name] if modules:
                    call = get_mapping(self._module(modules[:-1]), "module_calls", modules[-1])
                    said, modules = get_mapping(call, "expressions", name), modules[:-1]
                case ["module", name, output]:
                    modules = (*modules, name)
                    said = get_mapping(self._module(modules), "outputs", output, "expression")
                case [kind, name, _]:
                    return self._instance(change, (modules, f"{kind}.{name}"), first)
                case _:
                    return None
        return None

    def _instance(self, change: _Change, of: tuple[Modules, str], reference: str) -> Any:
        every = self.instances.get(of, [])
        indexed = reference.rpartition(".")[0]
        near = [e for e in every if e.address == f"{change.within}.{indexed}".lstrip(".")]
        # What stands in the same module and is not in the plan is not another of its instances.
        candidates = near or [e for e in every if e.of[0] != change.of[0]]
        if len(candidates) != 1 or candidates[0].kind not in _TYPES:
            return None
        (found,) = candidates
        by_arn = found.kind == _QUEUE and reference.endswith(".arn")
        is_function = found.kind == "aws_lambda_function"
        return _attribute(found.address, "Arn") if by_arn or is_function else {"Ref": found.address}


def _attribute(address: str, name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [address, name]}


def _is_to_be(said: Any) -> bool:
    """Whether it is one of ours that stands once the plan is applied."""
    return (
        get_mapping(said, "change", "after") is not None
        and said.get("mode") == "managed"
        and said.get("type") in (*_TYPES, *BESIDE)
        and isinstance(said.get("address"), str)
    )
