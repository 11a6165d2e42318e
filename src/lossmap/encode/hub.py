"""Files of a model hub by pinned revision and hash, where the hub is reachable and its client installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossmap import canon, settings

CLIENT = "huggingface_hub"
# One reason for both, so that a document does not depend on what is installed; the detail goes to stderr.
UNREACHABLE = "the hub is not reachable from here, or its client (./run hub) is not installed"


def folder(name: str, stanza: Mapping[str, Any]) -> Path:
    return settings.load().cache / "rerankers" / f"{name}-{stanza['revision'][:16]}"


def present(name: str, stanza: Mapping[str, Any]) -> bool:
    """Whether every file is there; their hashes are for whoever reads them."""
    return all((folder(name, stanza) / one["path"]).is_file() for one in stanza["files"].values())


def obtain(name: str, stanza: Mapping[str, Any]) -> str:
    """Fetch what is missing; the reason where it cannot be had, else an empty string. Wrong bytes are not kept."""
    place, wanted = folder(name, stanza), stanza["files"].values()
    if all(_whole(place / one["path"], one["sha256"]) for one in wanted):
        return ""
    if settings.load().offline or importlib.util.find_spec(CLIENT) is None:
        return UNREACHABLE
    for one in wanted:
        if reason := _fetch(stanza, one, place):
            return reason
    return ""


def _whole(path: Path, sha256: str) -> bool:
    return path.is_file() and canon.file_sha256(path) == sha256


def _fetch(stanza: Mapping[str, Any], one: Mapping[str, str], place: Path) -> str:
    from huggingface_hub import hf_hub_download

    try:
        hf_hub_download(stanza["repository"], one["path"], revision=stanza["revision"], local_dir=place)
    except Exception as error:  # whatever a foreign client raises, the model was not had
        print(f"{stanza['repository']}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return UNREACHABLE
    if not _whole(place / one["path"], one["sha256"]):
        (place / one["path"]).unlink()
        return f"{one['path']} does not have the pinned hash"
    return ""
