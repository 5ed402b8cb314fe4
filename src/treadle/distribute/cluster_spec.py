"""``td.train.ClusterSpec``: the addresses of the processes of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ClusterSpec:
    """The addresses of processes, by the name of their job.

    Args:
        cluster: for each job a list of addresses, or a dict of addresses by number; or another
            ClusterSpec.

    Raises:
        TypeError: it is neither.
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster._jobs
        if not isinstance(cluster, Mapping):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network "
                f"addresses, or a `ClusterSpec`, got {cluster!r}"
            )
        self._jobs: dict[str, dict[int, str]] = {}
        for name, tasks in cluster.items():
            if isinstance(tasks, list | tuple):
                tasks = dict(enumerate(tasks))
            if not isinstance(tasks, Mapping):
                raise TypeError(
                    f"The tasks for job {name!r} must be a list or a dictionary from integers to "
                    "strings."
                )
            self._jobs[str(name)] = {int(i): str(address) for i, address in tasks.items()}

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def as_dict(self) -> dict[str, Any]:
        """For each job a list of addresses; a dict where numbers are left out."""
        return {
            name: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for name, tasks in self._jobs.items()
        }

    def num_tasks(self, job_name: str) -> int:
        """How many processes a job has.

        Raises:
            ValueError: there is no such job.
        """
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's processes."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a process.

        Raises:
            ValueError: there is no such process.
        """
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job by number, None for numbers that are left out."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._jobs:
            raise ValueError(f"No such job in cluster: {name!r}")
        return self._jobs[name]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(str(self._jobs))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"
