"""What stands behind every call, of programs and of the page: the service, its workers, jobs, budget and numbers."""

from __future__ import annotations

from dataclasses import dataclass

from treefocus.app.callers import Budget
from treefocus.app.jobs import Jobs
from treefocus.app.metrics import Metrics
from treefocus.app.service import Service
from treefocus.app.workers import Workers


@dataclass
class Front:
    """One server's parts."""

    service: Service
    workers: Workers
    jobs: Jobs
    budget: Budget
    metrics: Metrics
    is_leaving: bool = False  # told to stop: what runs may end, nothing new should come

    def readiness(self) -> dict[str, bool]:
        """What has to be so that a call can be answered."""
        return {
            "places": self.workers.has_room, "jobs": self.jobs.is_working, "disk": self.jobs.can_write,
            "staying": not self.is_leaving,
        }  # fmt: skip
