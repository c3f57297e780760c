"""Every private name of MiniStack that the local account hooks or reads, as it was when pinned.

A new version may move any of them without a word: the test of this table says which.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from importlib.metadata import version

PINNED = "1.5.33"

# Module -> name -> the signature of a function, or the type of anything else.
NAMES: dict[str, dict[str, str]] = {
    "ministack.app": {
        "app": "(scope, receive, send)",
        "AUTH": "bool",
    },
    "ministack.core.concurrency": {"esm_wake": "Event"},
    "ministack.core.iam_evaluator": {
        "EvalContext": "type",
        "CredentialResolutionError": "type",
        "evaluate_resource_policy": (
            "(doc: str | dict | None, ctx: ministack.core.iam_evaluator.EvalContext, "
            "service: str | None = None, named_only: bool = False, direct_only: bool = False) "
            "-> ministack.core.iam_evaluator.EvalResult"
        ),
        "resolve_credential": "",
    },
    "ministack.core.lambda_runtime": {
        "_RESERVED_RUNTIME_ENV_VARS": "set",
        "_account_region_from_function_config": "(config: dict) -> tuple[str, str]",
        "execution_credentials": "(config: dict) -> dict[str, str]",
        "reset": "()",
        "subprocess": "module",
    },
    "ministack.services.cloudformation.provisioners": {"_RESOURCE_HANDLERS": "dict"},
}


def moved() -> Iterator[str]:
    """What is no longer as it was, one sentence each."""
    found = version("ministack")
    if found != PINNED:
        yield f"ministack is {found}, the hooks were written for {PINNED}"
    for module_name, names in NAMES.items():
        module = importlib.import_module(module_name)
        for name, shape in names.items():
            if not hasattr(module, name):
                yield f"{module_name}.{name} is gone"
            elif (now := shape_of(getattr(module, name))) != shape:
                yield f"{module_name}.{name} was {shape} and is {now}"


def shape_of(thing: object) -> str:
    """The signature of a function, the type's name of anything else."""
    if inspect.isfunction(thing):
        return str(inspect.signature(thing))
    return type(thing).__name__
