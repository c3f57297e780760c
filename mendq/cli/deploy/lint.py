"""`mendq lint TEMPLATE`: find symptoms in a template, without AWS and without credentials."""

from __future__ import annotations

import sys
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mendq.cli.commands import CommandKind, command
from mendq.cli.deploy.lint_text import show_findings
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.lint.judging import CHECKED_SYMPTOMS, LintResult, LintSeverity
from mendq.lint.judging import lint as judge
from mendq.model.json_text import to_json

CDK_OUT = "cdk.out"
_TEMPLATE = "A template, a Terraform plan as JSON, a cdk.out folder, or - for stdin."
_FORM = "github: annotations beside the lines; sarif: code scanning."
_SYMPTOMS = [symptom.name for symptom in CHECKED_SYMPTOMS]
_IGNORE = "Leave findings of this symptom out; may be given again."
_FAIL_ON = "The least finding that ends it with 1."


class Form(StrEnum):
    """Output formats of `mendq lint`. --json has the same output as `json`."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


@command(1, CommandKind.OFFLINE)
def lint(
    call: Invocation,
    templates: Annotated[list[str], typer.Argument(metavar="TEMPLATE", help=_TEMPLATE)],
    form: Annotated[Form, typer.Option("--format", help=_FORM)] = Form.TEXT,
    ignore: Annotated[list[str] | None, typer.Option(metavar="SYMPTOM", help=_IGNORE)] = None,
    fail_on: Annotated[LintSeverity, typer.Option(help=_FAIL_ON)] = LintSeverity.WARNING,
) -> Exit:
    """Find symptoms in a template or plan; offline. Exits with 1 if it finds one.

    Examples:
      mendq lint template.yaml
      mendq lint plan.json             # of terraform show -json plan.bin
      mendq lint cdk.out --fail-on error --format sarif > mendq.sarif
    """
    unknown = [name for name in ignore or () if name not in _SYMPTOMS]
    if unknown:
        line = f"--ignore {unknown[0]!r} is no symptom of a template: {', '.join(_SYMPTOMS)}"
        raise CommandError(line, Exit.USAGE)
    try:
        from mendq.lint import view  # noqa: PLC0415 - cfn-lint takes seconds

        results: list[LintResult] = []
        for template in templates:
            results.extend(_lint_argument(template, ignore or ()))
    except ModuleNotFoundError as missing:
        line = f"{missing.name} is not installed: in a clone of Mendq, pip install '.[lint]'"
        for template in templates:
            if template != "-" and not Path(template).exists():
                # A missing file is the more useful message.
                line = _unreadable_line(template, FileNotFoundError())
                break
        raise CommandError(line, Exit.USAGE) from missing
    call.out.print_json(view.make_document(results))
    if form is Form.TEXT or call.as_json:
        show_findings(call.out, results)
    elif form is Form.GITHUB:
        sys.stdout.writelines(f"{line}\n" for line in view.list_github_commands(results))
    else:
        document = view.make_sarif(results) if form is Form.SARIF else view.make_document(results)
        sys.stdout.write(f"{to_json(document, indent=2)}\n")
    severities = {finding.severity for result in results for finding in result.findings}
    return Exit.FAILED if severities & {fail_on, LintSeverity.ERROR} else Exit.DONE


def _lint_argument(argument: str, ignored: Collection[str]) -> list[LintResult]:
    """Return the results of all templates that one argument names.

    Templates are read one after the other, because all templates of a cdk.out folder may not fit
    into memory. Raises CommandError if a template cannot be read.
    """
    from mendq.lint import files  # noqa: PLC0415 - cfn-lint takes seconds
    from mendq.lint.decode import read_template  # noqa: PLC0415 - the same
    from mendq.lint.template import NotATemplate  # noqa: PLC0415 - the same

    results: list[LintResult] = []
    place = ""
    try:
        for source in files.list_sources(argument):
            place = f"{source.file}: "
            result = judge(read_template(source.content), source.file, source.target, ignored)
            results.append(result)
            place = ""
    except NotATemplate as error:
        raise CommandError(f"{place}{error}", Exit.USAGE) from error
    except OSError as error:
        raise CommandError(_unreadable_line(argument, error), Exit.USAGE) from error
    except ValueError as error:
        raise CommandError(f"{argument} cannot be read: {error}", Exit.USAGE) from error
    return results


def _unreadable_line(argument: str, error: OSError) -> str:
    """Return the error line for a file that cannot be read, with a remedy if it is missing."""
    if not isinstance(error, FileNotFoundError):
        return f"{error.filename or argument} cannot be read: {error.strerror or 'it is no file'}"
    synth = "`make synth` or `cdk synth`"
    if Path(argument).is_dir():
        return f"there is no {error.filename}: write the folder with {synth} anew"
    if Path(argument).name == CDK_OUT:
        return f"there is no {argument}: make it with {synth}"
    return f"there is no {argument}: name a template, a {CDK_OUT} folder, or - for standard input"
