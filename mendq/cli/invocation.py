"""What every command takes beside its own arguments, and how it ends when something is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    FactsUnavailable,
    QueueRefusesUs,
    code_of,
)
from mendq.cli.account import Account
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.output import Output

_AS_AWS = Annotated[str | None, typer.Option(help="As the AWS CLI's.", show_default=False)]
_JSON = typer.Option("--json", help="One JSON document on standard output.")
_SHARED: dict[str, tuple[Any, Any]] = {
    "profile": (_AS_AWS, None),
    "region": (_AS_AWS, None),
    "stack": (Annotated[str, typer.Option(help="The deployed stack.")], "Mendq"),
    "as_json": (Annotated[bool, _JSON], False),
}


@dataclass(frozen=True)
class Invocation:
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


def with_invocation(command: Callable[..., Exit | None]) -> Callable[..., None]:
    """Give a command an Invocation as its first argument, and its mistakes one line each."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def run(**arguments: Any) -> None:
        call = Invocation(**{name: arguments.pop(name) for name in _SHARED})
        raise typer.Exit(_code_of(call, lambda: command(call, **arguments)))

    return taking(run, own, _SHARED)


def taking(
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
    except Stopped as stopped:
        wrong = stopped
    except (ClientError, BotoCoreError) as error:
        wrong = _of_aws(error)
    except CaseStoreUnreadable as error:
        remedy = "use the mendq of the version that is deployed"
        line = f"the case store holds what this version cannot read ({error}): {remedy}"
        wrong = Stopped(line, word="case_store_unreadable")
    except (CaseStoreUnavailable, FactsUnavailable, QueueRefusesUs) as error:
        cause = error.__cause__
        aws = cause if isinstance(cause, ClientError | BotoCoreError) else None
        wrong = _of_aws(aws) if aws else Stopped(" ".join(str(error).split()))
    call.out.fault(wrong)
    return wrong.code


def _of_aws(error: ClientError | BotoCoreError) -> Stopped:
    word = code_of(error) if isinstance(error, ClientError) else type(error).__name__
    return Stopped(in_one_line(error), word=word)


def in_one_line(error: ClientError | BotoCoreError) -> str:
    """Which call AWS refused and why, or what kept us from asking."""
    if isinstance(error, ClientError):
        message = str(error.response.get("Error", {}).get("Message", ""))
        words = f"AWS refused {error.operation_name}: {code_of(error)}: {message}"
    elif isinstance(error, NoCredentialsError):
        words = "no credentials: give --profile, or log in as for the AWS CLI"
    else:
        words = str(error)
    return " ".join(words.split())
