"""The part that is not full yet, kept on the disk from time to time so that a kill costs seconds and not a part."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from treefocus.scale.manifest import DRAFT
from treefocus.scale.sources import Place
from treefocus.storage.atomic import write_atomically

_KEY = b"treefocus"


def save_draft(folder: Path, schema: pa.Schema, batches: list[pa.RecordBatch], number: int, place: Place) -> None:
    """Keep the answers that part `number` has so far, and the place behind them."""
    note = json.dumps({"part": number, "place": asdict(place)}).encode()

    def write(path: Path) -> None:
        # As a stream: unlike a file, it may hold another dictionary for a column in every batch.
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema.with_metadata({_KEY: note})) as writer:
            for batch in batches:
                writer.write_batch(batch.replace_schema_metadata({_KEY: note}))

    write_atomically(folder / DRAFT, write)


def load_draft(folder: Path, schema: pa.Schema, number: int) -> tuple[list[pa.RecordBatch], Place] | None:
    """What was kept of that part, if anything was."""
    try:
        data = (folder / DRAFT).read_bytes()
        reader = pa.ipc.open_stream(data)
        note = json.loads(reader.schema.metadata[_KEY])
        if note["part"] != number or not reader.schema.equals(schema):
            return None
        batches = [batch.replace_schema_metadata(None) for batch in reader]
        return batches, Place(**note["place"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):  # none, or none that can be used
        return None


def drop_draft(folder: Path) -> None:
    """The part is whole."""
    (folder / DRAFT).unlink(missing_ok=True)
