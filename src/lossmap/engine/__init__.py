"""The two servers that lossmap runs on: OpenSearch and PostgreSQL."""

from lossmap.engine.lifecycle import down, fetch, status, up

__all__ = ["down", "fetch", "status", "up"]
