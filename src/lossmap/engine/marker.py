"""The mark on what lossmap creates, and the refusal to touch what lacks it.

An index carries it in its mapping's ``_meta``, a schema in its COMMENT.
"""

from __future__ import annotations

import psycopg
from opensearchpy import OpenSearch
from psycopg import sql

from lossmap.errors import LossmapError

META = {"lossmap": {"created_by": "lossmap", "format": 1}}
COMMENT = "lossmap: created by lossmap, format 1"


def index_is_ours(client: OpenSearch, name: str) -> bool:
    """Whether an existing index carries the mark. ``name`` is one concrete index, never a pattern."""
    found = client.indices.get_mapping(index=name)
    # An alias answers under the names behind it: all of them have to be ours.
    return all("lossmap" in index["mappings"].get("_meta", {}) for index in found.values())


def require_index(client: OpenSearch, name: str) -> None:
    """Pass when ``name`` is absent or marked; raise (exit 2) when it is somebody else's, or a pattern."""
    if any(sign in name for sign in "*,") or name == "_all":
        raise LossmapError("an index is named by a pattern", where=name, expected="one index", exit_code=2)
    if client.indices.exists(index=name) and not index_is_ours(client, name):
        raise LossmapError(
            "an index of this name exists and lossmap did not create it",
            where=f"index {name}",
            observed="no lossmap mark in its mapping's _meta",
            expected="an index that lossmap created, or none",
            next_command="choose another index name, or point LOSSMAP_OPENSEARCH_URL at another cluster",
            exit_code=2,
        )


def delete_index(client: OpenSearch, name: str) -> None:
    """Delete our index; nothing when absent, exit 2 when it is not ours."""
    require_index(client, name)
    client.indices.delete(index=name, ignore=[404])


def require_schema(conn: psycopg.Connection, name: str) -> bool:
    """True when the schema exists and is marked, False when absent; raise (exit 2) when it is somebody else's."""
    row = conn.execute(
        "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %s", (name,)
    ).fetchone()
    if row is None:
        return False
    if not (row[0] or "").startswith("lossmap"):
        raise LossmapError(
            "a schema of this name exists and lossmap did not create it",
            where=f"schema {name}",
            observed=f"comment {row[0]!r}",
            expected="a comment that starts with 'lossmap', or no such schema",
            next_command="choose another schema name, or point LOSSMAP_POSTGRES_DSN at another database",
            exit_code=2,
        )
    return True


def create_schema(conn: psycopg.Connection, name: str) -> None:
    """Create and mark the schema in one transaction; nothing when ours is there, exit 2 when it is not ours."""
    with conn.transaction():
        if not require_schema(conn, name):
            conn.execute(sql.SQL("create schema {}").format(sql.Identifier(name)))
            conn.execute(sql.SQL("comment on schema {} is {}").format(sql.Identifier(name), sql.Literal(COMMENT)))


def drop_schema(conn: psycopg.Connection, name: str) -> None:
    """Drop our schema with all it holds; nothing when absent, exit 2 when it is not ours."""
    with conn.transaction():
        if require_schema(conn, name):
            conn.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))
