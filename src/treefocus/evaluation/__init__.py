"""The paper's experiments: its metrics, data sets, settings, figures, and a run of all of them."""
