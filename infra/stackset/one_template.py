"""The stack as one template for every account and region of an organization.

It needs no bootstrap there: its zips lie in a bucket of each region. What the template holds for
one mode is what the same settings give `make cdk`: it is synthesized for each, and the statements
that only some have stand in it under a condition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
# What the settings are checked with where an account or a region stands open.
_OPEN = {"${AWS::AccountId}": "000000000000", REGION: "xx-stackset-1"}
_LONGEST_REGION = "ap-southeast-99"
# Where the objects lie in the bucket, which may hold others.
PREFIX = "mendq/"
_NOTHING = {"Ref": "AWS::NoValue"}
_MODE, _RAISED = "Mode", "TagMayRaiseTo"
_ADDRESS = r"^$|^[^@\s]{1,64}@[A-Za-z0-9.-]{3,253}$"
PARAMETERS = (_MODE, _RAISED, "UrgentMail", "InfoMail")

# Whether the queues that are named may be written, and those that are tagged.
_Which = tuple[bool, bool]
_WRITTEN: tuple[_Which, ...] = ((False, False), (False, True), (True, False), (True, True))
_BY_MODE, _BY_TAG = (
    {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, str(Mode.OBSERVE)]}]} for name in (_MODE, _RAISED)
)
_CONDITIONS: Mapping[str, tuple[set[_Which], Mapping[str, Any]]] = {
    "NamedQueuesAreWritten": ({each for each in _WRITTEN if each[0]}, _BY_MODE),
    "TaggedQueuesAreWritten": ({each for each in _WRITTEN if each[1]}, _BY_TAG),
    "QueuesAreWritten": (set(_WRITTEN[1:]), {"Fn::Or": [_BY_MODE, _BY_TAG]}),
}


def bucket_of(text: str) -> str:
    """The buckets' name with the region's place in it; raise SettingsRefused where it is none.

    `our-mendq` and `our-mendq-${AWS::Region}` are the same, and so is what make leaves of the
    second, or a doubled dollar.
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
    """The settings, `${AWS::AccountId}` and `${AWS::Region}` in any text being each stack's own.

    Raises SettingsRefused, also for what one account or region alone could use.
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
    opened: DeploymentSettings = _opened(of_stack(settings, None, _OPEN[REGION]))
    return opened


def _opened(value: Any) -> Any:
    """`value` with tokens of CloudFormation's in the place of the samples."""
    if type(value) is str:
        account, region = _OPEN.values()
        return value.replace(account, cdk.Aws.ACCOUNT_ID).replace(region, cdk.Aws.REGION)
    if isinstance(value, tuple):
        return tuple(map(_opened, value))
    if isinstance(value, Mapping):
        return {name: _opened(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{e.name: _opened(getattr(value, e.name)) for e in fields(value)})
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
    """The template, and each of its files by its key in the bucket.

    Raises SettingsRefused where too many queues are named, and what CDK's validation raises.
    """
    with TemporaryDirectory(prefix="mendq-") as folder:
        apps = {which: _app(Path(folder), which, settings, bucket, code) for which in _WRITTEN}
        files = dict(_files(Path(folder, apps[_WRITTEN[0]], "Mendq.assets.json")))
        templates = {
            which: json.loads(Path(folder, name, "Mendq.template.json").read_text())
            for which, name in apps.items()
        }
    used: dict[str, Any] = {}
    try:
        whole: dict[str, Any] = _joined(templates, used)
    except KeyError as too_many:  # CDK has made a further policy of a role for some modes alone
        remedy = "name fewer, by the start of their names and a *, or tag them"
        fault = "are more than the template of a stack set can name"
        raise SettingsRefused([Mistake("queues", fault, remedy)]) from too_many
    whole["Conditions"] = {**whole.get("Conditions", {}), **used}
    for name, value in ((_MODE, settings.mode), (_RAISED, settings.tag_may_raise_to)):
        whole["Parameters"][name]["Default"] = str(value)
    return whole, files


def _app(folder: Path, which: _Which, settings: DeploymentSettings, bucket: str, code: Code) -> str:
    """Synthesize for the lowest mode, or one that is written in; the assembly's name."""
    name = "-".join(("written" if each else "looked-at") for each in which)
    app = new_app(folder / name)
    app.node.set_context("aws:cdk:disable-asset-staging", True)
    mode, raised = (Mode.HEAL if each else Mode.OBSERVE for each in which)
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
    return name


def _files(manifest: Path) -> Iterator[tuple[str, Path]]:
    for each in json.loads(manifest.read_text())["files"].values():
        if not each["source"]["path"].endswith(".template.json"):
            (destination,) = each["destinations"].values()
            yield destination["objectKey"], (manifest.parent / each["source"]["path"]).resolve()


def _joined(variants: Mapping[_Which, Any], used: dict[str, Any]) -> Any:
    """What all have, and under a condition, which `used` takes, the statements that some have."""
    one, *others = variants.values()
    if all(each == one for each in others):
        return one
    if isinstance(one, list):
        return list(_statements(variants, used))
    names = dict.fromkeys(name for each in variants.values() for name in each)
    return {
        name: _joined({which: each[name] for which, each in variants.items()}, used)
        for name in names
    }


def _statements(
    variants: Mapping[_Which, Sequence[Any]], used: dict[str, Any]
) -> Iterator[Mapping[str, Any]]:
    every = (each for statements in variants.values() for each in statements)
    for text in dict.fromkeys(map(json.dumps, every)):
        statement = json.loads(text)
        where = {which for which, statements in variants.items() if statement in statements}
        if where == set(_WRITTEN):
            yield statement
        else:
            names = {name for name, (meant, _) in _CONDITIONS.items() if meant == where}
            (condition,) = names or {_MODE}
            used[condition] = _CONDITIONS[condition][1]
            yield {"Fn::If": [condition, statement, _NOTHING]}
