"""What is measured: our program, and what a team would pick instead of it, one file each."""
