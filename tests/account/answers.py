"""Answers of AWS that moto does not give, as they come off the wire."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders


class Body(BytesIO):
    """An answer's body as urllib3 hands it over."""

    def stream(self, **_: Any) -> Any:
        yield self.read()


def make_response(
    request: AWSPreparedRequest, document: object, status: int = 200, **headers: str
) -> AWSResponse:
    """As JSON; `headers` with _ for -."""
    sent = HTTPHeaders()
    for name, value in headers.items():
        sent[name.replace("_", "-")] = value
    body = json.dumps(document).encode()
    return AWSResponse(request.url, status, sent, Body(body))


class _Ok:
    status_code = 200


def answer_instead(client: Any, document: dict[str, Any], calls: str = "") -> None:
    """Every call of the client, or of one kind (`.sqs.ListQueues`), is answered so."""

    def answer(**_: Any) -> tuple[_Ok, dict[str, Any]]:
        return _Ok(), document

    client.meta.events.register_first(f"before-call{calls}", answer)
