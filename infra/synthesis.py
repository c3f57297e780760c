"""Synthesize stacks from settings into a cloud assembly: templates and the files they refer to.

`app.py`, the tests and the local account call this module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aws_cdk as cdk
from aws_cdk import cx_api

from infra.packaging import emr
from infra.packaging.wheels import ROOT
from infra.packaging.zips import LAMBDA, LAMBDAS, REPORT, stage
from infra.settings.deployment import DeploymentSettings, Environment
from infra.settings.hook import STACK_NAME
from infra.settings.reading import (
    Mistake,
    SettingsRefused,
    is_duplicate,
    load_object,
    parse_json,
)
from infra.settings.warnings import find_misplaced, settings_of_stack
from infra.stack import Code, MendqStack, Placement

CDK_JSON = ROOT / "cdk.json"


def new_app(outdir: Path | None = None) -> cdk.App:
    """Return a CDK app with the context of cdk.json, which otherwise only the CDK CLI reads.

    Context from the CLI's option `-c` replaces the same key of cdk.json. Raises SettingsRefused if
    cdk.json cannot be read.
    """
    output_folder = outdir or os.environ.get("CDK_OUTDIR") or ROOT / "cdk.out"
    return cdk.App(context=_load_context(), outdir=str(output_folder))


def load_raw_settings(app: cdk.App, file: str = "") -> Any:
    """Return the settings as the user wrote them: from `file`, or from the app's context.

    The context is in cdk.json, or comes from `-c mendq='{..}'`. Raises SettingsRefused if the
    settings are no JSON. The result may be something other than an object; `read` checks that.
    """
    if file:
        return load_object(Path(file))
    raw = app.node.try_get_context("mendq")
    if isinstance(raw, str):
        raw = _parse_settings(raw, "mendq", """write it as {"mode": "heal"}, behind -c in quotes""")
    return {} if raw is None else raw


def _load_context() -> Mapping[str, Any]:
    """Return the object `context` of cdk.json.

    Raises SettingsRefused if it cannot be read, has a key twice, or has the settings in a place
    where the CDK does not find them.
    """
    cdk_json = _parse_settings(CDK_JSON.read_text(), CDK_JSON.name, "fix it there")
    context: Mapping[str, Any] = cdk_json.get("context", {})
    mistakes = [
        Mistake(key, "is there twice", "leave one out")
        for key, value in {**cdk_json, **context}.items()
        if is_duplicate(value)
    ]
    if not mistakes:
        mistakes = list(_find_misplaced_settings(cdk_json, context))
    if mistakes:
        raise SettingsRefused(mistakes)
    return context


def _find_misplaced_settings(
    cdk_json: Mapping[str, Any], context: Mapping[str, Any]
) -> Iterator[Mistake]:
    """Yield a mistake if the settings are under a wrong key, so that all defaults would apply."""
    if "mendq" in cdk_json:
        yield Mistake("mendq", "stands beside `context`, where nobody reads it", "move it in")
    if "mendq" not in context:
        for key in get_close_matches("mendq", context, cutoff=0.8):
            yield Mistake(f"context.{key}", "no such object", "did you mean mendq?")


def _parse_settings(text: str, path: str, remedy: str) -> Any:
    """Parse JSON. Raise SettingsRefused, with `path` and `remedy`, if it is no JSON."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise SettingsRefused([Mistake(path, f"is not JSON ({error})", remedy)]) from error


def synthesize(
    settings: DeploymentSettings,
    app: cdk.App,
    target: Sequence[str] = LAMBDA,
    code: Code | None = None,
) -> cx_api.CloudAssembly:
    """Write the cloud assembly, with one stack named Mendq for each environment in the settings.

    Args:
        settings: the deployment's settings.
        app: the CDK app, which names the folder of the assembly.
        target: options of `uv pip install` for the platform that the packages must run on.
        code: the staged code; None: it is staged for `target`.

    Raises:
        SettingsRefused: A stack could not use a setting because of its account or region.
        WheelsUnavailable: A package that a zip needs is missing.
        RuntimeError: CDK's validation failed.
    """
    places = [_cdk_environment(environment) for environment in settings.environments]
    if not places:
        places = [_cdk_environment(None)]
    regions = [str(place.region) for place in places]
    accounts = {account for place in places if (account := _account_of(place))}
    mistakes = list(find_misplaced(settings, regions, accounts))
    if mistakes:
        raise SettingsRefused(mistakes)
    with TemporaryDirectory(prefix="mendq-") as folder:
        staged = code or stage_code(Path(folder), target)
        for place in places:
            is_only = len(places) == 1
            name = STACK_NAME if is_only else f"Mendq-{place.account}-{place.region}"
            _add_stack(app, name, place, settings, staged)
        return app.synth()


def _add_stack(
    app: cdk.App, name: str, place: cdk.Environment, settings: DeploymentSettings, code: Code
) -> None:
    """Add the stack of one account and region. `name` is the id of its construct."""
    MendqStack(
        app,
        name,
        settings=settings_of_stack(settings, _account_of(place), str(place.region)),
        code=code,
        placement=Placement(stack_name=STACK_NAME, environment=place),
    )


def synthesize_outline(settings: DeploymentSettings, region: str) -> Mapping[str, Any]:
    """Return the template of one stack with empty zips. It takes seconds and cannot be deployed.

    Raises RuntimeError if CDK's validation fails.
    """
    with TemporaryDirectory(prefix="mendq-") as folder:
        app = new_app(Path(folder) / "cdk.out")
        code = make_empty_code(Path(folder) / "code")
        _add_stack(app, STACK_NAME, cdk.Environment(region=region), settings, code)
        template: Mapping[str, Any] = app.synth().get_stack_by_name(STACK_NAME).template
        return template


def make_empty_code(folder: Path) -> Code:
    """Write small files in place of the 100 MB of code, for a synthesis that is not deployed."""
    folder.mkdir()
    # The CDK refuses an empty asset, and an asset with the same content as another.
    module = folder / "index.py"
    entry_point = folder / "job.py"
    modules = folder / "job.zip"
    compiled = folder / "compiled.tgz"
    for file in (module, entry_point, modules, compiled):
        file.write_text(file.name)
    package = emr.EmrPackage(modules=modules, entry_point=entry_point, compiled=compiled)
    return Code(lambdas=folder, report=folder, job=package)


def stage_code(folder: Path, target: Sequence[str] = LAMBDA) -> Code:
    """Copy the code and install the packages that are deployed, below `folder`.

    Raises WheelsUnavailable if a package is missing.
    """
    lambdas = folder / "lambdas"
    report = folder / "report"
    stage(lambdas, LAMBDAS, target)
    stage(report, REPORT, target)
    return Code(lambdas=lambdas, report=report, job=emr.stage(folder / "job", target))


def _cdk_environment(environment: Environment | None) -> cdk.Environment:
    """Return account and region of a stack in CDK's form.

    Without an environment in the settings the account stays open until the deployment. The region
    does not, because names of roles contain it.
    """
    if environment is not None:
        return cdk.Environment(account=environment.account, region=environment.region)
    region, _ = default_place()
    return cdk.Environment(region=region)


def _account_of(place: cdk.Environment) -> str | None:
    """Return the account of a stack, or that of the credentials; None if neither is known."""
    _, default_account = default_place()
    return place.account or default_account


def default_place() -> tuple[str, str | None]:
    """Return the region and the account of a stack if the settings name no environments.

    The CDK CLI takes them from the credentials. If it gives no region, the region is AWS_REGION,
    otherwise us-east-1. The account is None if it is not known.
    """
    region = os.environ.get("CDK_DEFAULT_REGION") or os.environ.get("AWS_REGION") or "us-east-1"
    return region, os.environ.get("CDK_DEFAULT_ACCOUNT")
