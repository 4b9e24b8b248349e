"""What the rules of the explicit MXU API share: how accumulators are used, and moved."""
