from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [  # noqa: RUF012 - Django's way
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("article", models.CharField(max_length=100)),
                ("receipt_sent_at", models.DateTimeField(null=True)),
            ],
            options={"db_table": "shop_orders"},
        ),
    ]
