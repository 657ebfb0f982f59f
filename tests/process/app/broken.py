"""An application that does not import."""

raise RuntimeError("the license server said no")
