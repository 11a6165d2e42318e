"""The physical order of segment rows, changed on purpose: ids and contents stay, the place on disk does not.

A server returns tied rows as they lie, and a rewrite lays them otherwise. The study of stability lays them in an order
drawn from a seed and takes away the indexes that would hide it: a read that is not a total order then shows.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

REWRITE = """
CREATE TEMPORARY TABLE laid AS SELECT * FROM {0}.segment ORDER BY segment_id;
DELETE FROM {0}.segment;
DROP INDEX IF EXISTS {0}.segment_order, {0}.segment_span;
CREATE INDEX IF NOT EXISTS segment_file ON {0}.segment (file_uuid);
INSERT INTO {0}.segment OVERRIDING SYSTEM VALUE SELECT * FROM laid ORDER BY md5({1} || segment_uuid::text), segment_id;
DROP TABLE laid;
ANALYZE {0}.segment;
"""


def rows(conn: psycopg.Connection, schema: str, seed: int) -> None:
    """Lay the segments of ``schema`` in an order that ``seed`` decides; the same one however they lay before."""
    with conn.transaction():
        conn.execute(sql.SQL(REWRITE).format(sql.Identifier(schema), sql.Literal(str(seed))))
