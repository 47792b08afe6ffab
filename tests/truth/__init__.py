"""An independent judge of what is claimed: small problems, all of whose points are tried on the library's own model.

Nothing here comes from the search: not its kernels, not its forest, not its grid. `meaning` says in plain Python what a
constraint, a distance and a target mean to a user; `models` fits small models and reads their thresholds from the
libraries themselves; `oracle` looks at every cell between thresholds; `problems` draws problems so that every pair of
things that can meet does; `claims` holds what `explain` says against all that; `campaign` counts.
"""
