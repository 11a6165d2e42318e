"""Every read of the segment table ends in its primary key: an onset is no total order."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import lossmap

SOURCE = Path(lossmap.__file__).parent
ORDERED = re.compile(r"ORDER BY[^()]*segment_id\s*$", re.IGNORECASE)
# One row of sums and counts has no order. A list that an aggregate builds (array_agg, string_agg) has, and is caught.
ONE_ROW = re.compile(
    r"SELECT\s+(?:coalesce\(\s*)?(?:sum|count|min|max)\([^;]*?\bFROM\b(?!.*\bGROUP BY\b)", re.IGNORECASE | re.DOTALL
)


def statements(text: str) -> list[str]:
    """String constants that select from the segment table."""
    strings = [n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    single = [statement for text in strings for statement in text.split(";")]
    reads = [s for s in single if re.search(r"\bSELECT\b", s) and re.search(r"\bFROM\s+\S*\.segment\b", s)]
    return [s for s in reads if not ONE_ROW.search(s)]


def test_every_select_from_segment_ends_in_the_primary_key() -> None:
    found = {path: statements(path.read_text()) for path in SOURCE.rglob("*.py")}
    selects = [(path.name, s) for path, some in found.items() for s in some]
    assert selects, "the guard saw no statement at all"
    assert [name for name, s in selects if not ORDERED.search(s.strip())] == []


def test_the_guard_catches_the_broken_order() -> None:
    (broken,) = statements('q = "SELECT content FROM {0}.segment ORDER BY start_time"')
    assert not ORDERED.search(broken)
    assert statements('q = "SELECT sum(word_count) FROM {0}.segment WHERE file_uuid = %s"') == []
    assert len(statements('q = "SELECT count(*) FROM {0}.segment GROUP BY file_uuid"')) == 1
    assert len(statements('q = "SELECT string_agg(content) FROM {0}.segment"')) == 1
    first, second = statements(
        'q = "SELECT 1 FROM a.segment; DELETE FROM a.segment; SELECT 2 FROM a.segment ORDER BY segment_id"'
    )
    assert not ORDERED.search(first.strip()) and ORDERED.search(second.strip())
