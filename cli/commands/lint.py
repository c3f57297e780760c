"""`mendq lint TEMPLATE`: what the catalogue finds in a template; offline, without credentials."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
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
from cli.lint.work import Work

CDK_OUT = "cdk.out"


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
    work = Work()
    return [_judged_one(each, work) for each in _sources(argument)]


def _sources(argument: str) -> Iterator[Source]:
    """One at a time: a manifest may name more than there is room for."""
    try:
        yield from sources(argument)
    except NotATemplate as error:
        raise Stopped(str(error), Exit.USAGE) from error
    except OSError as error:
        raise Stopped(_not_read(argument, error), Exit.USAGE) from error
    except ValueError as error:
        raise Stopped(f"{argument} cannot be read: {error}", Exit.USAGE) from error


def _not_read(argument: str, error: OSError) -> str:
    if not isinstance(error, FileNotFoundError):
        return f"{error.filename or argument} cannot be read: {error.strerror or 'it is no file'}"
    synth = "`make synth` or `cdk synth`"
    if Path(argument).is_dir():
        return f"there is no {error.filename}: write the folder with {synth} anew"
    if Path(argument).name == CDK_OUT:
        return f"there is no {argument}: make it with {synth}"
    return f"there is no {argument}: name a template, a {CDK_OUT} folder, or - for standard input"


def _judged_one(source: Source, work: Work) -> Linted:
    try:
        work.begin_template()
        return judge(read(source.content, work), source.file, source.environment, work)
    except NotATemplate as error:
        raise Stopped(f"{source.file}: {error}", Exit.USAGE) from error
