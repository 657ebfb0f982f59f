"""A module with no registry in it, only something of that name."""

registry = {"echo": print}
