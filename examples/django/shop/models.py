"""One table of the shop's own."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    article = models.CharField(max_length=100)
    receipt_sent_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "shop_orders"

    def __str__(self) -> str:
        return f"order {self.pk} of {self.article}"
