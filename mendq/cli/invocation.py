"""What every command takes beside its own arguments, and how it ends when something is wrong."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from msgspec import Struct

from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    FactsUnavailable,
    QueueRefusesUs,
    code_of,
)
from mendq.cli.account import Account
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.output import Output

_ABOUT_AWS = (CaseStoreUnavailable, FactsUnavailable, QueueRefusesUs)
_NOT_AWS = "what answers is not AWS: see AWS_ENDPOINT_URL, or endpoint_url of the profile"
_AS_AWS = Annotated[str | None, typer.Option(help="As the AWS CLI's.", show_default=False)]
_JSON = typer.Option("--json", help="One JSON document on standard output.")
_SHARED: dict[str, tuple[Any, Any]] = {
    "profile": (_AS_AWS, None),
    "region": (_AS_AWS, None),
    "stack": (
        Annotated[str, typer.Option(help="The deployed stack.", envvar="MENDQ_STACK")],
        "Mendq",
    ),
    "as_json": (Annotated[bool, _JSON], False),
}


def parse_folder(text: str | Path) -> Path:
    """Return the folder that an option names.

    Raises typer.BadParameter if the text is empty: an unset shell variable must not mean the
    current folder.
    """
    if not f"{text}".strip():
        raise typer.BadParameter("it is empty: name a folder, such as . for this one")
    return Path(text)


class Invocation(Struct, frozen=True, dict=True):
    """One call of the command: for whom, about which account, in which form."""

    profile: str | None = None
    region: str | None = None
    stack: str = "Mendq"
    as_json: bool = False

    @cached_property
    def out(self) -> Output:
        return Output(self.as_json)

    @cached_property
    def account(self) -> Account:
        return Account.of(self.profile, self.region, self.stack)


def with_invocation(
    command: Callable[..., Exit | None], *, asks_aws: bool = True
) -> Callable[..., None]:
    """Give a command an Invocation as its first argument, and its mistakes one line each."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    shared = {name: each for name, each in _SHARED.items() if asks_aws or name == "as_json"}

    @wraps(command)
    def run(**arguments: Any) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        call = Invocation(**{name: arguments.pop(name) for name in shared})
        raise typer.Exit(_code_of(call, lambda: command(call, **arguments)))

    return set_parameters(run, own, shared)


def set_parameters(
    run: Callable[..., Any],
    own: Iterable[inspect.Parameter],
    options: Mapping[str, tuple[Any, Any]],
) -> Callable[..., Any]:
    """Have Typer see these parameters and, after them, options by name: annotation and default."""
    by_name = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(name, by_name, annotation=kind, default=default)
        for name, (kind, default) in options.items()
    ]
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return run


def _code_of(call: Invocation, work: Callable[[], Exit | None]) -> Exit:
    try:
        return work() or Exit.DONE
    except CommandError as stopped:
        wrong = stopped
    except CaseStoreUnreadable as error:
        remedy = "use the mendq of the version that is deployed"
        line = f"the case store holds what this version cannot read ({error}): {remedy}"
        wrong = CommandError(line, error_code="case_store_unreadable")
    except (ClientError, BotoCoreError, _no_answer_of_aws(), *_ABOUT_AWS) as error:
        wrong = CommandError(describe_error(error), error_code=_word_of(find_aws_cause(error)))
    except KeyError as strange:  # botocore's, where an answer is XML and none of AWS's
        if not f"{strange.args[0]}".endswith("Result"):
            raise
        wrong = CommandError(_NOT_AWS)
    call.out.report_error(wrong)
    return wrong.code


def _no_answer_of_aws() -> type[Exception]:
    """Imported where something has gone wrong: a command's help does without."""
    from botocore.parsers import ResponseParserError  # noqa: PLC0415

    return ResponseParserError


def find_aws_cause(error: Exception) -> Exception:
    """What AWS or the way there gave, where the error of ours is only about that."""
    cause = error.__cause__
    return cause if isinstance(cause, ClientError | BotoCoreError) else error


def _word_of(cause: Exception) -> str:
    if isinstance(cause, ClientError):
        return code_of(cause)
    return type(cause).__name__ if isinstance(cause, BotoCoreError) else ""


def describe_error(error: Exception) -> str:
    """Which call AWS refused and why, or what kept us from asking."""
    cause = find_aws_cause(error)
    if isinstance(cause, ClientError):
        message = str(cause.response.get("Error", {}).get("Message", ""))
        words = f"AWS refused {cause.operation_name}: {code_of(cause)}: {message}"
    elif isinstance(cause, NoCredentialsError):
        words = "no credentials: give --profile, or log in as for the AWS CLI"
    elif isinstance(cause, _no_answer_of_aws()):
        words = _NOT_AWS
    else:
        words = str(cause)
    return " ".join(words.split())
