"""The service on the loan applications that the package carries."""

from __future__ import annotations

from treefocus import loans
from treefocus.app.limits import Limits
from treefocus.app.question import ExplainOptions
from treefocus.app.service import Service
from treefocus.tables.table import as_table


def demo_service(
    limits: Limits | None = None,
    distance: str = ExplainOptions.distance,
    title: str | None = None,
    time_limit: float | None = None,
    hold: float | None = None,
) -> Service:
    """The loan applications, with the constraints that make sense for people.

    The forest is the carried one: without scikit-learn to import and train, the page is there in half the time.
    """
    applications = as_table(loans.load()[0], "rows")
    asked = ExplainOptions(
        distance=distance, constraints=loans.CONSTRAINTS, target="approved", time_limit=time_limit, hold=hold
    )
    return Service(
        loans.forest(), applications, applications, schema=loans.SCHEMA, asked=asked, limits=limits,
        title=title or "Loan applications",
    )  # fmt: skip
