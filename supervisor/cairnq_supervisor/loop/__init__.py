"""The supervisor's single thread: one selector, one heap of deadlines, and what it does with their events."""
