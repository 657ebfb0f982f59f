"""How much a claim may take, and from whom first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cairnq.pure.quota import Ceilings, PayloadBudget, Share, Usage, open_shares, rotated

COMMON = Share(("a", "b"))
BATCHED = Share(("many",), batch=10)
NARROW = Share(("narrow",), concurrency=2)
GPU = Share(("train",), resource="gpu")
GPU_TOO = Share(("infer",), resource="gpu")
SHARES = [COMMON, BATCHED, NARROW, GPU, GPU_TOO]


def test_concurrency_counts_calls_and_a_batch_is_one() -> None:
    ceilings, usage = Ceilings(3), Usage()
    assert (ceilings.limit(COMMON, usage), ceilings.limit(BATCHED, usage)) == (3, 30)
    usage.take("many", calls=BATCHED.calls_for(11))
    assert usage.calls == 2
    assert (ceilings.limit(COMMON, usage), ceilings.limit(BATCHED, usage)) == (1, 10)


def test_a_name_with_a_concurrency_of_its_own_stays_under_both_ceilings() -> None:
    ceilings, usage = Ceilings(3), Usage()
    assert ceilings.limit(NARROW, usage) == 2
    usage.take("narrow")
    usage.take("a")
    assert ceilings.limit(NARROW, usage) == 1
    usage.take("a")
    assert ceilings.limit(NARROW, usage) == 0


def test_a_resource_is_shared_by_the_names_that_need_it() -> None:
    ceilings, usage = Ceilings(5, {"gpu": 1}), Usage()
    usage.take("train", "gpu")
    assert (ceilings.limit(GPU, usage), ceilings.limit(GPU_TOO, usage), ceilings.limit(COMMON, usage)) == (0, 0, 4)
    assert open_shares(SHARES, ceilings, usage) == [COMMON, BATCHED, NARROW]
    usage.give("train", "gpu")
    assert ceilings.limit(GPU_TOO, usage) == 1


def test_each_share_comes_first_in_its_turn() -> None:
    assert [rotated(SHARES, turn)[0] for turn in range(5)] == SHARES
    assert rotated(SHARES, 7) == [NARROW, GPU, GPU_TOO, COMMON, BATCHED]
    assert rotated([], 3) == []


@given(st.lists(st.tuples(st.sampled_from(SHARES), st.integers(0, 40)), max_size=30))
def test_draws_within_the_limits_never_pass_a_ceiling(draws: list[tuple[Share, int]]) -> None:
    ceilings, usage = Ceilings(4, {"gpu": 1}), Usage()
    for share, wanted in draws:
        taken = min(wanted, ceilings.limit(share, usage))
        usage.take(share.names[0], share.resource, share.calls_for(taken))
    assert usage.calls <= 4
    assert usage.by_name["narrow"] <= 2
    assert usage.by_resource["gpu"] <= 1


def test_without_a_budget_nothing_is_bounded() -> None:
    budget = PayloadBudget(None)
    budget.add(10**9)
    assert budget.limit() is None
    budget.start(10**9)
    assert budget.admits(10**9)
    assert budget.beyond(10**9) is None


def test_a_claim_is_sized_by_what_payloads_were_like() -> None:
    budget = PayloadBudget(1000)
    assert budget.limit() == 1, "nothing is known yet"
    for _ in range(50):
        budget.add(100)
        budget.remove(100)
    assert budget.limit() == 10
    budget.add(950)
    assert budget.limit() == 1, "something is left"
    budget.add(50)
    assert budget.limit() == 0
    budget.remove(1000)
    assert (budget.used, budget.limit()) == (0, 5)


def test_a_payload_beyond_the_whole_budget_starts_alone() -> None:
    budget = PayloadBudget(1000)
    assert budget.admits(5000)
    assert (budget.beyond(5000), budget.beyond(1000)) == (1000, None)
    budget.start(5000)
    assert not budget.admits(1)
    budget.end(5000)
    budget.start(600)
    assert not budget.admits(5000)
    assert budget.admits(400)


def test_empty_payloads_do_not_divide_by_nothing() -> None:
    budget = PayloadBudget(10)
    budget.add(0)
    assert budget.limit() == 10
