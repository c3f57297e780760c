"""What is wrong with an `aws` command, by botocore's models of the services; nothing is run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache

import botocore.session
from botocore import xform_name
from botocore.model import ListShape, OperationModel, ServiceModel, Shape
from botocore.validate import ParamValidator

# What the AWS CLI calls a service otherwise than its model.
SERVICES = {"s3api": "s3"}
GLOBAL_OPTIONS = {"region", "profile", "query", "output", "endpoint-url", "cli-binary-format"}
_START = re.compile(r"(?<![\w./-])aws (?=[a-z0-9-]+ [a-z0-9-]+)")
_PUNCTUATION = set("();<>|&")
# What a reader fills in, or a shell does.
_PLACE = re.compile(r"[A-Z][A-Z_]*|.*\$.*")


def commands_in(line: str) -> Iterator[str]:
    """Each command of a line of a shell, also within `$(..)` and behind variables."""
    for found in _START.finditer(line):
        lexer = shlex.shlex(line[found.start() :], posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = []
        for word in lexer:
            if set(word) <= _PUNCTUATION:
                break
            words.append(word)
        yield shlex.join(words)


def mistake_in(command: str) -> str:
    """Empty where service, operation, options and what can be judged of their values are right."""
    _, service, operation, *words = shlex.split(command)
    model = _service(SERVICES.get(service, service))
    operations = {xform_name(each, "-"): each for each in model.operation_names}
    if operation not in operations:
        return f"{service} has no {operation}"
    return "; ".join(_mistakes(model.operation_model(operations[operation]), words))


@cache
def _service(name: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(name)


def _mistakes(operation: OperationModel, words: Sequence[str]) -> Iterator[str]:
    shape = operation.input_shape
    members = {xform_name(name, "-"): name for name in shape.members} if shape else {}
    given = _options(words)
    for written, values in given.items():
        off = written.removeprefix("no-")
        is_switch = shape and off in members and shape.members[members[off]].type_name == "boolean"
        option = off if is_switch else written
        if option in members and shape:
            yield from _values(option, shape.members[members[option]], values)
        elif option not in GLOBAL_OPTIONS:
            yield f"{operation.name} takes no --{option}"
    if given and "cli-binary-format" not in given:
        for option in given.keys() & members.keys() if shape else ():
            if shape and shape.members[members[option]].type_name == "blob":
                yield f"--{option} is taken for base64 without --cli-binary-format"
    # Without any option a command is only named.
    for name in shape.required_members if shape and given else ():
        option = xform_name(name, "-")
        if not given.keys() & {option, f"no-{option}"}:
            yield f"{operation.name} wants --{option}"


def _options(words: Sequence[str]) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            options[word[2:]] = []
        elif options:
            options[next(reversed(options))].append(word)
    return options


def _values(option: str, shape: Shape, values: Sequence[str]) -> Iterator[str]:
    if shape.type_name == "boolean":
        return
    if not values:
        yield f"--{option} without a value"
    elif len(values) == 1 and values[0][:1] in "{[" and shape.type_name != "string":
        yield from _json(option, shape, values[0])
    elif isinstance(shape, ListShape):
        for each in values:
            yield from _scalar(option, shape.member, each)
    elif shape.type_name in {"string", "integer", "long"}:
        if len(values) > 1:
            yield f"--{option} with more than one value"
        yield from _scalar(option, shape, values[0])


def _json(option: str, shape: Shape, text: str) -> Iterator[str]:
    try:
        found = ParamValidator().validate(json.loads(text), shape)
    except ValueError as error:
        yield f"--{option} is no JSON: {error}"
    else:
        if found.has_errors():
            yield f"--{option}: {found.generate_report()}"


def _scalar(option: str, shape: Shape, value: str) -> Iterator[str]:
    if _PLACE.fullmatch(value):
        return
    known = getattr(shape, "enum", None)
    if known and value not in known:
        yield f"--{option} knows no {value}"
    if shape.type_name in {"integer", "long"} and not value.isdecimal():
        yield f"--{option} wants a number, not {value}"
