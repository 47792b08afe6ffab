"""Large batches: taken at once, answered in the background, kept on disk until they are fetched and forgotten."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from treefocus.app.callers import CALLER, UNKNOWN, Budget
from treefocus.app.job_folder import JobFolder, told_when_full
from treefocus.app.limits import DiskFull
from treefocus.app.messages import ExplainBody
from treefocus.app.problems import told
from treefocus.app.service import Service
from treefocus.app.workers import CalledOff, Errand
from treefocus.errors import InvalidInput, TreefocusError
from treefocus.explanation.batch import Explanations

PART = 50  # rows between two looks at the disk
_ENDED = ("done", "failed", "cancelled")
_log = logging.getLogger("treefocus.app")


class NoSuchJob(TreefocusError):  # noqa: N818
    """A job that is not there, or not any more."""


class NotYet(TreefocusError):  # noqa: N818
    """A result that is not there yet, or never will be."""


@dataclass
class Job:
    """One job; what is in here can be read from its folder again."""

    id: str
    n_rows: int
    submitted: str
    status: str = "waiting"
    caller: str = UNKNOWN  # of this server's time
    detail: str | None = None
    done: int = 0
    errand: Errand = field(default_factory=Errand)  # of one part after the other

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in _ENDED

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        done = min(self.n_rows, self.done + (self.errand.done if self.status == "running" else 0))
        return {
            "id": self.id, "status": self.status, "rows": self.n_rows, "done": done, "submitted": self.submitted,
            "detail": self.detail,
        }  # fmt: skip


class Jobs:
    """The jobs of one server. One runs at a time, on all cores; those that a stop cut short go on where they were."""

    def __init__(self, folder: Path, service: Service) -> None:
        self._service = service
        self._folder = JobFolder(folder)
        self._jobs: dict[str, Job] = {}
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="treefocus-jobs", daemon=True)
        for identifier in self._folder.identifiers():
            self._jobs[identifier] = self._known(identifier)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def close(self) -> None:
        """Stop; what waits or runs goes on at the next start."""
        with self._changed:
            self._is_closing = True
            for job in self._jobs.values():
                job.errand.call_off()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._folder.close()

    def submit(self, body: ExplainBody, budget: Budget | None = None) -> Job:
        """Take a job, after looking whether it can be answered at all; its rows are taken from the budget."""
        service = self._service
        service.limits.check_job(len(body.rows))
        service.table_of(body.rows)
        question = body.question(service.asked)
        service.check(question, len(body.names))
        with self._changed:
            caller, unended = CALLER.get(), [job for job in self._jobs.values() if not job.has_ended]
            service.limits.check_jobs(len(unended), sum(job.caller == caller for job in unended))
            job = Job(uuid.uuid4().hex, len(body.rows), datetime.now(UTC).isoformat(), caller=caller)
            if budget is not None:
                budget.take(len(body.rows) * max(1, question.n))
            request = {
                "submitted": job.submitted, "n_rows": job.n_rows, "server": service.identity,
                "body": body.model_dump(mode="json", exclude_unset=True),
            }  # fmt: skip
            self._folder.create(job.id, request)
            self._jobs[job.id] = job
            self._forget_the_oldest()
            self._changed.notify_all()
        return job

    @property
    def is_working(self) -> bool:
        """Whether jobs are being answered."""
        return self._thread.is_alive() and not self._is_closing

    @property
    def can_write(self) -> bool:
        """Whether a job could be kept."""
        return self._folder.can_write()

    def count(self, status: str) -> int:
        """Jobs of this status."""
        return sum(job.status == status for job in self.all())

    def all(self) -> list[Job]:
        """Every job, the oldest first."""
        with self._changed:
            return list(self._jobs.values())

    def get(self, identifier: str) -> Job:
        """One job."""
        with self._changed:
            if identifier not in self._jobs:
                raise NoSuchJob(f"There is no job {identifier[:40]!r}.")
            return self._jobs[identifier]

    def result(self, identifier: str) -> Path:
        """The file with the answers."""
        job = self.get(identifier)
        if job.status != "done":
            reason = f": {job.detail}" if job.detail else ""
            raise NotYet(f"The job has no result; it is {job.status}{reason}")
        return self._folder.result_path(identifier)

    def answers(self, identifier: str) -> Explanations:
        """The answers, read again."""
        path = self.result(identifier)
        try:
            return Explanations.from_json(path)
        except OSError:  # forgotten while it was read
            raise NoSuchJob(f"There is no job {identifier[:40]!r}.") from None

    def cancel(self, identifier: str) -> Job:
        """Call a job off; one that has ended stays as it is."""
        with self._changed:
            job = self.get(identifier)
            if not job.has_ended:
                job.errand.call_off()
                if job.status == "waiting":
                    self._end(job, "cancelled", {})
            return job

    def remove(self, identifier: str) -> None:
        """Forget a job and its answers; one that runs is called off first."""
        self.cancel(identifier)
        with self._changed:
            job = self.get(identifier)
            while not job.has_ended and not self._is_closing:
                self._changed.wait()
            if self._jobs.pop(identifier, None) is not None:
                self._folder.remove(identifier)

    # --- the thread

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._is_closing and not (waiting := self._waiting()):
                    self._changed.wait()
                if self._is_closing:
                    return
                job = waiting[0]
                job.status = "running"
            try:
                self._run(job)
            except CalledOff:
                if not self._is_closing:
                    self._end(job, "cancelled", {})
            except DiskFull as error:
                self._folder.parts(job.id).keep_only(())  # others need the room
                self._end(job, "failed", {"detail": str(error)})
            except TreefocusError as error:
                self._end(job, "failed", {"detail": str(error)})
            except Exception as error:
                _log.error("a job failed: %s", told(error))
                self._end(job, "failed", {"detail": "The server met an error it did not expect; its log says where."})

    def _waiting(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.status == "waiting"]

    def _run(self, job: Job) -> None:
        service = self._service
        request = self._folder.request(job.id)
        if request["server"] != service.identity:
            raise InvalidInput("The job was submitted to a server with another model, other data or other defaults.")
        body = ExplainBody.model_validate(request["body"], strict=False)
        rows, question = service.table_of(body.rows), body.question(service.asked)
        job.errand.seconds = service.limits.patience(PART, question.n_searches)
        kept = self._folder.parts(job.id)
        for number, part in enumerate(_parts(job.n_rows)):
            job.done, job.errand.done = part.start, 0
            if kept.has(number):
                continue
            own = _part_of(question.target, part)
            job.errand.begin()
            found = service.explain(
                rows.part(part), replace(question, target=own), job.errand, labels=body.names[part],
                n_jobs=service.limits.calls_at_once,
            )  # fmt: skip
            job.errand.heard(0)
            with told_when_full():
                kept.write(number, found.to_json())
        self._end(job, "done", self._joined(job))

    def _joined(self, job: Job) -> dict[str, Any]:
        """The parts as one batch."""
        parts = [self._folder.read_part(job.id, number) for number, _ in enumerate(_parts(job.n_rows))]
        rows = [row for part in parts for row in part["rows"]]
        whole = parts[0] | {"seconds": sum(part["seconds"] for part in parts), "rows": rows}
        return whole if "answers" not in whole else whole | {"answers": _asked_of(parts)}

    def _end(self, job: Job, status: str, record: dict[str, Any]) -> None:
        with self._changed:
            try:
                self._folder.end(job.id, status, record)
            except OSError as error:  # no room, say; what the next server finds is a job to go on with
                _log.error("the end of a job cannot be written: %s", told(error))
                status, record = "failed", {"detail": "The server cannot write to its jobs folder."}
            job.status, job.detail = status, record.get("detail")
            job.done = job.n_rows if status == "done" else job.done
            self._changed.notify_all()

    def _known(self, identifier: str) -> Job:
        """A job of an earlier server."""
        request, status = self._folder.request(identifier), self._folder.status(identifier)
        job = Job(identifier, request["n_rows"], request["submitted"], status)
        if status == "failed":
            job.detail = self._folder.ended(identifier, status)["detail"]
        job.done = job.n_rows if status == "done" else 0
        return job

    def _forget_the_oldest(self) -> None:
        ended = [job for job in self._jobs.values() if job.has_ended]
        for job in ended[: max(0, len(ended) - self._service.limits.jobs_kept)]:
            del self._jobs[job.id]
            self._folder.remove(job.id)


def _parts(n_rows: int) -> Iterator[slice]:
    for start in range(0, max(n_rows, 1), PART):
        yield slice(start, min(start + PART, n_rows))


def _asked_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """What all parts' answers tell of: one class whose probability was asked for, or one a row."""
    told = [part["answers"] for part in parts]
    if all(one == told[0] and "of_row" not in one for one in told):
        return dict(told[0])
    of_row = [label for one, part in zip(told, parts, strict=True)
              for label in one.get("of_row", [one.get("of")] * len(part["rows"]))]  # fmt: skip
    return {"kind": "probability", "of_row": of_row}


def _part_of(target: Any, part: slice) -> Any:
    return target[part] if isinstance(target, list) and len(target) > 1 else target
