"""Answers under random constraints, by every strategy, held to an independent check: none may break a rule or not flip.

    python benchmarks/violations.py --answers 100000

Problems are those of tests/support/small_problems.py: random forests with numbers, categories and missing values,
rows beside thresholds, every distance, every constraint that cells can decide. The check is that of
tests/support/brute.py, which walks the trees node by node and shares no code with the searches.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import brute
from support.small_problems import DISTANCES, small_problem
from treefocus import Auto, Exact, FeatureTweaking, Focus, InvalidInput, RandomPerturbation
from treefocus.search.base import Run, solved

STRATEGIES = {
    "exact": Exact(),
    "exact, 20 boxes": Exact(node_limit=20),
    "auto": Auto(),
    "focus": Focus(iterations=60, retry=False),
    "random": RandomPerturbation(draws=100),
    "feature tweaking": FeatureTweaking(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--first-seed", type=int, default=0)
    chosen = parser.parse_args()
    answers: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    names = list(DISTANCES)
    seed = chosen.first_seed
    while answers.total() < chosen.answers:
        problem = small_problem(seed, names[seed % len(names)])
        questions = list(brute.questions_of(problem))
        for name, strategy in STRATEGIES.items():
            try:
                found = solved(strategy, problem, Run(n_jobs=1, seed=seed))
            except InvalidInput:  # feature tweaking needs trees that vote
                continue
            for i, question in enumerate(questions):
                if found.status[i].has_answer:
                    answers[name] += 1
                    wrong = brute.faults(question, found.points[i], float(found.distance[i]))
                    faults.update(f"{name}: {fault}" for fault in wrong)
                    if wrong:
                        print(f"seed {seed}, row {i}, {name}: {'; '.join(wrong)}", flush=True)
        seed += 1
        if seed % 1000 == 0:
            print(
                f"{seed - chosen.first_seed} problems, {answers.total()} answers, {faults.total()} faults", flush=True
            )
    for name, count in answers.items():
        print(f"{name:18} {count:7} answers")
    print(f"{answers.total()} answers to {seed - chosen.first_seed} problems, {faults.total()} faults")
    raise SystemExit(bool(np.sign(faults.total())))


if __name__ == "__main__":
    main()
