"""The same as a Lambda function behind an event source mapping: Lambda holds and deletes.

The mapping needs ReportBatchItemFailures, the queue a visibility timeout of six times the
function's, the function the variables POWERTOOLS_SERVICE_NAME and ORDERS_DONE_TABLE.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    SqsFifoPartialProcessor,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.typing import LambdaContext

from local_account.demo.consumers.once import REMEMBERED_SECONDS

Order = Mapping[str, Any]


def handler_of(
    work: Callable[[Order], object], *, is_fifo: bool = False
) -> Callable[[dict[str, Any], LambdaContext], Any]:
    """A handler that does each order once and answers which messages failed.

    An order is known by `order_id`; one without it fails, because it could not be known again.
    """
    config = IdempotencyConfig(
        event_key_jmespath="order_id",
        raise_on_no_idempotency_key=True,
        expires_after_seconds=REMEMBERED_SECONDS,
    )
    table = DynamoDBPersistenceLayer(table_name=os.environ["ORDERS_DONE_TABLE"])

    def do(order: Order) -> None:
        work(order)

    once = idempotent_function(
        do, data_keyword_argument="order", persistence_store=table, config=config
    )

    def handle(record: SQSRecord) -> None:
        once(order=record.json_body)

    def handler(event: dict[str, Any], context: LambdaContext) -> Any:
        # So that an order whose run was killed is free again when that run's time is over.
        config.register_lambda_context(context)
        processor = SqsFifoPartialProcessor() if is_fifo else BatchProcessor(EventType.SQS)
        return process_partial_response(
            event=event, record_handler=handle, processor=processor, context=context
        )

    return handler
