"""Methods: the outer iterations, for any loss, on (N, c) arrays."""
