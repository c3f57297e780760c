"""Find mistakes in `aws` commands with botocore's models of the services, without running them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import botocore.session
from botocore import xform_name
from botocore.exceptions import UnknownServiceError
from botocore.model import ListShape, OperationModel, ServiceModel, Shape
from botocore.validate import ParamValidator

# The model of each service whose name differs in the AWS CLI.
SERVICES = {"s3api": "s3"}
# Commands of the AWS CLI that are no operation of a service, so no model describes their options.
# https://docs.aws.amazon.com/cli/latest/reference/cloudformation/package.html
COMMANDS_WITHOUT_MODEL = {("cloudformation", "deploy"), ("cloudformation", "package")}
GLOBAL_OPTIONS = {"region", "profile", "query", "output", "endpoint-url", "cli-binary-format"}
# The AWS CLI takes this option for operations whose answer has several pages.
PAGING_OPTION = "max-items"
_START = re.compile(r"(?<![\w./-])aws (?=[a-z0-9-]+ [a-z0-9-]+)")
_PUNCTUATION = set("();<>|&")
# A placeholder: the reader or the shell fills it in.
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_]*|.*\$.*")


def list_commands_in(line: str) -> Iterator[str]:
    """Yield each `aws` command of a shell line, also within `$(..)` and after variables."""
    for start in _START.finditer(line):
        lexer = shlex.shlex(line[start.start() :], posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = []
        for word in lexer:
            if set(word) <= _PUNCTUATION:
                break
            words.append(word)
        yield shlex.join(words)


def find_mistake(command: str) -> str:
    """Return what is wrong with the command, or an empty text.

    Checks the service, the operation, the options, and the values as far as the model tells.
    """
    _, service, operation, *words = shlex.split(command)
    if (service, operation) in COMMANDS_WITHOUT_MODEL:
        return ""
    model = _load_service_model(SERVICES.get(service, service))
    operations = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in operations:
        return f"{service} has no {operation}"
    operation_name = operations[operation]
    if PAGING_OPTION in _read_options(words):
        if not _has_pages(model.service_name, operation_name):
            return f"{operation_name} takes no --{PAGING_OPTION}"
        if not _read_options(words)[PAGING_OPTION][0].isdecimal():
            return f"--{PAGING_OPTION} wants a number"
    return "; ".join(_list_mistakes(model.operation_model(operation_name), words))


@cache
def _load_service_model(name: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(name)


def _has_pages(service: str, operation_name: str) -> bool:
    """Return True if the AWS CLI pages the operation's answer."""
    try:
        botocore.session.get_session().get_paginator_model(service).get_paginator(operation_name)
    except (UnknownServiceError, ValueError):
        return False
    return True


def _list_mistakes(operation: OperationModel, words: Sequence[str]) -> Iterator[str]:
    options = _read_options(words)
    members = _list_members(operation)
    for option, values in options.items():
        yield from _check_option(operation.name, option, values, members)
    # A command without options is only a mention of its name.
    if not options:
        return
    if "cli-binary-format" not in options:
        for option in options.keys() & members.keys():
            if members[option].type_name == "blob":
                yield f"--{option} is taken for base64 without --cli-binary-format"
    required_members = operation.input_shape.required_members if operation.input_shape else ()
    for name in required_members:
        option = xform_name(name, "-")
        if not options.keys() & {option, f"no-{option}"}:
            yield f"{operation.name} wants --{option}"


def _list_members(operation: OperationModel) -> dict[str, Shape]:
    """Return the shape of each option that the operation takes."""
    if not operation.input_shape:
        return {}
    return {xform_name(name, "-"): shape for name, shape in operation.input_shape.members.items()}


def _check_option(
    operation_name: str, option: str, values: Sequence[str], members: Mapping[str, Shape]
) -> Iterator[str]:
    switched_off = option.removeprefix("no-")
    if switched_off in members and members[switched_off].type_name == "boolean":
        return
    if option in members:
        yield from _check_values(option, members[option], values)
    elif option not in GLOBAL_OPTIONS and option != PAGING_OPTION:
        yield f"{operation_name} takes no --{option}"


def _read_options(words: Sequence[str]) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            options[word[2:]] = []
        elif options:
            options[next(reversed(options))].append(word)
    return options


def _check_values(option: str, shape: Shape, values: Sequence[str]) -> Iterator[str]:
    if shape.type_name == "boolean":
        return
    if not values:
        yield f"--{option} without a value"
    elif len(values) == 1 and values[0][:1] in "{[" and shape.type_name != "string":
        yield from _check_json(option, shape, values[0])
    elif isinstance(shape, ListShape):
        for value in values:
            yield from _check_scalar(option, shape.member, value)
    elif shape.type_name in {"string", "integer", "long"}:
        if len(values) > 1:
            yield f"--{option} with more than one value"
        yield from _check_scalar(option, shape, values[0])


def _check_json(option: str, shape: Shape, text: str) -> Iterator[str]:
    try:
        report = ParamValidator().validate(json.loads(text), shape)
    except ValueError as error:
        yield f"--{option} is no JSON: {error}"
    else:
        if report.has_errors():
            yield f"--{option}: {report.generate_report()}"


def _check_scalar(option: str, shape: Shape, value: str) -> Iterator[str]:
    if _PLACEHOLDER.fullmatch(value):
        return
    allowed_values = getattr(shape, "enum", None)
    if allowed_values and value not in allowed_values:
        yield f"--{option} knows no {value}"
    if shape.type_name in {"integer", "long"} and not value.isdecimal():
        yield f"--{option} wants a number, not {value}"
