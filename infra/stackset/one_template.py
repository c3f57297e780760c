"""The stack as one template for every account and region of an organization.

No account needs a bootstrap: the zips are in a bucket of each region. The modes are parameters, and
what roles may do depends on them. So the stack is synthesized once for each variant: the queues
that the settings name are written or not, and those that carry the tag are written or not. The
template has every variant's statements; those that only some variants have are under a condition.
For given parameters it is what `make cdk` makes of the same settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import aws_cdk as cdk
from aws_cdk import aws_sns as sns

from infra.settings.deployment import DeploymentSettings, read
from infra.settings.hook import STACK_NAME
from infra.settings.reading import Mistake, SettingsRefused
from infra.settings.warnings import misplaced, of_stack
from infra.stack import Code, MendqStack, Placement
from infra.synthesis import new_app
from infra.topics import Topic, Topics
from mendq.model.limits import MODES, Consent, Mode

REGION = "${AWS::Region}"
# Samples that stand for each stack's account and region while the settings are checked.
_OPEN = {"${AWS::AccountId}": "000000000000", REGION: "xx-stackset-1"}
_LONGEST_REGION = "ap-southeast-99"
# Key prefix of the objects in the bucket, which may hold others.
PREFIX = "mendq/"
_NOTHING = {"Ref": "AWS::NoValue"}
_MODE = "Mode"
_RAISED = "TagMayRaiseTo"
_ADDRESS = r"^$|^[^@\s]{1,64}@[A-Za-z0-9.-]{3,253}$"
PARAMETERS = (_MODE, _RAISED, "UrgentMail", "InfoMail")


class _Variant(NamedTuple):
    """Which queues the variant's roles may write."""

    writes_named: bool
    writes_tagged: bool


_VARIANTS = (
    _Variant(writes_named=False, writes_tagged=False),
    _Variant(writes_named=False, writes_tagged=True),
    _Variant(writes_named=True, writes_tagged=False),
    _Variant(writes_named=True, writes_tagged=True),
)


class _Condition(NamedTuple):
    """A condition of the template: the variants in which it holds, and how CloudFormation tells."""

    name: str
    variants: frozenset[_Variant]
    expression: Mapping[str, Any]


def _is_above_observe(parameter: str) -> dict[str, Any]:
    """CloudFormation's expression that a mode is not observe."""
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
    """The buckets' name with a place for the region. Raise SettingsRefused if it is not a name.

    `our-mendq` and `our-mendq-${AWS::Region}` are the same. So are the second with a doubled dollar
    and what make leaves of it.
    """
    name = text.replace("$$", "$")
    if REGION not in name:
        name = f"{name.rstrip('-')}-{REGION}"
    tried = name.replace(REGION, _LONGEST_REGION)
    if name.count(REGION) != 1 or not re.fullmatch(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", tried):
        fault = f'"{text}" is no name' if text else "is missing"
        remedy = "say one such as our-mendq: each region's own is added, up to 63 characters"
        raise SettingsRefused([Mistake("BUCKET", fault, remedy)])
    return name


def settings_for_many(raw: Mapping[str, Any]) -> DeploymentSettings:
    """Read settings in which `${AWS::AccountId}` and `${AWS::Region}` mean each stack's own.

    Raises SettingsRefused, also for what only one account or region could use.
    """
    text = json.dumps(raw)
    for name, sample in _OPEN.items():
        text = text.replace(name, sample)
    settings = read(json.loads(text))
    mistakes = list(misplaced(settings, [_OPEN[REGION]], {_OPEN["${AWS::AccountId}"]}))
    if settings.environments:
        remedy = "leave it out: where stacks go, the stack set is told"
        mistakes.append(Mistake("environments", "is given to a stack set", remedy))
    if mistakes:
        raise SettingsRefused(mistakes)
    opened: DeploymentSettings = _with_tokens(of_stack(settings, None, _OPEN[REGION]))
    return opened


def _with_tokens(value: Any) -> Any:
    """Replace the samples in `value`, however deep, by tokens of CloudFormation."""
    if type(value) is str:
        account = _OPEN["${AWS::AccountId}"]
        region = _OPEN[REGION]
        return value.replace(account, cdk.Aws.ACCOUNT_ID).replace(region, cdk.Aws.REGION)
    if isinstance(value, tuple):
        return tuple(_with_tokens(entry) for entry in value)
    if isinstance(value, Mapping):
        return {name: _with_tokens(entry) for name, entry in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: _with_tokens(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **changes)
    return value


class StackOfMany(MendqStack):
    """The stack with a parameter for each thing in which accounts may differ."""

    def consent(self, settings: DeploymentSettings, topics: Topics) -> Consent:
        """The same queues as in the settings; how far Mendq may go comes from parameters."""
        mode = self._mode_parameter(_MODE, "How far Mendq may go on the queues that it names")
        raised = self._mode_parameter(_RAISED, "How far a queue's tag mendq may raise it")
        self._add_mail_parameter("Urgent", topics.urgent)
        self._add_mail_parameter("Info", topics.info)
        return replace(super().consent(settings, topics), mode=mode, tag_may_raise_to=raised)

    def _mode_parameter(self, name: str, description: str) -> Any:
        """Add a parameter that is a mode. Return the token that stands for its value."""
        parameter = cdk.CfnParameter(
            self,
            name,
            description=description,
            allowed_values=list(MODES),
            default=str(Mode.OBSERVE),
        )
        return parameter.value_as_string

    def _add_mail_parameter(self, name: str, topic: Topic) -> None:
        """Add a parameter for one more mail address. If it is set, `topic` sends to it."""
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
    """Return the template, and each of its files by its key in the bucket.

    Raises SettingsRefused if too many queues are named, and what CDK's validation raises.
    """
    templates: dict[_Variant, Any] = {}
    with TemporaryDirectory(prefix="mendq-") as folder:
        for variant in _VARIANTS:
            assembly = _synthesize(Path(folder), variant, settings, bucket, code)
            template_file = assembly / f"{STACK_NAME}.template.json"
            templates[variant] = json.loads(template_file.read_text())
        # The files are the same in each variant.
        files = dict(_files(assembly / f"{STACK_NAME}.assets.json"))
    used: dict[str, Any] = {}
    try:
        template: dict[str, Any] = _merge(templates, used)
    except _VariantsDiffer as differ:
        # In some variants only, a role has so many statements that CDK adds another policy.
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
    """Synthesize one variant. Return the folder of its cloud assembly."""
    named = "written" if variant.writes_named else "looked-at"
    tagged = "written" if variant.writes_tagged else "looked-at"
    assembly = folder / f"{named}-{tagged}"
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


def _files(manifest: Path) -> Iterator[tuple[str, Path]]:
    """Each file of the assembly except the template, with its key in the bucket."""
    for file in json.loads(manifest.read_text())["files"].values():
        if not file["source"]["path"].endswith(".template.json"):
            (destination,) = file["destinations"].values()
            yield destination["objectKey"], (manifest.parent / file["source"]["path"]).resolve()


class _VariantsDiffer(Exception):
    """The variants differ in something that no condition expresses."""


def _merge(variants: Mapping[_Variant, Any], used: dict[str, Any]) -> Any:
    """Merge a part of the variants' templates.

    What all variants have is in the result as it is. A statement that only some have is under a
    condition, which is added to `used`. Raises _VariantsDiffer.
    """
    first, *others = variants.values()
    if all(other == first for other in others):
        return first
    if isinstance(first, list):
        return list(_statements(variants, used))
    if any(other.keys() != first.keys() for other in others):
        raise _VariantsDiffer
    merged = {}
    for name in first:
        parts = {variant: part[name] for variant, part in variants.items()}
        merged[name] = _merge(parts, used)
    return merged


def _statements(
    variants: Mapping[_Variant, Sequence[Any]], used: dict[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Every statement of the variants, under a condition if not all of them have it."""
    texts = dict.fromkeys(
        json.dumps(statement) for statements in variants.values() for statement in statements
    )
    for text in texts:
        statement = json.loads(text)
        having = {variant for variant, statements in variants.items() if statement in statements}
        if having == set(_VARIANTS):
            yield statement
        else:
            condition = _condition_of(having)
            used[condition.name] = condition.expression
            yield {"Fn::If": [condition.name, statement, _NOTHING]}


def _condition_of(variants: set[_Variant]) -> _Condition:
    """The condition that holds in exactly these variants; raise _VariantsDiffer without one."""
    for condition in _CONDITIONS:
        if condition.variants == variants:
            return condition
    raise _VariantsDiffer
