"""The REST API, under /v1."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, TypeVar

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from treefocus.app import answers
from treefocus.app.card import card
from treefocus.app.front import Front
from treefocus.app.jobs import NoSuchJob, NotYet
from treefocus.app.messages import AuditBody, ExplainBody, LettersBody, RowsBody
from treefocus.app.metrics import MEDIA_TYPE as METRICS_TYPE
from treefocus.app.problems import MEDIA_TYPE, problem
from treefocus.app.workers import CalledOff, Errand
from treefocus.explanation.json import name

T = TypeVar("T")

PREFIX = "/v1"
METRICS = "/metrics"
_LOOK = 0.5  # seconds between two looks whether the caller is still there
_TEXTS = {
    400: "The body or an address in the headers cannot be read.",
    401: "The token is missing or wrong.",
    403: "The call comes from another site's page.",
    404: "There is no such job.",
    408: "The body did not arrive in time.",
    409: "The job has no result.",
    413: "More than the server allows in one call.",
    422: "A parameter or a row cannot be used.",
    429: "The server is busy, or the questions of the day have been asked.",
    507: "The disk is full.",
}


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {code: {"description": _TEXTS[code], "content": {MEDIA_TYPE: {"schema": schema}}} for code in codes}


def router(front: Front) -> APIRouter:
    """All calls, over one service."""
    own = APIRouter(prefix=PREFIX, responses=_problems(400, 401, 403))
    _add_facts(own, front)
    _add_questions(own, front)
    _add_audits(own, front)
    _add_jobs(own, front)
    return own


def add_metrics(app: FastAPI, front: Front) -> None:
    """What those who run the server want to know, beside the calls."""

    @app.get(METRICS, include_in_schema=False)
    def metrics() -> Response:
        return Response(front.metrics.to_text(), media_type=METRICS_TYPE)


def _add_facts(own: APIRouter, front: Front) -> None:
    @own.get(
        "/health", summary="Is the server there, and ready for questions?", response_model=answers.Health,
        tags=["facts"], responses={503: {"model": answers.Health, "description": "It is there, and not ready."}},
    )  # fmt: skip
    def health() -> Any:
        checks = front.readiness()
        is_ready = all(checks.values())
        told = {"status": "ok" if is_ready else "not ready", "ready": is_ready, "checks": checks}
        return JSONResponse(told, 200 if is_ready else 503)

    @own.get("/model", summary="The model card", response_model=answers.Card, tags=["facts"])
    async def model() -> Any:
        return card(front.service)


def _add_questions(own: APIRouter, front: Front) -> None:
    service, workers, budget = front.service, front.workers, front.budget

    @own.post(
        "/predict", summary="What does the model say?", response_model=answers.PredictAnswer, tags=["questions"],
        responses=_problems(400, 408, 413, 422, 429),
    )  # fmt: skip
    async def predict(body: RowsBody) -> Any:
        service.limits.check_call(len(body.rows))
        rows = service.table_of(body.rows)
        budget.take(len(body.rows))
        said = await workers.run(lambda _: service.predict(rows.values), Errand())
        pairs = zip(said.labels, said.probabilities, strict=True)
        told = [{"predicted": label, "probabilities": shares} for label, shares in pairs]
        return JSONResponse({"classes": service.classes, "rows": told})

    @own.post(
        "/explain", summary="What would have to change?", response_model=answers.ExplainAnswer, tags=["questions"],
        responses=_problems(400, 408, 413, 422, 429),
    )  # fmt: skip
    async def explain(request: Request, body: ExplainBody) -> Response:
        """The smallest change of each row that gets the wanted answer, and what is proven about it."""
        service.limits.check_call(len(body.rows))
        rows, question, names = service.table_of(body.rows), body.question(service.asked), body.names
        budget.take(len(body.rows) * max(1, question.n))
        errand = Errand(service.limits.patience(len(body.rows), question.n_searches))
        work = workers.run(lambda own: service.explain(rows, question, own, labels=names).to_json(), errand)
        return await _answered(request, errand, work)

    @own.post(
        "/letters", summary="The answers as letters", response_model=answers.LettersAnswer, tags=["questions"],
        responses=_problems(400, 408, 413, 422, 429),
    )  # fmt: skip
    async def letters(request: Request, body: LettersBody) -> Response:
        """A letter to each row, by a template; the words of columns and decisions are the server's schema."""
        asked, recipients = body.question, body.names()
        service.limits.check_call(len(asked.rows))
        rows, question, names = service.table_of(asked.rows), asked.question(service.asked), asked.names
        if body.leaves_hold:
            question = service.for_people(question)
        budget.take(len(asked.rows) * max(1, question.n))
        errand = Errand(service.limits.patience(len(asked.rows), question.n_searches))

        def write(own: Errand) -> str:
            found = service.explain(rows, question, own, labels=names)
            told = [
                {"row": name(one.label), "status": one.status.name, "text": body.letter(one, recipient)}
                for one, recipient in zip(found, recipients, strict=True)
            ]
            return json.dumps({"letters": told})

        return await _answered(request, errand, workers.run(write, errand))


def _add_audits(own: APIRouter, front: Front) -> None:
    service, workers, budget, jobs = front.service, front.workers, front.budget, front.jobs

    @own.post(
        "/audits", summary="What is demanded of whom?", response_model=answers.AuditAnswer, tags=["questions"],
        responses=_problems(400, 404, 408, 409, 413, 422, 429),
    )  # fmt: skip
    async def audits(request: Request, body: AuditBody) -> Response:
        """Who has no way out, what is asked of the others, and of which group more than can be chance."""
        body.check(service.limits)
        asked = body.asked
        if isinstance(asked, str):
            jobs.result(asked)
            errand = Errand()
            work = workers.run(lambda _: body.audit(jobs.answers(asked)).to_json(), errand)
            return await _answered(request, errand, work)
        service.limits.check_call(len(asked.rows))
        rows, question, names = service.table_of(asked.rows), asked.question(service.asked), asked.names
        budget.take(len(asked.rows) * max(1, question.n) + min(body.why, len(asked.rows)))
        errand = Errand(service.limits.patience(len(asked.rows), question.n_searches))
        work = workers.run(lambda own: body.audit(service.explain(rows, question, own, labels=names)).to_json(), errand)
        return await _answered(request, errand, work)


def _add_jobs(own: APIRouter, front: Front) -> None:
    jobs = front.jobs

    def found(job: Any) -> Response:
        return JSONResponse(job.to_dict())

    @own.post(
        "/jobs", summary="Submit a large batch", status_code=202, response_model=answers.Job, tags=["jobs"],
        responses=_problems(400, 408, 413, 422, 429, 507),
    )  # fmt: skip
    def submit(body: ExplainBody) -> Response:
        """The same body as /explain, with more rows; the answers are computed in the background and kept on disk."""
        job = jobs.submit(body, front.budget)
        return JSONResponse(job.to_dict(), 202, {"Location": f"{PREFIX}/jobs/{job.id}"})

    @own.get("/jobs", summary="All jobs", response_model=answers.JobList, tags=["jobs"])
    def listed() -> Response:
        return JSONResponse({"jobs": [job.to_dict() for job in jobs.all()]})

    @own.get("/jobs/{id}", summary="How far is it?", response_model=answers.Job, tags=["jobs"],
             responses=_problems(404, 422))  # fmt: skip
    def progress(id: str) -> Response:
        return found(jobs.get(id))

    @own.get(
        "/jobs/{id}/result", summary="The answers", response_model=answers.ExplainAnswer, tags=["jobs"],
        responses=_problems(404, 409, 422),
    )  # fmt: skip
    def result(id: str) -> Response:
        return FileResponse(jobs.result(id), media_type="application/json", filename=f"explanations-{id[:8]}.json")

    @own.post("/jobs/{id}/cancel", summary="Call it off", response_model=answers.Job, tags=["jobs"],
              responses=_problems(404, 422))  # fmt: skip
    def cancel(id: str) -> Response:
        return found(jobs.cancel(id))

    @own.delete("/jobs/{id}", summary="Forget it and its answers", status_code=204, response_model=None, tags=["jobs"],
                responses=_problems(404, 422))  # fmt: skip
    def remove(id: str) -> Response:
        jobs.remove(id)
        return Response(status_code=204)


async def no_such_job(request: Request, error: Exception) -> Response:
    """404 for jobs that are not there."""
    assert isinstance(error, NoSuchJob)
    return problem(404, str(error))


async def not_yet(request: Request, error: Exception) -> Response:
    """409 for results that are not there."""
    assert isinstance(error, NotYet)
    return problem(409, str(error))


async def _answered(request: Request, errand: Errand, work: Awaitable[str]) -> Response:
    """The work's JSON, or that nobody heard it."""
    try:
        return Response(await _while_heard(request, errand, work), media_type="application/json")
    except CalledOff:
        return problem(408, "The caller left before the answer was there.")


async def _while_heard(request: Request, errand: Errand, work: Awaitable[T]) -> T:
    """The result of the work, which is called off when the caller hangs up."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=_LOOK)
        if not task.done() and await request.is_disconnected():
            errand.call_off()
    return task.result()
