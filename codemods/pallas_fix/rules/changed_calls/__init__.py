"""Parts of the rule about functions of jax that take other arguments, or have become something."""
