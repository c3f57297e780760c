"""The options that all commands share, and a command's exit code and error line."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
)
from msgspec import Struct

from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    FactsUnavailable,
    QueueRefusesUs,
    error_code_of,
    is_access_denied,
)
from mendq.cli.account import Account, read_region_variable
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.output import Output

# Mendq's errors that stand for an error of AWS, which is their cause.
_ERRORS_CAUSED_BY_AWS = (CaseStoreUnavailable, FactsUnavailable, QueueRefusesUs)
_NOT_AWS_MESSAGE = "what answers is not AWS: see AWS_ENDPOINT_URL, or endpoint_url of the profile"
_PROFILE_OPTION = typer.Option(help="The AWS profile to use.", show_default=False)
_REGION_OPTION = typer.Option(help="The AWS region to use.", show_default=False)
_JSON_OPTION = typer.Option("--json", help="Print one JSON document on standard output.")
# Annotation and default of each shared option.
_SHARED_OPTIONS: dict[str, tuple[Any, Any]] = {
    "profile": (Annotated[str | None, _PROFILE_OPTION], None),
    "region": (Annotated[str | None, _REGION_OPTION], None),
    "stack": (
        Annotated[str, typer.Option(help="The name of the deployed stack.", envvar="MENDQ_STACK")],
        "Mendq",
    ),
    "as_json": (Annotated[bool, _JSON_OPTION], False),
}


def parse_folder(folder_text: str | Path) -> Path:
    """Return the folder that an option names.

    Raises typer.BadParameter if the text is empty: an unset shell variable must not mean the
    current folder.
    """
    if not f"{folder_text}".strip():
        raise typer.BadParameter("it is empty: name a folder, such as . for this one")
    return Path(folder_text)


class Invocation(Struct, frozen=True, dict=True):
    """One run of a command: the values of the options that all commands share."""

    profile: str | None = None
    region: str | None = None
    stack: str = "Mendq"
    as_json: bool = False

    @cached_property
    def out(self) -> Output:
        return Output(self.as_json)

    @cached_property
    def account(self) -> Account:
        """The account that the options choose. Raises CommandError if they choose none."""
        return Account.from_options(self.profile, self.region, self.stack)


def with_invocation(
    command: Callable[..., Exit | None], *, calls_aws: bool = True
) -> Callable[..., None]:
    """Return a function for Typer that calls `command` with an Invocation as first argument.

    The function has the command's own parameters and the shared options. If the command does not
    ask AWS, `--json` is the only shared option. The function exits with the code that the command
    returns, and prints an expected error as one line.
    """
    _, *command_parameters = inspect.signature(command, eval_str=True).parameters.values()
    shared_options = _SHARED_OPTIONS if calls_aws else {"as_json": _SHARED_OPTIONS["as_json"]}

    @wraps(command)
    def run_command(**arguments: Any) -> None:
        # `main` let Ctrl-C end the process at once. From here on it raises KeyboardInterrupt.
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        invocation = Invocation(**{name: arguments.pop(name) for name in shared_options})
        raise typer.Exit(_run_and_report(invocation, lambda: command(invocation, **arguments)))

    return set_parameters(run_command, command_parameters, shared_options)


def set_parameters(
    command_function: Callable[..., Any],
    command_parameters: Iterable[inspect.Parameter],
    options: Mapping[str, tuple[Any, Any]],
) -> Callable[..., Any]:
    """Set the parameters that Typer sees: the command's own, then `options`.

    `options` gives the annotation and the default of each option by name.
    """
    option_parameters = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
        )
        for name, (annotation, default) in options.items()
    ]
    command_function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*command_parameters, *option_parameters]
    )
    return command_function


def _run_and_report(invocation: Invocation, run_command: Callable[[], Exit | None]) -> Exit:
    """Run a command and return its exit code. Print an expected error and return its code."""
    try:
        return run_command() or Exit.DONE
    except CommandError as error:
        command_error = error
    except CaseStoreUnreadable as error:
        remedy = "use the mendq of the version that is deployed"
        message = f"the case store holds what this version cannot read ({error}): {remedy}"
        command_error = CommandError(message, error_code="case_store_unreadable")
    except (
        ClientError,
        BotoCoreError,
        _load_parser_error_class(),
        *_ERRORS_CAUSED_BY_AWS,
    ) as error:
        cause = find_aws_cause(error)
        message = describe_error(error)
        cure = _suggest_cure(cause, invocation.region or read_region_variable())
        command_error = CommandError(
            f"{message}. {cure}" if cure else message, error_code=_find_error_code(cause)
        )
    except KeyError as error:
        # botocore raises KeyError('...Result') if an answer is XML but not AWS's.
        if not f"{error.args[0]}".endswith("Result"):
            raise
        command_error = CommandError(_NOT_AWS_MESSAGE)
    invocation.out.report_error(command_error)
    return command_error.code


def _load_parser_error_class() -> type[Exception]:
    """Return botocore's error for an unreadable answer.

    It is imported only after an error, so that a command's help starts faster.
    """
    from botocore.parsers import ResponseParserError  # noqa: PLC0415

    return ResponseParserError


def find_aws_cause(error: Exception) -> Exception:
    """Return the error of AWS or of the connection that caused an error of Mendq.

    If there is no such cause, return the error itself.
    """
    cause = error.__cause__
    return cause if isinstance(cause, ClientError | BotoCoreError) else error


def _find_error_code(cause: Exception) -> str:
    """Return AWS's error code or botocore's class name, and an empty text for other errors."""
    if isinstance(cause, ClientError):
        return error_code_of(cause)
    return type(cause).__name__ if isinstance(cause, BotoCoreError) else ""


def _suggest_cure(cause: Exception, region: str) -> str:
    """Return what the operator can do about an error of AWS; empty if that is not known.

    Args:
        cause: The error of AWS or of the connection.
        region: The region that the operator named; empty if that is not known.
    """
    if is_access_denied(cause):
        return (
            "`mendq scan --policy` prints the policy that a scan needs; docs/rights.md has the "
            "actions of every command"
        )
    if isinstance(cause, EndpointConnectionError) and region:
        return _describe_unknown_region(region)
    return ""


def _describe_unknown_region(region: str) -> str:
    """Return that a region has no SQS, with a similar name; empty if it has."""
    from difflib import get_close_matches  # noqa: PLC0415 - only this error needs it

    from botocore.session import get_session  # noqa: PLC0415 - the same

    session = get_session()
    known_regions = [
        known_region
        for partition in session.get_available_partitions()
        for known_region in session.get_available_regions("sqs", partition)
    ]
    if region in known_regions:
        return ""
    close_regions = get_close_matches(region, known_regions, 1)
    question = f": did you mean {close_regions[0]}?" if close_regions else ""
    return f"No region is called {region[:40]!r}, as far as botocore knows{question}"


def describe_error(error: Exception) -> str:
    """Return one line that names the call that AWS refused and why, or why AWS was not reached."""
    cause = find_aws_cause(error)
    if isinstance(cause, ClientError):
        message = str(cause.response.get("Error", {}).get("Message", ""))
        error_line = f"AWS refused {cause.operation_name}: {error_code_of(cause)}: {message}"
    elif isinstance(cause, NoCredentialsError):
        error_line = "no credentials: give --profile, or log in as for the AWS CLI"
    elif isinstance(cause, _load_parser_error_class()):
        error_line = _NOT_AWS_MESSAGE
    else:
        error_line = str(cause)
    return " ".join(error_line.split())
