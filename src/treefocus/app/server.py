"""The ASGI app: guard, API and, where asked for, the page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from treefocus.app import api, document, problems
from treefocus.app.jobs import Jobs, NoSuchJob, NotYet
from treefocus.app.security import LOOPBACK, Guard, check_binding
from treefocus.app.service import Service
from treefocus.app.workers import Workers


def create_app(
    service: Service,
    jobs_folder: Path,
    *,
    host: str = LOOPBACK[0],
    token: str | None = None,
    with_page: bool = True,
) -> FastAPI:
    """The app for one service, to be served on `host`."""
    check_binding(host, token)
    workers, jobs = Workers(service.limits), Jobs(jobs_folder, service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        jobs.start()
        yield
        workers.close()
        jobs.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=f"{api.PREFIX}/openapi.json")
    app.include_router(api.router(service, workers, jobs))
    problems.install(app)
    app.add_exception_handler(NoSuchJob, api.no_such_job)
    app.add_exception_handler(NotYet, api.not_yet)
    document.install(app, service, needs_token=token is not None)
    if with_page:
        from treefocus.app import page

        page.install(app, service, workers, jobs)
    hosts = (*LOOPBACK, host) if host in LOOPBACK else None
    app.add_middleware(Guard, token=token, hosts=hosts, body_bytes=service.limits.body_bytes)
    return app
