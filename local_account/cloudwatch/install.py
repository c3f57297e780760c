"""Putting metrics out of log lines, and asking for exactly one set of dimensions, into MiniStack.

It counts only the runs of Lambdas that a client invokes; here all are, whoever started them. Its
alarms still look at no dimension and at no missing data: that stays listed as not emulated.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ministack.core import lambda_runtime
from ministack.core.responses import request_scope
from ministack.services import cloudwatch, lambda_svc

from local_account.cloudwatch.embedded_metrics import metrics_in

logger = logging.getLogger("mendq.metrics")
OF_LAMBDA = "AWS/Lambda"


@dataclass(frozen=True)
class Ran:
    """One run of a Lambda, and what it logged."""

    account: str
    region: str
    name: str
    failed: bool
    text: str


def install() -> None:
    """Hook everything, and start the thread that reads; once per process."""
    read: queue.SimpleQueue[Ran] = queue.SimpleQueue()
    lambda_svc._emit_lambda_logs = _passing_on(lambda_svc._emit_lambda_logs, read)
    lambda_svc._emit_lambda_metrics = _nothing
    cloudwatch._dims_from_list = _exact(cloudwatch._dims_from_list)
    threading.Thread(target=_run, args=(read,), name="metrics", daemon=True).start()


def _nothing(*_: object, **__: object) -> None:
    """Or what a client invokes would count twice."""


def _passing_on(emit: Callable[..., None], read: queue.SimpleQueue[Ran]) -> Callable[..., None]:
    """No Lambda waits for its metrics: they are read in a thread of their own."""

    def emitting(
        function: Mapping[str, Any],
        request_id: str,
        log_text: str,
        error: bool,
        *rest: Any,
        **named: Any,
    ) -> None:
        config = function.get("config") or function
        account, region = lambda_runtime._account_region_from_function_config(config)
        read.put(Ran(account, region, config["FunctionName"], error, log_text))
        emit(function, request_id, log_text, error, *rest, **named)

    return emitting


def _run(read: queue.SimpleQueue[Ran]) -> None:
    while True:
        ran = read.get()
        try:
            with request_scope(ran.account, ran.region):
                _count(ran)
                _store(ran.text)
        except Exception:
            logger.exception("the metrics of a Lambda's log lines are lost")


def _count(ran: Ran) -> None:
    """As AWS does of each run: that it was, and whether it ended with an error."""
    function = {"FunctionName": ran.name}
    cloudwatch.record_metric(OF_LAMBDA, "Invocations", 1, "Count", function)
    cloudwatch.record_metric(OF_LAMBDA, "Errors", int(ran.failed), "Count", function)


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
