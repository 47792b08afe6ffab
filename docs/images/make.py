"""Draw the pictures of the loan data: one applicant, what would change the answer, what levers do, what promises cost.

Run it from anywhere: python docs/images/make.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

from treefocus import Explainer, curve, loans, refits
from treefocus.render.plot import change_bars

FOLDER = Path(__file__).parent
LEVERS = {"money": ["income", "savings"], "loan": ["loan_amount", "loan_years"], "record": ["late_payments"]}
APPLICANT = 0  # of the declined ones among the test rows
N_ASKED = 20  # of them, of the curve
HOLDS = (0.6, 0.7, 0.8, 0.9, 0.95)


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
    draw_curve(trained, declined)
    answer.menu(LEVERS).plot().figure.savefig(FOLDER / "menu.png", dpi=150, facecolor="white")


def draw_curve(trained: loans.Trained, declined: np.ndarray) -> None:
    """What promises are worth, and what they cost."""
    others = refits(trained.model, trained.X_train, trained.y_train, n=20)
    explainer = Explainer(
        trained.model, trained.X_train, refits=others, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
    )
    promises = curve(explainer, declined[:N_ASKED], "approved", holds=HOLDS)
    promises.plot().figure.savefig(FOLDER / "curve.png", dpi=150, facecolor="white")
    print(promises.to_text())


if __name__ == "__main__":
    main()
