"""Find the operation of Lambda's API that an HTTP call requests, with botocore's API model.

MiniStack guesses the IAM action from parts of the path, and makes mistakes. It checks no permission
for updating and deleting mappings. It mistakes GetFunctionConcurrency and DeleteFunctionConcurrency
for PutFunctionConcurrency, and changes of aliases for ListAliases.
https://docs.aws.amazon.com/service-authorization/latest/reference/list_awslambda.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import botocore.session
from ministack.core import iam_actions

from local_account.hooks import replace_functions

INVOKE_PREFIX = "Invoke"  # the IAM action is InvokeFunction, which MiniStack knows


class LambdaCall(NamedTuple):
    """An operation of Lambda's API, and the parameters in the path, such as FunctionName."""

    operation: str
    path_parameters: Mapping[str, str]


class _Route(NamedTuple):
    """The method and path of an operation."""

    operation: str
    method: str
    path: re.Pattern[str]


def install() -> None:
    """Make MiniStack check the IAM action that Lambda checks. Call this once per process."""

    @replace_functions(iam_actions, "extract_iam_action")
    def extract_action(
        original_function: Any, service: str, method: str, path: str, *other_arguments: Any
    ) -> Any:
        call = find_call(method, path) if service == "lambda" else None
        if call is None or call.operation.startswith(INVOKE_PREFIX):
            return original_function(service, method, path, *other_arguments)
        return f"lambda:{call.operation}"


def find_call(method: str, path: str) -> LambdaCall | None:
    """Return the operation with this HTTP method and path, or None if there is none."""
    for route in _list_routes():
        match = route.path.fullmatch(path.rstrip("/"))
        if match and route.method == method:
            values = {name: unquote(value) for name, value in match.groupdict().items()}
            return LambdaCall(route.operation, values)
    return None


@cache
def _list_routes() -> tuple[_Route, ...]:
    """Return the routes of all operations except those that need a query parameter."""
    model = botocore.session.get_session().get_service_model("lambda")
    routes: list[_Route] = []
    for operation in model.operation_names:
        http = model.operation_model(operation).http
        if "?" in http["requestUri"]:
            continue
        pattern = re.sub(r"\{(\w+)\+?\}", r"(?P<\1>[^/]+)", http["requestUri"].rstrip("/"))
        routes.append(_Route(operation, http["method"], re.compile(pattern)))
    return tuple(routes)
