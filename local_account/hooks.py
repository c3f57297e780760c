"""Putting a function around one of the emulator's own, and noting which."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import partial
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
                owner[name] = partial(function, owner[name])
            else:
                setattr(owner, name, _bound(partial(function, getattr(owner, name)), owner))
        return function

    return put


def _bound(wrapped: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    """Wrap a method in a function: a class does not bind a partial to its instance."""
    if isinstance(owner, type):

        def bound(*given: Any, **named: Any) -> Any:
            return wrapped(*given, **named)

        return bound
    return wrapped
