"""The handlers, and what names them for whoever submits."""

from __future__ import annotations

from typing import TypedDict

from django.db import close_old_connections
from django.utils import timezone

import cairnq
from shop.models import Order


class Receipt(TypedDict):
    order: int


SEND_RECEIPT = cairnq.TaskDef[Receipt, str]("send_receipt")

registry = cairnq.Registry()


@registry.task(SEND_RECEIPT)
def send_receipt(ctx: cairnq.BlockingContext, receipt: Receipt) -> str:
    """A plain function: it runs on a thread, and Django has a connection for each thread.

    It may run twice (its worker dies before the success is written), so it looks whether it has been done.
    """
    close_old_connections()  # as a request would
    order = Order.objects.get(pk=receipt["order"])
    if order.receipt_sent_at is None:
        order.receipt_sent_at = timezone.now()
        order.save(update_fields=["receipt_sent_at"])
    return f"receipt for {order.article}"
