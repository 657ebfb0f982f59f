"""What is measured, one file each: `measure(session)` yields its figures, the ratios among them first."""
