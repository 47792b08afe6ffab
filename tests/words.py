"""The loan data's columns in words, in three languages, shared by the tests."""

from __future__ import annotations

from dataclasses import replace

from treefocus import Schema, loans

Words = dict[str, tuple[str, ...]]

# label, or one and many for what is counted
ENGLISH: Words = {
    "age": ("your age",),
    "dependants": ("dependant", "dependants"),
    "income": ("your income",),
    "employment_years": ("your time with your employer",),
    "savings": ("your savings",),
    "loan_amount": ("the loan",),
    "loan_years": ("the time to pay back",),
    "credit_history_years": ("the age of your oldest credit line",),
    "open_credit_lines": ("open credit line", "open credit lines"),
    "utilisation": ("your revolving utilisation",),
    "recent_inquiries": ("recent inquiry", "recent inquiries"),
    "late_payments": ("late payment", "late payments"),
}
GERMAN: Words = {
    "age": ("Ihr Alter",),
    "dependants": ("Angehöriger", "Angehörige"),
    "income": ("Ihr Einkommen",),
    "employment_years": ("Ihre Zeit beim Arbeitgeber",),
    "savings": ("Ihr Erspartes",),
    "loan_amount": ("der Kredit",),
    "loan_years": ("die Laufzeit",),
    "credit_history_years": ("das Alter Ihres ältesten Kredits",),
    "open_credit_lines": ("offene Kreditlinie", "offene Kreditlinien"),
    "utilisation": ("Ihre Kreditauslastung",),
    "recent_inquiries": ("Anfrage", "Anfragen"),
    "late_payments": ("verspätete Zahlung", "verspätete Zahlungen"),
}
FRENCH: Words = {
    "age": ("votre âge",),
    "dependants": ("personne à charge", "personnes à charge"),
    "income": ("votre revenu",),
    "employment_years": ("votre ancienneté",),
    "savings": ("votre épargne",),
    "loan_amount": ("le prêt",),
    "loan_years": ("la durée du prêt",),
    "credit_history_years": ("l'âge de votre plus ancien crédit",),
    "open_credit_lines": ("crédit ouvert", "crédits ouverts"),
    "utilisation": ("votre taux d'utilisation",),
    "recent_inquiries": ("demande récente", "demandes récentes"),
    "late_payments": ("retard de paiement", "retards de paiement"),
}
UNITS = {"de": {"years": ("Jahre", "Jahr")}, "fr": {"years": ("ans", "an")}, "en": {"years": ("years", "year")}}


def _schema(language: str, words: Words, subject: str, approved: str, declined: str) -> Schema:
    features = []
    for feature in loans.SCHEMA.features:
        told, unit = words[feature.name], UNITS[language].get(feature.unit, (feature.unit, ""))
        counted = {"one": told[0], "many": told[1]} if len(told) == 2 else {"label": told[0]}
        features.append(replace(feature, unit=unit[0], unit_one=unit[1], **counted))
    return Schema(features, subject, {"approved": approved, "declined": declined})


_english = _schema("en", ENGLISH, "your application", "approved", "declined")
TRANSLATIONS = {
    "de": _schema("de", GERMAN, "Ihr Antrag", "bewilligt", "abgelehnt"),
    "fr": _schema("fr", FRENCH, "votre demande", "acceptée", "refusée"),
}
LOANS = Schema(_english.features, _english.subject, _english.outcomes, TRANSLATIONS)
