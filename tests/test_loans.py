"""The loan data: reproducible to the last character, believable, and a model of it that is worth explaining."""

import numpy as np
import pytest

from treefocus import Explainer, InvalidInput, kernels, loans


@pytest.fixture(scope="module")
def trained() -> loans.Trained:
    return loans.train()


def test_the_carried_file_is_what_generate_draws():
    assert loans.to_csv(*loans.generate()) == loans.carried()


def test_load_gives_the_rows_of_generate():
    X, y = loans.load()
    drawn, labels = loans.generate()
    np.testing.assert_array_equal(X, drawn)
    np.testing.assert_array_equal(y, labels)
    assert X.shape == (5000, len(loans.SCHEMA))
    assert X.dtype == np.float64


def test_other_seeds_and_sizes_draw_other_people():
    X, y = loans.generate(50, seed=1)
    other, _ = loans.generate(50, seed=2)
    assert X.shape == (50, len(loans.SCHEMA))
    assert y.shape == (50,)
    assert (other != X).any()


def test_generate_needs_a_row():
    with pytest.raises(InvalidInput, match="n_rows must be at least 1, got 0"):
        loans.generate(0)


def test_between_a_third_and_a_half_are_declined():
    _, y = loans.load()
    assert set(y) == set(loans.LABELS)
    assert 0.35 <= np.mean(y == "declined") <= 0.45


def test_values_make_sense():
    X, _ = loans.load()
    column = dict(zip(loans.SCHEMA.names, X.T, strict=True))
    assert np.isfinite(X).all()
    assert (X >= 0).all()
    assert column["age"].min() >= 18
    assert (column["employment_years"] <= column["age"] - 18).all()
    assert (column["credit_history_years"] <= column["age"] - 18).all()
    assert column["utilisation"].max() <= 100
    assert (column["utilisation"][column["open_credit_lines"] == 0] == 0).all()
    for feature in loans.SCHEMA.features:
        if feature.kind == "integer":
            assert (column[feature.name] == np.rint(column[feature.name])).all(), feature.name


@pytest.mark.parametrize(
    ("a", "b", "sign"),
    [
        ("income", "loan_amount", 1),
        ("income", "savings", 1),
        ("utilisation", "late_payments", 1),
        ("utilisation", "savings", -1),
        ("age", "credit_history_years", 1),
    ],
)
def test_columns_hang_together(a, b, sign):
    X, _ = loans.load()
    correlation = np.corrcoef(X[:, loans.SCHEMA.index(a)], X[:, loans.SCHEMA.index(b)])[0, 1]
    assert sign * correlation > 0.1


def test_every_feature_is_described():
    assert all(feature.description for feature in loans.SCHEMA.features)
    assert {feature.unit for feature in loans.SCHEMA.features} == {"", "EUR", "%", "years"}


def test_the_forest_learns_the_rule(trained):
    assert len(trained.X_train) == 3500
    assert len(trained.X_test) == 1500
    assert trained.model.score(trained.X_test, trained.y_test) > 0.8
    assert trained.model.feature_importances_.max() < 0.4


def test_training_is_repeatable(trained):
    again = loans.train.__wrapped__()  # anew: the tests keep the first one
    np.testing.assert_array_equal(again.model.predict(again.X_test), trained.model.predict(trained.X_test))


def test_the_carried_forest_is_the_trained_one(trained):
    X, _ = loans.load()
    forest = loans.forest()
    said = forest.classes[kernels.predict(forest, X)]
    assert np.mean(said == trained.model.predict(X)) > 0.99  # other versions of scikit-learn may differ a little
    assert forest.source == "RandomForestClassifier"


def test_the_constraints_are_kept(trained):
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"][:5]
    explainer = Explainer(trained.model, trained.X_train, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA)
    found = explainer.explain(declined, target="approved")
    assert found.has_answer.all()
    after = dict(zip(loans.SCHEMA.names, found.points.T, strict=True))
    before = dict(zip(loans.SCHEMA.names, declined.T, strict=True))
    for name in ("age", "dependants"):
        np.testing.assert_array_equal(after[name], before[name])
    for name in ("income", "savings", "employment_years", "credit_history_years"):
        assert (after[name] >= before[name]).all()
    for name in ("loan_amount", "utilisation", "recent_inquiries", "late_payments"):
        assert (after[name] <= before[name]).all()
