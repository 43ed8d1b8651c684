"""What serves ``import fast_hadamard_transform``, and why: the status of a process."""
