"""Putting metrics out of log lines, and asking for exactly one set of dimensions, into MiniStack.

Its alarms still look at no dimension and at no missing data: that stays listed as not emulated.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core import lambda_runtime
from ministack.core.responses import request_scope
from ministack.services import cloudwatch, lambda_svc

from local_account.cloudwatch.embedded_metrics import metrics_in

logger = logging.getLogger("mendq.metrics")
Lines = tuple[str, str, str]


def install() -> None:
    """Hook everything, and start the thread that reads; once per process."""
    read: queue.SimpleQueue[Lines] = queue.SimpleQueue()
    lambda_svc._emit_lambda_logs = _passing_on(lambda_svc._emit_lambda_logs, read)
    cloudwatch._dims_from_list = _exact(cloudwatch._dims_from_list)
    threading.Thread(target=_run, args=(read,), name="metrics", daemon=True).start()


def _passing_on(emit: Callable[..., None], read: queue.SimpleQueue[Lines]) -> Callable[..., None]:
    """No Lambda waits for its metrics: they are read in a thread of their own."""

    def emitting(
        function: Mapping[str, Any], request_id: str, log_text: str, *rest: Any, **named: Any
    ) -> None:
        if log_text:
            config = function.get("config") or function
            read.put((*lambda_runtime._account_region_from_function_config(config), log_text))
        emit(function, request_id, log_text, *rest, **named)

    return emitting


def _run(read: queue.SimpleQueue[Lines]) -> None:
    while True:
        account, region, text = read.get()
        try:
            with request_scope(account, region):
                _store(text)
        except Exception:
            logger.exception("the metrics of a Lambda's log lines are lost")


def _store(text: str) -> None:
    for line in text.splitlines():
        for datum in metrics_in(line):
            cloudwatch._store_datum(
                datum.namespace,
                datum.name,
                dict(datum.dimensions),
                datum.at_seconds,
                datum.unit,
                None,
                list(datum.values),
                None,
                None,
            )
    cloudwatch._evaluate_all_alarms()


class _Dimensions(dict[str, str]):
    """True even when empty: a query without dimensions asks for the metric without any."""

    def __bool__(self) -> bool:
        return True


def _exact(read: Callable[[Any], Mapping[str, str]]) -> Callable[[Any], _Dimensions]:
    return lambda dimensions: _Dimensions(read(dimensions))
