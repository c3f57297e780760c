"""Read the Terraform files of a folder as a template, as far as they alone determine it.

Variables have their defaults or the values of `terraform.tfvars`. Modules in subfolders are read
too. What only the apply determines, or a module from elsewhere, is left undecided.

Rules that are easy to break:

- Without a known `count` or `for_each`, a block has one instance that stands for all. It is judged
  as if it were made, like a CloudFormation resource with a condition.
- A mapping or a policy whose `count` is not known may not exist, so it is left undecided, unless
  its queue has the same `count` or `for_each`.
- An argument of unknown value is never the same as one that is not set.

https://developer.hashicorp.com/terraform/language/files
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mendq.lint import hcl_parser
from mendq.lint.files import SKIPPED_FOLDERS
from mendq.lint.folder import explain_unread_file, is_inside_folder
from mendq.lint.hcl_parser import Argument, Block, HclFile, parse_hcl
from mendq.lint.hcl_values import (
    CannotEvaluate,
    Container,
    Evaluator,
    JoinedText,
    JsonText,
    ResourceReference,
    UnknownPart,
    list_keys_and_values,
    parse_json,
    to_text,
)
from mendq.lint.producers import ROLE_POLICY_TYPE
from mendq.lint.queues import EVENT_SOURCE_MAPPING_TYPE, QUEUES_PROPERTY_BY_POLICY_TYPE
from mendq.lint.template import (
    MAXIMUM_NESTED_LEVELS,
    MOST_RESOURCES,
    UNKNOWN_VALUE_FUNCTION,
    Expansion,
    NotATemplate,
    TemplatePlace,
    WorkBudget,
    to_list,
)
from mendq.lint.terraform import (
    TerraformConverter,
    TerraformResource,
    TerraformTemplate,
    make_getatt_reference,
)
from mendq.lint.terraform_json import (
    convert_lines_to_json,
    parse_terraform_json,
    parse_variable_values,
)
from mendq.lint.terraform_parts import find_address
from mendq.lint.terraform_registry import (
    SQS_MODULE_SOURCE,
    adapt_to_sqs_module,
    explain_unknown_call,
    name_input,
    parse_sqs_module,
)
from mendq.lint.terraform_types import (
    ATTRIBUTE_BY_TERRAFORM_TYPE,
    JSON_PROPERTIES,
    NAME_ATTRIBUTES_BY_TYPE,
    PRODUCER_TYPES,
    RESOURCE_TYPE_BY_TERRAFORM_TYPE,
    TERRAFORM_FUNCTION_TYPE,
    TERRAFORM_POLICY_TYPE,
    TERRAFORM_QUEUE_TYPE,
    TYPES_WITH_ARN_ATTRIBUTE,
    TerraformBlock,
    name_argument,
)

_LOCAL_SOURCE_REGEX = re.compile(r'^\s*source\s*=\s*"(\.{1,2}/[^"\n]{0,1000})"', re.MULTILINE)
MOST_HCL_BYTES = 256 * 1024
_MOST_FILES = 400
_MOST_ROOT_FOLDERS = 200
_MOST_MODULES = 200
_MOST_MODULE_LEVELS = 8
_MOST_DEFAULT_CHARACTERS = 200
_STEPS_PER_BYTE = 1
# As for a node of YAML: converting one takes a few microseconds.
_STEPS_PER_NODE = 16
# Type of a resource that lint does not read, but to which an argument refers.
_OTHER_RESOURCE_TYPE = "AWS::Terraform::Resource"
# Type that stands for a module that is not read. It may change what it gets.
_UNREAD_MODULE_TYPE = "Custom::TerraformModule"
_POLICY_DOCUMENT_TYPE = "aws_iam_policy_document"
# The argument that names what a data source reads, if a resource of the same type has it too.
_NAME_ARGUMENT_BY_DATA_TYPE = {
    TERRAFORM_QUEUE_TYPE: "name",
    TERRAFORM_FUNCTION_TYPE: "function_name",
}
# Pseudo parameters of CloudFormation by data source and attribute.
_PSEUDO_PARAMETER_BY_DATA_ATTRIBUTE = {
    ("aws_caller_identity", "account_id"): "AWS::AccountId",
    ("aws_caller_identity", "id"): "AWS::AccountId",
    ("aws_region", "name"): "AWS::Region",
    ("aws_region", "id"): "AWS::Region",
    ("aws_region", "region"): "AWS::Region",
    ("aws_partition", "partition"): "AWS::Partition",
    ("aws_partition", "dns_suffix"): "AWS::URLSuffix",
}
# Attributes that the provider computes, and that are no arguments of the same meaning.
_ARN_ATTRIBUTES = frozenset({"arn"})
_FUNCTION_ARN_ATTRIBUTES = frozenset({"arn", "qualified_arn", "invoke_arn"})
_NAME_ATTRIBUTES = frozenset({"id", "url", "function_name", "key_id", "name"})
_META_ARGUMENTS = ("count", "for_each")
# Stands for the folder of the registry's module for queues.
SQS_MODULE_FOLDER = Path(SQS_MODULE_SOURCE)
# A resource block has a type and a name.
_LABELS_OF_RESOURCE = 2
# Types of which a resource with an unknown `count` may be missing, with the properties that name
# the resource to which it belongs.
_OWNER_PROPERTIES_BY_TYPE: Mapping[str, tuple[str, ...]] = {
    EVENT_SOURCE_MAPPING_TYPE: ("EventSourceArn",),
    **{type_name: (name,) for type_name, name in QUEUES_PROPERTY_BY_POLICY_TYPE.items()},
    ROLE_POLICY_TYPE: ("RoleName",),
}


def read_terraform_folder(
    path: Path, budget: WorkBudget, outermost_folder: Path | None = None
) -> TerraformSource:
    """Read a folder with Terraform files, or a file together with its folder.

    If `path` is a file, only places in that file are reported. If the folder does not hold one
    module, because names are declared twice, or if another file of it is no HCL, the file is read
    alone.

    Args:
        path: The folder or the file.
        budget: The steps that reading may take.
        outermost_folder: Modules outside this folder are not read. By default it is the folder of
            the git work tree, or the folder itself if it is in none.

    Raises:
        NotATemplate: A file is no HCL or too long, or there are too many.
        OSError: A file cannot be read.
    """
    folder = path if path.is_dir() else path.parent
    try:
        return _read_folder(path, outermost_folder or _find_work_tree(folder), budget)
    except RecursionError as error:
        raise NotATemplate(f"{path}: values nested too deep") from error


def _find_work_tree(folder: Path) -> Path:
    """Return the folder of the git work tree that contains a folder, or else the folder itself."""
    resolved_folder = folder.resolve()
    for outer_folder in (resolved_folder, *resolved_folder.parents):
        if (outer_folder / ".git").exists():
            return outer_folder
    return folder


def _read_folder(path: Path, outermost_folder: Path, budget: WorkBudget) -> TerraformSource:
    if path.is_dir():
        files = _load_folder(path, outermost_folder, budget)
        return _SourceReader(files, path, outermost_folder, budget).make_template()
    own_body = _parse_file(path, budget)
    try:
        folder = _load_folder(path.parent, outermost_folder, budget)
    except (NotATemplate, OSError):
        folder = _ModuleFiles([own_body], {}, {})
    else:
        if folder.is_ambiguous:
            folder = _ModuleFiles([own_body], {}, {})
    reader = _SourceReader(folder, path.parent, outermost_folder, budget, own_file=str(path))
    return reader.make_template()


def list_terraform_files(folder: Path) -> list[Path]:
    """Return the `.tf` files of a folder, in the order in which Terraform reads them.

    Files that override others are last. https://developer.hashicorp.com/terraform/language/files/override
    """
    paths = [path for path in sorted(folder.glob("*.tf")) if not path.name.startswith(".")]
    return sorted(paths, key=is_override_file)


def list_root_modules(folder: Path) -> list[Path]:
    """Return the folders below a folder that hold Terraform files and that no other one calls.

    Raises NotATemplate if there are too many folders.
    """
    folders = list[Path]()
    called_folders = set[str]()
    for path in _walk_terraform_folders(folder):
        folders.append(path)
        if len(folders) > _MOST_ROOT_FOLDERS:
            raise NotATemplate(f"{folder}: more than {_MOST_ROOT_FOLDERS} folders with .tf files")
        for terraform_file in list_terraform_files(path):
            for source in _list_local_sources(terraform_file, folder):
                called_folders.add(os.path.realpath(path / source))
    return [path for path in folders if os.path.realpath(path) not in called_folders]


def _walk_terraform_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders below a folder that hold Terraform files, but for hidden ones."""
    for path, folder_names, file_names in os.walk(folder):
        folder_names[:] = sorted(
            name
            for name in folder_names
            if not name.startswith(".") and name not in SKIPPED_FOLDERS
        )
        if any(name.endswith((".tf", ".tf.json")) for name in file_names):
            yield Path(path)


def _list_local_sources(path: Path, folder: Path) -> list[str]:
    """Return the paths by which a file calls modules. Empty if the file must not be read."""
    if explain_unread_file(path, folder):
        return []
    with path.open("rb") as file:
        text = file.read(MOST_HCL_BYTES).decode("utf-8", "replace")
    return _LOCAL_SOURCE_REGEX.findall(text)


def is_override_file(path: Path) -> bool:
    """Return True if the blocks of a file override those of other files."""
    stem = path.name.removesuffix(".json").removesuffix(".tf")
    return stem == "override" or stem.endswith("_override")


def _list_all_files(folder: Path) -> list[Path]:
    """Return the `.tf` and `.tf.json` files of a folder. Files that override others are last."""
    json_paths = [path for path in sorted(folder.glob("*.tf.json")) if path.name[:1] != "."]
    return sorted([*list_terraform_files(folder), *json_paths], key=is_override_file)


def _parse_file(path: Path, budget: WorkBudget) -> Block:
    file = _read_file(path, budget)
    return parse_terraform_json(file) if path.suffix == ".json" else parse_hcl(file)


def _read_file(path: Path, budget: WorkBudget) -> HclFile:
    with path.open("rb") as file:
        content = file.read(MOST_HCL_BYTES + 1)
    if len(content) > MOST_HCL_BYTES:
        raise NotATemplate(f"{path}: longer than {MOST_HCL_BYTES:,} bytes")
    budget.use_steps(len(content) * _STEPS_PER_BYTE)
    try:
        return HclFile(str(path), content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotATemplate(f"{path}: no UTF-8 at byte {error.start:,}") from error


@dataclass
class _ModuleFiles:
    """The parsed files of one module's folder."""

    bodies: list[Block]
    # Arguments of `terraform.tfvars` and `*.auto.tfvars`, by variable.
    variable_values: dict[str, Argument]
    # Why a file was not read, by file.
    reason_by_unread_file: dict[str, str]
    # True if two files declare the same, so that they are no module.
    is_ambiguous: bool = False


def _load_folder(folder: Path, outermost_folder: Path, budget: WorkBudget) -> _ModuleFiles:
    """Read and parse the files of a folder. Override files are merged into the blocks of others."""
    files = _ModuleFiles([], {}, {})
    paths = _list_all_files(folder)
    if not paths:
        raise NotATemplate(f"{folder} holds no .tf file")
    if len(paths) > _MOST_FILES:
        raise NotATemplate(f"{folder}: more than {_MOST_FILES} files")
    block_by_key = dict[tuple[str, ...], Block]()
    for path in paths:
        reason = explain_unread_file(path, outermost_folder)
        if reason:
            files.reason_by_unread_file[str(path)] = reason
            continue
        body = _parse_file(path, budget)
        if is_override_file(path):
            body = _merge_override(files, body)
        else:
            files.is_ambiguous |= _has_block_again(body, block_by_key)
        files.bodies.append(body)
    variable_paths = [
        folder / "terraform.tfvars",
        folder / "terraform.tfvars.json",
        *sorted((*folder.glob("*.auto.tfvars"), *folder.glob("*.auto.tfvars.json"))),
    ]
    for path in variable_paths:
        if path.is_file() and is_inside_folder(path, outermost_folder):
            file = _read_file(path, budget)
            is_json = path.suffix == ".json"
            body = parse_variable_values(file) if is_json else parse_hcl(file)
            files.variable_values |= body.argument_by_name
    return files


def _has_block_again(body: Block, block_by_key: dict[tuple[str, ...], Block]) -> bool:
    """Return True if a block of the body was declared before; note all of them."""
    is_again = False
    for block in body.blocks:
        key = (block.keyword, *block.labels)
        is_named = block.keyword in ("resource", "data", "variable", "output", "module")
        is_again |= is_named and key in block_by_key
        block_by_key[key] = block
    return is_again


def _merge_override(files: _ModuleFiles, override_body: Block) -> Block:
    """Merge the blocks of an override file into those of the same name.

    Returns:
        A body with the blocks that override none.
    """
    new_blocks = list[Block]()
    for override in override_body.blocks:
        key = (override.keyword, override.labels)
        is_merged = False
        for number, body in enumerate(files.bodies):
            if any((block.keyword, block.labels) == key for block in body.blocks):
                files.bodies[number] = _merge_into_body(body, override)
                is_merged = True
        if not is_merged:
            new_blocks.append(override)
    file = override_body.file
    return Block(file, "", (), 0, 0, override_body.arguments, new_blocks)


def _merge_into_body(body: Block, override: Block) -> Block:
    blocks = list[Block]()
    for block in body.blocks:
        if (block.keyword, block.labels) == (override.keyword, override.labels):
            names = {inner_block.keyword for inner_block in override.blocks}
            inner_blocks = [inner for inner in block.blocks if inner.keyword not in names]
            block = Block(  # noqa: PLW2901 - the merged block takes its place
                block.file,
                block.keyword,
                block.labels,
                block.begin,
                block.body_offset,
                list({**block.argument_by_name, **override.argument_by_name}.values()),
                [*inner_blocks, *override.blocks],
            )
        blocks.append(block)
    return Block(body.file, "", (), 0, 0, body.arguments, blocks)


@dataclass(frozen=True)
class TerraformSource(TerraformTemplate):
    """The Terraform files of a folder in the form of a template."""

    reader: _SourceReader = field(kw_only=True)

    def list_module_folders(self, folder: Path) -> list[tuple[Path, str]]:
        del folder
        return self.reader.list_module_folders()

    def find_place(self, *keys: str | int) -> TemplatePlace:
        """Return the address, the file and the line of a resource, or of one of its arguments."""
        address = str(keys[1]) if len(keys) > 1 else ""
        attribute = str(keys[3]) if len(keys) > 3 else ""
        address = self.setter_address_by_queue_and_attribute.get((address, attribute), address)
        if keys and keys[0] == "module":
            return self.reader.place_by_unread_name[address]
        # A queue's own argument `policy` is read as a separate resource.
        queue_address = address.removesuffix(".policy")
        instance = self.reader.instance_by_address.get(address)
        argument_name = self.get_attribute_name(attribute) if attribute else ""
        if instance is None:
            instance = self.reader.instance_by_address.get(queue_address)
            argument_name = "policy"
        if attribute == "PolicyDocument":
            argument_name = "policy"
        if instance is None:
            return TemplatePlace(address, None)
        if instance.call_of_registry is not None:
            return self._find_call_place(instance, instance.call_of_registry, argument_name)
        argument = instance.block.argument_by_name.get(argument_name)
        if argument is not None:
            path = f"{instance.address}.{argument_name}"
            return TemplatePlace(path, argument.line, self.reader.name_file(argument.file.path))
        inner_blocks = instance.block.list_blocks(argument_name)
        line = inner_blocks[0].line if inner_blocks else instance.block.line
        path = f"{instance.address}.{argument_name}" if inner_blocks else instance.address
        return TemplatePlace(path, line, self.reader.name_file(instance.block.file.path))

    def write_remedy(self, file: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        is_json = (file or self.reader.own_file).endswith(".json")
        return convert_lines_to_json(lines) if is_json else lines

    def _find_call_place(
        self, instance: _Instance, call: Block, argument_name: str
    ) -> TemplatePlace:
        """Return the place of the input that sets an argument in a module of the registry."""
        is_queue = instance.terraform_type == TERRAFORM_QUEUE_TYPE
        label = instance.block.labels[1] if is_queue else ""
        input_name = name_input(label, argument_name)
        argument = call.argument_by_name.get(input_name)
        line = argument.line if argument else call.line
        return TemplatePlace(instance.address, line, self.reader.name_file(call.file.path))

    def adapt_remedy(
        self, logical_id: str, symptom_name: str, lines: tuple[str, ...]
    ) -> tuple[str, ...]:
        instance = self.reader.instance_by_address.get(logical_id)
        if instance is None or instance.call_of_registry is None or not lines:
            return lines
        is_about_policy = f"{TERRAFORM_POLICY_TYPE}." in lines[0]
        if lines[0].startswith("#") and not is_about_policy:
            return lines
        comment = f'# in the block module "{instance.call_of_registry.labels[0]}"'
        return adapt_to_sqs_module(instance.block.labels[1], symptom_name, comment, lines)


@dataclass(frozen=True)
class _Instance(TerraformResource, Container):
    """One instance of a resource block. Without a known `count`, it stands for all of them."""

    module: _Module
    block: Block
    # Values of `count` and `each`.
    variables: Mapping[str, Any]
    # The text of a `count` or `for_each` that is not known. Empty if it is known.
    unknown_repetition: str = ""

    def __hash__(self) -> int:
        return hash(self.address)

    @property
    def call_of_registry(self) -> Block | None:
        """The block that calls the instance's module, if that is a module of the registry."""
        call = self.module.call
        return call.block if call and self.module.folder == SQS_MODULE_FOLDER else None

    def get_part(self, key: Any) -> Any:
        """Return an attribute: a reference, or the value of the argument of that name."""
        if not isinstance(key, str):
            raise CannotEvaluate("a resource without count has no index")
        arn_attributes = (
            _FUNCTION_ARN_ATTRIBUTES
            if self.terraform_type == TERRAFORM_FUNCTION_TYPE
            else _ARN_ATTRIBUTES
        )
        argument = self.block.argument_by_name.get(key)
        if key in NAME_ATTRIBUTES_BY_TYPE.get(self.terraform_type, ()):
            return ResourceReference(self.address, self.terraform_type, key)
        if key == "name" and argument and self.terraform_type == TERRAFORM_QUEUE_TYPE:
            name = self.module.evaluate_argument(self, argument)
            reference = ResourceReference(self.address, self.terraform_type, key)
            return name if isinstance(name, str) else reference
        if key in arn_attributes or (key in _NAME_ATTRIBUTES and not argument):
            return ResourceReference(self.address, self.terraform_type, key)
        if argument is None:
            return UnknownPart(f"{self.address}.{key}: known after the apply")
        if key in _NAME_ATTRIBUTES and self.terraform_type == TERRAFORM_FUNCTION_TYPE:
            return ResourceReference(self.address, self.terraform_type, key)
        return self.module.evaluate_argument(self, argument)

    def list_items(self) -> list[Any]:
        """Return the instance: a splat of one value is a list of it."""
        return [self]


@dataclass(frozen=True)
class _RepeatedBlock(Container):
    """The instances of a block with `count` or `for_each`, by index."""

    instance_by_index: Mapping[Any, _Instance]

    def get_part(self, key: Any) -> Any:
        """Return the instance with an index."""
        for index in (key, to_text(key)):
            if isinstance(index, str | int) and index in self.instance_by_index:
                return self.instance_by_index[index]
        if isinstance(key, UnknownPart):
            return key
        raise CannotEvaluate(f"there is no instance {str(key)[:64]}")

    def list_items(self) -> list[Any]:
        """Return all instances."""
        return list(self.instance_by_index.values())

    def get_collection(self) -> Any:
        """Return the instances: a list with `count`, a map with `for_each`."""
        return _make_collection(self.instance_by_index)


def _make_collection(value_by_index: Mapping[Any, Any]) -> Any:
    """Return the instances of a block as Terraform has them: a list or a map."""
    has_numbers = all(isinstance(index, int) for index in value_by_index)
    return list(value_by_index.values()) if has_numbers else dict(value_by_index)


@dataclass(frozen=True)
class _Representative(Container):
    """The one instance that stands for a block whose `count` or `for_each` is not known."""

    instance: _Instance

    def get_part(self, key: Any) -> Any:
        """Return the instance for any index, or its attribute."""
        is_attribute = isinstance(key, str) and (
            key in _NAME_ATTRIBUTES | _FUNCTION_ARN_ATTRIBUTES
            or key in self.instance.block.argument_by_name
        )
        return self.instance.get_part(key) if is_attribute else self.instance

    def list_items(self) -> list[Any]:
        """Return the instance."""
        return [self.instance]


class _Namespace(Container):
    """A first name such as `var`, whose parts a function finds."""

    def __init__(self, find_part: Any) -> None:
        self._find_part = find_part

    def get_part(self, key: Any) -> Any:
        """Return a part by its name."""
        return self._find_part(str(key))

    def list_items(self) -> list[Any]:
        """Return no items: a namespace is not a list."""
        raise CannotEvaluate("several data sources or modules at once")


@dataclass(frozen=True)
class _ModuleCall:
    """The block that calls a module, for one instance of the module.

    Terraform resolves each input and output by itself: an input may be an output of the same module
    that does not depend on this input.
    """

    caller: _Module
    block: Block
    # Values of `count` and `each`.
    variables: Mapping[str, Any]
    # Address of the module's instance.
    address: str

    def evaluate_argument(self, name: str) -> Any:
        """Return the value of an input of the module."""
        argument = self.block.argument_by_name[name]
        name = f"{self.address}'s {name}"
        return self.caller.evaluate_once(name, argument.expression, self.variables)


class _Module:
    """One instance of a module: its blocks, and the values of its variables."""

    def __init__(
        self,
        reader: _SourceReader,
        files: _ModuleFiles,
        folder: Path,
        call: _ModuleCall | None = None,
    ) -> None:
        self.reader = reader
        self.folder = folder
        # The block that calls the module. None for the root module.
        self.call = call
        self.address = call.address if call else ""
        self._tfvars = files.variable_values if call is None else {}
        self.evaluator = Evaluator(reader.budget, self._find_root)
        self.blocks = dict[str, Block]()
        self.local_arguments = dict[str, Argument]()
        for body in files.bodies:
            for block in body.blocks:
                if block.keyword == "locals":
                    self.local_arguments |= block.argument_by_name
                else:
                    self.blocks[".".join((block.keyword, *block.labels))] = block
        self._value_by_name = dict[str, Any]()
        self._instances_by_key = dict[str, Container]()
        self._called_modules = dict[str, Any]()

    def list_blocks(self, keyword: str) -> list[Block]:
        """Return the blocks of a keyword, such as `resource`."""
        return [block for block in self.blocks.values() if block.keyword == keyword]

    def evaluate_argument(self, instance: _Instance, argument: Argument) -> Any:
        """Return the value of a resource's argument; each is evaluated once."""
        name = f"{instance.address} {argument.name}"
        return self.evaluate_once(name, argument.expression, instance.variables)

    def evaluate_once(
        self, name: str, expression: hcl_parser.Expression, variables: Mapping[str, Any]
    ) -> Any:
        if name not in self._value_by_name:
            # A value that depends on itself is not known.
            self._value_by_name[name] = UnknownPart(f"{name.partition(' ')[0]} refers to itself")
            self._value_by_name[name] = self.evaluator.evaluate_or_unknown(expression, variables)
        return self._value_by_name[name]

    def _find_root(self, name: str) -> Any:
        match name:
            case "var":
                return _Namespace(self._find_variable)
            case "local":
                return _Namespace(self._find_local)
            case "data":
                return _Namespace(
                    lambda type_name: _Namespace(lambda label: self._find_data(type_name, label))
                )
            case "module":
                return _Namespace(self._find_called_module)
            case "each" | "count" | "self":
                return UnknownPart(f"{name} is not known here")
            case "path" | "terraform":
                return UnknownPart(f"{name}: known when it is deployed")
        return _Namespace(lambda label: self.find_instances(f"resource.{name}.{label}"))

    def _find_variable(self, name: str) -> Any:
        cache_name = f"var.{name}"
        if cache_name not in self._value_by_name:
            self._value_by_name[cache_name] = UnknownPart(f"{cache_name[:68]} refers to itself")
            self._value_by_name[cache_name] = self._read_variable(name)
        return self._value_by_name[cache_name]

    def _read_variable(self, name: str) -> Any:
        block = self.blocks.get(f"variable.{name}")
        value = self._find_variable_value(name, block)
        type_argument = block.argument_by_name.get("type") if block else None
        if type_argument is None:
            return value
        return _fill_optional_parts(self.evaluator, type_argument.expression, value)

    def _find_variable_value(self, name: str, block: Block | None) -> Any:
        if self.call is not None and name in self.call.block.argument_by_name:
            return self.call.evaluate_argument(name)
        if name in self._tfvars:
            return self.evaluator.evaluate_or_unknown(self._tfvars[name].expression)
        default = block.argument_by_name.get("default") if block else None
        if block is None or default is None:
            return UnknownPart(f"var.{name[:64]} has no default")
        sensitive = block.argument_by_name.get("sensitive")
        if sensitive and self.evaluator.evaluate_or_unknown(sensitive.expression) is True:
            return UnknownPart(f"var.{name[:64]} is a secret")
        value = self.evaluator.evaluate_or_unknown(default.expression)
        if self.call is None:
            self.reader.default_by_variable[f"var.{name}"] = _shorten_default(default.text)
        return value

    def _find_local(self, name: str) -> Any:
        argument = self.local_arguments.get(name)
        if argument is None:
            return UnknownPart(f"local.{name[:64]} is not declared")
        return self.evaluate_once(f"local.{name}", argument.expression, {})

    def _find_data(self, type_name: str, label: str) -> Any:
        block = self.blocks.get(f"data.{type_name}.{label}")
        if block is not None and type_name == _POLICY_DOCUMENT_TYPE:
            return _DataSource(self, block)
        namesake = self._find_namesake(type_name, block) if block is not None else None
        if namesake is not None:
            return namesake
        return _Namespace(lambda attribute: _find_data_attribute(type_name, label, attribute))

    def _find_namesake(self, type_name: str, block: Block) -> _Instance | None:
        """Return the resource of the module that a data source reads by its name.

        None if no resource of the module is known to have this name.
        """
        name_argument = _NAME_ARGUMENT_BY_DATA_TYPE.get(type_name)
        argument = block.argument_by_name.get(name_argument or "")
        if name_argument is None or argument is None:
            return None
        wanted_name = self.evaluator.evaluate_or_unknown(argument.expression)
        if not isinstance(wanted_name, str):
            return None
        for resource_block in self.list_blocks("resource"):
            if resource_block.labels[:1] != (type_name,):
                continue
            instances = self.find_instances(f"resource.{'.'.join(resource_block.labels)}")
            if not isinstance(instances, Container):
                continue
            found_instances: list[_Instance] = instances.list_items()
            for instance in found_instances:
                own_argument = instance.block.argument_by_name.get(name_argument)
                if own_argument and self.evaluate_argument(instance, own_argument) == wanted_name:
                    return instance
        return None

    def find_instances(self, key: str) -> Any:
        """Return the instances of a resource block: one, several by index, or a representative."""
        block = self.blocks.get(key)
        if block is None:
            return UnknownPart(f"{key.removeprefix('resource.')[:130]} is not declared")
        if key not in self._instances_by_key:
            self._instances_by_key[key] = self._make_instances(block)
        return self._instances_by_key[key]

    def _make_instances(self, block: Block) -> Container:
        type_name, label = (*block.labels, "", "")[:2]
        address = f"{self.address}.{type_name}.{label}".lstrip(".")
        repetition = self._evaluate_repetition(block)
        if repetition is None:
            return _Instance(address, type_name, self, block, {})
        if isinstance(repetition, _Representative):
            other_instance = repetition.instance
            each = {"key": UnknownPart("each.key is not known"), "value": other_instance}
            repetition_text = other_instance.unknown_repetition
            return _Representative(
                _Instance(address, type_name, self, block, {"each": each}, repetition_text)
            )
        if isinstance(repetition, UnknownPart):
            unknown_variables = {
                "each": _Namespace(lambda part: UnknownPart(f"each.{part[:64]} is not known")),
                "count": _Namespace(lambda part: UnknownPart(f"count.{part[:64]} is not known")),
            }
            repetition_text = next(
                block.argument_by_name[name].text
                for name in _META_ARGUMENTS
                if name in block.argument_by_name
            )
            return _Representative(
                _Instance(address, type_name, self, block, unknown_variables, repetition_text)
            )
        instance_by_index = dict[Any, _Instance]()
        for index, variables in repetition:
            self.reader.count_resource()
            index_text = json.dumps(index)
            instance_by_index[index] = _Instance(
                f"{address}[{index_text}]", type_name, self, block, variables
            )
        return _RepeatedBlock(instance_by_index)

    def _evaluate_repetition(self, block: Block) -> Any:
        """Return the indices of a block's instances, each with the values of `count` or `each`.

        None if the block has neither `count` nor `for_each`, and an UnknownPart if it is not known.
        If it goes over a resource whose own repetition is not known, return that representative.
        """
        count_argument = block.argument_by_name.get("count")
        if count_argument is not None:
            return self._evaluate_count(count_argument)
        argument = block.argument_by_name.get("for_each")
        if argument is None:
            return None
        collection = self.evaluator.evaluate_or_unknown(argument.expression)
        if isinstance(collection, _Representative):
            return collection
        if isinstance(collection, Container):
            collection = collection.get_collection()
        if isinstance(collection, list) and all(map(_is_key, collection)):
            collection = {to_text(item): item for item in collection}
        if not isinstance(collection, dict):
            return UnknownPart("for_each is not known")
        return [
            (key, {"each": {"key": key, "value": value}})
            for key, value in list_keys_and_values(collection)
        ]

    def list_inner_blocks(
        self, outer_block: Block, keyword: str, variables: Mapping[str, Any]
    ) -> list[tuple[Block, Mapping[str, Any]]] | UnknownPart:
        """Return the blocks of a keyword inside a block, each with its variables.

        Those that `dynamic` makes are among them. The result is an UnknownPart if its `for_each` is
        not known.
        """
        inner_blocks = [(block, variables) for block in outer_block.list_blocks(keyword)]
        for dynamic_block in outer_block.list_blocks("dynamic"):
            if dynamic_block.labels != (keyword,):
                continue
            collection = self._evaluate_collection(dynamic_block, variables)
            contents = dynamic_block.list_blocks("content")
            if collection is None or len(contents) != 1:
                return UnknownPart(
                    f"{keyword} comes from a dynamic block that lint cannot work out: lint a plan"
                )
            iterator = dynamic_block.argument_by_name.get("iterator")
            iterator_name = iterator.text.strip().strip('"') if iterator else keyword
            for key, value in list_keys_and_values(collection):
                item = {iterator_name: {"key": key, "value": value}}
                inner_blocks.append((contents[0], {**variables, **item}))
        return inner_blocks

    def _evaluate_collection(self, block: Block, variables: Mapping[str, Any]) -> Any:
        """Return the list or map over which a dynamic block goes. None if it is not known."""
        argument = block.argument_by_name.get("for_each")
        if argument is None:
            return None
        collection = self.evaluator.evaluate_or_unknown(argument.expression, variables)
        return collection if isinstance(collection, list | dict) else None

    def _evaluate_count(self, argument: Argument) -> Any:
        """Return the numbers of a block's instances, or an UnknownPart."""
        count = self.evaluator.evaluate_or_unknown(argument.expression)
        count_text = to_text(count)
        if not isinstance(count_text, str) or not count_text.isdigit():
            return UnknownPart("count is not known")
        if len(count_text) > 4 or int(count_text) > MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} queues, functions and their like")
        return [(number, {"count": {"index": number}}) for number in range(int(count_text))]

    def _find_called_module(self, name: str) -> Any:
        if name not in self._called_modules:
            self._called_modules[name] = UnknownPart(f"module.{name[:64]} refers to itself")
            self._called_modules[name] = self._call_module(name)
        return self._called_modules[name]

    def _call_module(self, name: str) -> Any:
        block = self.blocks.get(f"module.{name}")
        if block is None:
            return UnknownPart(f"module.{name[:64]} is not declared")
        folder = (
            SQS_MODULE_FOLDER if self._is_sqs_module(block) else self._find_module_folder(block)
        )
        if isinstance(folder, str):
            address = f"{self.address}.module.{name}".lstrip(".")
            self.reader.note_unread_module(self, block, address, folder)
            return UnknownPart(f"module.{name[:64]}: {folder}")
        repetition = self._evaluate_repetition(block)
        if isinstance(repetition, UnknownPart | _Representative):
            repetition = [(None, _UNKNOWN_REPETITION)]
            is_repeated = False
        else:
            is_repeated = repetition is not None
        module_by_index = dict[Any, _Module]()
        for index, variables in repetition or [(None, {})]:
            index_text = "" if index is None else f"[{json.dumps(index)}]"
            address = f"{self.address}.module.{name}{index_text}".lstrip(".")
            call = _ModuleCall(self, block, variables, address)
            module_by_index[index] = self.reader.load_module(folder, call)
        return _CalledModule(module_by_index, is_repeated=is_repeated)

    def _is_sqs_module(self, block: Block) -> bool:
        """Return True if a block calls the registry's module for queues in a way that is known."""
        argument = block.argument_by_name.get("source")
        source = self.evaluator.evaluate_or_unknown(argument.expression) if argument else None
        if source != SQS_MODULE_SOURCE:
            return False
        return not self._explain_unknown_call(block)

    def _explain_unknown_call(self, block: Block) -> str:
        argument = block.argument_by_name.get("version")
        version = self.evaluator.evaluate_or_unknown(argument.expression) if argument else None
        return explain_unknown_call(block, version if isinstance(version, str) else None)

    def _find_module_folder(self, block: Block) -> Path | str:
        """Return the folder of a called module, or why it is not read."""
        argument = block.argument_by_name.get("source")
        source = self.evaluator.evaluate_or_unknown(argument.expression) if argument else None
        if source == SQS_MODULE_SOURCE:
            return self._explain_unknown_call(block)
        if not isinstance(source, str) or not source.startswith(("./", "../")):
            return "its module is not in this folder"
        folder = self.folder / source
        if not is_inside_folder(folder, self.reader.outermost_folder):
            limit_text = self.reader.describe_outermost_folder()
            return (
                f"its module is outside of {limit_text}: lint a folder that holds both, or a plan"
            )
        if not folder.is_dir() or not _list_all_files(folder):
            return "its module's folder holds no .tf file"
        if self.address.count("module.") >= _MOST_MODULE_LEVELS:
            return "modules are nested too deep"
        return folder

    def find_output(self, name: str) -> Any:
        """Return the value of one of the module's outputs."""
        block = self.blocks.get(f"output.{name}")
        argument = block.argument_by_name.get("value") if block else None
        if argument is None:
            raise CannotEvaluate(f"{self.address} has no output {name[:64]}")
        return self.evaluate_once(f"output.{name}", argument.expression, {})

    def list_modules(self) -> Iterator[_Module]:
        """Yield this module and those that it calls."""
        yield self
        for block in self.list_blocks("module"):
            called_module = self._find_called_module((*block.labels, "")[0])
            if isinstance(called_module, _CalledModule):
                for module in called_module.module_by_index.values():
                    yield from module.list_modules()


@dataclass(frozen=True)
class _CalledModule(Container):
    """The instances of a called module."""

    module_by_index: Mapping[Any, _Module]
    is_repeated: bool = field(kw_only=True)

    def get_part(self, key: Any) -> Any:
        """Return an output, or an instance if the module is repeated."""
        if not self.is_repeated:
            (module,) = self.module_by_index.values()
            return module.find_output(str(key)) if isinstance(key, str) else self
        for index in (key, to_text(key)):
            if isinstance(index, str | int) and index in self.module_by_index:
                return _Namespace(self.module_by_index[index].find_output)
        if isinstance(key, UnknownPart):
            return key
        raise CannotEvaluate(f"there is no module instance {str(key)[:64]}")

    def list_items(self) -> list[Any]:
        """Return all instances."""
        return [_Namespace(module.find_output) for module in self.module_by_index.values()]

    def get_collection(self) -> Any:
        """Return the instances if the module is repeated."""
        if not self.is_repeated:
            return super().get_collection()
        output_by_index = dict(zip(self.module_by_index, self.list_items(), strict=True))
        return _make_collection(output_by_index)


@dataclass(frozen=True)
class _DataSource(Container):
    """A data source `aws_iam_policy_document`."""

    module: _Module
    block: Block

    def get_part(self, key: Any) -> Any:
        """Return the policy as JSON.

        An index is skipped: what depends on it is not known in the policy.
        """
        if key in ("json", "minified_json"):
            return _make_policy(self.module, self.block)
        if _is_key(key) or isinstance(key, UnknownPart):
            return self
        raise CannotEvaluate("a data source has no such part")

    def list_items(self) -> list[Any]:
        """Return the data source."""
        return [self]


_UNKNOWN_EACH = _Namespace(lambda part: UnknownPart(f"{part[:64]} of each instance is not known"))


_UNKNOWN_REPETITION = {"each": _UNKNOWN_EACH, "count": _UNKNOWN_EACH}


def _is_key(item: Any) -> bool:
    return isinstance(item, str | int | float)


def _fill_optional_parts(
    evaluator: Evaluator, type_expression: hcl_parser.Expression, value: Any
) -> Any:
    """Return a variable's value with the defaults of `optional(...)` in its type.

    https://developer.hashicorp.com/terraform/language/expressions/type-constraints#optional-object-type-attributes
    """
    if not isinstance(type_expression, hcl_parser.FunctionCall) or not type_expression.arguments:
        return value
    inner_type = type_expression.arguments[0]
    match type_expression.name, value:
        case "optional", _:
            return _fill_optional_parts(evaluator, inner_type, value)
        case "list" | "set", list():
            return [_fill_optional_parts(evaluator, inner_type, item) for item in value]
        case "map", dict():
            return {
                key: _fill_optional_parts(evaluator, inner_type, item)
                for key, item in value.items()
            }
        case "object", dict() if isinstance(inner_type, hcl_parser.ObjectExpression):
            return _fill_object(evaluator, inner_type, value)
    return value


def _fill_object(
    evaluator: Evaluator, type_expression: hcl_parser.ObjectExpression, value: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an object with the defaults of the optional parts that it lacks."""
    filled_value = dict(value)
    for key, part_type in type_expression.keys_and_values:
        name = key.value if isinstance(key, hcl_parser.Literal) else None
        if not isinstance(name, str) or not isinstance(part_type, hcl_parser.FunctionCall):
            continue
        part = filled_value.get(name)
        is_optional = part_type.name == "optional"
        if part is None and is_optional and part_type.arguments[1:]:
            part = evaluator.evaluate_or_unknown(part_type.arguments[1])
        if name in filled_value or is_optional:
            filled_value[name] = _fill_optional_parts(evaluator, part_type, part)
    return filled_value


def _shorten_default(default_text: str) -> str:
    one_line = " ".join(default_text.split())
    return one_line[:_MOST_DEFAULT_CHARACTERS]


def _find_data_attribute(type_name: str, label: str, attribute: str) -> Any:
    parameter = _PSEUDO_PARAMETER_BY_DATA_ATTRIBUTE.get((type_name, attribute))
    if parameter:
        return ResourceReference(parameter, "data", "Ref")
    return UnknownPart(f"data.{type_name[:64]}.{label[:64]} is read when it is deployed")


_STATEMENT_LISTS = {
    "actions": "Action",
    "not_actions": "NotAction",
    "resources": "Resource",
    "not_resources": "NotResource",
}
_PRINCIPAL_KEYS = {"principals": "Principal", "not_principals": "NotPrincipal"}


def _make_policy(module: _Module, block: Block) -> Any:
    """Return the policy of a data source `aws_iam_policy_document`.

    https://registry.terraform.io/providers/hashicorp/aws/latest/docs/data-sources/iam_policy_document
    """
    unknown = UnknownPart(f"data.{'.'.join(block.labels)}: its statements are not all known")
    if _evaluate_in_block(module, block, "override_policy_documents", {}) not in (None, []):
        return unknown
    statement_blocks = module.list_inner_blocks(block, "statement", {})
    if isinstance(statement_blocks, UnknownPart):
        return unknown
    merged_statements = list[Any]()
    for document in to_list(_evaluate_in_block(module, block, "source_policy_documents", {})):
        policy = document.value if isinstance(document, JsonText) else None
        if not isinstance(policy, dict):
            return unknown
        merged_statements += to_list(policy.get("Statement"))
    statements = merged_statements + [
        _make_statement(module, statement, variables) for statement, variables in statement_blocks
    ]
    return JsonText({"Version": "2012-10-17", "Statement": statements})


def _make_statement(module: _Module, block: Block, variables: Mapping[str, Any]) -> Any:
    values = {
        argument.name: module.evaluator.evaluate_or_unknown(argument.expression, variables)
        for argument in block.arguments
    }
    statement = dict[str, Any]({"Effect": values.get("effect") or "Allow"})
    if values.get("sid") is not None:
        statement["Sid"] = values["sid"]
    for name, key in _STATEMENT_LISTS.items():
        if values.get(name) is not None:
            statement[key] = values[name]
    for keyword, key in _PRINCIPAL_KEYS.items():
        blocks_of_principals = module.list_inner_blocks(block, keyword, variables)
        if isinstance(blocks_of_principals, UnknownPart):
            return blocks_of_principals
        for principals, inner_variables in blocks_of_principals:
            _add_principals(module, principals, inner_variables, statement, key)
    conditions = _make_conditions(module, block, variables)
    if conditions:
        statement["Condition"] = conditions
    return statement


def _make_conditions(module: _Module, block: Block, variables: Mapping[str, Any]) -> Any:
    """Return the conditions of a statement. An UnknownPart if one of them is not known."""
    condition_blocks = module.list_inner_blocks(block, "condition", variables)
    if isinstance(condition_blocks, UnknownPart):
        return condition_blocks
    conditions = dict[str, Any]()
    for condition, inner_variables in condition_blocks:
        test = _evaluate_in_block(module, condition, "test", inner_variables)
        variable = _evaluate_in_block(module, condition, "variable", inner_variables)
        if not isinstance(test, str) or not isinstance(variable, str):
            return UnknownPart("a condition of a statement is not known")
        condition_values = _evaluate_in_block(module, condition, "values", inner_variables)
        conditions.setdefault(test, {})[variable] = condition_values
    return conditions


def _add_principals(
    module: _Module,
    block: Block,
    variables: Mapping[str, Any],
    statement: dict[str, Any],
    key: str,
) -> None:
    principal_type = _evaluate_in_block(module, block, "type", variables)
    identifiers = _evaluate_in_block(module, block, "identifiers", variables)
    if not isinstance(principal_type, str):
        statement[key] = UnknownPart("a principal is not known")
    elif principal_type == "*" and identifiers == ["*"]:
        statement[key] = "*"
    elif isinstance(statement.get(key, {}), dict):
        principals = statement.setdefault(key, {})
        earlier = to_list(principals.get(principal_type))
        principals[principal_type] = [*earlier, *to_list(identifiers)]


def _evaluate_in_block(
    module: _Module, block: Block, name: str, variables: Mapping[str, Any]
) -> Any:
    argument = block.argument_by_name.get(name)
    if argument is None:
        return None
    return module.evaluator.evaluate_or_unknown(argument.expression, variables)


class _SourceReader(TerraformConverter):
    """Converter of the files of a folder to a template."""

    def __init__(
        self,
        files: _ModuleFiles,
        folder: Path,
        outermost_folder: Path,
        budget: WorkBudget,
        own_file: str = "",
    ) -> None:
        self.budget = budget
        # The file that is linted, if it is one and not the folder.
        self.own_file = own_file
        self._linted_folder = folder
        self.outermost_folder = outermost_folder
        self.default_by_variable = dict[str, str]()
        # Places of modules and files that were not read, with the reasons.
        self.place_by_unread_name = dict[str, TemplatePlace]()
        self._reason_by_unread_name = dict[str, str]()
        # The modules that were not read: the module that calls them and the call.
        self._unread_modules = dict[str, tuple[_Module, Block]]()
        self._files_by_folder = dict[Path, _ModuleFiles]()
        self._module_count = 0
        self._resource_count = 0
        self._referred_types = dict[str, str]()
        for file, reason in files.reason_by_unread_file.items():
            self.place_by_unread_name[file] = TemplatePlace(file, None, self.name_file(file))
            self._reason_by_unread_name[file] = reason
        self._root_module = _Module(self, files, folder)
        self.instance_by_address = dict[str, _Instance]()
        # Defaults of variables that decide about a resource.
        self._defaults_by_address = dict[str, dict[str, str]]()

    def make_template(self) -> TerraformSource:
        """Convert the files to a template."""
        modules = list(self._root_module.list_modules())
        # Producers are last: a default that only they use is named only if they send to a queue.
        for are_producers in (False, True):
            for module in modules:
                self._add_instances(module, are_producers=are_producers)
        definition_by_address, setter_addresses = self.make_definitions()
        self._mark_conditional_resources(definition_by_address)
        with self._collect_defaults({}):
            self._add_unread_modules(definition_by_address)
        for address in self._referred_types:
            if address not in definition_by_address and "::" not in address:
                definition_by_address[address] = {"Type": _OTHER_RESOURCE_TYPE, "Properties": {}}
        expansion = Expansion(
            root={"Resources": definition_by_address},
            source_keys_by_logical_id={},
            generated_ids=frozenset(),
            reason_by_unread_keys={
                ("module", name): reason for name, reason in self._reason_by_unread_name.items()
            },
            default_by_variable=self.default_by_variable,
        )
        return TerraformSource(
            {},
            self.budget,
            expansion=expansion,
            setter_address_by_queue_and_attribute=setter_addresses,
            reader=self,
            reports_own_file_only=bool(self.own_file),
        )

    def _add_instances(self, module: _Module, *, are_producers: bool) -> None:
        """Record the instances of a module's resources that lint reads."""
        for block in module.list_blocks("resource"):
            type_name = (*block.labels, "")[0]
            is_read = type_name in (*RESOURCE_TYPE_BY_TERRAFORM_TYPE, *ATTRIBUTE_BY_TERRAFORM_TYPE)
            is_producer = type_name in PRODUCER_TYPES
            if len(block.labels) != _LABELS_OF_RESOURCE or not is_read:
                continue
            if is_producer != are_producers:
                continue
            defaults = dict[str, str]() if are_producers else self.default_by_variable
            with self._collect_defaults(defaults):
                instances = module.find_instances(f"resource.{'.'.join(block.labels)}")
                for instance in instances.list_items():
                    self.count_resource()
                    self.instance_by_address[instance.address] = instance
                    self._defaults_by_address[instance.address] = defaults

    @contextmanager
    def _collect_defaults(self, defaults: dict[str, str]) -> Iterator[None]:
        """Record the defaults of variables that are used inside the context in `defaults`."""
        all_defaults = self.default_by_variable
        self.default_by_variable = defaults
        try:
            yield
        finally:
            self.default_by_variable = all_defaults

    def make_cloudformation_resource(self, resource: TerraformResource) -> dict[str, Any]:
        defaults = self._defaults_by_address[resource.address]
        with self._collect_defaults(defaults):
            definition = super().make_cloudformation_resource(resource)
        if defaults and f"{TERRAFORM_QUEUE_TYPE}." in json.dumps(definition):
            self.default_by_variable |= defaults
        return definition

    def _add_unread_modules(self, definition_by_address: dict[str, Any]) -> None:
        """Add a resource for each module that was not read, with the arguments that it gets.

        Its repetition does not matter: all that counts is to which resources the arguments refer.
        """
        for address, (caller, block) in self._unread_modules.items():
            properties = {
                argument.name: self._make_node(
                    caller.evaluator.evaluate_or_unknown(argument.expression, _UNKNOWN_REPETITION),
                    0,
                )
                for argument in block.arguments
            }
            definition_by_address[address] = {
                "Type": _UNREAD_MODULE_TYPE,
                "Properties": properties,
            }

    def describe_outermost_folder(self) -> str:
        """Return the name, for error messages, of the folder that limits which modules are read."""
        has_work_tree = (self.outermost_folder / ".git").exists()
        return "the git work tree" if has_work_tree else "the folder that was named"

    def list_module_folders(self) -> list[tuple[Path, str]]:
        """Return the folders of all modules, each with the address of an instance."""
        return [
            (module.folder, module.address)
            for module in self._root_module.list_modules()
            if module.folder != SQS_MODULE_FOLDER
        ]

    def name_file(self, file: str) -> str:
        """Return a file's name relative to the linted folder; empty for the linted file itself.

        If a folder is linted, names begin with the folder: it lies in the folder above.
        """
        if file == self.own_file:
            return ""
        base = self._linted_folder if self.own_file else self._linted_folder.parent
        return os.path.relpath(os.path.normpath(file), base)

    def count_resource(self) -> None:
        """Count one instance. Raises NotATemplate if there are too many."""
        self._resource_count += 1
        self.budget.use_steps(16)
        if self._resource_count > 2 * MOST_RESOURCES:
            raise NotATemplate(f"more than {MOST_RESOURCES:,} queues, functions and their like")

    def load_module(self, folder: Path, call: _ModuleCall) -> _Module:
        """Return an instance of a module in a folder, which is read once."""
        self._module_count += 1
        if self._module_count > _MOST_MODULES:
            raise NotATemplate(f"more than {_MOST_MODULES} instances of modules")
        resolved_folder = folder if folder == SQS_MODULE_FOLDER else folder.resolve()
        if folder == SQS_MODULE_FOLDER and folder not in self._files_by_folder:
            self._files_by_folder[folder] = _ModuleFiles([parse_sqs_module()], {}, {})
        if resolved_folder not in self._files_by_folder:
            self._files_by_folder[resolved_folder] = _load_folder(
                folder, self.outermost_folder, self.budget
            )
        return _Module(self, self._files_by_folder[resolved_folder], folder, call)

    def note_unread_module(self, caller: _Module, block: Block, address: str, reason: str) -> None:
        """Record a module that is not read, with its place and the reason."""
        self._unread_modules[address] = (caller, block)
        self.place_by_unread_name[address] = TemplatePlace(
            address, block.line, self.name_file(block.file.path)
        )
        self._reason_by_unread_name[address] = reason

    def list_read_resources(self) -> Sequence[_Instance]:
        return list(self.instance_by_address.values())

    def read_tags(self, resource: TerraformResource) -> Mapping[str, Any]:
        instance = self.instance_by_address[resource.address]
        tags = self._evaluate(instance, "tags")
        return tags if isinstance(tags, dict) else {}

    def read_property(self, resource: TerraformResource, property_name: str) -> Any:
        instance = self.instance_by_address[resource.address]
        argument_name = name_argument(resource.terraform_type, property_name)
        return self._make_property(property_name, self._evaluate(instance, argument_name))

    def _make_property(self, property_name: str, value: Any) -> Any:
        """Return an argument's value as the value of a property. None if it is empty."""
        if property_name in JSON_PROPERTIES:
            value = _decode_json(value)
        if value in ("", None):
            return None
        return self._make_node(value, 0)

    def _evaluate(self, instance: _Instance, argument_name: str) -> Any:
        argument = instance.block.argument_by_name.get(argument_name)
        return instance.module.evaluate_argument(instance, argument) if argument else None

    def read_block(self, resource: TerraformResource, block: TerraformBlock) -> Any:
        instance = self.instance_by_address[resource.address]
        return self._read_block(instance, instance.block, block, instance.variables)

    def _read_block(
        self,
        instance: _Instance,
        outer_block: Block,
        block: TerraformBlock,
        variables: Mapping[str, Any],
    ) -> Any:
        """Return the settings of a nested block, by CloudFormation's names. None without a block.

        If a `dynamic` block makes it, its value is unknown unless the block's `for_each` is known.
        """
        inner_blocks = instance.module.list_inner_blocks(outer_block, block.keyword, variables)
        if isinstance(inner_blocks, UnknownPart):
            return {UNKNOWN_VALUE_FUNCTION: inner_blocks.reason}
        items = [
            self._read_settings(instance, inner_block, block, inner_variables)
            for inner_block, inner_variables in inner_blocks
        ]
        if block.is_list:
            return items or None
        return items[0] or None if items else None

    def _read_settings(
        self,
        instance: _Instance,
        inner_block: Block,
        block: TerraformBlock,
        variables: Mapping[str, Any],
    ) -> dict[str, Any]:
        settings = dict[str, Any]()
        for part in block.parts:
            if isinstance(part, TerraformBlock):
                name = part.name
                value = self._read_block(instance, inner_block, part, variables)
            else:
                name = part
                argument = inner_block.argument_by_name.get(block.name_argument(name))
                if argument is None:
                    continue
                value = instance.module.evaluator.evaluate_or_unknown(
                    argument.expression, variables
                )
                value = self._make_property(name, value)
            if value is not None:
                settings[name] = value
        return settings

    def _make_node(self, value: Any, depth: int) -> Any:
        """Convert a value to the form of a decoded template, with references as functions.

        A list that locals repeat counts, and is converted, each time.
        """
        self.budget.use_steps(_STEPS_PER_NODE)
        if depth > MAXIMUM_NESTED_LEVELS:
            raise NotATemplate(f"a value nested more than {MAXIMUM_NESTED_LEVELS} deep")
        if isinstance(value, dict):
            return {key: self._make_node(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._make_node(item, depth + 1) for item in value]
        if isinstance(value, JsonText):
            return self._make_node(value.value, depth + 1)
        if isinstance(value, ResourceReference):
            return self._make_reference(value)
        if isinstance(value, JoinedText):
            return {"Fn::Join": ["", [self._make_node(part, depth + 1) for part in value.parts]]}
        if isinstance(value, UnknownPart):
            return {UNKNOWN_VALUE_FUNCTION: value.reason}
        if isinstance(value, Container):
            return {UNKNOWN_VALUE_FUNCTION: "it is a resource as a whole"}
        return to_text(value)

    def _make_reference(self, reference: ResourceReference) -> dict[str, Any]:
        if reference.attribute == "Ref":
            return {"Ref": reference.address}
        self._referred_types[reference.address] = reference.terraform_type
        is_arn = reference.attribute in _ARN_ATTRIBUTES or (
            reference.terraform_type == TERRAFORM_FUNCTION_TYPE
            and reference.attribute in _FUNCTION_ARN_ATTRIBUTES
        )
        is_read = reference.terraform_type in RESOURCE_TYPE_BY_TERRAFORM_TYPE
        if is_arn and (not is_read or reference.terraform_type in TYPES_WITH_ARN_ATTRIBUTE):
            return make_getatt_reference(reference.address, "Arn")
        if reference.terraform_type == TERRAFORM_QUEUE_TYPE and reference.attribute == "name":
            return make_getatt_reference(reference.address, "QueueName")
        return {"Ref": reference.address}

    def _mark_conditional_resources(self, definition_by_address: dict[str, Any]) -> None:
        """Mark mappings and policies that may not exist: their `count` or `for_each` is not known.

        They exist if their queue or role does, if it has the same `count` or `for_each`.
        """
        for address, definition in definition_by_address.items():
            owner_nodes = list[Any]()
            for property_name in _OWNER_PROPERTIES_BY_TYPE.get(definition["Type"], ()):
                owner_nodes += to_list(definition["Properties"].get(property_name))
            owner_addresses = [find_address(node) for node in owner_nodes]
            is_optional = owner_nodes and all(
                self.may_be_missing(address, owner_address) for owner_address in owner_addresses
            )
            if is_optional:
                definition["Condition"] = self.instance_by_address[address].unknown_repetition

    def may_be_missing(self, address: str, other_address: str) -> bool:
        instance = self.instance_by_address.get(address)
        other_instance = self.instance_by_address.get(other_address)
        if instance is None or not instance.unknown_repetition:
            return False
        other_repetition = other_instance.unknown_repetition if other_instance else ""
        return other_repetition != instance.unknown_repetition


def _decode_json(value: Any) -> Any:
    """Return the value of a JSON text. Return any other text unchanged: SQS would refuse it."""
    try:
        return parse_json(value) if isinstance(value, str | JoinedText | JsonText) else value
    except (ValueError, RecursionError):
        is_unknown_inside = isinstance(value, JoinedText)
        return UnknownPart("it is not JSON that Mendq can read") if is_unknown_inside else value
