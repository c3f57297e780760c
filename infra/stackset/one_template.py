"""Make one template of the stack, for every account and region of an organization.

No account needs a bootstrap of the CDK: the zips are in a bucket of each region.

The modes are parameters of the template, and the permissions of roles depend on the modes. So the
stack is synthesized in four variants: Mendq may write the queues that the settings name or not, and
the queues that have the tag or not. The template contains the statements of all variants. A
statement that only some variants have is under a condition on the parameters. With given parameters
the template gives the same stack as `make cdk` with the same settings.
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

from infra.settings.deployment import DeploymentSettings, read
from infra.settings.hook import STACK_NAME
from infra.settings.reading import Mistake, SettingsRefused, read_settings
from infra.settings.warnings import find_misplaced, settings_of_stack
from infra.stack import Code, MendqStack, Placement
from infra.synthesis import new_app
from infra.topics import Topic, Topics
from mendq.model.consent import Consent
from mendq.model.mode import MODE_BY_TEXT, Mode

REGION = "${AWS::Region}"
ACCOUNT_ID = "${AWS::AccountId}"
# Values that stand for the account and region of a stack while the settings are checked.
_SAMPLES = {ACCOUNT_ID: "000000000000", REGION: "xx-stackset-1"}
_LONGEST_REGION = "ap-southeast-99"
# Key prefix of Mendq's objects. The bucket may have other objects too.
PREFIX = "mendq/"
_NOTHING = {"Ref": "AWS::NoValue"}
_MODE = "Mode"
_RAISED = "TagMayRaiseTo"
_ADDRESS = r"^$|^[^@\s]{1,64}@[A-Za-z0-9.-]{3,253}$"
PARAMETERS = (_MODE, _RAISED, "UrgentMail", "InfoMail")


class _Variant(NamedTuple):
    """A variant of the stack.

    Its roles can or cannot write queues that the settings name, and queues that have the tag.
    """

    writes_named: bool
    writes_tagged: bool


_VARIANTS = (
    _Variant(writes_named=False, writes_tagged=False),
    _Variant(writes_named=False, writes_tagged=True),
    _Variant(writes_named=True, writes_tagged=False),
    _Variant(writes_named=True, writes_tagged=True),
)


class _Condition(NamedTuple):
    """A condition of the template.

    Attributes:
        name: the condition's name.
        variants: the variants in which it is true.
        expression: CloudFormation's expression of it, which depends on the parameters.
    """

    name: str
    variants: frozenset[_Variant]
    expression: Mapping[str, Any]


def _is_above_observe(parameter: str) -> dict[str, Any]:
    """Return CloudFormation's expression that the value of a parameter is not `observe`."""
    return {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, str(Mode.OBSERVE)]}]}


_CONDITIONS = (
    _Condition(
        "NamedQueuesAreWritten",
        frozenset(variant for variant in _VARIANTS if variant.writes_named),
        _is_above_observe(_MODE),
    ),
    _Condition(
        "TaggedQueuesAreWritten",
        frozenset(variant for variant in _VARIANTS if variant.writes_tagged),
        _is_above_observe(_RAISED),
    ),
    _Condition(
        "QueuesAreWritten",
        frozenset(variant for variant in _VARIANTS if any(variant)),
        {"Fn::Or": [_is_above_observe(_MODE), _is_above_observe(_RAISED)]},
    ),
)


def bucket_of(text: str) -> str:
    """Return the pattern of the buckets' names: `our-mendq` gives `our-mendq-${AWS::Region}`.

    `text` may have the region already: as `our-mendq-${AWS::Region}`, or with the dollar doubled
    for make. Raises SettingsRefused if the result is no valid name.
    """
    name = text.replace("$$", "$")
    if REGION not in name:
        name = f"{name.rstrip('-')}-{REGION}"
    longest = name.replace(REGION, _LONGEST_REGION)
    if name.count(REGION) != 1 or not re.fullmatch(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", longest):
        fault = f'"{text}" is no name' if text else "is missing"
        remedy = "say one such as our-mendq: each region's own is added, up to 63 characters"
        raise SettingsRefused([Mistake("BUCKET", fault, remedy)])
    return name


def settings_for_many(raw: Mapping[str, Any]) -> DeploymentSettings:
    """Read the settings of a stack set.

    In `raw`, `${AWS::AccountId}` and `${AWS::Region}` stand for account and region of each stack.

    Raises SettingsRefused for every mistake, also for a setting that only one account or region
    could use.
    """
    sample_text = json.dumps(raw)
    for placeholder, sample in _SAMPLES.items():
        sample_text = sample_text.replace(placeholder, sample)
    sample_raw = json.loads(sample_text)
    settings = read(sample_raw)
    mistakes = list(find_misplaced(settings, [_SAMPLES[REGION]], {_SAMPLES[ACCOUNT_ID]}))
    if settings.environments:
        remedy = "leave it out: where stacks go, the stack set is told"
        mistakes.append(Mistake("environments", "is given to a stack set", remedy))
    if mistakes:
        raise SettingsRefused(mistakes)
    settings = read_settings(DeploymentSettings, sample_raw, convert_text=_put_tokens)
    return settings_of_stack(settings, None, cdk.Aws.REGION)


def _put_tokens(text: str) -> str:
    """Replace the samples in a text by the CDK's tokens for the stack's account and region."""
    text = text.replace(_SAMPLES[ACCOUNT_ID], cdk.Aws.ACCOUNT_ID)
    return text.replace(_SAMPLES[REGION], cdk.Aws.REGION)


class StackOfMany(MendqStack):
    """The stack with parameters for the modes and for one more mail address of each severity."""

    def make_consent(self, settings: DeploymentSettings, topics: Topics) -> Consent:
        """Return which queues Mendq manages. Their modes are the values of template parameters.

        Add these parameters, and those for mail addresses, to the template.
        """
        mode = self._mode_parameter(_MODE, "How far Mendq may go on the queues that it names")
        raised = self._mode_parameter(_RAISED, "How far a queue's tag mendq may raise it")
        self._add_mail_parameter("Urgent", topics.urgent)
        self._add_mail_parameter("Info", topics.info)
        return replace(super().make_consent(settings, topics), mode=mode, tag_may_raise_to=raised)

    def _mode_parameter(self, name: str, description: str) -> Any:
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
        about = f"Whom {name.lower()} notifications reach, one mail address; empty: nobody more"
        parameter = cdk.CfnParameter(
            self, f"{name}Mail", description=about, allowed_pattern=_ADDRESS, default=""
        )
        address = parameter.value_as_string
        is_given = cdk.CfnCondition(
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
        subscription.cfn_options.condition = is_given


def template_for_many(
    settings: DeploymentSettings, bucket: str, code: Code
) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return the template, and the files that it refers to by their keys in the bucket.

    Raises SettingsRefused if the variants cannot be merged into one template, as happens if the
    settings name too many queues. Raises RuntimeError if CDK's validation fails.
    """
    templates: dict[_Variant, Any] = {}
    with TemporaryDirectory(prefix="mendq-") as folder:
        for variant in _VARIANTS:
            assembly = _synthesize(Path(folder), variant, settings, bucket, code)
            template_file = assembly / f"{STACK_NAME}.template.json"
            templates[variant] = json.loads(template_file.read_text())
        # The files are the same in each variant.
        files = dict(_list_files(assembly / f"{STACK_NAME}.assets.json"))
    used: dict[str, Any] = {}
    try:
        template: dict[str, Any] = _merge(templates, used)
    except _VariantsDiffer as differ:
        # In some variants a role has so many statements that CDK adds another policy.
        remedy = "name fewer, by the start of their names and a *, or tag them"
        fault = "are more than the template of a stack set can name"
        raise SettingsRefused([Mistake("queues", fault, remedy)]) from differ
    template["Conditions"] = {**template.get("Conditions", {}), **used}
    template["Parameters"][_MODE]["Default"] = str(settings.mode)
    template["Parameters"][_RAISED]["Default"] = str(settings.tag_may_raise_to)
    return template, files


def _synthesize(
    folder: Path, variant: _Variant, settings: DeploymentSettings, bucket: str, code: Code
) -> Path:
    """Synthesize one variant below `folder`. Return the folder of its cloud assembly."""
    assembly = folder / f"{variant.writes_named}-{variant.writes_tagged}"
    app = new_app(assembly)
    app.node.set_context("aws:cdk:disable-asset-staging", True)
    mode = Mode.HEAL if variant.writes_named else Mode.OBSERVE
    raised = Mode.HEAL if variant.writes_tagged else Mode.OBSERVE
    own_buckets = cdk.CliCredentialsStackSynthesizer(
        file_assets_bucket_name=bucket, bucket_prefix=PREFIX
    )
    StackOfMany(
        app,
        STACK_NAME,
        settings=replace(settings, mode=mode, tag_may_raise_to=raised),
        code=code,
        placement=Placement(synthesizer=own_buckets),
    )
    app.synth()
    return assembly


def _list_files(manifest: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file of the assembly except the template: its key in the bucket, and its path."""
    for file in json.loads(manifest.read_text())["files"].values():
        if not file["source"]["path"].endswith(".template.json"):
            (destination,) = file["destinations"].values()
            yield destination["objectKey"], (manifest.parent / file["source"]["path"]).resolve()


class _VariantsDiffer(Exception):
    """The variants differ in a way that no condition of the template can express."""


def _merge(variants: Mapping[_Variant, Any], used: dict[str, Any]) -> Any:
    """Merge one part of the variants' templates.

    A statement that all variants have stays as it is. A statement that only some variants have is
    put under a condition. Raises _VariantsDiffer.

    Args:
        variants: the part in each variant.
        used: expressions of the used conditions by name; this function adds to it.
    """
    first, *others = variants.values()
    if all(other == first for other in others):
        return first
    if isinstance(first, list):
        return list(_merge_statements(variants, used))
    if any(other.keys() != first.keys() for other in others):
        raise _VariantsDiffer
    merged = {}
    for name in first:
        parts = {variant: part[name] for variant, part in variants.items()}
        merged[name] = _merge(parts, used)
    return merged


def _merge_statements(
    variants: Mapping[_Variant, Sequence[Any]], used: dict[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield every statement of the variants, under a condition if not all variants have it."""
    texts = dict.fromkeys(
        json.dumps(statement) for statements in variants.values() for statement in statements
    )
    for text in texts:
        statement = json.loads(text)
        present_in = {
            variant for variant, statements in variants.items() if statement in statements
        }
        if present_in == set(_VARIANTS):
            yield statement
        else:
            condition = _condition_of(present_in)
            used[condition.name] = condition.expression
            yield {"Fn::If": [condition.name, statement, _NOTHING]}


def _condition_of(variants: set[_Variant]) -> _Condition:
    """Return the condition that is true in exactly these variants, or raise _VariantsDiffer."""
    for condition in _CONDITIONS:
        if condition.variants == variants:
            return condition
    raise _VariantsDiffer
