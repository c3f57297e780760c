"""Putting a function around one of the emulator's own, and noting which."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

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
