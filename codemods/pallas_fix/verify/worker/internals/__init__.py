"""The only place that uses private names of jax, which change without notice: one use a module."""
