"""The columns of the loan applications: names, kinds and units, and the words for sentences in three languages."""

from __future__ import annotations

from dataclasses import replace

from treefocus.schema.schema import Feature, Schema

_COLUMNS = (
    Feature("age", "integer", "years", "age of the applicant"),
    Feature("dependants", "integer", "", "people who live on the applicant's income"),
    Feature("income", "integer", "EUR", "gross income a year"),
    Feature("employment_years", "step", "years", "time with the present employer", step=0.1),
    Feature("savings", "integer", "EUR", "money in the bank"),
    Feature("loan_amount", "integer", "EUR", "the loan that is asked for"),
    Feature("loan_years", "integer", "years", "time to pay it back"),
    Feature("credit_history_years", "step", "years", "age of the oldest credit line", step=0.1),
    Feature("open_credit_lines", "integer", "", "cards and loans in use"),
    Feature("utilisation", "integer", "%", "share of the card limits in use"),
    Feature("recent_inquiries", "integer", "", "credit checks in the last twelve months"),
    Feature("late_payments", "integer", "", "payments more than 30 days late in the last two years"),
)

# In the order of the columns: how a sentence calls it, or one and many of what is counted.
_WORDS: dict[str, tuple[str | tuple[str, str], ...]] = {
    "en": (
        "your age", ("dependant", "dependants"), "your income", "your time with your employer", "your savings",
        "the loan", "the time to pay back", "the age of your oldest credit line",
        ("open credit line", "open credit lines"), "your revolving utilisation",
        ("recent inquiry", "recent inquiries"), ("late payment", "late payments"),
    ),
    "de": (
        "Ihr Alter", ("Angehöriger", "Angehörige"), "Ihr Einkommen", "Ihre Zeit beim Arbeitgeber", "Ihr Erspartes",
        "der Kredit", "die Laufzeit", "das Alter Ihres ältesten Kredits",
        ("offene Kreditlinie", "offene Kreditlinien"), "Ihre Kreditauslastung",
        ("Anfrage", "Anfragen"), ("verspätete Zahlung", "verspätete Zahlungen"),
    ),
    "fr": (
        "votre âge", ("personne à charge", "personnes à charge"), "votre revenu", "votre ancienneté", "votre épargne",
        "le prêt", "la durée du prêt", "l'âge de votre plus ancien crédit",
        ("crédit ouvert", "crédits ouverts"), "votre taux d'utilisation",
        ("demande récente", "demandes récentes"), ("retard de paiement", "retards de paiement"),
    ),
}  # fmt: skip
_YEARS = {"en": ("years", "year"), "de": ("Jahre", "Jahr"), "fr": ("ans", "an")}
# What years do in a language that declines them: "die Laufzeit kürzer wäre (1 Jahr statt 3 Jahre)".
_UP_AND_DOWN = {
    "de": {
        "age": ("höher", "niedriger"), "employment_years": ("länger", "kürzer"), "loan_years": ("länger", "kürzer"),
        "credit_history_years": ("höher", "niedriger"),
    }
}  # fmt: skip
_DECISIONS = {
    "en": ("your application", "approved", "declined"),
    "de": ("Ihr Antrag", "bewilligt", "abgelehnt"),
    "fr": ("votre demande", "acceptée", "refusée"),
}


def _worded(feature: Feature, words: str | tuple[str, str], language: str) -> Feature:
    if feature.unit == "years":
        feature = replace(feature, unit=_YEARS[language][0], unit_one=_YEARS[language][1])
        up, down = _UP_AND_DOWN.get(language, {}).get(feature.name, ("", ""))
        feature = replace(feature, up=up, down=down)
    return replace(feature, label=words) if isinstance(words, str) else replace(feature, one=words[0], many=words[1])


def _in(language: str, translations: dict[str, Schema] | None = None) -> Schema:
    subject, approved, declined = _DECISIONS[language]
    features = [_worded(*pair, language) for pair in zip(_COLUMNS, _WORDS[language], strict=True)]
    return Schema(features, subject, {"approved": approved, "declined": declined}, translations)


SCHEMA = _in("en", {"de": _in("de"), "fr": _in("fr")})
