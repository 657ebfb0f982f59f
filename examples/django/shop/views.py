"""Orders over HTTP. An order and the task for its receipt are one transaction: both are there, or neither is."""

from __future__ import annotations

import json

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from shop.models import Order
from shop.queue import tasks
from shop.tasks import SEND_RECEIPT, Receipt


class SoldOut(Exception):
    pass


@csrf_exempt
@require_POST
def place(request: HttpRequest) -> JsonResponse:
    article = json.loads(request.body)["article"]
    try:
        with transaction.atomic():
            order = Order.objects.create(article=article)
            tasks.submit(SEND_RECEIPT, Receipt(order=order.pk), session=connection.connection)
            take_from_stock(article)
    except SoldOut:
        return JsonResponse({"error": f"{article} is sold out"}, status=409)
    return JsonResponse({"order": order.pk}, status=201)


def take_from_stock(article: str) -> None:
    """What may go wrong after the submit, and then takes the order and the task with it."""
    if article == "unicorn":
        raise SoldOut


@require_GET
def look(request: HttpRequest, order_id: int) -> JsonResponse:
    order = get_object_or_404(Order, pk=order_id)
    return JsonResponse({"article": order.article, "receipt_sent": order.receipt_sent_at is not None})


@require_GET
def summary(request: HttpRequest) -> JsonResponse:
    """How many orders there are, and what stands in the queue."""
    return JsonResponse({"orders": Order.objects.count(), "tasks": tasks.stats("default")["default"]})
