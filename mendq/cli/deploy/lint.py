"""`mendq lint TEMPLATE`: find symptoms in a template, without AWS and without credentials."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.cli.commands import CommandKind, command
from mendq.cli.deploy.lint_text import print_run
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.mute_list import ConfigOption, MuteList, read_mute_list
from mendq.lint.ignores import StaleEntry
from mendq.lint.judging import (
    CHECKED_SYMPTOMS,
    LINT_SEVERITY_BY_CLASS,
    LintFinding,
    LintResult,
    LintSeverity,
)
from mendq.lint.judging import lint as lint_template
from mendq.lint.run import LintRun
from mendq.model.json_text import to_json
from mendq.model.severity_class import SeverityClass

CDK_OUT_FOLDER = "cdk.out"
_TEMPLATE_HELP = "A template, a folder of .tf files, a Terraform plan, a cdk.out folder, or -."
_FORMAT_HELP = "github: annotations beside the lines; sarif: code scanning."
_LINTED_SYMPTOM_NAMES = [symptom.name for symptom in CHECKED_SYMPTOMS]
_IGNORE_HELP = "Leave findings of this symptom out; repeat for several symptoms."
_FAIL_ON_HELP = (
    "Exit with 1 if there is a finding of this severity or class, or a worse one: "
    f"{', '.join(LintSeverity)}; {', '.join(SeverityClass)}."
)
_BASELINE_HELP = "Report only what is not in this file."
_WRITE_BASELINE_HELP = "Create the baseline from today's findings."
_CLASS_HELP = "Show and count only findings of this class; repeat for several classes."


class OutputFormat(StrEnum):
    """Output formats of `mendq lint`.

    With --json, standard output is that of `json`, and standard error that of `text`.
    """

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


@command(1, CommandKind.OFFLINE)
def lint(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    templates: Annotated[list[str], typer.Argument(metavar="TEMPLATE", help=_TEMPLATE_HELP)],
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help=_FORMAT_HELP)
    ] = OutputFormat.TEXT,
    ignore: Annotated[list[str] | None, typer.Option(metavar="SYMPTOM", help=_IGNORE_HELP)] = None,
    fail_on: Annotated[
        str, typer.Option(metavar="SEVERITY", help=_FAIL_ON_HELP)
    ] = LintSeverity.WARNING,
    severity_classes: Annotated[
        list[SeverityClass] | None, typer.Option("--class", help=_CLASS_HELP)
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help=_BASELINE_HELP, show_default=False)
    ] = None,
    must_write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help=_WRITE_BASELINE_HELP)
    ] = False,
    config: ConfigOption = None,
) -> Exit:
    """Find symptoms in a template, plan or .tf files; offline. Exits with 1 if it finds one.

    Notes alone end it with 0. With `--fail-on error`, only errors count.

    Examples:
      mendq lint template.yaml
      mendq lint infra                 # a folder with .tf files
      mendq lint cdk.out --baseline queues.json --format sarif > mendq.sarif
    """
    _refuse_unknown_symptoms(ignore or ())
    failing_classes = _list_failing_classes(fail_on)
    shown_classes = severity_classes or list(SeverityClass)
    mute_list = read_mute_list(config)
    if must_write_baseline and baseline is None:
        raise CommandError("--write-baseline needs --baseline FILE", Exit.USAGE)
    with _explain_missing_package(templates):
        from mendq.lint import view  # noqa: F401, PLC0415 - fails here without the extra `lint`

        results: list[LintResult] = []
        for template in templates:
            results.extend(_lint_argument(template, ignore or ()))
    results = [_mute_findings(result, mute_list) for result in _leave_out_nested(results)]
    run = LintRun(results)
    if baseline is not None:
        if must_write_baseline:
            _write_baseline(baseline, results)
        run = _compare_with_baseline(baseline, results)
    stale_mutes = [
        StaleEntry(place, mute.symptom, because) for place, mute, because in mute_list.list_stale()
    ]
    run = replace(
        run,
        results=[_select_findings(result, shown_classes) for result in run.results],
        stale_entries=[*run.stale_entries, *stale_mutes],
    )
    _print_run(call, run, output_format)
    found_classes = {
        finding.severity_class for result in run.results for finding in result.findings
    }
    return Exit.FAILED if found_classes & failing_classes else Exit.DONE


def _leave_out_nested(results: Sequence[LintResult]) -> list[LintResult]:
    """Return the results without those of templates that another result judges as nested stacks.

    Alone, such a template has other values than in its stack, so its findings could contradict. If
    two templates contain each other, both are kept: neither can be deployed.
    """
    inner_paths_by_path = {Path(result.file).resolve(): set[Path]() for result in results}
    for result in results:
        path = Path(result.file).resolve()
        inner_paths_by_path[path].update(
            (path.parent / name).resolve() for name in result.nested_files
        )
    kept_results = list[LintResult]()
    for result in results:
        path = Path(result.file).resolve()
        is_nested = any(
            path in inner_paths and outer_path not in inner_paths_by_path[path]
            for outer_path, inner_paths in inner_paths_by_path.items()
        )
        if not is_nested:
            kept_results.append(result)
    return kept_results


def _print_run(call: Invocation, run: LintRun, output_format: OutputFormat) -> None:
    """Print the run in the chosen format."""
    from mendq.lint import view  # noqa: PLC0415 - of the extra `lint`

    call.out.print_json(view.make_document(run))
    if output_format is OutputFormat.TEXT or call.as_json:
        print_run(call.out, run)
    elif output_format is OutputFormat.GITHUB:
        sys.stdout.writelines(f"{line}\n" for line in view.list_github_commands(run))
    else:
        document = (
            view.make_sarif(run.results)
            if output_format is OutputFormat.SARIF
            else view.make_document(run)
        )
        sys.stdout.write(f"{to_json(document, indent=2)}\n")


def _mute_findings(result: LintResult, mute_list: MuteList) -> LintResult:
    """Return the result with the muted findings among the ignored ones."""
    for logical_id, queue_name in result.queue_name_by_id.items():
        mute_list.note_checked(result.checked_symptoms, logical_id, queue_name)
        unchecked_symptoms = SYMPTOM_BY_NAME.keys() - result.checked_symptoms
        mute_list.note_unchecked(unchecked_symptoms, logical_id, queue_name)
    findings: list[LintFinding] = []
    muted_findings: list[LintFinding] = []
    for finding in result.findings:
        queue_name = result.queue_name_by_id.get(finding.resource, "")
        mute = mute_list.find(finding.symptom, finding.resource, queue_name)
        if mute is None:
            findings.append(finding)
        else:
            reason = f"muted until {mute.until}: {mute.reason}"
            muted_findings.append(replace(finding, ignore_reason=reason))
    return replace(result, findings=findings, ignored=[*result.ignored, *muted_findings])


def _write_baseline(path: Path, results: Sequence[LintResult]) -> None:
    """Write all findings to the baseline. Raises CommandError if the file cannot be written."""
    from mendq.lint.baseline import write_baseline  # noqa: PLC0415 - few runs need it

    try:
        write_baseline(path, results)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}", Exit.USAGE) from error


def _compare_with_baseline(path: Path, results: Sequence[LintResult]) -> LintRun:
    """Return the run without the findings of the baseline.

    Raises CommandError if the file is missing: a wrong path must not look like a clean run.
    """
    from mendq.lint import baseline  # noqa: PLC0415 - few runs need it

    try:
        entries = baseline.read_baseline(path)
    except FileNotFoundError as error:
        message = f"there is no {path}: write it once with --write-baseline, and commit it"
        raise CommandError(message, Exit.USAGE) from error
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", Exit.USAGE) from error
    except baseline.BaselineUnreadable as error:
        message = f"{path} is not a baseline: {error}. Create it again with --write-baseline"
        raise CommandError(message, Exit.USAGE) from error
    return baseline.compare_with_baseline(path, entries, results)


def _list_failing_classes(fail_on: str) -> frozenset[SeverityClass]:
    """Return the classes whose findings end the command with 1.

    Args:
        fail_on: A severity or a class. Findings of it, and worse ones, count.

    Raises:
        CommandError: It is neither.
    """
    if fail_on in list(SeverityClass):
        last_rank = SeverityClass(fail_on).rank
        return frozenset(
            severity_class for severity_class in SeverityClass if severity_class.rank <= last_rank
        )
    severities = list(LintSeverity)
    if fail_on not in severities:
        known_names = ", ".join((*LintSeverity, *SeverityClass))
        raise CommandError(f"--fail-on {fail_on[:80]!r} is none of {known_names}", Exit.USAGE)
    failing_severities = severities[: severities.index(LintSeverity(fail_on)) + 1]
    return frozenset(
        severity_class
        for severity_class, severity in LINT_SEVERITY_BY_CLASS.items()
        if severity in failing_severities
    )


def _select_findings(result: LintResult, shown_classes: Collection[SeverityClass]) -> LintResult:
    """Return the result with the findings of these classes only."""
    return replace(
        result,
        findings=[
            finding for finding in result.findings if finding.severity_class in shown_classes
        ],
        ignored=[finding for finding in result.ignored if finding.severity_class in shown_classes],
    )


def _refuse_unknown_symptoms(symptom_names: Collection[str]) -> None:
    """Raise CommandError if one of these names is not a symptom that lint can find."""
    unknown_symptoms = [name for name in symptom_names if name not in _LINTED_SYMPTOM_NAMES]
    if unknown_symptoms:
        message = (
            f"--ignore {unknown_symptoms[0]!r} is not a symptom that lint checks: "
            f"{', '.join(_LINTED_SYMPTOM_NAMES)}"
        )
        raise CommandError(message, Exit.USAGE)


@contextmanager
def _explain_missing_package(templates: Sequence[str]) -> Iterator[None]:
    """Raise CommandError in place of ModuleNotFoundError if the block lacks a package.

    If a template is missing too, the error names the template, because that is more useful.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        message = f"{error.name} is not installed: in a clone of Mendq, pip install '.[lint]'"
        for template in templates:
            if template != "-" and not Path(template).exists():
                message = _describe_unreadable_file(template, FileNotFoundError())
                break
        raise CommandError(message, Exit.USAGE) from error


def _lint_argument(template_argument: str, ignored_symptoms: Collection[str]) -> list[LintResult]:
    """Return the results of all templates that one argument of the command names.

    Templates are read one after the other, because all templates of a cdk.out folder may not fit
    into memory. Findings of `ignored_symptoms` are left out. Raises CommandError if a template
    cannot be read.
    """
    from mendq.lint import files, ignores  # noqa: PLC0415 - of the extra `lint`
    from mendq.lint.decode import read_template_source  # noqa: PLC0415 - the same
    from mendq.lint.template import NotATemplate  # noqa: PLC0415 - the same

    results: list[LintResult] = []
    error_prefix = ""
    try:
        for template_source in files.list_template_sources(template_argument):
            error_prefix = f"{template_source.file}: "
            template = read_template_source(template_source)
            result = lint_template(
                template,
                template_source.file,
                template_source.deploy_target,
                ignored_symptoms,
                ignores.list_comment_ignores(
                    template, template_source.content, template_source.folder
                ),
            )
            results.append(result)
            error_prefix = ""
    except NotATemplate as error:
        raise CommandError(f"{error_prefix}{error}", Exit.USAGE) from error
    except OSError as error:
        raise CommandError(
            _describe_unreadable_file(template_argument, error), Exit.USAGE
        ) from error
    except ValueError as error:
        raise CommandError(f"{template_argument} cannot be read: {error}", Exit.USAGE) from error
    return results


def _describe_unreadable_file(template_argument: str, error: OSError) -> str:
    """Return the error's text for a file that cannot be read, with a remedy if it is missing."""
    if not isinstance(error, FileNotFoundError):
        return (
            f"{error.filename or template_argument} cannot be read: "
            f"{error.strerror or 'it is not a file'}"
        )
    synthesis_commands = "`make synth` or `cdk synth`"
    if Path(template_argument).is_dir():
        return f"there is no {error.filename}: write the folder with {synthesis_commands} anew"
    if Path(template_argument).name == CDK_OUT_FOLDER:
        return f"there is no {template_argument}: make it with {synthesis_commands}"
    return (
        f"there is no {template_argument}: name a template, a {CDK_OUT_FOLDER} folder, or - for "
        "standard input"
    )
