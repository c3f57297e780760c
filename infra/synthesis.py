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
from infra.packaging.zips import LAMBDA_PLATFORM_OPTIONS, LAMBDAS_ZIP, REPORT_ZIP, stage_lambda_code
from infra.scan_only_stack import ScanOnlyStack
from infra.settings.deployment import DeploymentSettings, Environment
from infra.settings.hook import STACK_NAME
from infra.settings.reading import (
    Mistake,
    SettingsRefused,
    is_duplicate_key_marker,
    load_object,
    parse_json,
)
from infra.settings.warnings import find_unusable_settings, make_stack_settings
from infra.stack import MendqStack, StackCode, StackPlacement

CDK_JSON_FILE = ROOT / "cdk.json"


def make_app(outdir: Path | None = None) -> cdk.App:
    """Return a CDK app with the context of cdk.json, which otherwise only the CDK CLI reads.

    Context from the CLI's option `-c` replaces the same key of cdk.json. The cloud assembly is
    written to `outdir`, otherwise to the folder that the CLI gives in CDK_OUTDIR, otherwise to
    `cdk.out`. Raises SettingsRefused if cdk.json cannot be read, is no JSON object, or has the
    settings in a wrong place.
    """
    output_folder = outdir or os.environ.get("CDK_OUTDIR") or ROOT / "cdk.out"
    return cdk.App(context=_load_context(), outdir=str(output_folder))


def load_raw_settings(app: cdk.App, settings_file: str = "") -> Any:
    """Return the settings as the user wrote them: from `settings_file`, or from the app's context.

    The context is in cdk.json, or comes from `-c mendq='{..}'`. Raises SettingsRefused if the
    settings are not JSON, or if the file cannot be read or is not an object. From the context, the
    result may be something other than an object: the caller must check that, as
    `read_deployment_settings` does.
    """
    if settings_file:
        return load_object(Path(settings_file))
    raw_settings = app.node.try_get_context("mendq")
    if isinstance(raw_settings, str):
        raw_settings = _parse_settings(
            raw_settings, "mendq", """write it as {"mode": "heal"}, behind -c in quotes"""
        )
    return {} if raw_settings is None else raw_settings


def _load_context() -> Mapping[str, Any]:
    """Return the object `context` of cdk.json.

    Raises SettingsRefused if cdk.json cannot be read, is not an object, has a key twice, or has the
    settings in a place where the CDK does not find them.
    """
    try:
        cdk_json_text = CDK_JSON_FILE.read_text("utf-8")
    except OSError as error:
        fault = f"cannot be read ({error.strerror})"
        remedy = "restore it: git checkout cdk.json"
        raise SettingsRefused([Mistake(CDK_JSON_FILE.name, fault, remedy)]) from error
    except ValueError as error:
        fault = "is not JSON (it is not UTF-8)"
        raise SettingsRefused([Mistake(CDK_JSON_FILE.name, fault, "fix it there")]) from error
    cdk_json = _parse_settings(cdk_json_text, CDK_JSON_FILE.name, "fix it there")
    if not isinstance(cdk_json, dict):
        raise SettingsRefused([Mistake(CDK_JSON_FILE.name, "is not an object", "write it as {..}")])
    context: Mapping[str, Any] = cdk_json.get("context", {})
    if is_duplicate_key_marker(context):
        raise SettingsRefused([Mistake("context", "is there twice", "leave one out")])
    if not isinstance(context, dict):
        raise SettingsRefused([Mistake("context", "is not an object", "write it as {..}")])
    mistakes = [
        Mistake(key, "is there twice", "leave one out")
        for key, value in {**cdk_json, **context}.items()
        if is_duplicate_key_marker(value)
    ]
    if not mistakes:
        mistakes = list(_find_misplaced_settings(cdk_json, context))
    if mistakes:
        raise SettingsRefused(mistakes)
    return context


def _find_misplaced_settings(
    cdk_json: Mapping[str, Any], context: Mapping[str, Any]
) -> Iterator[Mistake]:
    """Yield a mistake if the settings are under a wrong key, where nothing reads them."""
    if "mendq" in cdk_json:
        yield Mistake("mendq", "stands beside `context`, where nobody reads it", "move it in")
    if "mendq" not in context:
        for key in get_close_matches("mendq", context, cutoff=0.8):
            yield Mistake(f"context.{key}", "no such object", "did you mean mendq?")


def _parse_settings(text: str, path: str, remedy: str) -> Any:
    """Parse JSON. Raise SettingsRefused, with `path` and `remedy`, if it is not JSON."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise SettingsRefused([Mistake(path, f"is not JSON ({error})", remedy)]) from error


def synthesize(
    settings: DeploymentSettings,
    app: cdk.App,
    platform_options: Sequence[str] = LAMBDA_PLATFORM_OPTIONS,
    code: StackCode | None = None,
) -> cx_api.CloudAssembly:
    """Write the cloud assembly, with one stack named Mendq for each environment in the settings.

    If the settings name no environment, there is one stack, for the account and region of the
    credentials.

    Args:
        settings: the deployment's settings.
        app: the CDK app, which names the folder of the assembly.
        platform_options: options of `uv pip install` for the platform that the packages run on.
        code: the staged code; None: this function stages it for `platform_options`.

    Raises:
        SettingsRefused: A stack could not use a setting because of its account or region, or a list
            in the settings is too long for the environment variables of a Lambda.
        WheelsUnavailable: A package that a zip needs is missing.
        RuntimeError: CDK's validation failed.
    """
    cdk_environments = [_convert_environment(environment) for environment in settings.environments]
    if not cdk_environments:
        cdk_environments = [_convert_environment(None)]
    regions = [str(cdk_environment.region) for cdk_environment in cdk_environments]
    accounts = {
        account
        for cdk_environment in cdk_environments
        if (account := _find_account(cdk_environment))
    }
    mistakes = list(find_unusable_settings(settings, regions, accounts))
    if mistakes:
        raise SettingsRefused(mistakes)
    with TemporaryDirectory(prefix="mendq-") as folder:
        staged_code = code or stage_code(Path(folder), platform_options)
        for cdk_environment in cdk_environments:
            is_the_only_stack = len(cdk_environments) == 1
            construct_id = (
                STACK_NAME
                if is_the_only_stack
                else f"Mendq-{cdk_environment.account}-{cdk_environment.region}"
            )
            _add_stack(app, construct_id, cdk_environment, settings, staged_code)
        return app.synth()


def _add_stack(
    app: cdk.App,
    construct_id: str,
    cdk_environment: cdk.Environment,
    settings: DeploymentSettings,
    code: StackCode,
) -> None:
    """Add the stack of one account and region. `construct_id` is the id of its construct."""
    placement = StackPlacement(stack_name=STACK_NAME, environment=cdk_environment)
    stack_settings = make_stack_settings(
        settings, _find_account(cdk_environment), str(cdk_environment.region)
    )
    if settings.scan_only:
        ScanOnlyStack(
            app,
            construct_id,
            settings=stack_settings,
            lambda_code=code.lambdas,
            placement=placement,
        )
        return
    MendqStack(app, construct_id, settings=stack_settings, code=code, placement=placement)


def synthesize_undeployable_template(
    settings: DeploymentSettings, region: str
) -> Mapping[str, Any]:
    """Return the template of one stack, with small files in place of the code.

    It takes seconds and cannot be deployed. Raises RuntimeError if CDK's validation fails, and
    SettingsRefused if cdk.json, or a list in the settings, cannot be used.
    """
    with TemporaryDirectory(prefix="mendq-") as folder:
        app = make_app(Path(folder) / "cdk.out")
        code = make_empty_code(Path(folder) / "code")
        _add_stack(app, STACK_NAME, cdk.Environment(region=region), settings, code)
        template: Mapping[str, Any] = app.synth().get_stack_by_name(STACK_NAME).template
        return template


def make_empty_code(folder: Path) -> StackCode:
    """Write small files in place of the 100 MB of code, and return their paths.

    They are for a synthesis that is not deployed.
    """
    folder.mkdir()
    # The CDK refuses an empty asset, and an asset with the same content as another.
    lambda_module = folder / "index.py"
    entry_point = folder / "job.py"
    modules_path = folder / "job.zip"
    package_archive = folder / "compiled.tgz"
    for file in (lambda_module, entry_point, modules_path, package_archive):
        file.write_text(file.name)
    package = emr.EmrPackage(
        modules_path=modules_path, entry_point=entry_point, package_archive=package_archive
    )
    return StackCode(lambdas=folder, report=folder, job=package)


def stage_code(
    folder: Path, platform_options: Sequence[str] = LAMBDA_PLATFORM_OPTIONS
) -> StackCode:
    """Write the code that is deployed, and the packages that it needs, below `folder`.

    Return the paths. Raises WheelsUnavailable if a package is missing.
    """
    lambdas_folder = folder / "lambdas"
    report_folder = folder / "report"
    stage_lambda_code(lambdas_folder, LAMBDAS_ZIP, platform_options)
    stage_lambda_code(report_folder, REPORT_ZIP, platform_options)
    return StackCode(
        lambdas=lambdas_folder,
        report=report_folder,
        job=emr.stage_job_code(folder / "job", platform_options),
    )


def _convert_environment(environment: Environment | None) -> cdk.Environment:
    """Return account and region of a stack in CDK's form.

    If the settings name no environment, the account stays open until the deployment. The region
    does not, because names of roles contain it.
    """
    if environment is not None:
        return cdk.Environment(account=environment.account, region=environment.region)
    region, _ = find_default_region_and_account()
    return cdk.Environment(region=region)


def _find_account(cdk_environment: cdk.Environment) -> str | None:
    """Return the account of a stack, or that of the credentials; None if neither is known."""
    _, default_account = find_default_region_and_account()
    return cdk_environment.account or default_account


def find_default_region_and_account() -> tuple[str, str | None]:
    """Return the region and the account of a stack if the settings name no environments.

    The CDK CLI takes them from the credentials. If it gives no region, the region is AWS_REGION,
    otherwise us-east-1. The account is None if it is not known.
    """
    region = os.environ.get("CDK_DEFAULT_REGION") or os.environ.get("AWS_REGION") or "us-east-1"
    return region, os.environ.get("CDK_DEFAULT_ACCOUNT")
