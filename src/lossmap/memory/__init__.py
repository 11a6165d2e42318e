"""The second pipeline: a store of memories, recalled live and replayed from frozen scores."""
