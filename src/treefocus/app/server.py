"""The ASGI app: guard, API and, where asked for, the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI

from treefocus.app import api, document, problems
from treefocus.app.callers import Budget
from treefocus.app.front import Front
from treefocus.app.jobs import Jobs, NoSuchJob, NotYet
from treefocus.app.logs import Journal
from treefocus.app.metrics import Metrics
from treefocus.app.security import LOOPBACK, Guard, check_binding
from treefocus.app.service import Service
from treefocus.app.workers import Workers


def create_app(
    service: Service,
    jobs_folder: Path,
    *,
    host: str = LOOPBACK[0],
    token: str | None = None,
    tokens: Mapping[str, str] | None = None,
    with_page: bool = True,
) -> FastAPI:
    """The app for one service, to be served on `host`; `tokens` are by the name of who has them."""
    known = dict(tokens or {}) | ({} if token is None else {"default": token})
    check_binding(host, known.values())
    workers, jobs = Workers(service.limits), Jobs(jobs_folder, service)
    front = Front(service, workers, jobs, Budget(service.limits.questions_per_day), _metrics(service, workers, jobs))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        jobs.start()
        yield
        front.is_leaving = True
        workers.close()
        jobs.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=f"{api.PREFIX}/openapi.json")
    app.include_router(api.router(front))
    api.add_metrics(app, front)
    problems.install(app)
    app.add_exception_handler(NoSuchJob, api.no_such_job)
    app.add_exception_handler(NotYet, api.not_yet)
    document.install(app, service, needs_token=bool(known))
    if with_page:
        from treefocus.app import page

        page.install(app, front)
    hosts = (*LOOPBACK, host) if host in LOOPBACK else None
    app.add_middleware(Guard, tokens=known, hosts=hosts, body_bytes=service.limits.body_bytes)
    app.add_middleware(Journal, metrics=front.metrics)
    return app


def _metrics(service: Service, workers: Workers, jobs: Jobs) -> Metrics:
    metrics = Metrics()
    service.on_answer.append(metrics.explained)
    metrics.watch("treefocus_calls_inside", "Searches that run or wait.", lambda: workers.n_inside)
    metrics.watch("treefocus_jobs_waiting", "Jobs that wait.", partial(jobs.count, "waiting"))
    metrics.watch("treefocus_jobs_running", "Jobs that run.", partial(jobs.count, "running"))
    return metrics
