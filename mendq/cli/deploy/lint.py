"""`mendq lint TEMPLATE`: what the catalogue finds in a template; offline, without credentials."""

from __future__ import annotations

import sys
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mendq.cli.commands import Kind, command
from mendq.cli.deploy.lint_text import show_findings
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.lint.judging import CHECKED_SYMPTOMS, LintResult, LintSeverity
from mendq.lint.judging import lint as judge
from mendq.model.json_text import to_json

CDK_OUT = "cdk.out"
_TEMPLATE = "A template, a Terraform plan as JSON, a cdk.out folder, or - for stdin."
_FORM = "github: annotations beside the lines; sarif: code scanning."
_SYMPTOMS = [each.name for each in CHECKED_SYMPTOMS]
_IGNORE = "Leave findings of this symptom out; may be given again."
_FAIL_ON = "The least finding that ends it with 1."


class Form(StrEnum):
    """For whom, where it is not --json."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


@command(1, Kind.OFFLINE)
def lint(
    call: Invocation,
    templates: Annotated[list[str], typer.Argument(metavar="TEMPLATE", help=_TEMPLATE)],
    form: Annotated[Form, typer.Option("--format", help=_FORM)] = Form.TEXT,
    ignore: Annotated[list[str] | None, typer.Option(metavar="SYMPTOM", help=_IGNORE)] = None,
    fail_on: Annotated[LintSeverity, typer.Option(help=_FAIL_ON)] = LintSeverity.WARNING,
) -> Exit:
    """What the catalogue finds in a template or plan; offline. Exit 1 where it finds something.

    Examples:
      mendq lint template.yaml
      mendq lint plan.json             # of terraform show -json plan.bin
      mendq lint cdk.out --fail-on error --format sarif > mendq.sarif
    """
    if unknown := [each for each in ignore or () if each not in _SYMPTOMS]:
        line = f"--ignore {unknown[0]!r} is no symptom of a template: {', '.join(_SYMPTOMS)}"
        raise CommandError(line, Exit.USAGE)
    try:
        from mendq.lint import view  # noqa: PLC0415 - cfn-lint takes seconds

        judged = [one for each in templates for one in _judged(each, ignore or ())]
    except ModuleNotFoundError as missing:
        line = f"{missing.name} is not installed: in a clone of Mendq, pip install '.[lint]'"
        gone = (each for each in templates if each != "-" and not Path(each).exists())
        line = next((_not_read(each, FileNotFoundError()) for each in gone), line)
        raise CommandError(line, Exit.USAGE) from missing
    call.out.print_json(view.document(judged))
    if form is Form.TEXT or call.as_json:
        show_findings(call.out, judged)
    elif form is Form.GITHUB:
        sys.stdout.writelines(f"{line}\n" for line in view.github_lines(judged))
    else:
        made = view.sarif(judged) if form is Form.SARIF else view.document(judged)
        sys.stdout.write(f"{to_json(made, indent=2)}\n")
    found = {one.severity for each in judged for one in each.findings}
    return Exit.FAILED if found & {fail_on, LintSeverity.ERROR} else Exit.DONE


def _judged(argument: str, ignored: Collection[str]) -> list[LintResult]:
    """One template is read at a time: a manifest may name more than there is room for."""
    from mendq.lint import files  # noqa: PLC0415 - cfn-lint takes seconds
    from mendq.lint.decode import read_template  # noqa: PLC0415 - the same
    from mendq.lint.template import NotATemplate  # noqa: PLC0415 - the same

    judged, at = list[LintResult](), ""
    try:
        for each in files.list_sources(argument):
            at = f"{each.file}: "
            judged.append(judge(read_template(each.content), each.file, each.environment, ignored))
            at = ""
    except NotATemplate as error:
        raise CommandError(f"{at}{error}", Exit.USAGE) from error
    except OSError as error:
        raise CommandError(_not_read(argument, error), Exit.USAGE) from error
    except ValueError as error:
        raise CommandError(f"{argument} cannot be read: {error}", Exit.USAGE) from error
    return judged


def _not_read(argument: str, error: OSError) -> str:
    if not isinstance(error, FileNotFoundError):
        return f"{error.filename or argument} cannot be read: {error.strerror or 'it is no file'}"
    synth = "`make synth` or `cdk synth`"
    if Path(argument).is_dir():
        return f"there is no {error.filename}: write the folder with {synth} anew"
    if Path(argument).name == CDK_OUT:
        return f"there is no {argument}: make it with {synth}"
    return f"there is no {argument}: name a template, a {CDK_OUT} folder, or - for standard input"
