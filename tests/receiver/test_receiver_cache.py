"""Cached id vectors: keyed by everything they depend on, safe across threads, streams and graph capture."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from fixed_receiver import Receiver, cache, read_dispatch
from fixed_receiver.cache import SMALLEST_CAPACITY, Entry, IdCache, capacity_for, place
from fixed_receiver.fake_buffer import FakeElasticBuffer, FakeGroup

CPU = torch.device("cpu")


def test_one_vector_for_one_key() -> None:
    vectors = IdCache()
    assert vectors.expert_ids(CPU, 4, 8).tolist() == [8, 9, 10, 11]
    assert vectors.expert_ids(CPU, 4, 8) is vectors.expert_ids(CPU, 4, 8)
    assert vectors.row_numbers(CPU, 5).tolist() == [0, 1, 2, 3, 4]
    assert vectors.row_numbers(CPU, 5).data_ptr() == vectors.row_numbers(CPU, 9).data_ptr()
    assert vectors.row_numbers(CPU, 5).dtype == torch.int32


def test_everything_that_matters_is_in_the_key() -> None:
    vectors = IdCache()
    original = vectors.expert_ids(CPU, 4, 8)
    assert vectors.expert_ids(CPU, 4, 12).tolist() == [12, 13, 14, 15]
    assert vectors.expert_ids(CPU, 5, 8).tolist() == [8, 9, 10, 11, 12]
    assert vectors.expert_ids(CPU, 4, 8, torch.int32).dtype == torch.int32
    assert vectors.expert_ids(torch.device("meta"), 4, 8).device.type == "meta"
    assert vectors.expert_ids(CPU, 4, 8) is original


def test_two_sizes_in_turn_are_both_kept() -> None:
    vectors = IdCache()
    small, large = vectors.expert_ids(CPU, 4, 0), vectors.expert_ids(CPU, 8, 0)
    for _ in range(3):
        assert vectors.expert_ids(CPU, 4, 0) is small
        assert vectors.expert_ids(CPU, 8, 0) is large


def test_a_moved_offset_does_not_meet_old_ids() -> None:
    """Elastic expert parallelism: the same process serves other experts after a re-shard."""
    shared = IdCache()
    x = torch.zeros(4, 8)
    topk_idx = torch.tensor([[0], [2], [4], [6]])
    for rank in (0, 1, 0):
        returned = FakeElasticBuffer(FakeGroup(rank, 2)).dispatch(x, topk_idx, num_experts=8, do_expand=True)
        for variant in ("V0", "V3c", "V4", "V5"):
            received = Receiver(8, rank, 2, variant=variant, cache=shared)(read_dispatch(returned))
            assert received.topk_ids.flatten().tolist() == [4 * rank, 4 * rank + 2]


def test_row_numbers_grow_by_powers_of_two_and_stay_readable() -> None:
    vectors = IdCache()
    before = vectors.row_numbers(CPU, 3)
    after = vectors.row_numbers(CPU, SMALLEST_CAPACITY + 1)
    assert after.shape[0] == SMALLEST_CAPACITY + 1
    assert after[-1].item() == SMALLEST_CAPACITY
    assert before.tolist() == [0, 1, 2]
    assert any(kept.data_ptr() == before.data_ptr() for kept in vectors._outgrown)  # another stream may still read it


@pytest.mark.parametrize(
    ("rows", "capacity"), [(0, SMALLEST_CAPACITY), (SMALLEST_CAPACITY, SMALLEST_CAPACITY), (5000, 8192), (8192, 8192), (8193, 16384)]
)
def test_capacity(rows: int, capacity: int) -> None:
    assert capacity_for(rows) == capacity


def test_vectors_made_in_inference_mode_serve_a_backward() -> None:
    vectors = IdCache()
    with torch.inference_mode():
        ids, numbers = vectors.expert_ids(CPU, 3, 0), vectors.row_numbers(CPU, 3)
    weight = torch.ones(3, 2, requires_grad=True)
    (weight[ids].sum() + weight[numbers.long()].sum()).backward()  # type: ignore[no-untyped-call, unused-ignore]
    assert weight.grad is not None
    assert not ids.is_inference()


def test_two_threads_get_one_vector() -> None:
    for _ in range(50):
        vectors = IdCache()
        gate = threading.Barrier(4)
        found: list[tuple[int, int, list[int]]] = []

        def ask(vectors: IdCache = vectors, gate: threading.Barrier = gate, found: list[tuple[int, int, list[int]]] = found) -> None:
            gate.wait()
            ids = vectors.expert_ids(CPU, 64, 128)
            numbers = vectors.row_numbers(CPU, 100)
            found.append((ids.data_ptr(), numbers.data_ptr(), ids.tolist()))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert len({(ids, numbers) for ids, numbers, _ in found}) == 1
        assert found[0][2] == list(range(128, 192))


class Stream:
    """A CUDA stream that notes what it waited for."""

    def __init__(self, number: int) -> None:
        self.cuda_stream = number
        self.waited: list[object] = []

    def wait_event(self, event: object) -> None:
        self.waited.append(event)


class Event:
    """A CUDA event that notes who waited on the host."""

    def __init__(self) -> None:
        self.synchronized = 0

    def synchronize(self) -> None:
        self.synchronized += 1


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """A stand-in for torch.cuda's streams: which one is current, and whether it is being captured."""
    state: dict[str, object] = {"current": Stream(1), "capturing": False}
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: state["current"])
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: state["capturing"])
    yield state


def entry_of(stream: int) -> tuple[Entry, Event]:
    event = Event()
    return Entry(torch.arange(3), event, {stream}), event  # type: ignore[arg-type]


def test_another_stream_waits_once(streams: dict[str, object]) -> None:
    vectors = IdCache()
    entry, event = entry_of(1)
    vectors._experts[(CPU, 3, 0, torch.int64)] = entry
    first, second = streams["current"], Stream(2)
    vectors.expert_ids(CPU, 3, 0)
    streams["current"] = second
    for _ in range(3):
        vectors.expert_ids(CPU, 3, 0)
    assert isinstance(first, Stream)
    assert first.waited == []
    assert second.waited == [event]


def test_capture_needs_a_warm_cache(streams: dict[str, object]) -> None:
    vectors = IdCache()
    entry, event = entry_of(1)
    vectors._experts[(CPU, 3, 0, torch.int64)] = entry
    capturing = Stream(2)
    streams.update(current=capturing, capturing=True)
    with pytest.raises(RuntimeError, match=r"call IdCache\.warm before it"):
        vectors.expert_ids(CPU, 3, 0)
    streams.update(current=Stream(1), capturing=False)
    vectors.warm(CPU, 3, 0, 10)
    assert event.synchronized == 1
    streams.update(current=capturing, capturing=True)
    assert vectors.expert_ids(CPU, 3, 0).tolist() == [0, 1, 2]
    assert capturing.waited == []


def test_nothing_is_made_during_capture(streams: dict[str, object]) -> None:
    streams["capturing"] = True
    with pytest.raises(RuntimeError, match="cannot make a cached id vector during CUDA graph capture"):
        cache.build_entry(torch.device("cuda", 0), 0, 3, torch.int64)


def test_a_device_without_index_is_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert place(torch.device("cuda")) == torch.device("cuda", 1)
    assert place(torch.device("cuda", 0)) == torch.device("cuda", 0)
    assert place(CPU) == CPU
