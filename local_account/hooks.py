"""Putting a function around one of the emulator's own, and a service beside its own."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

import ministack.app
from ministack.core import iam_actions, router

Function = TypeVar("Function", bound=Callable[..., Any])


def around(owner: Any, *names: str) -> Callable[[Function], Function]:
    """Put the decorated function in the place of `owner`'s; its first argument is what was there.

    `owner` is a module, a class, or a mapping of names to functions. Hooks of one name nest: the
    latest comes first. Once per process.
    """

    def put(function: Function) -> Function:
        for name in names:
            if isinstance(owner, MutableMapping):
                owner[name] = _around(owner[name], function)
            else:
                setattr(owner, name, _around(getattr(owner, name), function))
        return function

    return put


def _around(inner: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function, not a partial: a class binds that to its instance."""

    def hooked(*given: Any, **named: Any) -> Any:
        return function(inner, *given, **named)

    return hooked


def serve(service: str, model: str, handle: Callable[..., Any]) -> None:
    """Have `handle` answer a service that MiniStack does not know; `model` is botocore's name."""
    ministack.app.SERVICE_HANDLERS[service] = handle
    # MiniStack looks for an unlisted name in all of botocore's models, and answers nobody
    # meanwhile: seconds, in which Lambdas give up their own calls.
    router.SERVICE_PATTERNS[service] = {"credential_scope": service}
    iam_actions.SERVICE_TO_IAM_NAMESPACE[service] = service
    iam_actions._BOTOCORE_SERVICE_MAP[service] = [model]
