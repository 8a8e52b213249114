"""Costs that are paid once: for a key of a table, for a whole generation, or when debugging. Beside each, what is paid every step."""

from __future__ import annotations

import ast
import os
import textwrap
from pathlib import Path

import pytest

from launchlint import discover, engine, registry
from launchlint.alternatives import fallback_definitions
from launchlint.settings import Settings

MARK = "  #>"
PLAN = """\
import os
import soundfile
import torch
from settings import envs

_TABLE = {}
_CHECKED = {}


class Planner:
    def __init__(self):
        self.plans = {}
        self.is_laid_out = False
"""


def reported(folder: Path, files: dict[str, str]) -> dict[str, list[int]]:
    """The lines that are reported at default settings in a tree of such files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.relative_to(folder).parents:
            if parent != Path():
                (folder / parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")
    before = os.getcwd()
    os.chdir(folder)
    try:
        report = engine.check_files(discover.find(["."], Settings()).files, registry.select(Settings()), Settings())
    finally:
        os.chdir(before)
    found: dict[str, list[int]] = {}
    for file in report.files:
        assert not file.problems
        source = engine.read_source(str(folder / file.path))
        for finding in file.findings:
            found.setdefault(os.path.normpath(file.path), []).append(source.position(finding.span.start).line)
    return found


def check(folder: Path, files: dict[str, str]) -> None:
    """Exactly the marked lines are reported."""
    wanted = {name: [number for number, line in enumerate(text.splitlines(), 1) if line.endswith(MARK)] for name, text in files.items()}
    bare = {name: text.replace(MARK, "") for name, text in files.items()}
    assert reported(folder, bare) == {name: lines for name, lines in wanted.items() if lines}


def method(text: str) -> str:
    return PLAN + textwrap.indent(textwrap.dedent(text), "    ")


KEPT = {
    "answered from a global table by what it holds": """
        def build_plan(self, rows: list[int], device: torch.device):
            if plan := _TABLE.get(tuple(rows)):
                return plan
            plan = torch.tensor(rows, device=device)
            _TABLE[tuple(rows)] = plan
            return plan
        """,
    "answered for the same object": """
        def forward(self, pool, rows: list[int], device: torch.device):
            kept = self.bundle
            if kept is not None and kept[0] == id(pool):
                return kept[1]
            bundle = self._build_bundle(rows, device)
            self.bundle = (id(pool), bundle)
            return bundle

        def _build_bundle(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)
        """,
    "a switch that is cleared": """
        def forward(self, rows: list[int], device: torch.device):
            if self.dump_path is None:
                return
            path = self.dump_path
            self.dump_path = None
            save(path, torch.tensor(rows, device=device))
        """,
    "nothing there": """
        def forward(self, rows: list[int], device: torch.device):
            if len(rows) == 0:
                return torch.tensor([1, 2], device=device)
            longest = max(rows) if len(rows) > 0 else torch.tensor([3, 4], device=device)
            return longest
        """,
    "nothing there, since the other way takes the first": """
        def forward(self, device: torch.device):
            if self.parts:
                return self.parts[0].scale()
            return torch.tensor([1, 2], device=device)
        """,
    "what the usual device does not come to": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            if x.is_cuda and x.dtype == torch.bfloat16:
                return fused(x)
            return x + torch.tensor(rows, device=device)
        """,
    "a skipped iteration": """
        def forward(self, rows: list[int], device: torch.device, skipped_iter: bool):
            if not skipped_iter:
                return None
            else:
                return torch.tensor(rows, device=device)
        """,
    "a self-check that an environment variable turns on": """
        def forward(self, rows: list[int], device: torch.device):
            if envs.SERVER_ENABLE_TOKEN_ORACLE.get():
                self._build_hashes(rows, device)

        def _build_hashes(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)
        """,
    "requests are moved out": """
        def forward(self, rows: list[int], device: torch.device):
            if rows:
                self.swap_in(rows, device)
                self.retract_requests(rows, device)

        def swap_in(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)

        def retract_requests(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)
        """,
    "answered from a table by get": """
        def build_plan(self, rows: list[int], device: torch.device):
            key = tuple(rows)
            plan = self.plans.get(key)
            if plan is not None:
                return plan
            plan = torch.tensor(rows, device=device)
            self.plans[key] = plan
            return plan
        """,
    "answered from a global table in one expression": """
        def build_plan(self, rows: list[int], device: torch.device):
            if (plan := _TABLE.get(tuple(rows))) is not None:
                return plan
            plan = torch.tensor(rows, device=device)
            _TABLE[tuple(rows)] = plan
            return plan
        """,
    "answered from a table by in": """
        def build_plan(self, rows: list[int], device: torch.device):
            if len(rows) in self.plans:
                return self.plans[len(rows)]
            self.plans[len(rows)] = torch.tensor(rows, device=device)
            return self.plans[len(rows)]
        """,
    "made by a helper behind a missed key": """
        def forward(self, rows: list[int], device: torch.device):
            plan = self.plans.get(len(rows))
            if plan is None:
                plan = self._build_plan(rows, device)
                self.plans[len(rows)] = plan
            return plan

        def _build_plan(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)
        """,
    "made by a helper behind a key that is not in": """
        def forward(self, rows: list[int], device: torch.device):
            if len(rows) not in self.plans:
                self.plans[len(rows)] = self._build_plan(rows, device)
            return self.plans[len(rows)]

        def _build_plan(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)
        """,
    "built by a method that is given the missing key": """
        def forward(self, size: int, rows: list[int], device: torch.device):
            if size not in self.plans:
                self._build_plan(size, rows, device)
                return None
            return self.plans[size]

        def _build_plan(self, size: int, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)
        """,
    "made by a helper behind a key that is in none of two tables": """
        def forward(self, size: int, rows: list[int], device: torch.device):
            if size not in self.plans or size not in self.bounds:
                plan = self._lay_out(rows, device)
                self.plans[size] = plan
                self.bounds[size] = plan

        def _lay_out(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)
        """,
    "kept behind a property": """
        @property
        def index(self):
            return self._index

        def forward(self, rows: list[int], device: torch.device):
            if self.index is None:
                self._index = torch.tensor(rows, device=device)
        """,
    "called while a graph is captured": """
        def forward(self, rows: list[int], device: torch.device, in_capture: bool):
            if in_capture:
                self._lay_out(rows, device)

        def _lay_out(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)
        """,
    "behind a flag that is set": """
        def forward(self, rows: list[int], device: torch.device):
            if not self.is_laid_out:
                self._build_plan(rows, device)
                self.is_laid_out = True

        def _build_plan(self, rows: list[int], device: torch.device):
            self.rows = torch.tensor(rows, device=device)
        """,
    "behind a flag that is cleared": """
        def forward(self, rows: list[int], device: torch.device):
            if self.has_uninitialized_rows:
                self._build_plan(rows, device)
                self.has_uninitialized_rows = False
            if self.is_first:
                self.is_first = False
                self.scale = torch.tensor(rows, device=device)

        def _build_plan(self, rows: list[int], device: torch.device):
            self.rows = torch.tensor(rows, device=device)
        """,
    "answered from an attribute of the right length": """
        def forward(self, rows: list[int], device: torch.device, keep: bool = True):
            if keep and hasattr(self, "kept") and self.kept.shape[0] == len(rows):
                return self.kept, self.scale
            kept = torch.tensor(rows, device=device)
            if keep:
                self.kept = kept
            return kept, self.scale
        """,
    "behind a size that is remembered": """
        def forward(self, height: int, width: int, rows: list[int], device: torch.device):
            if self.height != height or self.width != width:
                self.rows = torch.tensor(rows, device=device)
                self.height = height
                self.width = width
            return self.rows
        """,
    "behind the largest so far": """
        def forward(self, x: torch.Tensor, n: int, rows: list[int], device: torch.device):
            if n > self.largest:
                self.rows = torch.tensor(rows, device=device)
                self.largest = n
            if self.longest < n:
                self.keep(torch.tensor(rows, device=device))
                self.longest = n
            return self.rows
        """,
    "what is left of a try": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            try:
                return self.assign(x)
            except RuntimeError as error:
                if "out of memory" not in str(error):
                    raise
            return [self.assign(part) for part in x[torch.tensor(rows, device=device)]]
        """,
    "numbers that are not finite": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            if not math.isfinite(self.norm):
                x = x + torch.tensor(rows, device=device)
            if math.isfinite(self.norm):
                return x
            else:
                return x + torch.tensor(rows, device=device)
        """,
    "rows that are no numbers": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            nan_mask = torch.isnan(x).any(-1)
            if nan_mask.any():  #>
                x[0] = torch.tensor(rows, device=device)
            if self.has_nans:
                return x + torch.tensor(rows, device=device)
            return x
        """,
    "a size that is no number": """
        def forward(self, x: torch.Tensor, device: torch.device):
            d: int = x.shape[-1]
            if not isinstance(d, int):
                x = x + torch.tensor([d, 1], device=device)
            return x if isinstance(d, int) else x + torch.tensor([d, 2], device=device)
        """,
    "a property that is kept by a decorator of the project": """
        def forward(self, x: torch.Tensor):
            return x + self.scales

        @property
        @memory.cached(name="scales")
        def scales(self):
            return torch.tensor([1, 2], device="cuda")
        """,
    "the first of all steps": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device, is_first_step: bool):
            if is_first_step:
                x = x + torch.tensor(rows, device=device)
            return x
        """,
    "a term that is switched off": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            if self.loss_weight == 0.0:
                return torch.tensor(rows, device=device)
            return x
        """,
    "beside a file that is read": """
        def forward(self, path: str, rows: list[int], device: torch.device):
            audio, _ = soundfile.read(path)
            return torch.tensor(rows, device=device)
        """,
    "when an environment variable asks": """
        def forward(self, rows: list[int], device: torch.device):
            if os.environ.get("PLAN_DEBUG") == "1":
                self._build_plan(rows, device)

        def _build_plan(self, rows: list[int], device: torch.device):
            self.rows = torch.tensor(rows, device=device)
        """,
    "behind a return unless debugging": """
        def forward(self, rows: list[int], device: torch.device):
            if not envs.PLAN_DEBUG_ROWS.get():
                return
            self._build_plan(rows, device)

        def _build_plan(self, rows: list[int], device: torch.device):
            self.rows = torch.tensor(rows, device=device)
        """,
}

EVERY_STEP = {
    "a branch that is not about numbers that are none": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            if self.finance_rows.any():
                return x + torch.tensor(rows, device=device)  #>
            return x
        """,
    "what is given may be a number or not": """
        def forward(self, x: torch.Tensor, d, rows: list[int], device: torch.device):
            if isinstance(d, int):
                return x
            return x if isinstance(d, int) else x + torch.tensor(rows, device=device)  #>
        """,
    "all steps but the first": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device, is_first_step: bool):
            if not is_first_step:
                x = x + torch.tensor(rows, device=device)  #>
            return x
        """,
    "a term that is counted": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            if self.turns == 0:
                return torch.tensor(rows, device=device)  #>
            return x
        """,
    "a file that may be read": """
        def forward(self, path: str, rows: list[int], device: torch.device):
            if path:
                audio, _ = soundfile.read(path)
            return torch.tensor(rows, device=device)  #>
        """,
    "behind a size that is not remembered": """
        def forward(self, height: int, width: int, rows: list[int], device: torch.device):
            if self.height != height or self.width != width:
                self.rows = torch.tensor(rows, device=device)  #>
            return self.rows
        """,
    "what is left of a try that goes on": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            try:
                x = self.assign(x)
            except RuntimeError:
                return x
            return x + torch.tensor(rows, device=device)  #>
        """,
    "behind a bound that is not moved": """
        def forward(self, x: torch.Tensor, n: int, rows: list[int], device: torch.device):
            if n > self.largest:
                x = x + torch.tensor(rows, device=device)  #>
                self.smallest = n
            return x
        """,
    "within a try that returns": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            try:
                x = self.assign(x) + torch.tensor(rows, device=device)  #>
                return x
            except RuntimeError:
                raise
        """,
    "numbers that are finite": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            if math.isfinite(self.norm):
                x = x + torch.tensor(rows, device=device)  #>
            if not math.isnan(self.norm):
                x = x + torch.tensor(rows, device=device)  #>
            return x
        """,
    "behind a flag that each batch sets": """
        def forward(self, rows: list[int], device: torch.device):
            if self.has_new_rows:
                self._build_plan(rows, device)
                self.has_new_rows = False
            if self.is_first:
                self.scale = torch.tensor(rows, device=device)  #>

        def _build_plan(self, rows: list[int], device: torch.device):
            self.rows = torch.tensor(rows, device=device)  #>
        """,
    "an attribute that is not what is kept": """
        def forward(self, rows: list[int], device: torch.device, keep: bool = True):
            if keep and hasattr(self, "kept") and self.kept.shape[0] == len(rows):
                return self.kept, self.scale
            kept = torch.tensor(rows, device=device)  #>
            return kept, self.scale
        """,
    "answered for the same step": """
        def forward(self, step: int, rows: list[int], device: torch.device):
            kept = self.bundle
            if kept is not None and kept[0] == step:
                return kept[1]
            bundle = self._build_bundle(rows, device)
            self.bundle = (step, bundle)
            return bundle

        def _build_bundle(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)  #>
        """,
    "a switch that is set to something else": """
        def forward(self, rows: list[int], device: torch.device):
            if self.last is None:
                return
            self.last = rows[-1:]
            return torch.tensor(rows, device=device)  #>
        """,
    "something there": """
        def forward(self, rows: list[int], device: torch.device):
            if len(rows) > 0:
                return torch.tensor(rows, device=device)  #>
        """,
    "one item of many is empty": """
        def forward(self, spans: list[list[int]], device: torch.device):
            for span in spans:
                if len(span) == 0:
                    use(torch.tensor([1, 2], device=device))  #>
        """,
    "a flag, behind which nothing is taken": """
        def forward(self, device: torch.device):
            if self.parts:
                return self.parts
            return torch.tensor([1, 2], device=device)  #>
        """,
    "what only the usual device comes to": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            if x.is_cuda and x.dtype == torch.bfloat16:
                x = x + torch.tensor(rows, device=device)  #>
                return x
        """,
    "an environment variable that turns something on": """
        def forward(self, rows: list[int], device: torch.device):
            if envs.SERVER_ENABLE_TOKEN_SPANS.get():
                self._build_hashes(rows, device)

        def _build_hashes(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)  #>
        """,
    "the table is asked and never filled": """
        def build_plan(self, rows: list[int], device: torch.device):
            plan = self.plans.get(len(rows))
            if plan is not None:
                return plan
            return torch.tensor(rows, device=device)  #>
        """,
    "the table is one of this call": """
        def build_plan(self, rows: list[int], device: torch.device):
            plans = {}
            plan = plans.get(len(rows))
            if plan is not None:
                return plan
            plan = torch.tensor(rows, device=device)  #>
            plans[len(rows)] = plan
            return plan
        """,
    "the key is a request": """
        def build_plan(self, request_id: str, rows: list[int], device: torch.device):
            plan = self.plans.get(request_id)
            if plan is not None:
                return plan
            plan = torch.tensor(rows, device=device)  #>
            self.plans[request_id] = plan
            return plan
        """,
    "the key itself is uploaded": """
        def build_plan(self, rows: list[int], device: torch.device):
            key = torch.tensor(rows, device=device)  #>
            plan = self.plans.get(key)
            if plan is not None:
                return plan
            plan = key + 1
            self.plans[key] = plan
            return plan
        """,
    "the helper has another caller": """
        def forward(self, rows: list[int], device: torch.device):
            plan = self.plans.get(len(rows))
            if plan is None:
                plan = self._build_plan(rows, device)
                self.plans[len(rows)] = plan
            return plan

        def execute_model(self, rows: list[int], device: torch.device):
            return self._build_plan(rows, device)

        def _build_plan(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)  #>
        """,
    "a method is given the missing key and makes nothing": """
        def forward(self, size: int, rows: list[int], device: torch.device):
            if size not in self.plans:
                self._send_rows(size, rows, device)

        def _send_rows(self, size: int, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)  #>
        """,
    "one of two tables is not filled": """
        def forward(self, size: int, rows: list[int], device: torch.device):
            if size not in self.plans or size not in self.bounds:
                self.plans[size] = self._lay_out(rows, device)

        def _lay_out(self, rows: list[int], device: torch.device):
            return torch.tensor(rows, device=device)  #>
        """,
    "the flag is never set": """
        def forward(self, rows: list[int], device: torch.device):
            if not self.is_laid_out:
                self._build_plan(rows, device)

        def _build_plan(self, rows: list[int], device: torch.device):
            self.rows = torch.tensor(rows, device=device)  #>
        """,
    "the return is for an empty batch": """
        def forward(self, rows: list[int], device: torch.device):
            if not rows:
                return
            self._build_plan(rows, device)

        def _build_plan(self, rows: list[int], device: torch.device):
            self.rows = torch.tensor(rows, device=device)  #>
        """,
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in KEPT.items()])
def test_what_is_paid_once(tmp_path: Path, text: str) -> None:
    check(tmp_path, {"planner.py": method(text)})


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in EVERY_STEP.items()])
def test_what_is_paid_every_step(tmp_path: Path, text: str) -> None:
    check(tmp_path, {"planner.py": method(text)})


SAID = {
    "one transfer, says a comment above a group of reads": """
        def forward(self, x: torch.Tensor, device: torch.device):
            first, second = x.to(device) + 1, x.to(device) + 2
            # Single CPU transfer instead of one for each request
            first_rows = first.rows.cpu()
            second_rows = second.cpu()
            return first_rows, second_rows
        """,
    "a wait is acceptable, says a comment nearby": """
        def forward(self, x: torch.Tensor, device: torch.device):
            # The lengths make the D->H sync acceptable.
            lengths = x.to(device).cumsum(0)
            if len(lengths):
                return lengths.max().item()
        """,
    "off the path, says the docstring": """
        def forward(self, x: torch.Tensor, device: torch.device):
            \"\"\"The result has no fixed shape, so it synchronizes: keep it off the launch path.\"\"\"
            return x.to(device).cumsum(0).max().item()
        """,
    "the one wait, says the docstring": """
        def forward(self, x: torch.Tensor, device: torch.device):
            \"\"\"Lengths of a batch, read in one device synchronization.\"\"\"
            return x.to(device).cumsum(0).max().item()
        """,
    "one copy, says a comment above": """
        def forward(self, rows: list[int], device: torch.device):
            # built once: a list costs a pageable H2D copy
            first = torch.tensor(rows, device=device)
            other = torch.tensor([*rows, 1], device=device)
            return first, other
        """,
    "one read, says a comment on the line": """
        def forward(self, x: torch.Tensor, device: torch.device):
            rows = (x.to(device) + 1).tolist()  # one batched D2H sync
            return rows
        """,
    "on purpose, says a comment nearby": """
        def forward(self, x: torch.Tensor, device: torch.device):
            # The read below is a deliberate sync with the device.
            lengths = x.to(device).cumsum(0)
            if len(lengths):
                return lengths.max().item()
        """,
    "a fallback, says a comment": """
        def forward(self, rows: list[int], device: torch.device, starts: torch.Tensor | None = None):
            if starts is None:
                # Fallback: the owner plans ahead.
                starts = torch.tensor(rows, device=device)
            return starts
        """,
    "a fallback, says the name": """
        def forward(self, rows: list[int], device: torch.device, precomputed_starts: torch.Tensor | None = None):
            if precomputed_starts is not None:
                starts = precomputed_starts
            else:
                starts = torch.tensor(rows, device=device)
            return starts
        """,
    "a reference, says the docstring": """
        def forward(self, rows: list[int], device: torch.device):
            \"\"\"Reference implementation that the kernel is compared with.\"\"\"
            return torch.tensor(rows, device=device)
        """,
}

NOT_SAID = {
    "a docstring wants something off the path": """
        def forward(self, x: torch.Tensor, device: torch.device):
            \"\"\"Keeps the bookkeeping off the launch path.\"\"\"
            return x.to(device).cumsum(0).max().item()  #>
        """,
    "a docstring speaks of one wait, and an upload is none": """
        def forward(self, rows: list[int], device: torch.device):
            \"\"\"Lays out what came here by the one D2H of a step.\"\"\"
            return torch.tensor(rows, device=device)  #>
        """,
    "a comment above a group that another call ends": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            # Single CPU transfer
            shape = x.shape_of()
            lengths = torch.tensor(rows, device=device)  #>
            return shape, lengths
        """,
    "a comment asks for a repair": """
        def forward(self, rows: list[int], device: torch.device):
            # TODO: one H2D copy for all of it
            return torch.tensor(rows, device=device)  #>
        """,
    "a comment names the copy and no reason": """
        def forward(self, rows: list[int], device: torch.device):
            # efficient H2D copy
            return torch.tensor(rows, device=device)  #>
        """,
    "a comment speaks of ranks": """
        def forward(self, rows: list[int], device: torch.device):
            # synchronize once across all ranks
            return torch.tensor(rows, device=device)  #>
        """,
    "a comment speaks of another statement": """
        def forward(self, x: torch.Tensor, rows: list[int], device: torch.device):
            # one read to the host for the whole batch
            sizes = x.to(device).cumsum(0).shape
            return sizes, torch.tensor(rows, device=device)  #>
        """,
    "a default without a remark": """
        def forward(self, rows: list[int], device: torch.device, starts: torch.Tensor | None = None):
            if starts is None:
                starts = torch.tensor(rows, device=device)  #>
            return starts
        """,
    "a docstring speaks of counts": """
        def forward(self, rows: list[int], device: torch.device):
            \"\"\"Reference counts of all blocks.\"\"\"
            return torch.tensor(rows, device=device)  #>
        """,
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SAID.items()])
def test_what_is_said_to_be_meant(tmp_path: Path, text: str) -> None:
    check(tmp_path, {"planner.py": method(text)})


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in NOT_SAID.items()])
def test_what_nobody_said_to_be_meant(tmp_path: Path, text: str) -> None:
    check(tmp_path, {"planner.py": method(text)})


@pytest.mark.parametrize(("docstring", "mark"), [("Debug tally of one step.", ""), ("A reference class for batched rows.", MARK)])
def test_the_docstring_of_a_class(tmp_path: Path, docstring: str, mark: str) -> None:
    """A class for debugging is left alone. A reference class is often the one that runs."""
    text = PLAN.replace("class Planner:\n", f'class Planner:\n    """{docstring}"""\n\n')
    text += f"\n    def forward(self, rows: list[int], device: torch.device):\n        return torch.tensor(rows, device=device){mark}\n"
    check(tmp_path, {"planner.py": text})


MIXIN = """\
import torch


class GenerationMixin:
    def generate(self, input_ids: torch.Tensor, device: torch.device):
        ids = input_ids.to(device)
        longest = ids.max().item()
        self._prepare_start(ids)
        self._prepare_rows_for_generation(ids)
        shared_rows([longest], device)
        for row in ids.cumsum(0):
            print(row.max().item())
        for row in ids.cumsum(0):
            for token in row:
                print(token.item())  #>
        for row in ids.cumsum(0):
            print(self.forward(row).to(device).cumsum(0).max().item())  #>
        return self._sample(ids, device)

    def _prepare_start(self, ids: torch.Tensor):
        return ids.cumsum(0).max().item()

    def _prepare_rows_for_generation(self, ids: torch.Tensor):
        return torch.tensor([1, 2], device=ids.device)

    def _sample(self, ids: torch.Tensor, device: torch.device):
        unfinished = True
        while unfinished:
            shared_rows([1], device)
            unfinished = (ids.to(device).cumsum(0) == 0).any().item()  #>
        return ids


def shared_rows(rows: list[int], device: torch.device):
    return torch.tensor(rows, device=device)  #>
"""


def test_what_stands_ahead_of_the_loop_over_tokens(tmp_path: Path) -> None:
    """A loop in a loop, one that runs the model, the loop over tokens, and what this loop calls too are still reported."""
    check(tmp_path, {"transformers/generation/utils.py": MIXIN})


INTERVALS = """\
import torch


class ModelRunner:
    def execute_model(self, lengths: list[int], step: int, size: int):
        if step % self.config.log_interval == 0:
            self._seldom(lengths)
        if step % size == 0:
            self._often(lengths)

    def _seldom(self, lengths: list[int]):
        return torch.tensor(lengths, device="cuda")

    def _often(self, lengths: list[int]):
        return torch.tensor(lengths, device="cuda")  #>
"""


def test_what_is_called_once_in_an_interval(tmp_path: Path) -> None:
    """A remainder alone says nothing: blocks and ranks are counted with it too."""
    check(tmp_path, {"runner.py": INTERVALS})


def test_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from launchlint.why import explain

    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "transformers" / "generation"
    folder.mkdir(parents=True)
    for name in ("transformers/__init__.py", "transformers/generation/__init__.py"):
        (tmp_path / name).touch()
    (folder / "utils.py").write_text(MIXIN.replace(MARK, ""), encoding="utf-8")
    (tmp_path / "planner.py").write_text(method(KEPT["answered from a table by get"]), encoding="utf-8")
    assert "below the asked confidence, once ahead of a whole generation" in explain("transformers/generation/utils.py", 7, Settings())
    line = next(number for number, text in enumerate((tmp_path / "planner.py").read_text().splitlines(), 1) if "torch.tensor" in text)
    assert "runs once for a key: `self.plans` is a cache" in explain("planner.py", line, Settings())


STAGES = """\
import torch
from sglang.multimodal_gen.base import PipelineStage


class TokenizationStage(PipelineStage):
    def forward(self, batch, lengths: list[int], device: torch.device):
        rows = torch.tensor(lengths, device=device)
        for length in lengths:
            rows = rows + torch.tensor([length, length], device=device)
        for length in lengths:
            rows = self.vae.encode(torch.tensor([length, length], device=device))  #>
        return rows


class DenoisingStage(PipelineStage):
    def forward(self, batch, lengths: list[int], device: torch.device):
        return torch.tensor(lengths, device=device)  #>


class SlowDenoisingStage(PipelineStage):
    def forward(self, batch, lengths: list[int], timesteps: list[int], device: torch.device):
        rows = torch.tensor(lengths, device=device)
        for t in timesteps:
            rows = self.transformer(rows, torch.tensor([t, t + 1], device=device))  #>
        assert not rows.cumsum(0).max().item()
        return rows


class Gathering:
    def gather_rows(self, lengths: list[int], device: torch.device):
        return torch.tensor(lengths, device=device)

    def gather_columns(self, lengths: list[int], device: torch.device):
        return torch.tensor(lengths, device=device)  #>


class PipelinedDenoisingStage(PipelineStage):
    def forward(self, batch, lengths: list[int], timesteps: list[int], device: torch.device):
        self.around.gather_rows(lengths, device)
        for t in timesteps:
            self.around.gather_columns(lengths, device)
            self.transformer(lengths, t)


class WalkingDenoisingStage(PipelineStage):
    def forward(self, batch, lengths: list[int], timesteps: list[int], device: torch.device):
        for t in timesteps:
            print(t)
        return torch.tensor(lengths, device=device)  #>
"""


def test_what_stands_around_the_loop_over_time_steps(tmp_path: Path) -> None:
    """A diffusion stage runs once for an image; the one that holds the loop is taken as it was."""
    check(tmp_path, {"sglang/multimodal_gen/base.py": "class PipelineStage: ...\n", "sglang/multimodal_gen/stages.py": STAGES})


SPOKEN = """\
import torch


class Talker(torch.nn.Module):
    def forward(self, ids: torch.Tensor, device: torch.device):
        return self.generate(ids, device), self.generate_rows(ids, device), self.compose(ids, device)

    def generate(self, ids: torch.Tensor, device: torch.device):
        done = False
        while not done:
            ids = self.run_one_forward_step(ids)
            done = ids.to(device).cumsum(0).max().item()  #>
        rows = torch.tensor([1, 2], device=device)
        for row in rows:
            print(row.cumsum(0).max().item())
        return rows

    def generate_rows(self, ids: torch.Tensor, device: torch.device):
        while self.is_busy():
            self.wait()
        return torch.tensor([1, 2], device=device)  #>

    def compose(self, ids: torch.Tensor, device: torch.device):
        while self.is_busy():
            ids = self.run_one_forward_step(ids)
        return torch.tensor([1, 2], device=device)  #>
"""


def test_what_stands_behind_the_loop_over_tokens(tmp_path: Path) -> None:
    """What generates has such a loop; any other loop that runs a model may be one over layers."""
    check(tmp_path, {"talker.py": SPOKEN})


VERSIONS = """\
import torch

try:
    from kernels import cast, is_kernels_min_version

    HAVE_KERNELS = True
except ImportError:
    HAVE_KERNELS = False

    def compute_scales(rows: list[int]):
        return torch.tensor(rows, device="cuda")


if HAVE_KERNELS and is_kernels_min_version("2.2"):

    def compute_rows(rows: list[int]):
        return torch.tensor(rows, device="cuda")  #>

elif HAVE_KERNELS:

    def compute_rows(rows: list[int]):
        return torch.tensor(rows, device="cuda")

    def compute_other_rows(rows: list[int]):
        return torch.tensor(rows, device="cuda")  #>

else:

    def compute_rows(rows: list[int]):
        return torch.tensor(rows, device="cuda")


if LARGE:

    def compute_spans(rows: list[int]):
        return torch.tensor(rows, device="cuda")  #>

else:

    def compute_spans(rows: list[int]):
        return torch.tensor(rows, device="cuda")  #>


class Layer(torch.nn.Module):
    def forward(self, rows: list[int]):
        return self.quantize_fallback(rows), self.fallback_rows(rows)

    def quantize_fallback(self, rows: list[int]):
        return torch.tensor(rows, device="cuda")

    def fallback_rows(self, rows: list[int]):
        return torch.tensor(rows, device="cuda")  #>
"""


def test_what_is_there_for_other_versions(tmp_path: Path) -> None:
    """The first definition is what a current installation runs; a test of anything but a library says nothing."""
    check(tmp_path, {"casts.py": VERSIONS})


NAMES = """\
import torch


def generate_rows_inputs(device: torch.device):
    return torch.tensor([1, 2], device=device)


def compute_rope_scaling_parameters(device: torch.device):
    return torch.tensor([1, 2], device=device)


def compute_row_parameters(device: torch.device):
    return torch.tensor([1, 2], device=device)  #>


def prepare_rows_preshuffle(device: torch.device):
    return torch.tensor([1, 2], device=device)


def prepare_rows(device: torch.device):
    return torch.tensor([1, 2], device=device)  #>


def convert_and_export_rows(device: torch.device):
    return torch.tensor([1, 2], device=device)


def add_dummies_to_rows(device: torch.device):
    return torch.tensor([1, 2], device=device)


class RowMonitor:
    def get_rows(self, device: torch.device):
        return torch.tensor([1, 2], device=device)


class PerturbRows:
    def update_rows(self, device: torch.device):
        return torch.tensor([1, 2], device=device)


class RowPerturbation:
    def update_rows(self, device: torch.device):
        return torch.tensor([1, 2], device=device)  #>
"""


def test_names_of_what_is_set_up(tmp_path: Path) -> None:
    check(tmp_path, {"rows.py": NAMES})


CALLED = """\
import torch


def build_example(rows: list[int]):
    return compute_row_tables(rows)


def profile_rows(rows: list[int]):
    return apply_tables(rows), select_tables(rows)


def apply_tables(rows: list[int]):
    return expand_tables(rows)


def expand_tables(rows: list[int]):
    return torch.tensor(rows, device="cuda")


def select_tables(rows: list[int]):
    return sample_tables(rows)


def serve(rows: list[int]):
    return select_tables(rows)


def sample_tables(rows: list[int]):
    return torch.tensor(rows, device="cuda")  #>
"""
SCORED = """\
import torch


def compute_score(x: torch.Tensor):
    return torch.tensor(0.5, device=x.device){mark}
"""


def test_callers_of_callers_that_run_rarely(tmp_path: Path) -> None:
    """One that is not known to run rarely is enough."""
    check(tmp_path, {"tables.py": CALLED})


def test_what_measures(tmp_path: Path) -> None:
    """A name alone is no reason to believe that it runs in a step."""
    layer = "from pkg.metrics.tally import compute_score\n\nclass Layer(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"
    quiet = {"pkg/metrics/score.py": SCORED.format(mark=""), "pkg/losses/score.py": SCORED.format(mark="  #>")}
    check(
        tmp_path,
        {**quiet, "pkg/metrics/tally.py": SCORED.format(mark="  #>"), "layer.py": "import torch\n" + layer.format("compute_score(x)")},
    )


ALLOWED = """\
import torch

from project.waits import gpu_sync_allowed


class Planner:
    def forward(self, x: torch.Tensor, is_pinned: bool):
        rows = x.cuda()
        with nullcontext() if is_pinned else gpu_sync_allowed():
            longest = _longest(rows)
            shortest = _shortest(rows)
        return longest, shortest, _shortest(rows), self.widest(rows)

    def widest(self, x: torch.Tensor):
        with gpu_sync_allowed():
            return total(x)


def _longest(x: torch.Tensor):
    return x.cuda().max().item()


def _shortest(x: torch.Tensor):
    return x.cuda().min().item()  #>


def total(x: torch.Tensor):
    return x.cuda().sum().item()  #>
"""


def test_what_is_only_called_where_waits_are_allowed(tmp_path: Path) -> None:
    """One other call is enough, and a public function may have one in another file."""
    check(tmp_path, {"planner.py": ALLOWED})


IDLE = """\
import torch


class Scheduler:
    def event_loop_overlap(self, x: torch.Tensor):
        while True:
            self.on_idle(x)
            self.plan_batch(x)

    def on_idle(self, x: torch.Tensor):
        return x.cuda().max().item()

    def plan_batch(self, x: torch.Tensor):
        return x.cuda().max().item()  #>
"""


def test_what_runs_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    """The device has nothing queued that a wait would cost."""
    check(tmp_path, {"sglang/srt/managers/scheduler.py": IDLE})


NOISE = """\
import torch
from diffusers.schedulers.scheduling_utils import SchedulerMixin


class RowScheduler(SchedulerMixin):
    def scale_noise(self, sample: torch.Tensor, step: torch.Tensor):
        return sample * self.first_index(step)

    def step(self, sample: torch.Tensor, step: torch.Tensor):
        return sample * self.next_index(step)

    def first_index(self, step: torch.Tensor):
        return step.cuda().max().item()

    def next_index(self, step: torch.Tensor):
        return step.cuda().max().item()  #>
"""


def test_noise_is_put_on_an_image_once(tmp_path: Path) -> None:
    """A step is one of many, the noise that a generation starts from is not."""
    check(tmp_path, {"diffusers/schedulers/rows.py": NOISE})


SOCKETS = """\
import torch


class Client:
    def forward(self, context):
        socket = context.socket(1)
        socket.connect("tcp://host")
        socket.share_rows([1])
"""
SHARDS = """\
import torch


class Shards:
    def connect(self, rows: list[int]):
        self.rows = torch.tensor(rows, device="cuda")

    def share_rows(self, rows: list[int]):
        self.rows = torch.tensor(rows, device="cuda")  #>
"""


def test_a_socket_is_no_shard(tmp_path: Path) -> None:
    """Of whom `connect` is asked says nothing, where the object is unknown."""
    check(tmp_path, {"client.py": SOCKETS, "shards.py": SHARDS})


TABLES = """\
import torch


class Planner:
    def forward(self, sizes: list[int], dtype: torch.dtype, requests: list[str]):
        for size in sizes:
            self.buffers[dtype][size] = Buffer(size)
        for request_id in requests:
            self.states[request_id] = State(4)


class Buffer:
    def __init__(self, size: int):
        self.tail = torch.tensor([size, size], device="cuda")


class State:
    def __init__(self, size: int):
        self.tail = torch.tensor([size, size], device="cuda")  #>
"""


def test_what_a_table_keeps(tmp_path: Path) -> None:
    """What is kept for one request is made again for the next."""
    check(tmp_path, {"planner.py": TABLES})


def test_a_long_chain_of_versions() -> None:
    """Each `elif` lies one level deeper in the tree."""
    branches = "".join(f"elif version == {number}:\n    def rows(): ...\n" for number in range(1500))
    found = fallback_definitions(ast.parse(f"if version == -1:\n    def rows(): ...\n{branches}"))
    assert list(found) == list(range(4, 3003, 2))
