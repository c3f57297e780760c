"""GetResources in pages: whoever reads only the first one misses queues, as on AWS.

https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ministack.core.responses import error_response_json
from ministack.services import tagging

ACTION = "GetResources"
MOST_PER_PAGE = 100
Asked = Mapping[str, Any]
Answer = tuple[int, dict[str, str], bytes]


class BadPage(Exception):
    """A page that nobody can be given; the text says why."""


def install() -> None:
    """Hook the action; once per process."""
    tagging._HANDLERS[ACTION] = _paging(tagging._HANDLERS[ACTION])


def page_of(found: Sequence[Any], token: str, most: int) -> tuple[Sequence[Any], str]:
    """One page and the token of the next, empty after the last; raise BadPage."""
    if not 1 <= most <= MOST_PER_PAGE:
        raise BadPage(f"ResourcesPerPage must be between 1 and {MOST_PER_PAGE}")
    if token and not token.isdecimal():
        raise BadPage("PaginationToken is invalid")
    begin = int(token or 0)
    end = begin + most
    return found[begin:end], str(end) if end < len(found) else ""


def _paging(get: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    def getting(asked: Asked) -> Answer:
        status, headers, body = get(asked)
        if status >= 400:
            return status, headers, body
        found = json.loads(body)["ResourceTagMappingList"]
        token, most = asked.get("PaginationToken") or "", asked.get("ResourcesPerPage")
        try:
            page, following = page_of(found, token, MOST_PER_PAGE if most is None else int(most))
        except BadPage as refused:
            refusal: Answer = error_response_json("InvalidParameterException", f"{refused}", 400)
            return refusal
        content = {"ResourceTagMappingList": page, "PaginationToken": following}
        return status, headers, json.dumps(content).encode()

    return getting
