"""Expand the SAM resources of a template to CloudFormation resources, as AWS does at deployment.

AWS's own `aws-sam-translator` expands them. It gets only what can concern a queue: SAM functions
with their queue settings, state machines and connectors. So a missing handler, or an API that is
described in another file, does not stop the expansion. The translator makes no AWS call here.

https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-specification.html
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from samtranslator.model.exceptions import ExceptionWithMessage, InvalidDocumentException
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

from mendq.lint.template import (
    Expansion,
    ToolRefusal,
    WorkBudget,
    convert_scalars_to_text,
    get_mapping,
)

SAM_TYPE_PREFIX = "AWS::Serverless::"
_FUNCTION_TYPE = "AWS::Serverless::Function"
_STATE_MACHINE_TYPE = "AWS::Serverless::StateMachine"
_CONNECTOR_TYPE = "AWS::Serverless::Connector"
# Sections of a template that the translator reads.
_TRANSLATED_SECTIONS = ("Parameters", "Mappings", "Conditions")
# Properties of a SAM function that decide about queues.
_FUNCTION_PROPERTIES = (
    "AutoPublishAlias",
    "DeadLetterQueue",
    "EventInvokeConfig",
    "FunctionName",
    "ReservedConcurrentExecutions",
    "Role",
    "Timeout",
)
# Event types that have no queue. Some of them refer to resources that the translator does not see.
_EVENT_TYPES_WITHOUT_QUEUE = frozenset(
    {"AlexaSkill", "Api", "CloudWatchLogs", "Cognito", "HttpApi", "IoTRule", "S3"}
)
# Properties that the translator requires and no check reads.
_FUNCTION_STAND_INS = {"Handler": "index.handler", "InlineCode": "-", "Runtime": "python3.13"}
_STATE_MACHINE_STAND_IN = {"Definition": {"StartAt": "End", "States": {"End": {"Type": "Pass"}}}}
# The translator needs some region. It decides only about the partition in generated roles.
_REGION = "us-east-1"
# Steps of work (see `WorkBudget`) for one character of the template that is translated.
_WORK_STEPS_PER_CHARACTER = 4
_WHOLE_NUMBER_REGEX = re.compile(r"0|[1-9][0-9]{0,8}")
_MOST_REASON_CHARACTERS = 200
# The translator's sentences about mistakes that it would also find in the whole template. Other
# mistakes may come from the parts of the template that it does not get here.
_UNKNOWN_PROPERTY_REGEX = re.compile(r"property (\w+) not defined for resource of type \w+")
_MISSING_PROPERTY_REGEX = re.compile(r"Missing required property '(\w+)'")
_WRONG_TYPE_REGEX = re.compile(
    r"(?:Type of property '(\w+)' is invalid|[Pp]roperty '(\w+)' should be an? \w+)"
)
# Properties of event source mappings that a newer translator may know for every event.
_PROPERTIES_OF_NEWER_TRANSLATORS = re.compile(r"\w*(?:Config|Configuration|Configurations|KeyArn)")
_REASON_PREFIX = "SAM cannot expand it: "
_NOT_JUDGED_REASON = "what SAM makes of it is not judged, because SAM refuses it"
# Without a handler, Python prints the translator's warnings, which may contain a template's text.
logging.getLogger("samtranslator").addHandler(logging.NullHandler())


def expand_sam_resources(root: dict[str, Any], budget: WorkBudget) -> Expansion:
    """Replace the SAM resources of a decoded template by the resources that they generate.

    A SAM resource that cannot be expanded stays in the template, and the expansion has the reason.
    SAM resources that cannot concern a queue, such as an API, stay too.

    Raises:
        NotATemplate: The expansion takes more steps than the budget has left.
    """
    translated_resources = _reduce_resources(get_mapping(root, "Resources") or {})
    globals_of_functions = _select_function_properties(
        get_mapping(root, "Globals", "Function") or {}
    )
    reason_by_unexpanded_id = dict[str, str]()
    generated_resources = dict[str, Any]()
    # Each round expands all resources, or leaves out at least one.
    while translated_resources:
        translator_input = {
            **{name: root[name] for name in _TRANSLATED_SECTIONS if name in root},
            "Globals": {"Function": globals_of_functions},
            "Resources": translated_resources,
        }
        mistakes, generated_resources = _translate(translator_input, budget)
        sam_ids = _list_sam_ids(translated_resources)
        new_reasons = _assign_mistakes(mistakes, sam_ids)
        if not new_reasons:
            break
        reason_by_unexpanded_id |= new_reasons
        mistaken_sam_ids = {_find_owner_id(mistaken_id, sam_ids) for mistaken_id in new_reasons}
        translated_resources = {
            logical_id: resource
            for logical_id, resource in translated_resources.items()
            if logical_id not in mistaken_sam_ids
        }
    return _merge(root, generated_resources, reason_by_unexpanded_id, budget)


def _assign_mistakes(mistakes: Mapping[str, str], sam_ids: Sequence[str]) -> dict[str, str]:
    """Return the reasons why the translator refuses the template.

    The reasons are by the ID of a SAM resource, or of what SAM would generate from one. A mistake
    that belongs to no SAM resource keeps all of them from being expanded.
    """
    for mistaken_id, reason in mistakes.items():
        if not _find_owner_id(mistaken_id, sam_ids):
            return dict.fromkeys(sam_ids, reason)
    return dict(mistakes)


def _merge(
    root: dict[str, Any],
    generated_resources: Mapping[str, Any],
    reason_by_unexpanded_id: Mapping[str, str],
    budget: WorkBudget,
) -> Expansion:
    """Return the expansion: the file's own resources, and those that SAM generates from them."""
    source_resources = get_mapping(root, "Resources") or {}
    resources = dict[str, Any](source_resources)
    source_keys_by_logical_id = dict[str, tuple[str | int, ...]]()
    sam_ids = _list_sam_ids(source_resources)
    for logical_id, resource in generated_resources.items():
        is_own_resource = logical_id in source_resources and logical_id not in sam_ids
        if is_own_resource:
            continue
        resources[logical_id] = convert_scalars_to_text(resource, budget)
        if logical_id not in source_resources:
            source_keys_by_logical_id[logical_id] = _find_source_keys(
                logical_id, sam_ids, source_resources
            )
    refusal_by_keys = dict[tuple[str | int, ...], ToolRefusal]()
    reason_by_unread_keys = dict[tuple[str | int, ...], str]()
    for mistaken_id, reason in reason_by_unexpanded_id.items():
        keys = _find_source_keys(mistaken_id, sam_ids, source_resources)
        refusal = _read_refusal(reason, keys, source_resources)
        if refusal is not None:
            refusal_by_keys[keys] = refusal
        owner_keys = keys[:2]
        reason_by_unread_keys[owner_keys] = reason if refusal is None else _NOT_JUDGED_REASON
    return Expansion(
        root={**root, "Resources": resources},
        source_keys_by_logical_id=source_keys_by_logical_id,
        generated_ids=frozenset(source_keys_by_logical_id),
        ids_of_topic_events=frozenset(
            logical_id
            for logical_id, keys in source_keys_by_logical_id.items()
            if _is_topic_event(source_resources, keys)
        ),
        reason_by_unread_keys=reason_by_unread_keys,
        refusal_by_keys=refusal_by_keys,
    )


def _read_refusal(
    reason: str, keys: Sequence[str], source_resources: Mapping[str, Any]
) -> ToolRefusal | None:
    """Return the refusal if SAM would refuse the whole template for this reason too.

    None if that is not certain: the mistake may come from what the translator does not get, from
    text that stands for a number, from a macro that writes the properties first, or from a property
    that only a newer translator knows.
    """
    declaration = get_mapping({"Resources": source_resources}, *keys) or {}
    properties = get_mapping(declaration, "Properties") or {}
    if any("::" in name for name in properties):
        return None
    sentence = reason.removeprefix(_REASON_PREFIX)
    because = f"SAM refuses the template: {sentence}"
    if unknown := _UNKNOWN_PROPERTY_REGEX.search(sentence):
        name = unknown.group(1)
        if _PROPERTIES_OF_NEWER_TRANSLATORS.fullmatch(name):
            return None
        return ToolRefusal(because, f"leave {name} out, or spell it as SAM does")
    if missing := _MISSING_PROPERTY_REGEX.search(sentence):
        return ToolRefusal(because, f"add {missing.group(1)}")
    if wrong_type := _WRONG_TYPE_REGEX.search(sentence):
        name = wrong_type.group(1) or wrong_type.group(2)
        value = properties.get(name)
        if value is None or value != _restore_scalar_types(value):
            return None
        return ToolRefusal(because, f"give {name} a value of the type that SAM takes")
    return None


def _is_topic_event(source_resources: Mapping[str, Any], keys: Sequence[str | int]) -> bool:
    """Return True if the keys, from `Resources` on, lead to a function's event of type SNS."""
    event = get_mapping({"Resources": source_resources}, *map(str, keys)) or {}
    return "Events" in keys and event.get("Type") == "SNS"


def _list_sam_ids(resources: Mapping[str, Any]) -> list[str]:
    """Return the logical IDs of the SAM resources among `resources`."""
    return [
        logical_id
        for logical_id, resource in resources.items()
        if _get_type(resource).startswith(SAM_TYPE_PREFIX)
    ]


def _get_type(resource: Any) -> str:
    resource_type = resource.get("Type") if isinstance(resource, dict) else None
    return resource_type if isinstance(resource_type, str) else ""


def _reduce_resources(source_resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resources for the translator: SAM functions, state machines and connectors.

    SAM resources are reduced to the properties that concern queues. The other resources of the
    template are unchanged: a connector may name any of them.
    """
    reduced_resources = dict[str, Any]()
    for logical_id, resource in source_resources.items():
        resource_type = _get_type(resource)
        if not resource_type:
            continue
        if not resource_type.startswith(SAM_TYPE_PREFIX):
            reduced_resources[logical_id] = resource
            continue
        properties = get_mapping(resource, "Properties") or {}
        if resource_type == _FUNCTION_TYPE:
            properties = _reduce_function(properties)
        elif resource_type == _STATE_MACHINE_TYPE:
            properties = _reduce_state_machine(properties)
        elif resource_type != _CONNECTOR_TYPE:
            continue
        reduced_resources[logical_id] = {**resource, "Properties": properties}
    return reduced_resources


def _reduce_function(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return those properties of a SAM function that concern queues, and stand-ins for its code."""
    reduced_properties = {**_select_function_properties(properties), **_FUNCTION_STAND_INS}
    events = get_mapping(properties.get("Events")) or {}
    events_with_queue = {
        event_name: event
        for event_name, event in events.items()
        if _get_type(event) and _get_type(event) not in _EVENT_TYPES_WITHOUT_QUEUE
    }
    if events_with_queue:
        reduced_properties["Events"] = events_with_queue
    return reduced_properties


def _select_function_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: properties[name] for name in _FUNCTION_PROPERTIES if name in properties}


def _reduce_state_machine(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the role of a state machine, and a stand-in for its definition."""
    role = {"Role": properties["Role"]} if "Role" in properties else {}
    return {**_STATE_MACHINE_STAND_IN, **role}


def _translate(
    translator_input: Mapping[str, Any], budget: WorkBudget
) -> tuple[dict[str, str], dict[str, Any]]:
    """Run the translator.

    Returns:
        The reasons why resources cannot be expanded, by logical ID (empty if the translator names
        none), and the generated resources. The translator stops at the first mistakes, so there are
        no generated resources if there is a reason.
    """
    input_text = json.dumps(translator_input)
    budget.use_steps(len(input_text) * _WORK_STEPS_PER_CHARACTER)
    typed_input = _restore_scalar_types(json.loads(input_text))
    session_stand_in: Any = SimpleNamespace(region_name=_REGION)
    translator = Translator({}, Parser(), boto_session=session_stand_in)
    try:
        translated_template = translator.translate(
            typed_input, parameter_values={}, passthrough_metadata=True
        )
    except InvalidDocumentException as error:
        return dict(_describe_mistake(mistake) for mistake in error.causes), {}
    except Exception as error:  # noqa: BLE001 - a strange template ends the translator anyhow
        return {"": f"the SAM translator ends with {type(error).__name__}"}, {}
    return {}, translated_template["Resources"]


def _describe_mistake(mistake: ExceptionWithMessage) -> tuple[str, str]:
    """Return the logical ID that a mistake is about, and the reason in one line."""
    logical_id = getattr(mistake, "_logical_id", "")
    reason = " ".join(str(mistake.message).split())[:_MOST_REASON_CHARACTERS]
    return str(logical_id), f"{_REASON_PREFIX}{reason}"


def _restore_scalar_types(node: Any) -> Any:
    """Return a decoded template with booleans and whole numbers in place of their texts."""
    if isinstance(node, dict):
        return {key: _restore_scalar_types(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_restore_scalar_types(item) for item in node]
    if node in ("true", "false"):
        return node == "true"
    if isinstance(node, str) and _WHOLE_NUMBER_REGEX.fullmatch(node):
        return int(node)
    return node


def _find_owner_id(logical_id: str, sam_ids: Sequence[str]) -> str:
    """Return the ID of the SAM resource to which a logical ID of SAM's belongs. Empty if to none.

    SAM's logical IDs begin with that of the SAM resource, and then with the name of the event.
    """
    owner_ids = [sam_id for sam_id in sam_ids if logical_id.startswith(sam_id)]
    return max(owner_ids, key=len, default="")


def _find_source_keys(
    generated_id: str, sam_ids: Sequence[str], source_resources: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the keys of the resource, or of its event, from which SAM generated a resource."""
    owner_id = _find_owner_id(generated_id, sam_ids)
    if not owner_id:
        return ("Resources",)
    events = get_mapping(source_resources[owner_id], "Properties", "Events") or {}
    id_after_owner = generated_id.removeprefix(owner_id)
    event_name = max(
        (name for name in events if id_after_owner.startswith(name)), key=len, default=""
    )
    owner_keys = ("Resources", owner_id)
    return (*owner_keys, "Properties", "Events", event_name) if event_name else owner_keys
