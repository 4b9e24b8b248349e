"""The rules for WGMMA accumulators (`plgpu.ACC`), and what they share."""
