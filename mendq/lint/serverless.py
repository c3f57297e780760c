"""Read a `serverless.yml` as the CloudFormation resources that are made of it.

The Serverless Framework makes more. Only what concerns queues is made here: the resources that the
file declares, its functions, and an event source mapping for each `sqs` event. Variables are
replaced if the file and the files beside it determine them, or if they have a default.

https://www.serverless.com/framework/docs/providers/aws/guide/serverless.yml
https://www.serverless.com/framework/docs/guides/variables
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mendq.lint.folder import UnreadableTemplateFile
from mendq.lint.serverless_producers import (
    EVENT_TYPES_WITH_DLQ,
    list_destinations,
    list_event_producers,
)
from mendq.lint.template import (
    MAXIMUM_NESTED_LEVELS,
    UNKNOWN_VALUE_FUNCTION,
    Expansion,
    NotATemplate,
    WorkBudget,
    get_mapping,
)

_FUNCTION_TYPE = "AWS::Lambda::Function"
_MAPPING_TYPE = "AWS::Lambda::EventSourceMapping"
# Lambda's default is 3 seconds, that of the Serverless Framework 6.
_DEFAULT_TIMEOUT_SECONDS = "6"
_DEFAULT_STAGE = "dev"
# A variable without another variable inside. Names of CloudFormation, such as `${AWS::Region}`, are
# left to it.
_VARIABLE_REGEX = re.compile(
    r"\$\{((?:self|opt|env|sls|aws|param|ssm|s3|cf|file|git|strToBool)[:(][^${}]{0,512})\}"
)
_SELF_PREFIX = "self:"
# A file beside this one and the path of a value in it, such as `file(queues.yml):custom.timeout`.
_FILE_REGEX = re.compile(r"file\(([^()]{1,256})\)(?::([^,]{1,256}))?")
# Values that the framework uses unless somebody sets others.
_DEFAULT_BY_VARIABLE = {
    "sls:stage": _DEFAULT_STAGE,
    "opt:stage": _DEFAULT_STAGE,
    "self:provider.stage": _DEFAULT_STAGE,
}
# Variables that CloudFormation knows by another name.
_PSEUDO_PARAMETER_BY_VARIABLE = {
    "aws:accountId": "${AWS::AccountId}",
    "aws:region": "${AWS::Region}",
    "aws:partition": "${AWS::Partition}",
}
# Variables in variables are replaced from the inside, in at most this many rounds.
_MOST_ROUNDS = 8
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


def expand_serverless_file(
    root: dict[str, Any], budget: WorkBudget, read_file: Callable[[str], Any]
) -> Expansion:
    """Return the CloudFormation template that the Serverless Framework would make of a file.

    Args:
        root: The decoded file. Parts of it that are in other files are added to it.
        budget: The steps that replacing the variables may take.
        read_file: Returns a decoded file by its path beside this one. Raises
            UnreadableTemplateFile.

    Raises:
        NotATemplate: Replacing the variables takes more steps than the budget has left.
    """
    return _Expander(root, budget, read_file).expand()


class _Expander:
    """The state of one expansion."""

    def __init__(
        self, root: dict[str, Any], budget: WorkBudget, read_file: Callable[[str], Any]
    ) -> None:
        self._root = root
        self._budget = budget
        self._read_file = read_file
        self._reason_by_unreadable_file = dict[str, str]()
        # The number of variables that are being replaced to find a value of another one.
        self._open_variables = 0
        self._resources = dict[str, Any]()
        self._source_keys_by_logical_id = dict[str, tuple[str | int, ...]]()
        self._generated_ids = set[str]()
        self._reason_by_unread_keys = dict[tuple[str | int, ...], str]()
        self._default_by_variable = dict[str, str]()

    def expand(self) -> Expansion:
        self._add_declared_resources()
        self._add_functions()
        for name in self._list_keys("constructs"):
            self._reason_by_unread_keys["constructs", name] = "a plugin makes it"
        return Expansion(
            root={"Resources": self._resources},
            source_keys_by_logical_id=self._source_keys_by_logical_id,
            generated_ids=frozenset(self._generated_ids),
            reason_by_unread_keys=self._reason_by_unread_keys,
            batch_failures_setting=("functionResponseType", "ReportBatchItemFailures"),
            enabled_setting_name="enabled",
            limit_setting_name="maximumConcurrency",
            has_real_ids=False,
            reserve_setting_name="reservedConcurrency",
            default_by_variable=self._default_by_variable,
        )

    def _add_declared_resources(self) -> None:
        """Add the resources under `resources`, which is a mapping or a list of mappings."""
        for keys in self._list_parts("resources"):
            self._include(*keys, "Resources")
            for logical_id in self._list_keys(*keys, "Resources"):
                resource_keys = (*keys, "Resources", logical_id)
                resource = self._include(*resource_keys)
                self._resources[logical_id] = self._replace_variables(resource)
                self._source_keys_by_logical_id[logical_id] = resource_keys

    def _add_functions(self) -> None:
        """Add the functions and the event source mappings of their `sqs` events.

        The section is a mapping or a list of mappings.
        """
        for part_keys in self._list_parts("functions"):
            for name in self._list_keys(*part_keys):
                keys = (*part_keys, name)
                function = self._include(*keys)
                if not isinstance(function, dict):
                    continue
                function_id = f"{_normalize_name(name)}LambdaFunction"
                properties = self._make_function(function)
                destinations = self._replace_variables(function.get("destinations"))
                for resource in list_destinations(function_id, destinations):
                    properties["Role"] = {"Fn::GetAtt": [f"{function_id}Role", "Arn"]}
                    destination_keys = (*keys, "destinations")
                    self._add_generated(resource.logical_id, destination_keys, *resource[1:])
                self._add_generated(function_id, keys, _FUNCTION_TYPE, properties)
                events = self._include(*keys, "events")
                for number in range(len(events) if isinstance(events, list) else 0):
                    event_keys = (*keys, "events", number)
                    self._add_event(function_id, event_keys, self._include(*event_keys))

    def _list_parts(self, section_name: str) -> list[tuple[str | int, ...]]:
        """Return the keys of a section's parts: the section, or the items if it is a list.

        A section or an item that is in another file is included.
        """
        section = self._include(section_name)
        if not isinstance(section, list):
            return [(section_name,)]
        for number in range(len(section)):
            self._include(section_name, number)
        return [(section_name, number) for number in range(len(section))]

    def _list_keys(self, *keys: str | int) -> list[str]:
        """Return the keys of the mapping at these keys. Empty if there is no mapping."""
        node = self._find_node(keys)
        return [*node] if isinstance(node, dict) else []

    def _find_node(self, keys: tuple[str | int, ...]) -> Any:
        """Return the node at these keys, None if there is none."""
        node: Any = self._root
        for key in keys:
            if isinstance(node, dict):
                node = node.get(key)
            else:
                node = node[key] if isinstance(node, list) and isinstance(key, int) else None
        return node

    def _include(self, *keys: str | int) -> Any:
        """Return the node at these keys. A text that stands for a mapping or list is replaced.

        A text that stands for nothing known is listed as unread.
        """
        node = self._find_node(keys)
        if not isinstance(node, str) or "${" not in node:
            return node
        value = self._replace_in_text(node)
        if isinstance(value, dict) and UNKNOWN_VALUE_FUNCTION in value:
            self._reason_by_unread_keys[keys] = value[UNKNOWN_VALUE_FUNCTION]
            return None
        if isinstance(value, dict | list):
            self._find_node(keys[:-1])[keys[-1]] = value
        return value

    def _make_function(self, function: Mapping[str, Any]) -> dict[str, Any]:
        provider = get_mapping(self._root, "provider") or {}
        timeout = function.get("timeout", provider.get("timeout", _DEFAULT_TIMEOUT_SECONDS))
        properties = {"Timeout": timeout}
        if "name" in function:
            properties["FunctionName"] = function["name"]
        if "reservedConcurrency" in function:
            properties["ReservedConcurrentExecutions"] = function["reservedConcurrency"]
        if "onError" in function:
            properties["DeadLetterConfig"] = {"TargetArn": function["onError"]}
        return properties

    def _add_event(self, function_id: str, keys: tuple[str | int, ...], event: Any) -> None:
        """Add the event source mapping of an `sqs` event, and what sends to an event's DLQ."""
        if not isinstance(event, dict):
            return
        for event_type in event:
            if "sqs" in event_type.lower() and event_type != "sqs":
                self._reason_by_unread_keys[*keys, event_type] = "a plugin makes it"
        for event_type in event.keys() & EVENT_TYPES_WITH_DLQ:
            settings = self._replace_variables(event[event_type])
            for resource in list_event_producers(function_id, int(keys[-1]), event_type, settings):
                self._add_generated(resource.logical_id, (*keys, event_type), *resource[1:])
        if "sqs" in event:
            properties = self._make_mapping_properties(self._replace_variables(event["sqs"]))
            properties["FunctionName"] = {"Fn::GetAtt": [function_id, "Arn"]}
            mapping_id = f"{function_id}Sqs{keys[-1]}"
            self._add_generated(mapping_id, (*keys, "sqs"), _MAPPING_TYPE, properties)

    def _make_mapping_properties(self, settings: Any) -> dict[str, Any]:
        """Return the properties of the event source mapping that an `sqs` event becomes."""
        if not isinstance(settings, dict) or "arn" not in settings:
            settings = {"arn": settings}
        properties: dict[str, Any] = {
            property_name: settings[setting]
            for setting, property_name in _MAPPING_PROPERTY_BY_SETTING.items()
            if setting in settings
        }
        if "functionResponseType" in settings:
            properties["FunctionResponseTypes"] = [settings["functionResponseType"]]
        if "maximumConcurrency" in settings:
            properties["ScalingConfig"] = {"MaximumConcurrency": settings["maximumConcurrency"]}
        if isinstance(settings.get("filterPatterns"), list):
            patterns = [{"Pattern": pattern} for pattern in settings["filterPatterns"]]
            properties["FilterCriteria"] = {"Filters": patterns}
        return properties

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

    def _replace_variables(self, node: Any, depth: int = 0, *, is_in_sub: bool = False) -> Any:
        """Return a node with the variables replaced. An unknown one becomes an unknown value.

        A text with CloudFormation's names, such as `${AWS::Region}`, becomes an `Fn::Sub`, unless
        it is in one.

        Raises NotATemplate if the node is `depth` levels deep and that is too deep, as happens if a
        variable stands for a mapping that contains the same variable.
        """
        if depth > MAXIMUM_NESTED_LEVELS:
            raise NotATemplate("a variable contains itself, or is nested too deep")
        self._budget.use_steps(1)
        if isinstance(node, dict):
            if UNKNOWN_VALUE_FUNCTION in node:
                return node
            return {
                key: self._replace_variables(value, depth + 1, is_in_sub=key == "Fn::Sub")
                for key, value in node.items()
            }
        if isinstance(node, list):
            return [self._replace_variables(item, depth + 1, is_in_sub=is_in_sub) for item in node]
        if not isinstance(node, str) or "${" not in node:
            return node
        return self._replace_in_node(node, depth, is_in_sub=is_in_sub)

    def _replace_in_node(self, text: str, depth: int, *, is_in_sub: bool) -> Any:
        """Return what `_replace_variables` returns for a text with variables."""
        value = self._replace_in_text(text)
        if isinstance(value, str):
            has_new_name = value != text and "${AWS::" in value
            return {"Fn::Sub": value} if has_new_name and not is_in_sub else value
        if UNKNOWN_VALUE_FUNCTION in value:
            return value
        return self._replace_variables(value, depth + 1)

    def _replace_in_text(self, text: str) -> Any:
        """Return a text with its variables replaced.

        A text that is one variable becomes the variable's value, which may be a mapping. A text
        with an unknown variable becomes the function of an unknown value.
        """
        whole_text = text
        for _ in range(_MOST_ROUNDS):
            variable_match = _VARIABLE_REGEX.search(text)
            if variable_match is None:
                return text
            self._budget.use_steps(1 + len(text))
            value = self._find_value(variable_match.group(1))
            if variable_match.group() == text and isinstance(value, dict | list):
                return value
            if not isinstance(value, str):
                reason = self._explain_unknown_variable(variable_match.group(1))
                return {UNKNOWN_VALUE_FUNCTION: f"{whole_text[:200]}: {reason}"}
            text = text[: variable_match.start()] + value + text[variable_match.end() :]
        return {UNKNOWN_VALUE_FUNCTION: f"{whole_text[:200]}: too many variables in one text"}

    def _explain_unknown_variable(self, variable: str) -> str:
        """Return why the value of a variable is not known."""
        for alternative in _split_alternatives(variable):
            if alternative in self._reason_by_unreadable_file:
                return self._reason_by_unreadable_file[alternative]
        return "known when it is deployed"

    def _find_value(self, variable: str) -> Any:
        """Return the value of a variable, or its default; None if neither is known.

        Values that follow a comma are defaults, used if the value before them is not set.
        """
        for alternative in _split_alternatives(variable):
            if alternative.startswith(("'", '"')):
                default_text = alternative.strip("'\"")
                self._default_by_variable[variable[:100]] = default_text
                return default_text
            if re.fullmatch(r"[0-9]+|true|false", alternative):
                self._default_by_variable[variable[:100]] = alternative
                return alternative
            value = self._find_known_value(alternative)
            if value is not None:
                return value
        for alternative in _split_alternatives(variable):
            if alternative in _DEFAULT_BY_VARIABLE:
                self._default_by_variable[alternative] = _DEFAULT_BY_VARIABLE[alternative]
                return _DEFAULT_BY_VARIABLE[alternative]
        return None

    def _find_known_value(self, alternative: str) -> Any:
        """Return a value that this file, a file beside it or CloudFormation knows; else None."""
        if alternative.startswith(_SELF_PREFIX):
            return self._find_value_at(self._root, alternative.removeprefix(_SELF_PREFIX))
        file_match = _FILE_REGEX.fullmatch(alternative)
        if file_match is None:
            return _PSEUDO_PARAMETER_BY_VARIABLE.get(alternative)
        file_name, path = file_match.groups()
        try:
            file_root = self._read_file(file_name.strip())
        except UnreadableTemplateFile as error:
            self._reason_by_unreadable_file[alternative] = str(error)
            return None
        return self._find_value_at(file_root, path) if path else file_root

    def _find_value_at(self, node: Any, path: str) -> Any:
        """Return the value at a path in a mapping, such as `custom.timeout`; None if it has none.

        A mapping on the way may be a variable. Raises NotATemplate if too many of them are.
        """
        for key in path.split("."):
            if isinstance(node, str) and "${" in node:
                self._open_variables += 1
                if self._open_variables > _MOST_ROUNDS:
                    raise NotATemplate("a variable contains itself, or too many others")
                node = self._replace_in_text(node)
                self._open_variables -= 1
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
