"""Whether a folder of answers still is what was written, and whether its answers hold on the model.

Files are checked whole: hashes, rows, statuses and what every part says of itself. Answers are checked on a sample: the
model is asked again about the row and about the counterfactual, and where certificates were written these are held to
the answer, and their proofs are followed by the checker, which shares no code with the search.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from treefocus import kernels
from treefocus.check import ACCEPTED, REJECTED, judge
from treefocus.errors import reject
from treefocus.explanation.verifying import Check, Verification
from treefocus.explanation.verifying import verify as verify_certificate
from treefocus.model.fingerprint import fingerprint
from treefocus.model.forest import Forest
from treefocus.problem.coded import coded
from treefocus.problem.problem_record import read_numbers
from treefocus.scale import manifest as manifests
from treefocus.scale.answers import column_of
from treefocus.scale.manifest import DONE, EARLIER, Manifest, Part
from treefocus.scale.provenance import told_by
from treefocus.tables.labels import Coding
from treefocus.tables.table import as_table

N_TOLD = 10  # failures of one kind that are told


def verify_folder(folder: str | Path, forest: Forest | None = None, *, sample: int = 0, seed: int = 0) -> Verification:
    """Check a folder of answers, of this format or of the one before.

    Parameters
    ----------
    folder : str or Path
        As `explain_file` wrote it, or `merge`.
    forest : Forest, optional
        The model that it speaks of.
    sample : int
        How many answers, drawn at random, are checked on the model; needs `forest`.
    seed : int
        Which are drawn.
    """
    folder = Path(folder)
    if sample and forest is None:
        reject("sample", "0 without the model", sample)
    manifest = manifests.load(folder)
    checks = [_check_complete(folder, manifest), *_check_order(manifest)]
    whole: list[Part] = []
    for part in manifest.parts:
        found = _check_part(folder, manifest, part)
        if found is None:
            whole.append(part)
        else:
            checks.append(found)
    n_rows = sum(part.rows for part in whole)
    is_hashed = manifest.format != EARLIER
    told = f"{len(whole):,} of {len(manifest.parts):,} parts with {n_rows:,} rows are as they were written"
    is_whole = len(whole) == len(manifest.parts)
    told = told if is_hashed else f"{told}, as far as counts can tell"
    checks.append(Check(told, is_whole and is_hashed, is_hashed or not is_whole))
    checks += _check_packs(folder, manifest)
    if forest is not None:
        forest = coded(manifest.run.get("coding", {}), forest)
        checks.append(Check("they speak of this model", manifest.question["model"] == fingerprint(forest)))
        if sample and checks[-1].holds:
            checks += _check_sample(folder, manifest, whole, forest, sample, seed)
    return Verification(tuple(checks))


def _check_complete(folder: Path, manifest: Manifest) -> Check:
    has_mark = (folder / DONE).is_file() or manifest.format == EARLIER
    return Check("every row of the input has its answer", manifest.is_complete and has_mark)


def _check_order(manifest: Manifest) -> list[Check]:
    """Whether the parts follow one another, as far as one shard can tell."""
    part_rows, numbers = manifest.question["part_rows"], [part.number for part in manifest.parts]
    is_whole = manifest.shard.count > 1 or numbers == list(range(len(numbers)))
    is_full = all(part.rows == part_rows for part in manifest.parts[:-1])
    return [Check("the parts follow one another and are full", is_whole and is_full)]


def _check_part(folder: Path, manifest: Manifest, part: Part) -> Check | None:
    """What is wrong with a part, if anything is."""
    path = folder / part.name
    if not path.is_file():
        return Check(f"{part.name} is there", holds=False)
    if part.sha256 and (path.stat().st_size != part.bytes or manifests.sha256_of(path) != part.sha256):
        return Check(f"{part.name} has the bytes that were written", holds=False)
    try:
        table = parquet.read_table(path, columns=["status"])
        told = told_by(parquet.read_schema(path).metadata)
    except (OSError, ValueError, pa.ArrowException) as error:
        return Check(f"{part.name} can be read ({' '.join(str(error).split())})", holds=False)
    if len(table) != part.rows or dict(Counter(table["status"].to_pylist())) != part.status:
        held = f"{part.name} holds the {part.rows:,} rows and the statuses that the manifest tells of"
        return Check(held, holds=False)
    if part.sha256 and told.get("question") != manifest.question:
        return Check(f"{part.name} answers the question of the manifest", holds=False)
    return None


def _check_packs(folder: Path, manifest: Manifest) -> list[Check]:
    packed = [part for part in manifest.parts if part.certificates]
    if not packed:
        return []
    lost = [part.name for part in packed if not _is_same(_pack(folder, manifest, part), part.certificates)]
    told = f"the certificates of {len(packed):,} parts are as they were written"
    return [Check(f"{told}, but those of {lost[0]}" if lost else told, not lost)]


def _is_same(path: Path, sha256: str) -> bool:
    return path.is_file() and manifests.sha256_of(path) == sha256


def _pack(folder: Path, manifest: Manifest, part: Part) -> Path:
    return folder / str(manifest.run["certificates"]) / part.name.replace(".parquet", ".jsonl.gz")


def _check_sample(
    folder: Path, manifest: Manifest, parts: Sequence[Part], forest: Forest, sample: int, seed: int
) -> list[Check]:
    ends = np.cumsum([part.rows for part in parts])
    total = int(ends[-1]) if len(ends) else 0
    chosen = np.sort(np.random.default_rng(seed).permutation(total)[:sample])
    tally, n_first = _Tally(len(chosen)), 0
    for part, end in zip(parts, ends, strict=True):
        own = chosen[(chosen >= n_first) & (chosen < end)] - n_first
        if own.size:
            answers = parquet.read_table(folder / part.name).take(pa.array(own))
            names = [f"row {i} of {part.name}" for i in own.tolist()]
            tally.hear_model(answers, names, forest)
            if part.certificates and _is_same(path := _pack(folder, manifest, part), part.certificates):
                tally.hear_certificates(answers, names, list(_lines(path, own.tolist())), forest)
        n_first = int(end)
    return tally.checks()


def _lines(path: Path, chosen: Sequence[int]) -> Iterator[dict[str, Any] | None]:
    wanted = set(chosen)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number in wanted:
                yield json.loads(line)


class _Tally:
    """What a sample of answers has shown so far."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows, self.n_asked, self.n_proven, self.n_unproven = n_rows, 0, 0, 0
        self.failures: list[str] = []

    def hear_model(self, answers: pa.Table, names: Sequence[str], forest: Forest) -> None:
        """Ask the model about rows and counterfactuals again, where it answers in classes and reads no dates."""
        if forest.decision == "value" or not _has_values(answers, forest):
            return
        has_answer = np.array([one is not None for one in answers["distance"].to_pylist()], bool)
        if not has_answer.any():
            return
        answers = answers.filter(pa.array(has_answer))
        names = [name for name, has in zip(names, has_answer, strict=True) if has]
        for points, column in ((_points(answers, forest), "outcome"), (_rows(answers, forest), "predicted")):
            said = forest.classes[kernels.predict(forest, points)]
            for name, now, then in zip(names, said.tolist(), answers[column].to_pylist(), strict=True):
                if str(now) != str(then):
                    self.failures.append(f"{name}: {column} is {then}, the model says {now}")
        self.n_asked += len(names)

    def hear_certificates(
        self, answers: pa.Table, names: Sequence[str], lines: Sequence[dict[str, Any] | None], forest: Forest
    ) -> None:
        """Hold certificates to their answers, and follow the proofs in them."""
        record, values = forest.to_record(), _values(answers, forest)
        for answer, name, line, own in zip(answers.to_pylist(), names, lines, values, strict=True):
            if line is None:
                if answer["status"] != "INVALID":
                    self.failures.append(f"{name}: there is no certificate")
                continue
            if (line["status"], line["distance"]) != (answer["status"], answer["distance"]):
                self.failures.append(f"{name}: the certificate tells of another answer")
                continue
            if own is not None and not _is_told(own, line):
                self.failures.append(f"{name}: the certificate tells of other values")
                continue
            failed = verify_certificate(line, forest).failed
            code = judge(line, record)[0]
            if failed or code == REJECTED:
                told = failed[0].claim if failed else "its proof does not follow"
                self.failures.append(f"{name}: the certificate fails: {told}")
            self.n_proven += code == ACCEPTED
            self.n_unproven += code not in (ACCEPTED, REJECTED)

    def checks(self) -> list[Check]:
        """A line for every kind of claim."""
        found = [Check(failure, holds=False) for failure in self.failures[:N_TOLD]]
        told = f"of {self.n_rows:,} answers, {self.n_asked:,} were asked of the model again"
        found.append(Check(told, not self.failures, bool(self.n_asked or not self.n_rows)))
        if self.n_proven or self.n_unproven:
            told = f"the checker followed {self.n_proven:,} proofs, and {self.n_unproven:,} certificates have none"
            found.append(Check(told, not self.n_unproven, not self.n_unproven))
        elif self.n_rows:
            found.append(Check("that nothing is closer: no certificates with proofs were written", False, False))
        return found


def _is_told(own: tuple[Any, Any], line: dict[str, Any]) -> bool:
    """Whether a certificate speaks of this row, to the digits of a float of 32 bits, and of this counterfactual."""
    row, point = own
    if line["point"] is None or not np.array_equal(point, read_numbers(line["point"]), equal_nan=True):
        return False
    with np.errstate(over="ignore"):  # a column of float32 tells what was before in its own few digits
        return np.array_equal(row.astype(np.float32), read_numbers(line["row"]).astype(np.float32), equal_nan=True)


def _values(answers: pa.Table, forest: Forest) -> list[tuple[Any, Any] | None]:
    """What each row and its counterfactual are in the forest's coding; None where there is no answer, or no saying."""
    found: list[tuple[Any, Any] | None] = [None] * len(answers)
    told = [i for i, one in enumerate(answers["distance"].to_pylist()) if one is not None]
    if told and _has_values(answers, forest):
        some = answers.take(pa.array(told))
        for i, row, point in zip(told, _rows(some, forest), _points(some, forest), strict=True):
            found[i] = row, point
    return found


def _has_values(answers: pa.Table, forest: Forest) -> bool:
    """Whether the columns are the forest's own, as numbers and words."""
    kinds = [answers.schema.field(name).type for name in _features(answers)]
    return len(kinds) == forest.n_features and not any(map(pa.types.is_temporal, kinds))


def _features(answers: pa.Table) -> list[str]:
    """The columns of the counterfactuals, in the model's order."""
    names = answers.column_names
    return list(names[names.index("gap") + 1 : names.index("changes")])


def _names(answers: pa.Table) -> list[str]:
    """The features of these columns."""
    return [name if column_of(own := name.removesuffix(" (value)")) == own else own for name in _features(answers)]


def _points(answers: pa.Table, forest: Forest) -> Any:
    """(n, n_features) the counterfactuals in the forest's coding."""
    table = answers.select(_features(answers)).rename_columns(_names(answers))
    return as_table(table, "answers", Coding.of(forest)).values


def _rows(answers: pa.Table, forest: Forest) -> Any:
    """(n, n_features) the rows that were asked about: the counterfactuals with every change taken back."""
    names = _names(answers)
    columns = {name: answers[column_of(name)].to_pylist() for name in names}
    for i, changes in enumerate(answers["changes"].to_pylist()):
        for change in changes or ():
            word = change["category_before"]
            columns[change["feature"]][i] = change["before"] if word is None else word
    kinds = [answers.schema.field(column_of(name)).type for name in names]
    kinds = [kind if pa.types.is_string(kind) else pa.float64() for kind in kinds]
    arrays = [pa.array(columns[name], kind) for name, kind in zip(names, kinds, strict=True)]
    return as_table(pa.table(arrays, names=names), "answers", Coding.of(forest)).values
