"""`mendq lint TEMPLATE`: what the catalogue finds in a template; offline, without credentials."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from cli.exit_codes import Exit, Stopped
from cli.invocation import Invocation, with_invocation
from cli.lint.files import Source, sources
from cli.lint.findings import Linted, document
from cli.lint.judging import lint as judge
from cli.lint.node import NotATemplate
from cli.lint.reading import read
from cli.lint.view import github_lines, show


class Form(StrEnum):
    """For whom, where it is not --json."""

    TEXT = "text"
    GITHUB = "github"


@with_invocation
def lint(
    call: Invocation,
    template: Annotated[
        str,
        typer.Argument(metavar="TEMPLATE", help="A template, a cdk.out folder, or - for stdin."),
    ],
    form: Annotated[
        Form, typer.Option("--format", help="github: annotations beside the lines.")
    ] = Form.TEXT,
) -> Exit:
    """What the catalogue finds in a template; offline. Exit 1 where it finds something."""
    judged = _judged(template)
    call.out.document(document(judged))
    if form is Form.GITHUB and not call.as_json:
        for line in github_lines(judged):
            sys.stdout.write(f"{line}\n")
    else:
        show(call.out, judged)
    return Exit.FAILED if any(each.findings for each in judged) else Exit.DONE


def _judged(argument: str) -> list[Linted]:
    try:
        every = list(sources(argument))
    except NotATemplate as error:
        raise Stopped(str(error), Exit.USAGE) from error
    except (OSError, ValueError) as error:
        raise Stopped(f"{argument} cannot be read: {error}", Exit.USAGE) from error
    return [_judged_one(each) for each in every]


def _judged_one(source: Source) -> Linted:
    try:
        return judge(read(source.content), source.file, source.environment)
    except NotATemplate as error:
        raise Stopped(f"{source.file}: {error}", Exit.USAGE) from error
