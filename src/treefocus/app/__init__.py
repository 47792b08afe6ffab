"""The service: a REST API and a web page over one Explainer, in one process. Needs the extra `app`."""
