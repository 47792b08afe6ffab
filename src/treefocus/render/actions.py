"""A plan of actions as text. Computes nothing: it takes the record that `Plan.to_json` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treefocus.render.phrases import DEFAULT, catalogue
from treefocus.render.plain import plain

Record = Mapping[str, Any]
_KINDS = {"set to": "set {0} to {1}", "at least": "raise {0} to at least {1}", "at most": "lower {0} to at most {1}"}


def plan_text(facts: Record) -> str:
    """The plan as sentences."""
    if not facts["asked"]:
        return "Everybody has what is wanted already."
    if not facts["actions"]:
        return f"No action was found that helps any of the {facts['asked']:,}; {_bound(facts)}"
    phrases = catalogue(DEFAULT)
    n, mean = len(facts["actions"]), phrases.rounded(facts["mean_cost"], 3)
    head = (
        f"{n} action{'s' * (n != 1)} {'help' if n != 1 else 'helps'} {share(facts['coverage'])} of {facts['asked']:,} "
        f"people, at a mean cost of {mean} ({plain(facts['distance'])}); {_bound(facts)}"
    )
    cover = facts["wanted"]["cover"]
    if cover is not None and facts["coverage"] < cover:
        head += f" That is below the {share(cover)} that were asked for."
    if facts["wanted"]["gradual"]:
        head += " Everybody goes only as far as it takes."
    lines = [head, *(f"{k}. {action_text(one, facts['units'])}" for k, one in enumerate(facts["actions"], start=1))]
    known = "proven to be the best choice" if facts["is_optimal"] else "the best choice that was found"
    by = "" if facts["chosen_by"] == facts["asked"] else f", chosen by {facts['chosen_by']:,} of the people"
    verb = "It is" if n == 1 else "They are"
    lines.append(f"{verb} {known} among {facts['looked_at']:,} actions{by}.")
    if "feature" in facts["tree"]["root"]:
        lines.append(f"Sorted by questions ({share(facts['tree']['coverage'])} are helped by what they are told):")
        lines += _tree_lines(facts["tree"]["root"], "  ")
    return "\n".join(lines)


def action_text(one: Record, units: Mapping[str, str]) -> str:
    """One action: what to do, whom it helps, what it costs, where it fails."""
    told = steps_text(one["steps"], units)
    cost = "" if one["mean_cost"] is None else f" at a mean cost of {catalogue(DEFAULT).rounded(one['mean_cost'], 3)}"
    fails = []
    if one["insufficient"]:
        fails.append(f"for {one['insufficient']:,} it is not enough")
    if one["forbidden"]:
        fails.append(f"for {one['forbidden']:,} it is not allowed")
    if one["too_dear"]:
        fails.append(f"for {one['too_dear']:,} it is too dear")
    failing = f"; {catalogue(DEFAULT).listed(fails)}" if fails else ""
    return (
        f"{told[:1].upper()}{told[1:]}: helps {one['helped']:,} of {one['asked']:,}, and is the cheapest for "
        f"{one['assigned']:,}{cost}{failing}."
    )


def steps_text(steps: Any, units: Mapping[str, str]) -> str:
    """What to do, as a sentence without its end."""
    return catalogue(DEFAULT).listed([_step(step, units.get(step["feature"], "")) for step in steps])


def _step(step: Record, unit: str) -> str:
    phrases, value, name = catalogue(DEFAULT), step["value"], plain(step["feature"])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _KINDS["set to"].format(name, "missing" if value is None else plain(value))
    amount = f"{phrases.number(abs(value) if step['kind'] == 'by' else value)} {plain(unit)}".rstrip()
    if step["kind"] == "by":
        return f"{'raise' if value > 0 else 'lower'} {name} by {amount}"
    return _KINDS[step["kind"]].format(name, amount)


def tree_record(node: Any) -> dict[str, Any]:
    """A sorting tree as plain values; actions are numbered from 1."""
    if not hasattr(node, "yes"):
        return {"action": None if node.action is None else node.action + 1, "rows": node.rows, "helped": node.helped}
    return {
        "feature": node.feature,
        "value": node.value if node.label is None else str(node.label),
        "is_category": node.label is not None,
        "yes": tree_record(node.yes),
        "no": tree_record(node.no),
    }


def _tree_lines(node: Record, indent: str) -> list[str]:
    if "feature" not in node:
        do = "nothing here helps" if node["action"] is None else f"action {node['action']}"
        return [f"{indent}{do} ({node['helped']:,} of {node['rows']:,} helped)"]
    value = plain(node["value"]) if node["is_category"] else catalogue(DEFAULT).number(node["value"])
    is_yes = f"{plain(node['feature'])} is {'' if node['is_category'] else 'at most '}{value}"
    return [
        f"{indent}if {is_yes}:",
        *_tree_lines(node["yes"], indent + "  "),
        f"{indent}otherwise:",
        *_tree_lines(node["no"], indent + "  "),
    ]


def _bound(facts: Record) -> str:
    is_limited = facts["wanted"]["most_cost"] is not None or facts["wanted"]["mean_cost"] is not None
    cost = " at that cost" if is_limited else ""
    return f"no actions whatsoever help more than {share(facts['upper_bound'])}{cost}, which is proven."


def share(value: float) -> str:
    """As per cent."""
    return catalogue(DEFAULT).share(value, 0 if value in (0.0, 1.0) else 1)
