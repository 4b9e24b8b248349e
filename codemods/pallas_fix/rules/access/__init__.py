"""What API010 to API013 share: calls with their arguments, indexes, launches of Triton kernels."""
