"""A fake SQS client for heartbeats, which records writes and gives chosen answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any

from botocore.exceptions import ClientError, ConnectTimeoutError


@dataclass
class FakeSqs:
    """Accept every call, except for handles with an error code in `codes`. None means no answer.

    A failed entry of a batch carries `senders_fault` (left out if None), and no code if `codeless`.
    """

    codes: dict[str, str | None] = field(default_factory=dict)
    senders_fault: bool | None = True
    codeless: bool = False
    written: list[tuple[str, str, int | None]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def _alone(self, verb: str, **asked: Any) -> Mapping[str, Any]:
        self._write(verb, asked)
        code = self.codes.get(asked["ReceiptHandle"], "")
        if code is None:
            raise ConnectTimeoutError(endpoint_url="sqs")
        if code:
            raise ClientError({"Error": {"Code": code, "Message": ""}}, verb)
        return {}

    def _batch(self, verb: str, **asked: Any) -> Mapping[str, Any]:
        self.sizes.append(len(asked["Entries"]))
        answer: dict[str, list[Mapping[str, Any]]] = {"Successful": [], "Failed": []}
        for entry in asked["Entries"]:
            self._write(verb, entry)
            code = self.codes.get(entry["ReceiptHandle"], "")
            if not code:
                answer["Successful"].append({"Id": entry["Id"]})
                continue
            failed: dict[str, Any] = {"Id": entry["Id"], "Code": code}
            if self.codeless:
                del failed["Code"]
            if self.senders_fault is not None:
                failed["SenderFault"] = self.senders_fault
            answer["Failed"].append(failed)
        return answer

    def _write(self, verb: str, asked: Mapping[str, Any]) -> None:
        self.written.append((verb, asked["ReceiptHandle"], asked.get("VisibilityTimeout")))

    change_message_visibility = partialmethod(_alone, "change")
    change_message_visibility_batch = partialmethod(_batch, "change")
    delete_message = partialmethod(_alone, "delete")
    delete_message_batch = partialmethod(_batch, "delete")


def make_message(name: str = "a", handle: str = "") -> dict[str, str]:
    return {"MessageId": name, "ReceiptHandle": handle or f"handle-{name}"}


@dataclass
class FakeClock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now
