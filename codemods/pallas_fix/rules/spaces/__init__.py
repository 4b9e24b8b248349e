"""What can be wrong with the memory spaces of a TPU kernel: the troubles of TPU004."""
