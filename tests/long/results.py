"""What a run has left, to compare with that of another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def results(folder: Path) -> dict[str, bytes]:
    """All files but those that say when and how long."""

    def counts(path: Path) -> bool:
        return path.is_file() and path.name not in ("zarr.json", "run.json", ".lock") and "checkpoint" not in path.parts

    def content(path: Path) -> bytes:
        return json.dumps(untimed(json.loads(path.read_bytes()))).encode() if path.suffix == ".json" else path.read_bytes()

    return {str(path.relative_to(folder)): content(path) for path in folder.rglob("*") if counts(path)}


def untimed(value: Any) -> Any:
    match value:
        case dict():
            return {key: untimed(inner) for key, inner in value.items() if "second" not in key}
        case list():
            return [untimed(inner) for inner in value]
    return value
