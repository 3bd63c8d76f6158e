"""From a decision to exact calldata, and back from calldata to words."""
