"""Make one template of the stack, for every account and region of an organization.

No account needs a bootstrap of the CDK: the zips are in one bucket in each region.

The modes are parameters of the template, and the permissions of roles depend on the modes. So the
stack is synthesized in four variants: Mendq may or may not write the queues that the settings name,
and may or may not write the queues that have the tag. The template contains the statements of all
variants. A statement that only some variants have is under a condition on the parameters. With
given parameters the template gives the same stack as `make cdk` with the same settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import aws_cdk as cdk
from aws_cdk import aws_sns as sns

from infra.settings.deployment import DeploymentSettings, read_deployment_settings
from infra.settings.hook import STACK_NAME
from infra.settings.reading import Mistake, SettingsRefused, read_settings
from infra.settings.warnings import find_unusable_settings, make_stack_settings
from infra.stack import MendqStack, StackCode, StackPlacement
from infra.synthesis import make_app
from infra.topics import Topic, Topics
from mendq.model.consent import Consent
from mendq.model.mode import MODE_BY_TEXT, Mode

REGION_PLACEHOLDER = "${AWS::Region}"
ACCOUNT_PLACEHOLDER = "${AWS::AccountId}"
# Values that stand for the account and region of a stack while the settings are checked.
_SAMPLE_BY_PLACEHOLDER = {ACCOUNT_PLACEHOLDER: "000000000000", REGION_PLACEHOLDER: "xx-stackset-1"}
_LONGEST_REGION = "ap-southeast-99"
# Key prefix of Mendq's objects. The bucket may have other objects too.
ASSET_KEY_PREFIX = "mendq/"
_AWS_NO_VALUE = {"Ref": "AWS::NoValue"}
_MODE_PARAMETER = "Mode"
_TAG_MODE_PARAMETER = "TagMayRaiseTo"
_OPTIONAL_MAIL_PATTERN = r"^$|^[^@\s]{1,64}@[A-Za-z0-9.-]{3,253}$"
PARAMETER_NAMES = (_MODE_PARAMETER, _TAG_MODE_PARAMETER, "UrgentMail", "InfoMail")


class _StackVariant(NamedTuple):
    """A variant of the stack: which queues its roles may write.

    Writing the queues that the settings name and writing the queues that have the tag are allowed
    independently, so there are four variants.
    """

    can_write_named_queues: bool
    can_write_tagged_queues: bool


_STACK_VARIANTS = (
    _StackVariant(can_write_named_queues=False, can_write_tagged_queues=False),
    _StackVariant(can_write_named_queues=False, can_write_tagged_queues=True),
    _StackVariant(can_write_named_queues=True, can_write_tagged_queues=False),
    _StackVariant(can_write_named_queues=True, can_write_tagged_queues=True),
)


class _TemplateCondition(NamedTuple):
    """A condition of the template.

    Attributes:
        name: the condition's name.
        variants: the variants in which it is true.
        expression: CloudFormation's expression for the condition, which depends on the parameters.
    """

    name: str
    variants: frozenset[_StackVariant]
    expression: Mapping[str, Any]


def _make_above_observe_expression(parameter: str) -> dict[str, Any]:
    """Return CloudFormation's expression that is true if a mode parameter is not `observe`."""
    return {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, str(Mode.OBSERVE)]}]}


_TEMPLATE_CONDITIONS = (
    _TemplateCondition(
        "NamedQueuesAreWritten",
        frozenset(variant for variant in _STACK_VARIANTS if variant.can_write_named_queues),
        _make_above_observe_expression(_MODE_PARAMETER),
    ),
    _TemplateCondition(
        "TaggedQueuesAreWritten",
        frozenset(variant for variant in _STACK_VARIANTS if variant.can_write_tagged_queues),
        _make_above_observe_expression(_TAG_MODE_PARAMETER),
    ),
    _TemplateCondition(
        "QueuesAreWritten",
        frozenset(variant for variant in _STACK_VARIANTS if any(variant)),
        {
            "Fn::Or": [
                _make_above_observe_expression(_MODE_PARAMETER),
                _make_above_observe_expression(_TAG_MODE_PARAMETER),
            ]
        },
    ),
)


def make_bucket_name_pattern(bucket_name: str) -> str:
    """Return the pattern of the buckets' names: `our-mendq` gives `our-mendq-${AWS::Region}`.

    `bucket_name` may contain the region already: as `our-mendq-${AWS::Region}`, or with the dollar
    doubled for make. Raises SettingsRefused if the result is not a valid name.
    """
    name_pattern = bucket_name.replace("$$", "$")
    if REGION_PLACEHOLDER not in name_pattern:
        name_pattern = f"{name_pattern.rstrip('-')}-{REGION_PLACEHOLDER}"
    longest_bucket_name = name_pattern.replace(REGION_PLACEHOLDER, _LONGEST_REGION)
    if name_pattern.count(REGION_PLACEHOLDER) != 1 or not re.fullmatch(
        r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", longest_bucket_name
    ):
        fault = f'"{bucket_name}" is no name' if bucket_name else "is missing"
        remedy = "say one such as our-mendq: each region's own is added, up to 63 characters"
        raise SettingsRefused([Mistake("BUCKET", fault, remedy)])
    return name_pattern


def read_stack_set_settings(raw_settings: Mapping[str, Any]) -> DeploymentSettings:
    """Read the settings of a stack set.

    In `raw_settings`, `${AWS::AccountId}` and `${AWS::Region}` stand for the account and region of
    each stack.

    Raises SettingsRefused if the settings have mistakes. `environments`, and a setting that only
    one account or region could use, are mistakes too.
    """
    sample_settings_text = json.dumps(raw_settings)
    for placeholder, sample_value in _SAMPLE_BY_PLACEHOLDER.items():
        sample_settings_text = sample_settings_text.replace(placeholder, sample_value)
    sample_settings = json.loads(sample_settings_text)
    settings = read_deployment_settings(sample_settings)
    mistakes = list(
        find_unusable_settings(
            settings,
            [_SAMPLE_BY_PLACEHOLDER[REGION_PLACEHOLDER]],
            {_SAMPLE_BY_PLACEHOLDER[ACCOUNT_PLACEHOLDER]},
        )
    )
    if settings.environments:
        remedy = "leave it out: where stacks go, the stack set is told"
        mistakes.append(Mistake("environments", "is given to a stack set", remedy))
    if settings.scan_only:
        remedy = "leave it out, or deploy each place with `make cdk` and environments"
        mistakes.append(Mistake("scanOnly", "is given to a stack set", remedy))
    if mistakes:
        raise SettingsRefused(mistakes)
    settings = read_settings(
        DeploymentSettings, sample_settings, convert_text=_replace_samples_by_tokens
    )
    return make_stack_settings(settings, None, cdk.Aws.REGION)


def _replace_samples_by_tokens(text: str) -> str:
    """Replace the sample account and region in a text by the CDK's tokens for the stack's."""
    text = text.replace(_SAMPLE_BY_PLACEHOLDER[ACCOUNT_PLACEHOLDER], cdk.Aws.ACCOUNT_ID)
    return text.replace(_SAMPLE_BY_PLACEHOLDER[REGION_PLACEHOLDER], cdk.Aws.REGION)


class StackSetStack(MendqStack):
    """The stack as a stack set deploys it.

    It has parameters for what each account may set differently: the modes, and one more mail
    address for each severity.
    """

    def make_consent(self, settings: DeploymentSettings, topics: Topics) -> Consent:
        """Return which queues Mendq manages. Their modes are the values of template parameters.

        Add these parameters, and those for mail addresses, to the template.
        """
        mode = self._add_mode_parameter(
            _MODE_PARAMETER, "How far Mendq may go on the queues that it names"
        )
        highest_mode_by_tag = self._add_mode_parameter(
            _TAG_MODE_PARAMETER, "How far a queue's tag mendq may raise it"
        )
        self._add_mail_parameter("Urgent", topics.urgent)
        self._add_mail_parameter("Info", topics.info)
        return replace(
            super().make_consent(settings, topics), mode=mode, tag_may_raise_to=highest_mode_by_tag
        )

    def _add_mode_parameter(self, name: str, description: str) -> Any:
        """Add a parameter whose value is a mode. Return the CDK's token for the value."""
        parameter = cdk.CfnParameter(
            self,
            name,
            description=description,
            allowed_values=list(MODE_BY_TEXT),
            default=str(Mode.OBSERVE),
        )
        return parameter.value_as_string

    def _add_mail_parameter(self, name: str, topic: Topic) -> None:
        """Add a parameter for a mail address. If it is set, the address subscribes to `topic`."""
        description = (
            f"Whom {name.lower()} notifications reach, one mail address; empty: nobody more"
        )
        parameter = cdk.CfnParameter(
            self,
            f"{name}Mail",
            description=description,
            allowed_pattern=_OPTIONAL_MAIL_PATTERN,
            default="",
        )
        address = parameter.value_as_string
        mail_condition = cdk.CfnCondition(
            self,
            f"{name}MailIsGiven",
            expression=cdk.Fn.condition_not(cdk.Fn.condition_equals(address, "")),
        )
        subscription = sns.CfnSubscription(
            self,
            f"{name}MailSubscription",
            protocol="email",
            topic_arn=topic.arn,
            endpoint=address,
        )
        subscription.cfn_options.condition = mail_condition


def make_stack_set_template(
    settings: DeploymentSettings, bucket_name_pattern: str, code: StackCode
) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return the template, and the local files that it refers to, by their keys in the bucket.

    Raises SettingsRefused if the settings name too many queues: then the variants cannot be merged
    into one template, or the names do not fit into the environment of a Lambda. Raises RuntimeError
    if CDK's validation fails.
    """
    template_by_variant: dict[_StackVariant, Any] = {}
    with TemporaryDirectory(prefix="mendq-") as folder:
        for variant in _STACK_VARIANTS:
            assembly = _synthesize_variant(
                Path(folder), variant, settings, bucket_name_pattern, code
            )
            template_file = assembly / f"{STACK_NAME}.template.json"
            template_by_variant[variant] = json.loads(template_file.read_text())
        # The files are the same in each variant.
        file_by_key = dict(_list_files(assembly / f"{STACK_NAME}.assets.json"))
    expression_by_used_condition: dict[str, Any] = {}
    try:
        template: dict[str, Any] = _merge_parts(template_by_variant, expression_by_used_condition)
    except _VariantsNotMergeable as error:
        # In some variants a role has so many statements that CDK adds another policy.
        remedy = "name fewer, by the start of their names and a *, or tag them"
        fault = "are more than the template of a stack set can name"
        raise SettingsRefused([Mistake("queues", fault, remedy)]) from error
    template["Conditions"] = {**template.get("Conditions", {}), **expression_by_used_condition}
    template["Parameters"][_MODE_PARAMETER]["Default"] = str(settings.mode)
    template["Parameters"][_TAG_MODE_PARAMETER]["Default"] = str(settings.tag_may_raise_to)
    return template, file_by_key


def _synthesize_variant(
    folder: Path,
    variant: _StackVariant,
    settings: DeploymentSettings,
    bucket_name_pattern: str,
    code: StackCode,
) -> Path:
    """Synthesize one variant below `folder`. Return the folder of its cloud assembly."""
    assembly = folder / f"{variant.can_write_named_queues}-{variant.can_write_tagged_queues}"
    app = make_app(assembly)
    app.node.set_context("aws:cdk:disable-asset-staging", True)
    mode = Mode.HEAL if variant.can_write_named_queues else Mode.OBSERVE
    highest_mode_by_tag = Mode.HEAL if variant.can_write_tagged_queues else Mode.OBSERVE
    synthesizer = cdk.CliCredentialsStackSynthesizer(
        file_assets_bucket_name=bucket_name_pattern, bucket_prefix=ASSET_KEY_PREFIX
    )
    StackSetStack(
        app,
        STACK_NAME,
        settings=replace(settings, mode=mode, tag_may_raise_to=highest_mode_by_tag),
        code=code,
        placement=StackPlacement(synthesizer=synthesizer),
    )
    app.synth()
    return assembly


def _list_files(manifest_file: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file of the assembly except the template: its key in the bucket, and its path."""
    for file in json.loads(manifest_file.read_text())["files"].values():
        if not file["source"]["path"].endswith(".template.json"):
            (destination,) = file["destinations"].values()
            yield (
                destination["objectKey"],
                (manifest_file.parent / file["source"]["path"]).resolve(),
            )


class _VariantsNotMergeable(Exception):
    """The variants differ in a way that no condition of the template can express."""


def _merge_parts(
    part_by_variant: Mapping[_StackVariant, Any], expression_by_used_condition: dict[str, Any]
) -> Any:
    """Merge one part of the variants' templates.

    A statement that all variants have stays as it is. A statement that only some variants have is
    put under a condition. Raises _VariantsNotMergeable if no condition can express the difference.

    Args:
        part_by_variant: the part in each variant.
        expression_by_used_condition: expressions of the used conditions, by name; this function
            adds to this dict.
    """
    part_of_first_variant, *parts_of_other_variants = part_by_variant.values()
    if all(
        part_of_other_variant == part_of_first_variant
        for part_of_other_variant in parts_of_other_variants
    ):
        return part_of_first_variant
    if isinstance(part_of_first_variant, list):
        return list(_merge_statements(part_by_variant, expression_by_used_condition))
    if any(
        part_of_other_variant.keys() != part_of_first_variant.keys()
        for part_of_other_variant in parts_of_other_variants
    ):
        raise _VariantsNotMergeable
    merged_part = {}
    for name in part_of_first_variant:
        inner_part_by_variant = {variant: part[name] for variant, part in part_by_variant.items()}
        merged_part[name] = _merge_parts(inner_part_by_variant, expression_by_used_condition)
    return merged_part


def _merge_statements(
    statements_by_variant: Mapping[_StackVariant, Sequence[Any]],
    expression_by_used_condition: dict[str, Any],
) -> Iterator[Mapping[str, Any]]:
    """Yield every statement of the variants, under a condition if not all variants have it."""
    statement_texts = dict.fromkeys(
        json.dumps(statement)
        for statements in statements_by_variant.values()
        for statement in statements
    )
    for statement_text in statement_texts:
        statement = json.loads(statement_text)
        variants_with_statement = {
            variant
            for variant, statements in statements_by_variant.items()
            if statement in statements
        }
        if variants_with_statement == set(_STACK_VARIANTS):
            yield statement
        else:
            condition = _find_condition(variants_with_statement)
            expression_by_used_condition[condition.name] = condition.expression
            yield {"Fn::If": [condition.name, statement, _AWS_NO_VALUE]}


def _find_condition(variants: set[_StackVariant]) -> _TemplateCondition:
    """Return the condition that is true in these variants only, or raise _VariantsNotMergeable."""
    for condition in _TEMPLATE_CONDITIONS:
        if condition.variants == variants:
            return condition
    raise _VariantsNotMergeable
