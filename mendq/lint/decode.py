"""Decode a template: a CloudFormation template in YAML or JSON, or a Terraform plan in JSON.

A template may come from anyone, so its size, nesting depth and nodes are limited. They are counted
before a CloudFormation template is decoded. YAML aliases are written out (`yaml_nodes`).
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-formats.html
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache, partial
from math import inf
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import yaml

from mendq.lint.files import TemplateSource
from mendq.lint.folder import TemplateFolder, UnreadableTemplateFile
from mendq.lint.loops import expand_loops
from mendq.lint.nested import OpenedTemplate, add_nested_stacks
from mendq.lint.serverless import expand_serverless_file, is_serverless_file
from mendq.lint.template import (
    BYTES_PER_WORK_STEP,
    MAXIMUM_NESTED_LEVELS,
    MOST_TEMPLATE_BYTES,
    SAM_TRANSFORM,
    STEPS_PER_NODE,
    UNNAMED_FILE,
    NotATemplate,
    Template,
    TemplatePlace,
    WorkBudget,
    to_list,
)
from mendq.lint.terraform import is_terraform_plan, read_terraform_plan
from mendq.lint.yaml_nodes import load_yaml

# Escapes that JSON has and YAML has not: a slash, and a character as two surrogates.
_JSON_ESCAPE_REGEX = re.compile(
    r"\\(?:(/)|u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE
)
_DATA_FILE_SUFFIXES = (".yml", ".yaml", ".json")
_YAML_TAG_PREFIX = "tag:yaml.org,2002:"
_ALLOWED_TAG_REGEX = re.compile(
    rf"{_YAML_TAG_PREFIX}(str|int|bool|float|null|seq|map)|![A-Z][A-Za-z0-9:]{{0,63}}"
)


class _DecodedText(NamedTuple):
    """The root of a decoded text, and the place of its first YAML alias. None without aliases."""

    root: Any
    first_alias: TemplatePlace | None


class YamlTemplate(Template):
    """A decoded CloudFormation template with line numbers. `render_declaration` returns YAML."""

    def render_declaration(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the YAML lines that declare the property or resource `name`.

        If `name` is empty, return the lines of a list item. The name may come from anyone, so
        characters that are not ASCII letters or digits are removed from it. If it is the logical ID
        of a nested stack's resource, only the ID inside the stack is written.
        """
        name = name.rpartition(".")[2]
        safe_name = "".join(
            character for character in name if character.isascii() and character.isalnum()
        )
        # PyYAML cannot write the decoder's own types. JSON turns them into plain ones.
        plain_python_value = json.loads(json.dumps(value))
        declaration = {safe_name: plain_python_value} if name else [plain_python_value]
        return tuple(yaml.safe_dump(declaration, sort_keys=False, width=inf).splitlines())


def read_template_source(source: TemplateSource) -> Template:
    """Decode a template that the user names: a file's content, or a folder of Terraform files.

    Raises:
        NotATemplate: It is no template, or it is too large.
        OSError: A file cannot be read.
    """
    if source.terraform_path is None:
        return read_template(source.content, folder=source.folder)
    from mendq.lint.terraform_source import (  # noqa: PLC0415 - most templates do not need it
        read_terraform_folder,
    )

    return read_terraform_folder(source.terraform_path, WorkBudget(), source.outermost_folder)


def read_template(
    content: bytes, budget: WorkBudget | None = None, folder: TemplateFolder | None = None
) -> Template:
    """Decode a CloudFormation template, a serverless.yml or a Terraform plan.

    Args:
        content: The bytes of the file.
        budget: The steps that decoding may take. By default a new budget.
        folder: Where the files are that the template names. By default none of them is read.

    Raises:
        NotATemplate: The bytes are neither, or are larger or nested deeper than a limit allows, or
            decoding takes more steps than the budget has left.
    """
    budget = budget or WorkBudget()
    if content.startswith(b"PK\x03\x04"):
        raise NotATemplate("a saved plan is not a text: give the output of `terraform show -json`")
    if is_terraform_plan(content):
        return read_terraform_plan(content, budget)
    root, first_alias = _decode_content(content, budget)
    if is_serverless_file(root):
        read_file = cache(partial(_read_file_beside, folder or TemplateFolder(), budget))
        return YamlTemplate(root, budget, expansion=expand_serverless_file(root, budget, read_file))
    folder = folder or TemplateFolder()
    opened = OpenedTemplate(folder, folder.template_name)
    return _expand_template(YamlTemplate(root, budget, first_alias=first_alias), opened)


def _decode_content(
    content: bytes, budget: WorkBudget, file_name: str = UNNAMED_FILE
) -> _DecodedText:
    """Decode the bytes of a YAML or JSON file. Raises NotATemplate as `read_template` does."""
    if len(content) > MOST_TEMPLATE_BYTES:
        raise NotATemplate(f"longer than {MOST_TEMPLATE_BYTES:,} bytes; CloudFormation takes 1 MB")
    budget.use_steps(len(content) // BYTES_PER_WORK_STEP)
    try:
        return _decode_yaml_or_json(content.decode("utf-8-sig"), budget, file_name)
    except UnicodeDecodeError as error:
        raise NotATemplate(f"no UTF-8 at byte {error.start:,}") from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        parsing_problem = str(error)
        line_number_prefix = ""
        if isinstance(error, yaml.MarkedYAMLError):
            parsing_problem = error.problem or parsing_problem
            if error.problem_mark:
                line_number_prefix = f"line {error.problem_mark.line + 1}: "
        raise NotATemplate(
            f"{line_number_prefix}no YAML: {_shorten_to_line(parsing_problem)}"
        ) from error


def _expand_template(template: YamlTemplate, opened: OpenedTemplate) -> Template:
    """Return a CloudFormation template with its loops, SAM resources and nested stacks expanded.

    SAM, and the command that nested stacks in files need, write YAML aliases out.
    """
    template = expand_loops(template, opened.passed_parameters)
    if SAM_TRANSFORM in to_list(template.root.get("Transform")):
        template = replace(_expand_sam_template(template), first_alias=None)

    budget = template.budget

    def read_nested_template(content: bytes, opened: OpenedTemplate) -> Template:
        root, _ = _decode_content(content, budget, opened.name)
        return _expand_template(YamlTemplate(root, budget, file=opened.name), opened)

    whole_template = add_nested_stacks(template, opened, read_nested_template)
    if whole_template.nested.template_by_id:
        return replace(whole_template, first_alias=None)
    return whole_template


def _read_file_beside(folder: TemplateFolder, budget: WorkBudget, name: str) -> Any:
    """Decode a YAML or JSON file that a template names.

    Raises:
        UnreadableTemplateFile: It cannot be read, or is neither YAML nor JSON.
        NotATemplate: Decoding takes more steps than the budget has left.
    """
    if Path(name).suffix not in _DATA_FILE_SUFFIXES:
        raise UnreadableTemplateFile("only YAML and JSON files are read")
    content = folder.read(name)
    budget.use_steps(len(content) // BYTES_PER_WORK_STEP)
    try:
        text = content.decode("utf-8-sig")
        root, _ = _decode_text(text, budget, str(PurePosixPath(name)))
    except (yaml.YAMLError, UnicodeError) as error:
        raise UnreadableTemplateFile(f"no YAML: {_shorten_to_line(str(error))}") from error
    return root


def _expand_sam_template(template: YamlTemplate) -> YamlTemplate:
    """Return the template with its SAM resources expanded."""
    from mendq.lint.sam import expand_sam_resources  # noqa: PLC0415 - the import takes 0.3 s

    return replace(template, expansion=expand_sam_resources(template.root, template.budget))


def _to_yaml_escape(escape_match: re.Match[str]) -> str:
    """Return the YAML escape for a JSON escape. Escapes that YAML has too are unchanged."""
    escaped_slash, high_surrogate, low_surrogate = escape_match.groups()
    if high_surrogate:
        high_bits = int(high_surrogate, 16) - 0xD800
        low_bits = int(low_surrogate, 16) - 0xDC00
        return f"\\U{0x10000 + high_bits * 0x400 + low_bits:08x}"
    return escaped_slash or escape_match.group()


def _decode_yaml_or_json(template_text: str, budget: WorkBudget, file_name: str) -> _DecodedText:
    """Decode the text of a template. Escapes that only JSON has are tried if it looks like JSON.

    Raises YAMLError and NotATemplate as `_decode_text` does.
    """
    try:
        return _decode_text(template_text, budget, file_name)
    except yaml.YAMLError:
        if not template_text.lstrip().startswith("{"):
            raise
        yaml_text = _JSON_ESCAPE_REGEX.sub(_to_yaml_escape, template_text)
        return _decode_text(yaml_text, budget, file_name)


def _decode_text(template_text: str, budget: WorkBudget, file_name: str) -> _DecodedText:
    """Decode the text of a template, and return its root and its first YAML alias.

    Raises YAMLError if the text is not YAML, and NotATemplate if it is empty, too large, nested too
    deep, or has something that a template must not have.
    """
    first_alias = _check_limits(template_text, budget)
    decoded_root = load_yaml(template_text, budget, file_name)
    if decoded_root is None:
        raise NotATemplate("it is empty")
    return _DecodedText(decoded_root, first_alias)


def _check_limits(template_text: str, budget: WorkBudget) -> TemplatePlace | None:
    """Raise NotATemplate if a text exceeds a limit, or has something that a template must not have.

    The nodes are counted while YAML is parsed, before any Python object is made from them. Raises
    YAMLError if the text is not YAML. Returns the first alias and its place, None without aliases.
    """
    first_alias = None
    open_collections = 0
    for yaml_event in yaml.parse(template_text, Loader=yaml.CSafeLoader):
        _refuse_tag(yaml_event)
        if isinstance(yaml_event, yaml.NodeEvent):
            budget.use_steps(STEPS_PER_NODE)
        if isinstance(yaml_event, yaml.AliasEvent) and first_alias is None:
            alias_name = f"*{yaml_event.anchor[:64]}"
            first_alias = TemplatePlace(alias_name, yaml_event.start_mark.line + 1)
        if isinstance(yaml_event, yaml.CollectionStartEvent):
            open_collections += 1
            if open_collections > MAXIMUM_NESTED_LEVELS:
                line_number = yaml_event.start_mark.line + 1
                raise NotATemplate(
                    f"line {line_number}: nested more than {MAXIMUM_NESTED_LEVELS} deep"
                )
        elif isinstance(yaml_event, yaml.CollectionEndEvent):
            open_collections -= 1
    return first_alias


def _refuse_tag(yaml_event: Any) -> None:
    """Raise NotATemplate if a YAML event has a tag that is not allowed.

    Allowed are the tags of YAML's basic types, and tags that look like CloudFormation's, such as
    `!GetAtt`.
    """
    yaml_tag = None
    if isinstance(yaml_event, yaml.ScalarEvent | yaml.CollectionStartEvent):
        yaml_tag = yaml_event.tag
    if yaml_tag is not None and not _ALLOWED_TAG_REGEX.fullmatch(yaml_tag):
        raise NotATemplate(
            f"line {yaml_event.start_mark.line + 1}: CloudFormation does not know the "
            f"tag {yaml_tag[:64]!r}"
        )


def _shorten_to_line(text: str) -> str:
    """Return the first 200 characters of a text on one line."""
    return " ".join(text.split())[:200]
