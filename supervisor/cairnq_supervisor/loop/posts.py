"""How the next worker of each queue is hired: by the newest configuration, or the last one that stood up."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cairnq_supervisor.loop.house import House
from cairnq_supervisor.pure.settings import QueueSettings


@dataclass(slots=True)
class Post:
    """One queue's. `want`: processes that it is to have, by the configuration or by an operator."""

    house: House
    queue: QueueSettings
    generation: int
    want: int


class Posts:
    """One post for each queue of the present configuration."""

    def __init__(self, house: House, generation: int) -> None:
        self._now = _advertised(house, generation)
        self._proved: dict[str, Post] = {}
        """Of queues in which the present generation has not taken every place yet."""

    @property
    def queues(self) -> tuple[QueueSettings, ...]:
        return tuple(post.queue for post in self._now.values())

    def __contains__(self, queue: str) -> bool:
        return queue in self._now

    def of(self, queue: str) -> Post:
        return self._now[queue]

    def want(self, queue: str) -> int:
        return self._now[queue].want if queue in self._now else 0

    def renew(self, house: House, generation: int, *, outdated: Collection[str]) -> None:
        """Another generation. Of queues that are `outdated`, the last one never took every place: it proved nothing."""
        proved = {name: self._proved.get(name, post) if name in outdated else post for name, post in self._now.items()}
        self._now = _advertised(house, generation)
        self._proved = {name: post for name, post in proved.items() if name in self._now}

    def fall_back(self, queue: str) -> Post | None:
        """From now on as before the present generation; None: so it is already.

        What an operator scaled by hand since then stays. (A range of processes is scaled without him.)
        """
        post = self._proved.pop(queue, None)
        if post is not None:
            failed, self._now[queue] = self._now[queue], post
            if failed.queue.max_processes is None and failed.want != failed.queue.processes:
                post.want = failed.want
        return post


def _advertised(house: House, generation: int) -> dict[str, Post]:
    return {queue.name: Post(house, queue, generation, queue.processes) for queue in house.settings.queues}
