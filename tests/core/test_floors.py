"""A module imports from its own floor's folder and from floors below, never upward, never in a circle."""

from __future__ import annotations

import ast
from pathlib import Path

import lossmap

SOURCE = Path(lossmap.__file__).parent
FLOORS = [
    {"errors", "canon", "settings", "transcript", "artifacts", "fuse", "layout", "progress"},
    {"corpora", "engine", "encode", "synthetic"},
    {"index"},
    {"search", "memory"},
    {"judge"},
    {"studies"},
    {"report"},
    {"cli", "doctor", "__main__"},
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS, 1) for name in names}


def module(path: Path) -> str:
    return ".".join(("lossmap", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("lossmap"):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if source(name) else node.module for name in names}
    return found


def source(name: str) -> Path | None:
    base = SOURCE.parent.joinpath(*name.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()), None)


GRAPH = {module(path): imports(path) for path in SOURCE.rglob("*.py")}


def place(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def test_every_module_stands_on_a_floor() -> None:
    assert {place(name) for name in GRAPH} - FLOOR_OF.keys() == {""}


def test_imports_go_down_or_stay_in_their_folder() -> None:
    upward = [
        (name, used)
        for name, some in GRAPH.items()
        for used in some
        if place(name) and place(used) and place(used) != place(name) and FLOOR_OF[place(used)] >= FLOOR_OF[place(name)]
        and not (FLOOR_OF[place(name)] in (1, 8) and FLOOR_OF[place(used)] == FLOOR_OF[place(name)])
    ]  # fmt: skip
    assert upward == []


def test_no_circle() -> None:
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name not in done:
            for used in GRAPH.get(name, ()):
                walk(used, (*path, name))
            done.add(name)

    for name in GRAPH:
        walk(name, ())
