"""Settings -> stacks -> cloud assembly; what app.py, the tests and the local account call."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import cx_api

from infra.packaging import emr
from infra.packaging.wheels import ROOT
from infra.packaging.zips import LAMBDA, REPORT, stage
from infra.settings.deployment import DeploymentSettings, Environment
from infra.settings.reading import Mistake, SettingsRefused, is_there_twice, parse
from infra.settings.warnings import misplaced
from infra.stack import Code, MendqStack

STACK_NAME = "Mendq"
CDK_JSON = ROOT / "cdk.json"


def new_app(outdir: Path | None = None) -> cdk.App:
    """An app that knows cdk.json's context, which only the CLI would read; its `-c` wins.

    Raises SettingsRefused where cdk.json cannot be read.
    """
    chosen = outdir or os.environ.get("CDK_OUTDIR") or ROOT / "cdk.out"
    return cdk.App(context=_context(), outdir=str(chosen))


def raw_settings(app: cdk.App) -> Mapping[str, Any]:
    """The settings as the user wrote them, in cdk.json or with `-c mendq='{..}'`.

    Raises SettingsRefused where they are no JSON object.
    """
    raw = app.node.try_get_context("mendq")
    if isinstance(raw, str):
        raw = _parsed(raw, "mendq", """-c takes one such as '{"mode": "heal"}'""")
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise SettingsRefused([Mistake("mendq", "is not an object", "write it as {..}")])
    return raw


def _context() -> Mapping[str, Any]:
    cdk_json = _parsed(CDK_JSON.read_text(), CDK_JSON.name, "fix it there")
    context: Mapping[str, Any] = cdk_json.get("context", {})
    twice = [key for key, value in {**cdk_json, **context}.items() if is_there_twice(value)]
    if mistakes := [Mistake(key, "is there twice", "leave one out") for key in twice]:
        raise SettingsRefused(mistakes)
    return context


def _parsed(text: str, path: str, remedy: str) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise SettingsRefused([Mistake(path, f"is not JSON ({error})", remedy)]) from error


def synthesize(
    settings: DeploymentSettings,
    app: cdk.App | None = None,
    outdir: Path | None = None,
    target: Sequence[str] = LAMBDA,
) -> cx_api.CloudAssembly:
    """Write the cloud assembly, one stack `Mendq` per environment, its zips for `target`.

    Raises what `stage` raises, SettingsRefused where a trail's bucket or a calendar lies
    elsewhere, and RuntimeError where CDK's own validation fails.
    """
    app = app or new_app(outdir)
    where = [_environment(each) for each in settings.environments or (None,)]
    regions = [str(each.region) for each in where]
    if mistakes := [*misplaced(settings, regions)]:
        raise SettingsRefused(mistakes)
    with tempfile.TemporaryDirectory(prefix="mendq-") as folder:
        code = _staged(Path(folder), target)
        environments = settings.environments
        for environment in environments or (None,):
            MendqStack(
                app,
                _stack_id(environment if len(environments) > 1 else None),
                stack_name=STACK_NAME,
                description="Mendq fixes SQS queues",
                env=_environment(environment),
                analytics_reporting=False,
                settings=settings,
                code=code,
            )
        return app.synth()


def _staged(folder: Path, target: Sequence[str]) -> Code:
    job = emr.stage(folder / "job", target)
    code = Code(folder / "lambdas", folder / "report", job)
    for each in (code.lambdas, code.report):
        each.mkdir()
    stage(code.lambdas, target=target)
    stage(code.report, REPORT, target)
    return code


def _stack_id(environment: Environment | None) -> str:
    if environment is None:
        return STACK_NAME
    return f"{STACK_NAME}-{environment.account}-{environment.region}"


def _environment(environment: Environment | None) -> cdk.Environment:
    """The account stays open and the region does not, because role names carry it."""
    if environment is not None:
        return cdk.Environment(account=environment.account, region=environment.region)
    return cdk.Environment(region=own_place()[0])


def own_place() -> tuple[str, str | None]:
    """Region and account, where it is known, of a stack that no environment is named for."""
    region = os.environ.get("CDK_DEFAULT_REGION") or os.environ.get("AWS_REGION") or "us-east-1"
    return region, os.environ.get("CDK_DEFAULT_ACCOUNT")
