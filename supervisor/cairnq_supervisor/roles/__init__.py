"""What a process is: the preflight before the fork, the keeper, a worker child."""
