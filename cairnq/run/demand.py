"""What the next claim may ask for: which names, how many of each, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cairnq.pure.models import ClaimedTask
from cairnq.pure.pace import MOST_AHEAD, Pace
from cairnq.pure.quota import Ceilings, Share, Usage, open_shares, rotated
from cairnq.run.holdings import Holdings
from cairnq.run.options import EngineOptions
from cairnq.run.registry import Registry
from cairnq.store.base import DrawClaimed


@dataclass(frozen=True, slots=True)
class Draws:
    """One claim: the shares in the order of their draws, within `limit` tasks in all."""

    shares: Sequence[Share]
    ceilings: Ceilings
    usage: Usage
    limit: int
    most: int
    """Tasks that it may bring."""
    left_some_behind: bool
    """Some names were not asked for, since they had no room: look again when they do."""

    @property
    def names(self) -> list[str]:
        return [name for share in self.shares for name in share.names]

    @property
    def single(self) -> tuple[Share, int] | None:
        """The only share and its limit: that claim is one statement and needs no transaction."""
        if len(self.shares) != 1:
            return None
        [share] = self.shares
        return share, min(self.limit, self.ceilings.limit(share, self.usage))

    async def plan(self, draw: DrawClaimed) -> list[ClaimedTask]:
        """Inside the claim's transaction: each share takes its draw of what the ones before it left."""
        usage = self.usage.copy()
        claimed: list[ClaimedTask] = []
        for share in self.shares:
            limit = min(self.limit - len(claimed), self.ceilings.limit(share, usage))
            if limit <= 0:
                continue
            rows = await draw(list(share.names), limit)
            usage.take(share.names[0], share.resource, share.calls_for(len(rows)))
            claimed.extend(rows)
        return claimed


class Demand:
    """Reads the registry anew when it has changed, so that handlers may be registered while the worker runs."""

    def __init__(
        self, registry: Registry, options: EngineOptions, usage: Usage, holdings: Holdings, pace: Pace
    ) -> None:
        self._registry = registry
        self._options = options
        self._usage = usage
        self._holdings = holdings
        self._pace = pace
        self._turn = 0
        self._amounts: dict[str, int] = {}
        self._read_registry()

    def set_resource(self, name: str, amount: int) -> None:
        """From now on so many calls may share it, 0 included, whatever the registry and the options say."""
        self._amounts[name] = amount
        self._read_registry()

    def limit(self) -> int:
        """Tasks that may be claimed now, over all names. 0: nothing may be."""
        if self._version != self._registry.version:
            self._read_registry()
        if self._shares and not open_shares(self._shares, self._ceilings_now(), self._usage):
            return 0
        return self._most_beside_calls()

    @property
    def waits_for_calls_alone(self) -> bool:
        """Whether it takes nothing but calls that return for the next claim to go, and that is one statement."""
        return self._may_go_ahead and self._most_beside_calls() > 0

    def next_draws(self) -> Draws | None:
        """None where no handler is registered, or none has room."""
        limit, ceilings = self.limit(), self._ceilings_now()
        shares = open_shares(rotated(self._shares, self._turn), ceilings, self._usage)
        self._turn += 1
        if not shares:
            return None
        wanted = sum(ceilings.limit(share, self._usage) for share in shares)
        left_some_behind = len(shares) < len(self._shares) or wanted > limit
        return Draws(shares, ceilings, self._usage, limit, min(limit, wanted), left_some_behind)

    def _most_beside_calls(self) -> int:
        """What leases and bytes allow, which calls keep until they are settled."""
        most = self._holdings.table.free_slots
        for bound in (self._options.claim_batch, self._holdings.budget.limit()):
            if bound is not None:
                most = min(most, bound)
        return most

    def _ceilings_now(self) -> Ceilings:
        """Those of the worker; above them, while calls are short, by what may be held ahead.

        Once all slots are taken, more is asked for only when some of that is gone, lest claims be many and small. Where
        some names have quotas of their own nothing is held ahead: it would be drawn in their place.
        """
        ceilings = self._ceilings
        ahead = self._pace.ahead() if self._may_go_ahead else 0
        if self._usage.calls > ceilings.concurrency + self._pace.enough():
            return ceilings
        return replace(ceilings, concurrency=ceilings.concurrency + ahead) if ahead else ceilings

    def _read_registry(self) -> None:
        self._version = self._registry.version
        handlers = self._registry.handlers.values()
        amounts = {**self._registry.resources, **self._options.resources, **self._amounts}
        self._ceilings = Ceilings(self._options.concurrency, amounts)
        self._shares = [
            Share((h.name,), batch=h.batch or 1, concurrency=h.concurrency, resource=h.resource)
            for h in handlers
            if h.has_quota
        ]
        together = tuple(h.name for h in handlers if not h.has_quota)
        if together:
            self._shares.append(Share(together))
        self._may_go_ahead = len(self._shares) == 1 and bool(together)


def table_capacity(registry: Registry, options: EngineOptions) -> int:
    """Leases held at once: of running calls and of what is held ahead, and as many again on their way in and out."""
    largest = max((handler.batch or 1 for handler in registry.handlers.values()), default=1)
    return 16 + 2 * (options.concurrency * largest + MOST_AHEAD)
