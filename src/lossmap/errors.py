"""One exception for everything a user can mend: what, where, observed against expected, the next command."""

from __future__ import annotations


class LossmapError(Exception):
    """A failure that says how to go on.

    ``exit_code``: 1 download, checksum or input; 2 misuse or a target that is not ours; 3 not settled, mixed
    vectors, or a licence that was not accepted.
    """

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        observed: object = None,
        expected: object = None,
        next_command: str | None = None,
        exit_code: int = 1,
    ) -> None:
        self.exit_code = exit_code
        parts = [what]
        for label, value in (("where", where), ("observed", observed), ("expected", expected), ("next", next_command)):
            if value is not None:
                parts.append(f"  {label}: {value}")
        super().__init__("\n".join(parts))
