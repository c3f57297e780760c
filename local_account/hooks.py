"""Replace functions of the emulator (MiniStack), and add services that it does not have."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

import ministack.app
from ministack.core import iam_actions, router

Function = TypeVar("Function", bound=Callable[..., Any])


def replace_functions(owner: Any, *function_names: str) -> Callable[[Function], Function]:
    """Return a decorator that puts the decorated function in the place of functions of `owner`.

    The decorated function gets the original function as its first argument, and then the caller's
    arguments. If a function is replaced several times, the latest replacement is called first, and
    its original function is the replacement before it. Apply each decorator once per process.

    Args:
        owner: A module, a class, or a mapping of names to functions.
        function_names: The functions to replace.
    """

    def replace_each_function(function: Function) -> Function:
        for name in function_names:
            if isinstance(owner, MutableMapping):
                owner[name] = _bind_original_function(owner[name], function)
            else:
                setattr(owner, name, _bind_original_function(getattr(owner, name), function))
        return function

    return replace_each_function


def _bind_original_function(
    original_function: Any, function: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that calls `function` with `original_function` as its first argument.

    The result is not a `functools.partial`, because a class binds only functions to its instances.
    """

    def call_replacement(*arguments: Any, **keyword_arguments: Any) -> Any:
        return function(original_function, *arguments, **keyword_arguments)

    return call_replacement


def add_service(service: str, model_name: str, handle_call: Callable[..., Any]) -> None:
    """Make `handle_call` answer the calls of a service that MiniStack does not know.

    Args:
        service: The service's name in signatures and IAM actions.
        model_name: botocore's name of the service.
        handle_call: The function that answers a call.
    """
    ministack.app.SERVICE_HANDLERS[service] = handle_call
    # MiniStack searches all of botocore's models for a service that is not listed here. That takes
    # seconds, in which it answers no other call and Lambdas give up their own calls.
    router.SERVICE_PATTERNS[service] = {"credential_scope": service}
    iam_actions.SERVICE_TO_IAM_NAMESPACE[service] = service
    iam_actions._BOTOCORE_SERVICE_MAP[service] = [model_name]
