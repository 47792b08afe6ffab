"""The folders of all shards as the one folder that a single machine would have written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from treefocus.errors import InvalidInput, StorageFailed, reject
from treefocus.scale import manifest as manifests
from treefocus.scale.manifest import PACKS, Manifest, Part
from treefocus.scale.shards import WHOLE
from treefocus.storage.atomic import write_atomically
from treefocus.storage.lock import held


def merge(folders: Sequence[str | Path], output: str | Path) -> Manifest:
    """Put the parts of all shards into one folder, each checked by its hash; refuses shards that make no whole."""
    found = {Path(folder): manifests.load(Path(folder)) for folder in folders}
    if not found:
        reject("The shards", "at least one folder", "none")
    _check_whole(found)
    pairs = [(part, folder) for folder, one in found.items() for part in one.parts]
    own = sorted(pairs, key=lambda pair: pair[0].number)
    _check_parts([part for part, _ in own], found)
    first = next(iter(found.values()))
    runs = [one.run for one in found.values()]
    run = first.run | {
        "folder": str(Path(output).resolve()),
        "started": min(one["started"] for one in runs),
        "finished": max(one["finished"] for one in runs),
        "shards": [str(folder) for folder in found],
    }
    merged = Manifest(first.question, [part for part, _ in own], True, run, WHOLE)
    output = Path(output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        with held(output, f"Another run is writing to {output}."):
            if any(output.iterdir()):
                raise InvalidInput(f"{output} is not empty; give another folder.")
            for part, folder in own:
                _copy(folder / part.name, output / part.name, part.sha256)
                if part.certificates:
                    name = part.name.replace(".parquet", ".jsonl.gz")
                    (output / PACKS).mkdir(exist_ok=True)
                    _copy(folder / found[folder].run["certificates"] / name, output / PACKS / name, part.certificates)
                    run["certificates"] = PACKS
            manifests.save(merged, output)
            manifests.mark(merged, output)
    except OSError as error:
        raise StorageFailed(f"{output} cannot be written: {error.strerror or error}.") from error
    return merged


def _check_whole(found: dict[Path, Manifest]) -> None:
    (one, first), *others = found.items()
    for folder, manifest in found.items():
        if not manifest.is_complete:
            raise InvalidInput(f"{folder} is not complete; the command that began it goes on with it.")
    for folder, manifest in others:
        differ = [name for name, value in first.question.items() if manifest.question.get(name) != value]
        if differ or manifest.shard.count != first.shard.count:
            told = ", ".join(differ) or "number of shards"
            raise InvalidInput(f"{folder} and {one} hold answers to different questions (other: {told}).")
    numbers = sorted(manifest.shard.number for manifest in found.values())
    if numbers != list(range(1, first.shard.count + 1)):
        lacking = sorted(set(range(1, first.shard.count + 1)) - set(numbers))
        told = f"lack {', '.join(f'{number}/{first.shard.count}' for number in lacking)}" if lacking else "come twice"
        raise InvalidInput(f"The shards do not make a whole: some {told}.")


def _check_parts(parts: Sequence[Part], found: dict[Path, Manifest]) -> None:
    """Every part once, and all but the last full."""
    part_rows = next(iter(found.values())).question["part_rows"]
    if [part.number for part in parts] != list(range(len(parts))):
        raise InvalidInput("The parts of the shards do not follow one another: some are missing.")
    short = [part.name for part in parts[:-1] if part.rows != part_rows]
    if short:
        raise InvalidInput(f"{short[0]} has fewer than {part_rows} rows and is not the last part.")


def _copy(source: Path, target: Path, sha256: str) -> None:
    """A file under a new name, linked where that can be; another one than was written is refused."""
    if not source.is_file() or manifests.sha256_of(source) != sha256:
        raise InvalidInput(f"{source} is not the file that was written: `treefocus verify {source.parent}` tells more.")

    def fill(path: Path) -> None:
        path.unlink(missing_ok=True)
        try:
            os.link(source, path)
        except OSError:
            shutil.copyfile(source, path)

    write_atomically(target, fill)
