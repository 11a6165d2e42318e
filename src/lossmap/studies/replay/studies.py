"""The studies of the chapter, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lossmap.layout import Layout
from lossmap.studies.replay import (
    arms,
    density,
    evidence,
    floors,
    gate,
    identities,
    interactions,
    movement,
    populations,
    reservation,
    reversal,
    selector,
    signals,
    stages,
    starvation,
    weights,
)

STUDIES: dict[str, Callable[[Layout], dict[str, Any]]] = {
    "tasks": identities.tasks,
    "identities": identities.study,
    "stages": stages.study,
    "weights": weights.study,
    "interactions": interactions.study,
    "movement": movement.study,
    "signals": signals.study,
    "populations": populations.study,
    "gate": gate.study,
    "reservation": reservation.study,
    "starvation": starvation.study,
    "floors": floors.study,
    "arms": arms.study,
    "reversal": reversal.study,
    "evidence": evidence.study,
    "density": density.study,
    "selector": selector.study,
}
