"""From fused regions to steps: order, in-place updates, storage, memory plan."""
