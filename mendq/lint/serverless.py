"""Read a `serverless.yml` as the CloudFormation resources that are made of it.

The Serverless Framework makes more. Only what concerns queues is made here: the resources that the
file declares itself, its functions, and an event source mapping for each `sqs` event. Variables are
replaced if the file alone determines them, or if they have a default.

https://www.serverless.com/framework/docs/providers/aws/guide/serverless.yml
https://www.serverless.com/framework/docs/guides/variables
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mendq.lint.template import Expansion, WorkBudget, get_mapping, to_list

# Lambda's default is 3 seconds, that of the Serverless Framework 6.
_DEFAULT_TIMEOUT_SECONDS = "6"
_DEFAULT_STAGE = "dev"
# A variable without another variable inside. Names of CloudFormation, such as `${AWS::Region}`, are
# left to it.
_VARIABLE_REGEX = re.compile(
    r"\$\{((?:self|opt|env|sls|aws|param|ssm|s3|cf|file|git|strToBool)[:(][^${}]{0,512})\}"
)
_SELF_PREFIX = "self:"
_KNOWN_VALUES = {"sls:stage": _DEFAULT_STAGE, "opt:stage": _DEFAULT_STAGE, "aws:partition": "aws"}
# Variables in variables are replaced from the inside, in at most this many rounds.
_MOST_ROUNDS = 8
# CloudFormation's function for an unknown value. The resolver of values knows none of this name.
_UNKNOWN_FUNCTION = "Fn::ServerlessVariable"
# Properties of an event source mapping by the settings of an `sqs` event.
_MAPPING_PROPERTY_BY_SETTING = {
    "arn": "EventSourceArn",
    "batchSize": "BatchSize",
    "enabled": "Enabled",
    "maximumBatchingWindow": "MaximumBatchingWindowInSeconds",
}


def is_serverless_file(root: Any) -> bool:
    """Return True if a decoded YAML file is a `serverless.yml`."""
    return (
        isinstance(root, dict) and "Resources" not in root and {"service", "provider"} <= set(root)
    )


def expand_serverless_file(root: dict[str, Any], budget: WorkBudget) -> Expansion:
    """Return the CloudFormation template that the Serverless Framework would make of a file.

    Raises:
        NotATemplate: Replacing the variables takes more steps than the budget has left.
    """
    return _Expander(root, budget).expand()


class _Expander:
    """The state of one expansion."""

    def __init__(self, root: dict[str, Any], budget: WorkBudget) -> None:
        self._root = root
        self._budget = budget
        self._resources = dict[str, Any]()
        self._source_keys_by_logical_id = dict[str, tuple[str | int, ...]]()
        self._generated_ids = set[str]()
        self._reason_by_unread_keys = dict[tuple[str | int, ...], str]()
        self._default_by_variable = dict[str, str]()

    def expand(self) -> Expansion:
        self._add_declared_resources()
        self._add_functions()
        return Expansion(
            root={"Resources": self._resources},
            source_keys_by_logical_id=self._source_keys_by_logical_id,
            generated_ids=frozenset(self._generated_ids),
            reason_by_unread_keys=self._reason_by_unread_keys,
            default_by_variable=self._default_by_variable,
        )

    def _add_declared_resources(self) -> None:
        """Add the resources under `resources`, which is a mapping or a list of mappings."""
        section = self._root.get("resources")
        numbered_parts: list[tuple[tuple[str | int, ...], Any]] = (
            [(("resources", number), part) for number, part in enumerate(section)]
            if isinstance(section, list)
            else [(("resources",), section)]
        )
        for keys, part in numbered_parts:
            if isinstance(part, str):
                self._reason_by_unread_keys[keys] = f"{part[:200]}: it is in another file"
            for logical_id, resource in (get_mapping(part, "Resources") or {}).items():
                self._resources[logical_id] = self._replace_variables(resource)
                self._source_keys_by_logical_id[logical_id] = (*keys, "Resources", logical_id)

    def _add_functions(self) -> None:
        """Add the functions and the event source mappings of their `sqs` events."""
        functions = self._root.get("functions")
        if functions is not None and not isinstance(functions, dict):
            self._reason_by_unread_keys["functions",] = "the functions are in other files"
        for name, function in (get_mapping(functions) or {}).items():
            keys = ("functions", name)
            if not isinstance(function, dict):
                self._reason_by_unread_keys[keys] = "the function is in another file"
                continue
            function_id = f"{_normalize_name(name)}LambdaFunction"
            self._add_generated(function_id, keys, _FUNCTION_TYPE, self._make_function(function))
            for number, event in enumerate(to_list(function.get("events"))):
                self._add_event(function_id, (*keys, "events", number), event)

    def _make_function(self, function: Mapping[str, Any]) -> dict[str, Any]:
        provider = get_mapping(self._root, "provider") or {}
        timeout = function.get("timeout", provider.get("timeout", _DEFAULT_TIMEOUT_SECONDS))
        properties = {"Timeout": timeout}
        if "name" in function:
            properties["FunctionName"] = function["name"]
        if "reservedConcurrency" in function:
            properties["ReservedConcurrentExecutions"] = function["reservedConcurrency"]
        return properties

    def _add_event(self, function_id: str, keys: tuple[str | int, ...], event: Any) -> None:
        """Add the event source mapping of an event, if it is an `sqs` event."""
        if isinstance(event, str) and "${" in event:
            self._reason_by_unread_keys[keys] = f"{event[:200]}: it is in another file"
        if not isinstance(event, dict) or "sqs" not in event:
            return
        settings = event["sqs"]
        if not isinstance(settings, dict) or "arn" not in settings:
            settings = {"arn": settings}
        properties: dict[str, Any] = {
            property_name: settings[setting]
            for setting, property_name in _MAPPING_PROPERTY_BY_SETTING.items()
            if setting in settings
        }
        properties["FunctionName"] = {"Fn::GetAtt": [function_id, "Arn"]}
        if "functionResponseType" in settings:
            properties["FunctionResponseTypes"] = [settings["functionResponseType"]]
        if "maximumConcurrency" in settings:
            properties["ScalingConfig"] = {"MaximumConcurrency": settings["maximumConcurrency"]}
        mapping_id = f"{function_id}Sqs{keys[-1]}"
        self._add_generated(mapping_id, (*keys, "sqs"), _MAPPING_TYPE, properties)

    def _add_generated(
        self,
        logical_id: str,
        keys: tuple[str | int, ...],
        resource_type: str,
        properties: dict[str, Any],
    ) -> None:
        self._resources[logical_id] = {
            "Type": resource_type,
            "Properties": self._replace_variables(properties),
        }
        self._source_keys_by_logical_id[logical_id] = keys
        self._generated_ids.add(logical_id)

    def _replace_variables(self, node: Any) -> Any:
        """Return a node with the variables replaced. An unknown one becomes an unknown function."""
        self._budget.use_steps(1)
        if isinstance(node, dict):
            return {key: self._replace_variables(value) for key, value in node.items()}
        if isinstance(node, list):
            return [self._replace_variables(item) for item in node]
        if not isinstance(node, str) or "${" not in node:
            return node
        return self._replace_in_text(node)

    def _replace_in_text(self, text: str) -> Any:
        """Return a text with its variables replaced.

        A text that is one variable becomes the variable's value, which may be a mapping. A text
        with an unknown variable becomes an unknown function.
        """
        for _ in range(_MOST_ROUNDS):
            variable_match = _VARIABLE_REGEX.search(text)
            if variable_match is None:
                return text
            self._budget.use_steps(1 + len(text))
            value = self._find_value(variable_match.group(1))
            if value is None:
                return {_UNKNOWN_FUNCTION: text[:200]}
            if variable_match.group() == text and not isinstance(value, str):
                return value
            if not isinstance(value, str):
                return {_UNKNOWN_FUNCTION: text[:200]}
            text = text[: variable_match.start()] + value + text[variable_match.end() :]
        return {_UNKNOWN_FUNCTION: text[:200]}

    def _find_value(self, variable: str) -> Any:
        """Return the value of a variable, or its default; None if neither is known.

        Values that follow a comma are defaults, used if the value before them is not set.
        """
        for alternative in _split_alternatives(variable):
            if alternative.startswith(("'", '"')):
                default_text = alternative.strip("'\"")
                self._default_by_variable[variable[:100]] = default_text
                return default_text
            if alternative.startswith(_SELF_PREFIX):
                value = self._find_in_file(alternative.removeprefix(_SELF_PREFIX))
                if value is not None:
                    return value
            elif alternative in _KNOWN_VALUES and "," not in variable:
                self._default_by_variable[alternative] = _KNOWN_VALUES[alternative]
                return _KNOWN_VALUES[alternative]
            elif re.fullmatch(r"[0-9]+|true|false", alternative):
                return alternative
        return None

    def _find_in_file(self, path: str) -> Any:
        """Return the value at a path in the file, such as `custom.timeout`; None if it has none."""
        node: Any = self._root
        for key in path.split("."):
            node = node.get(key) if isinstance(node, dict) else None
        return node


def _split_alternatives(variable: str) -> Iterator[str]:
    """Yield a variable and its defaults, which commas separate."""
    for alternative in variable.split(","):
        yield alternative.strip()


def _normalize_name(function_name: str) -> str:
    """Return the part of a logical ID that the Serverless Framework makes of a function's name."""
    name = function_name.replace("-", "Dash").replace("_", "Underscore")
    return name[:1].upper() + name[1:]


_FUNCTION_TYPE = "AWS::Lambda::Function"
_MAPPING_TYPE = "AWS::Lambda::EventSourceMapping"
