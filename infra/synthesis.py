"""Settings -> stacks -> cloud assembly; what app.py, the tests and the local account call."""

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
from infra.settings.reading import Mistake, SettingsRefused, is_there_twice, object_in, parse
from infra.settings.warnings import misplaced, of_stack
from infra.stack import Code, MendqStack, Placement

CDK_JSON = ROOT / "cdk.json"


def new_app(outdir: Path | None = None) -> cdk.App:
    """An app that knows cdk.json's context, which only the CLI would read; its `-c` wins.

    Raises SettingsRefused where cdk.json cannot be read.
    """
    chosen = outdir or os.environ.get("CDK_OUTDIR") or ROOT / "cdk.out"
    return cdk.App(context=_context(), outdir=str(chosen))


def raw_settings(app: cdk.App, file: str = "") -> Any:
    """The settings as the user wrote them: in `file`, in cdk.json or with `-c mendq='{..}'`.

    Raises SettingsRefused where they are no JSON; whether they are an object, `read` says.
    """
    if file:
        return object_in(Path(file))
    raw = app.node.try_get_context("mendq")
    if isinstance(raw, str):
        raw = _parsed(raw, "mendq", """write it as {"mode": "heal"}, behind -c in quotes""")
    return {} if raw is None else raw


def _context() -> Mapping[str, Any]:
    cdk_json = _parsed(CDK_JSON.read_text(), CDK_JSON.name, "fix it there")
    context: Mapping[str, Any] = cdk_json.get("context", {})
    twice = [key for key, value in {**cdk_json, **context}.items() if is_there_twice(value)]
    mistakes = [Mistake(key, "is there twice", "leave one out") for key in twice]
    if mistakes := mistakes or list(_elsewhere(cdk_json, context)):
        raise SettingsRefused(mistakes)
    return context


def _elsewhere(cdk_json: Mapping[str, Any], context: Mapping[str, Any]) -> Iterator[Mistake]:
    """What nobody would read: all settings would be as shipped."""
    if "mendq" in cdk_json:
        yield Mistake("mendq", "stands beside `context`, where nobody reads it", "move it in")
    if "mendq" not in context:
        for key in get_close_matches("mendq", context, cutoff=0.8):
            yield Mistake(f"context.{key}", "no such object", "did you mean mendq?")


def _parsed(text: str, path: str, remedy: str) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise SettingsRefused([Mistake(path, f"is not JSON ({error})", remedy)]) from error


def synthesize(
    settings: DeploymentSettings,
    app: cdk.App,
    target: Sequence[str] = LAMBDA,
    code: Code | None = None,
) -> cx_api.CloudAssembly:
    """Write the cloud assembly, one stack `Mendq` per environment.

    Its zips are made for `target`, or are `code`. Raises what `stage` raises, SettingsRefused
    where a trail's bucket or a calendar lies elsewhere, and RuntimeError where CDK's own
    validation fails.
    """
    where = [_place(each) for each in settings.environments or (None,)]
    accounts = {known for each in where if (known := each.account or own_place()[1])}
    if mistakes := [*misplaced(settings, [str(each.region) for each in where], accounts)]:
        raise SettingsRefused(mistakes)
    with TemporaryDirectory(prefix="mendq-") as folder:
        staged = code or staged_code(Path(folder), target)
        for place in where:
            name = STACK_NAME if len(where) == 1 else f"Mendq-{place.account}-{place.region}"
            _add(app, name, place, settings, staged)
        return app.synth()


def _add(
    app: cdk.App, name: str, place: cdk.Environment, settings: DeploymentSettings, code: Code
) -> None:
    account = place.account or own_place()[1]
    MendqStack(
        app,
        name,
        settings=of_stack(settings, account, str(place.region)),
        code=code,
        placement=Placement(stack_name=STACK_NAME, environment=place),
    )


def outline(settings: DeploymentSettings, region: str) -> Mapping[str, Any]:
    """The template with empty zips: in seconds, for whoever reads it only.

    Raises RuntimeError where CDK's validation fails.
    """
    with TemporaryDirectory(prefix="mendq-") as folder:
        app, code = new_app(Path(folder) / "cdk.out"), empty_code(Path(folder) / "code")
        _add(app, STACK_NAME, cdk.Environment(region=region), settings, code)
        template: Mapping[str, Any] = app.synth().get_stack_by_name(STACK_NAME).template
        return template


def empty_code(folder: Path) -> Code:
    """Instead of the 100 MB of code, for whatever looks at something else of a stack."""
    folder.mkdir()
    # An asset may not be empty, and no two of them the same file.
    files = [folder / name for name in ("index.py", "job.py", "job.zip", "compiled.tgz")]
    for each in files:
        each.write_text(each.name)
    return Code(folder, folder, emr.EmrPackage(files[2], files[1], files[3]))


def staged_code(folder: Path, target: Sequence[str] = LAMBDA) -> Code:
    """The code that is shipped, in `folder`; raises what `stage` raises."""
    lambdas, report = folder / "lambdas", folder / "report"
    stage(lambdas, LAMBDAS, target)
    stage(report, REPORT, target)
    return Code(lambdas, report, emr.stage(folder / "job", target))


def _place(environment: Environment | None) -> cdk.Environment:
    """The account stays open and the region does not, because role names carry it."""
    if environment is not None:
        return cdk.Environment(account=environment.account, region=environment.region)
    return cdk.Environment(region=own_place()[0])


def own_place() -> tuple[str, str | None]:
    """Region and account, where it is known, of a stack that no environment is named for."""
    region = os.environ.get("CDK_DEFAULT_REGION") or os.environ.get("AWS_REGION") or "us-east-1"
    return region, os.environ.get("CDK_DEFAULT_ACCOUNT")
