"""A loop over time steps is what runs often in a pipeline; what stands around it runs once for a whole image or clip."""

from __future__ import annotations

import ast
from pathlib import Path

from launchlint.hot.denoising import walks_time_steps
from tests.engine.test_rarely import check

PIPELINE = """\
import torch
from torch import nn


class VideoPipeline(nn.Module):
    def forward(self, prompts: list[int], scales: list[float], device: torch.device):
        ids = torch.tensor(prompts, device=device)
        latents = self.prepare_latents(prompts, device)
        latents = self.denoise(latents, scales, device)
        for prompt in prompts:
            latents = latents + torch.tensor([prompt, prompt], device=device)
        return latents, ids, shared([1, 2], device)

    def prepare_latents(self, prompts: list[int], device: torch.device):
        shared(prompts, device)
        return torch.tensor(prompts, device=device)

    def denoise(self, latents: torch.Tensor, scales: list[float], device: torch.device):
        rows = torch.tensor(scales, device=device)
        for i, t in enumerate(self.scheduler.timesteps):
            rows = rows + torch.tensor(scales, device=device)  #>
            latents = self.transformer(latents, self.scale(scales, device), rows)
            shared(scales, device)
        return latents

    def scale(self, scales: list[float], device: torch.device):
        return torch.tensor(scales, device=device)  #>


def shared(rows: list[float], device: torch.device):
    return torch.tensor(rows, device=device)  #>
"""

SPEECH = """\
import torch
from torch import nn


class Speech(nn.Module):
    def generate(self, ids: torch.Tensor, scales: list[float], device: torch.device):
        while ids.shape[1] < 100:
            latent = self.sample_latent(ids, scales, device)
            ids = torch.cat([ids, self.decode_latent(latent, scales, device)])
        return ids

    def sample_latent(self, latent: torch.Tensor, scales: list[float], device: torch.device):
        rows = torch.tensor(scales, device=device)  #>
        for t in self.scheduler.timesteps:
            latent = self.model(latent, t, rows)
        return latent

    def decode_latent(self, latent: torch.Tensor, scales: list[float], device: torch.device):
        return latent + torch.tensor(scales, device=device)  #>
"""

SEQUENCE = """\
import torch
from torch import nn


class Recurrent(nn.Module):
    def forward(self, x: torch.Tensor, lengths: list[int], device: torch.device):
        rows = torch.tensor(lengths, device=device)  #>
        for t in range(self.timesteps):
            x = x + rows
        return x
"""


def test_what_stands_around_runs_once(tmp_path: Path) -> None:
    """Only a method called by habit at every step is a root, and here its caller shows that it is called ahead of the loop."""
    check(tmp_path, {"pipeline.py": PIPELINE})


def test_a_diffusion_at_every_token_is_no_prologue(tmp_path: Path) -> None:
    check(tmp_path, {"speech.py": SPEECH})


def test_a_loop_that_calls_no_model_is_one_over_a_sequence(tmp_path: Path) -> None:
    check(tmp_path, {"recurrent.py": SEQUENCE})


def test_a_caller_in_another_file_that_runs_every_step(tmp_path: Path) -> None:
    """Who is also called every step is reported, whoever else calls it."""
    layer = (
        "import torch\nfrom pipeline import shared\n\n\nclass Layer(torch.nn.Module):\n"
        "    def forward(self, x: torch.Tensor, rows: list[float]):\n        return x + shared(rows, x.device)\n"
    )
    once = PIPELINE.replace("            shared(scales, device)\n", "")
    silent = once.replace("    return torch.tensor(rows, device=device)  #>", "    return torch.tensor(rows, device=device)")
    check(tmp_path / "alone", {"pipeline.py": silent})
    check(tmp_path / "both", {"pipeline.py": once, "layer.py": layer})


ENTRY = """\
import torch
from torch import nn

from sampling import Sampler


class ActionPipeline(nn.Module):
    def __init__(self):
        super().__init__()
        self.sampler = Sampler()

    def forward(self, prompts: list[int], device: torch.device):
        ids = torch.tensor(prompts, device=device)
        return self.run(ids, prompts, device)

    def run(self, ids: torch.Tensor, prompts: list[int], device: torch.device):
        self.sampler.write(ids, 8, device)
        while len(ids) < 8:
            ids = self.language_model(ids) + torch.tensor([8], device=device)  #>
        while len(ids) > 8:
            ids = ids[1:] + torch.tensor([8], device=device)
        rows = self.model.forward_prefix(prompts, device) + self.model.forward_rows(prompts, device)
        return self.sampler.sample(ids, rows, device)
"""

SAMPLING = """\
import torch


class Sampler:
    def sample(self, ids: torch.Tensor, rows: torch.Tensor, device: torch.device):
        for step in range(self.num_steps):
            ids = self.denoise_step(ids, [0.5, 1.0], device)
        return ids + rows

    def write(self, ids: torch.Tensor, limit: int, device: torch.device):
        for token in range(limit):
            ids = self.token_step(ids, [token], device)
            if ids.max().item() == 0:  #>
                break
        return ids

    def token_step(self, ids: torch.Tensor, rows: list[int], device: torch.device):
        return ids + torch.tensor(rows, device=device)  #>

    def denoise_step(self, ids: torch.Tensor, scales: list[float], device: torch.device):
        return ids + torch.tensor(scales, device=device)  #>
"""


def test_a_pipeline_whose_loop_stands_in_another_file(tmp_path: Path) -> None:
    model = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward_prefix(self, rows: list[int], device: torch.device):\n"
        "        return torch.tensor(rows, device=device)\n\n    def forward_rows(self, rows: list[int], device: torch.device):\n"
        "        return torch.tensor(rows, device=device)  #>\n\n    def forward(self, rows: list[int], device: torch.device):\n"
        "        return self.forward_rows(rows, device)\n"
    )
    check(tmp_path / "apart", {"entry.py": ENTRY, "sampling.py": SAMPLING, "model.py": model})
    often = ENTRY.replace("ActionPipeline", "ActionHead").replace("device=device)\n        return", "device=device)  #>\n        return")
    often = often.replace("device=device)\n        rows", "device=device)  #>\n        rows")
    check(tmp_path / "head", {"entry.py": often, "sampling.py": SAMPLING})


def test_what_a_pipeline_does_ahead_of_its_loop(tmp_path: Path) -> None:
    """By its name, whoever calls it; what any other class prepares is prepared every step."""
    text = (
        "import torch\n\n\nclass ImagePipeline(torch.nn.Module):\n    def prepare_encode(self, ids: list[int], device: torch.device):\n"
        "        return torch.tensor(ids, device=device)\n"
    )
    often = text.replace("ImagePipeline", "ImageModel").replace("device=device)", "device=device)  #>")
    check(tmp_path, {"image.py": text, "often.py": often})


def parse_loop(text: str) -> ast.For | ast.While:
    loop = ast.parse(text).body[0]
    assert isinstance(loop, (ast.For, ast.While))
    return loop


def test_which_loops_are_meant() -> None:
    for head in ("for t in timesteps", "for i, t in enumerate(self.progress_bar(timesteps))", "for i in range(num_inference_steps)"):
        assert walks_time_steps(parse_loop(f"{head}:\n    x = self.unet(x)"))
        assert not walks_time_steps(parse_loop(f"{head}:\n    x = x + t"))
    assert walks_time_steps(parse_loop("for i in range(num_steps):\n    x = x + self.denoise(x)"))
    assert not walks_time_steps(parse_loop("for i in range(num_steps):\n    x = self.model(x)"))
    assert not walks_time_steps(parse_loop("for layer in self.layers:\n    x = self.unet(x)"))
    assert not walks_time_steps(parse_loop("while timesteps:\n    x = self.unet(x)"))
