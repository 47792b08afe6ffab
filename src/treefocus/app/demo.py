"""The service on the loan applications that the package carries."""

from __future__ import annotations

from treefocus import loans
from treefocus.app.limits import Limits
from treefocus.app.service import Question, Service
from treefocus.tables import as_table

DEMO_SECONDS = 0.1  # a row, so that a page of four distances is there at once


def demo_service(
    limits: Limits | None = None,
    distance: str = "manhattan",
    title: str | None = None,
    time_limit: float | None = None,
) -> Service:
    """The loan applications, with the constraints that make sense for people."""
    trained = loans.train()
    asked = Question(
        distance=distance, constraints=loans.CONSTRAINTS, target="approved", time_limit=time_limit or DEMO_SECONDS
    )
    return Service(
        trained.model, trained.X_train, as_table(trained.X_test, "rows"), schema=loans.SCHEMA, asked=asked,
        limits=limits, title=title or "Loan applications",
    )  # fmt: skip
