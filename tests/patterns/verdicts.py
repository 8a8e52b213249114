"""What users of PyTorch report, as small functions of our own, and what must be said about each.

A mark `#> LCH101 LCH102` stands on the line that must be reported; any one of the codes will do, since which rule of a
family has the better words may change. `#>loop` marks a `for` line that may be reported in its place. Every function is
taken to be hot (`hot = ["*"]`): what is at stake is the value and not the caller. Links name where people met it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK = re.compile(r"\s*#>(loop)?((?:\s+LCH\d{3})*)$")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One function with its verdict: silence where no line is marked."""

    name: str
    marked: str
    links: str = ""

    @property
    def code(self) -> str:
        """The text without marks."""
        return "".join(MARK.sub("", line) + "\n" for line in self.marked.splitlines())

    @property
    def wanted(self) -> dict[int, frozenset[str]]:
        """Codes that may be reported, by the line that must be."""
        found: dict[int, frozenset[str]] = {}
        for number, line in enumerate(self.marked.splitlines(), start=1):
            if (mark := MARK.search(line)) and mark[2]:
                found[number] = frozenset(mark[2].split())
        return found

    @property
    def loops(self) -> frozenset[int]:
        """Lines of loops that may be reported in place of what is in them."""
        return frozenset(number for number, line in enumerate(self.marked.splitlines(), start=1) if re.search(r"#>loop", line))


REPORTED = (
    Snippet(
        "rows-filled-up-to-a-length",
        """\
import torch


def pad_cursors(sizes, columns, device):
    grid = torch.zeros(len(sizes), columns, dtype=torch.int64, device=device)
    position = 0
    for index, size in enumerate(sizes):  #>loop
        grid[index, :size].fill_(position)  #> LCH101
        position += size
    return grid
""",
        "https://github.com/sgl-project/sglang/pull/37938 https://github.com/ericcurtin/vllm-vulkan/pull/43",
    ),
    Snippet(
        "one-number-per-request-stored",
        """\
import torch


def penalties_of(batch, device):
    penalties = torch.empty(len(batch), dtype=torch.float32, device=device)
    for slot, entry in enumerate(batch):  #>loop
        penalties[slot] = entry["penalty"]  #> LCH102 LCH206
    return penalties
""",
        "https://github.com/pytorch/pytorch/pull/188267 https://github.com/pytorch/pytorch/pull/186482",
    ),
    Snippet(
        "gradients-zeroed-one-by-one",
        """\
import torch


def drop_gradients(parameters):
    for parameter in parameters:  #>loop
        if parameter.grad is not None:
            parameter.grad.zero_()  #> LCH105
""",
        "https://github.com/pytorch/pytorch/pull/82777 https://github.com/pytorch/pytorch/pull/47286",
    ),
    Snippet(
        "gradients-scaled-one-by-one",
        """\
import torch


def rescale(parameters, scale):
    for parameter in parameters:  #>loop
        parameter.grad.mul_(scale)  #> LCH105
""",
        "https://github.com/facebookresearch/fairseq/pull/4904 https://github.com/pytorch/pytorch/issues/134191",
    ),
    Snippet(
        "a-range-written-per-request",
        """\
import torch


def positions_of(firsts, sizes, device):
    positions = torch.empty(sum(sizes), dtype=torch.int64, device=device)
    begin = 0
    for first, size in zip(firsts, sizes):  #>loop
        positions[begin:begin + size] = torch.arange(first, first + size, device=device)  #> LCH102 LCH103
        begin += size
    return positions
""",
        "https://github.com/sgl-project/sglang/pull/37938",
    ),
    Snippet(
        "a-list-made-a-device-tensor",
        """\
import torch


def chosen_rows(rows, device):
    return torch.tensor(rows, dtype=torch.int64, device=device)  #> LCH201
""",
        "https://github.com/vllm-project/vllm/pull/51458 https://github.com/vllm-project/vllm/pull/2207",
    ),
    Snippet(
        "a-constant-made-through-the-host",
        """\
import torch


def no_prefix(device):
    return torch.tensor([-1], dtype=torch.int64, device=device)  #> LCH106 LCH201
""",
        "https://github.com/sgl-project/sglang/pull/32575 https://github.com/NVIDIA/TransformerEngine/pull/1941",
    ),
    Snippet(
        "an-array-sent-without-pinning",
        """\
import torch


def send(lengths, device):
    return torch.from_numpy(lengths).to(device, non_blocking=True)  #> LCH202
""",
        "https://github.com/vllm-project/vllm/pull/56202 https://github.com/vllm-project/vllm-ascend/pull/4113",
    ),
    Snippet(
        "an-unpinned-tensor-with-a-name",
        """\
import torch


def offsets_of(requests, device):
    offsets = torch.zeros(requests + 1, dtype=torch.int32)
    offsets[1:] = 3
    return offsets.to(device, non_blocking=True)  #> LCH202
""",
        "https://github.com/vllm-project/vllm/pull/56203 https://github.com/vllm-project/vllm/pull/45074",
    ),
    Snippet(
        "a-constant-of-the-object-rebuilt",
        """\
import torch


class Slots:
    def __init__(self, page_size, device):
        self.page_size = page_size
        self.device = device

    def step(self, places):
        page = torch.tensor([self.page_size], dtype=torch.int32, device=self.device)  #> LCH106 LCH201
        return places % page
""",
        "https://github.com/baidu/vLLM-Kunlun/pull/392 https://github.com/vllm-project/vllm/pull/51738",
    ),
    Snippet(
        "a-count-up-and-down-again",
        """\
import torch
import torch.distributed as dist


def longest_of_all_ranks(length, device, group):
    longest = torch.tensor([length], dtype=torch.long, device=device)  #> LCH106 LCH201 LCH206
    dist.all_reduce(longest, op=dist.ReduceOp.MAX, group=group)
    return int(longest.item())  #> LCH301
""",
        "https://github.com/NVIDIA/Megatron-LM/pull/4816 https://github.com/NVIDIA-NeMo/Automodel/pull/3931",
    ),
    Snippet(
        "the-loss-read-in-every-iteration",
        """\
import torch


def fit(network, pairs, optimizer):
    seen = 0.0
    for inputs, target in pairs:  #>loop
        loss = torch.nn.functional.mse_loss(network(inputs), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seen += loss.item()  #> LCH301 LCH307
    return seen
""",
        "https://github.com/meta-pytorch/torchtune/pull/522 https://github.com/openvdb/fvdb-reality-capture/pull/144",
    ),
    Snippet(
        "three-waits-per-expert",
        """\
import torch


def mixture(tokens, chosen, weights, experts):
    out = torch.zeros_like(tokens)
    for number, expert in enumerate(experts):  #> LCH104
        mask = chosen == number
        if mask.any():  #> LCH104 LCH303 LCH307
            picked = mask.any(dim=-1).nonzero().flatten()  #> LCH104 LCH303 LCH304
            scale = weights[mask].view(-1, 1)  #> LCH104 LCH303 LCH304
            out.index_add_(0, picked, expert(tokens[picked]) * scale)
    return out
""",
        "https://github.com/jingyaogong/minimind/issues/835 https://github.com/jingyaogong/minimind/pull/837",
    ),
    Snippet(
        "where-is-nonzero-in-disguise",
        """\
import torch


def run_experts(states, masks, experts):
    out = torch.zeros_like(states)
    for number, expert in enumerate(experts):  #> LCH104
        rank, row = torch.where(masks[number])  #> LCH104 LCH304
        out.index_add_(0, row, expert(states[row]))
    return out
""",
        "https://github.com/NVIDIA/TransformerEngine/pull/2642 https://github.com/huggingface/transformers/pull/32429",
    ),
    Snippet(
        "repeats-without-a-size",
        """\
import torch


class Spread(torch.nn.Module):
    def forward(self, shift, repeats):
        return torch.repeat_interleave(shift, repeats, dim=0)  #> LCH305
""",
        "https://github.com/pytorch/torchtitan/pull/3274 https://github.com/huggingface/diffusers/pull/11030",
    ),
    Snippet(
        "a-loop-that-asks-the-device-whether-to-go-on",
        """\
import torch


def generate(advance, tokens, stop, limit):
    running = torch.ones(tokens.shape[0], dtype=torch.bool, device=tokens.device)
    made = 0
    while made < limit and running.any():  #> LCH303 LCH307
        fresh = advance(tokens)
        running &= fresh != stop
        made += 1
    return tokens
""",
        "https://github.com/huggingface/transformers/issues/43089 https://github.com/huggingface/transformers/pull/47975",
    ),
    Snippet(
        "a-check-per-bucket",
        """\
import torch


def all_finite(buckets):
    for bucket in buckets:
        if not torch.isfinite(bucket).all():  #> LCH303 LCH307
            raise FloatingPointError("a gradient overflowed")
""",
        "https://github.com/NVIDIA/Megatron-LM/pull/7076 https://github.com/pytorch/pytorch/issues/60691",
    ),
    Snippet(
        "counts-that-nobody-reads-go-to-the-host",
        """\
import torch


class Router(torch.nn.Module):
    def forward(self, scores):
        winner = scores.argmax(dim=-1)
        load = torch.bincount(winner, minlength=16)  #> LCH304
        return winner, load.detach().to("cpu")  #> LCH302
""",
        "https://github.com/deepspeedai/DeepSpeed/pull/5578",
    ),
    Snippet(
        "two-reads-per-request-for-a-slice",
        """\
import torch


def first_slots(starts, table, out):
    for request in range(table.shape[0]):  #>loop
        begin = starts[request].item()  #> LCH301 LCH307
        end = starts[request + 1].item()  #> LCH301 LCH307
        out[begin:end] = table[request, 0]  #> LCH102
    return out
""",
        "https://github.com/ericcurtin/vllm-vulkan/pull/43",
    ),
    Snippet(
        "maximum-and-sum-read-for-metadata",
        """\
import torch


class AttentionMetadataBuilder:
    def build(self, lengths):
        widest = lengths.max().item()  #> LCH301
        tokens = int(lengths.sum())  #> LCH301
        return widest, tokens
""",
        "https://github.com/vllm-project/vllm/pull/51738 https://github.com/vllm-project/vllm/pull/34498",
    ),
    Snippet(
        "a-download-per-token",
        """\
import torch


def follow(advance, state, count, emit):
    for _ in range(count):
        state = advance(state)
        emit(state.cpu())  #> LCH302 LCH307
""",
        "https://github.com/sgl-project/sglang/pull/16493 https://github.com/vllm-project/vllm-ascend/pull/3372",
    ),
)

SILENT = (
    Snippet(
        "pinned-and-asynchronous",
        """\
import torch


def send(rows, device):
    staged = torch.tensor(rows, dtype=torch.int64, pin_memory=True)
    return staged.to(device, non_blocking=True)
""",
        "https://github.com/vllm-project/vllm/pull/2207 https://github.com/vllm-project/vllm/pull/45074",
    ),
    Snippet(
        "read-when-it-is-logged",
        """\
import torch


def fit(network, batches, interval):
    seen = None
    for number, inputs in enumerate(batches):
        loss = network(inputs).mean()
        loss.backward()
        kept = loss.detach()
        seen = kept if seen is None else seen + kept
        if number % interval == 0:
            print(number, seen.item() / interval)
            seen = None
""",
        "https://github.com/meta-pytorch/torchtune/pull/522 https://github.com/pytorch/torchtitan/issues/763",
    ),
    Snippet(
        "repeats-of-a-known-size",
        """\
import torch


class Spread(torch.nn.Module):
    def forward(self, shift, repeats, rows):
        sized = torch.repeat_interleave(shift, repeats, dim=0, output_size=rows)
        doubled = shift.repeat_interleave(2, dim=0)
        return sized, doubled
""",
        "https://github.com/pytorch/pytorch/pull/58417",
    ),
    Snippet(
        "weights-set-once",
        """\
import torch


class Tower(torch.nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.stages = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.reset_parameters()

    def reset_parameters(self):
        for stage in self.stages:
            stage.bias.data.fill_(0.0)
""",
        "https://github.com/vllm-project/vllm/pull/43107",
    ),
    Snippet(
        "everything-on-the-host",
        """\
import torch


def table_of(sizes):
    table = torch.zeros(len(sizes), 4, device="cpu")
    for index, size in enumerate(sizes):
        table[index, :size].fill_(1.0)
    rows = torch.tensor(sizes, device="cpu")
    return table, rows, int(rows.max())
""",
        "https://github.com/vllm-project/vllm/pull/34498 https://github.com/sgl-project/sglang/issues/9889",
    ),
    Snippet(
        "numpy-has-the-same-methods",
        """\
import numpy as np


def table_of(sizes):
    table = np.zeros((len(sizes), 4))
    for index, size in enumerate(sizes):
        table[index, :size].fill(1.0)
        top = table[index].max().item()
    return table.tolist(), top
""",
        "https://github.com/vllm-project/vllm/pull/9289",
    ),
    Snippet(
        "a-timer-waits-on-purpose",
        """\
import time

import torch


def measure(run, inputs, repeats):
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(repeats):
        run(inputs)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / repeats
""",
        "https://discuss.pytorch.org/t/how-to-inference-asynchronous/150999/2",
    ),
    Snippet(
        "items-of-a-dictionary",
        """\
def overlay(settings, changes):
    for key, value in changes.items():
        settings[key] = value
    for entry in settings["entries"]:
        settings["sum"] += entry.item
    return settings
""",
    ),
    Snippet(
        "a-loop-in-a-kernel",
        """\
import triton
import triton.language as tl


@triton.jit
def clear(out, length, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    for lane in range(0, BLOCK):
        tl.store(out + program * BLOCK + lane, 0, mask=program * BLOCK + lane < length)
""",
        "https://github.com/vllm-project/vllm-ascend/pull/14499",
    ),
    Snippet(
        "a-region-where-waiting-is-meant",
        """\
import torch

from engine.checks import gpu_sync_allowed


def pick(scores, count):
    chosen = []
    for _ in range(count):
        with gpu_sync_allowed():
            chosen.append(scores.argmax(-1).tolist())
    return chosen
""",
        "https://github.com/vllm-project/vllm/pull/44800 https://github.com/vllm-project/vllm/pull/56202",
    ),
    Snippet(
        "factories-on-the-device",
        """\
import torch


def scratch(length, device):
    steps = torch.arange(length, device=device)
    mark = torch.full((1,), -1, device=device)
    total = torch.zeros((), device=device)
    return steps, mark, total
""",
        "https://github.com/sgl-project/sglang/pull/32575 https://github.com/pytorch/pytorch/issues/120996",
    ),
)
