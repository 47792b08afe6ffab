"""Draw the pictures of the loan data: one declined applicant, what would have changed that, what levers can do, and what
promises cost.

Run it from anywhere: python docs/images/make.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from treefocus import Explainer, curve, loans
from treefocus.render.plot import change_bars

FOLDER = Path(__file__).parent
LEVERS = {"money": ["income", "savings"], "loan": ["loan_amount", "loan_years"], "record": ["late_payments"]}
APPLICANT = 0  # of the declined ones among the test rows
N_ASKED = 40  # of them, of the curve
HOLDS = (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def main() -> None:
    """Train, explain, draw."""
    trained = loans.train()
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"]
    explainer = Explainer(
        trained.model, trained.X_train, distance="manhattan", constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
    )
    answer = explainer.explain(declined[APPLICANT : APPLICANT + 1], target="approved")[0]
    axes = change_bars(answer)
    axes.set_title("What would have got this applicant the loan", loc="left", fontweight="bold")
    axes.figure.savefig(FOLDER / "explanation.png", dpi=150, facecolor="white")
    refitting = Explainer(
        trained.model, trained.X_train, labels=trained.y_train, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
    )
    promises = curve(refitting, declined[:N_ASKED], "approved", holds=HOLDS)
    promises.plot().figure.savefig(FOLDER / "curve.png", dpi=150, facecolor="white")
    answer.menu(LEVERS).plot().figure.savefig(FOLDER / "menu.png", dpi=150, facecolor="white")


if __name__ == "__main__":
    main()
