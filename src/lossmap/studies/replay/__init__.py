"""The memory pipeline replayed stage by stage from frozen scores: one module a question."""
