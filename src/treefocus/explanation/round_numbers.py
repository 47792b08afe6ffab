"""A row's answer in round numbers: what is still proven of it, and by how much the change becomes larger."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from treefocus.explanation.answers import Answers
from treefocus.explanation.rounding import rounded_point
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.search.base import Outcome, Status

A = TypeVar("A", bound=Answers)


def rounded(answers: A, i: int, question: Question, problem: Problem, digits: int, extra: float) -> A:
    """Row i alone with its answer in round numbers; `question` and `problem` are the row's."""
    before, status = float(answers.distance[i]), answers.status[i]
    dates = [j for j, feature in enumerate(question.schema.features) if feature.is_date]  # which are round as they are
    point = rounded_point(problem, answers.points[i], digits, extra, question.plausibility, kept=dates)
    distance = problem.distance_to(point[None])
    if status is Status.OPTIMAL and distance[0] > before:
        status = Status.BOUNDED
    found = Outcome(point[None], distance, np.minimum(distance, answers.lower_bound[i]), np.full(1, status, object))
    made = answers.of_row(i, question, replace(found, limits=answers.found.limits))
    larger = max(0.0, float(distance[0]) / before - 1.0) if before else 0.0
    smallest = None if answers.smallest is None else answers.smallest[[i]]
    return replace(made, larger=np.array([larger]), smallest=smallest)


def rounded_way(answers: A, i: int, digits: int, extra: float) -> A:
    """Row i of a further way out alone, its answer in round numbers where it has one."""
    group, place = answers.asked_of(i)
    question, is_answer = group.question.of_row(place), answers.status[i].has_answer
    if is_answer:
        return rounded(answers, i, question, group.problem.subset(np.array([place])), digits, extra)
    found = answers.found
    alone = Outcome(found.points[[i]], found.distance[[i]], found.lower_bound[[i]], found.status[[i]])
    return replace(answers.of_row(i, question, alone), why=(answers.why[i],))
