"""Which functions a framework calls every step, and which are known to run rarely: the data of `facts/roles.toml` made askable.

Order of decision for one function: its path is cold; it is a root named exactly; it is a wall (never entered); it is weak (hot
only when a hot function reaches it by an edge that is not behind a once-only test); else it is what the call graph says.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from launchlint.patterns import Pattern

# Roots by convention: methods with a telling name in a class with a telling name or base. Measured on labels: alone they
# find 58 of 65 functions that maintainers had to fix, and they are all there is for a code base without a table of its own.
ROOT_FUNCTION = Pattern(
    r"^(forward(_\w+)?|execute_model|init_forward_metadata\w*|compute_logits|run_batch|_receiver|propose|"
    r"get_(image|video|audio|multimodal|input)_\w*(feature|embed)\w*|embed_multimodal)$"
)
ROOT_METHOD = Pattern(
    r"^(forward\w*|__call__|build\w*|prepare\w*|_prepare\w*|_preprocess|execute_model|_execute\w*|compute_logits|apply\w*|propose\w*|_propose\w*|"
    r"sample|_sample\w*|init_forward_metadata\w*|update_states?\w*|_update_states\w*|dispatch\w*|combine\w*|finalize\w*|_receiver|receiver|run_batch|"
    r"filter_batch|merge_batch|process_batch\w*|prepare_for_\w*|embed_\w*|_process_\w*input\w*|generate|_dynamic_step\w*|forward_step|train_step|"
    r"training_step|step|update_step_context|get_multimodal_embeddings|get_input_embeddings|from_schedule_batch|verify|draft\w*|_draft\w*|_calc\w*|"
    r"postprocess\w*|_pool\w*|compute_loss|decode_step|prefill\w*)$"
)
ROOT_CLASS = Pattern(
    r"(Module|Model|ForCausalLM|ForConditionalGeneration|Attention\w*|Attn\w*|Layer|MLP|MoE|Experts|Builder|Backend|Runner|Worker|Proposer|Speculator|"
    r"Sampler|Scheduler|LogitsProcessor|Metadata|PrepareAndFinalize\w*|Dispatcher\w*|Pool|Pooler|Batch|Penalizer|Mixer\w*|Router|Executor|Engine|"
    r"Controller|Embedding|Embeddings|Mixin|Resampler\w*|Connector\w*|States?|Impl|Method|Encoder|Decoder|Worker\w*|Runner\w*|BatchInfo|OpsBackend)$"
)
HOT_NAME = Pattern(
    r"^_?_?(forward\w*|call__|(build|prepare|apply|compute|propose|sample|embed|expand|update|dispatch|combine|finalize|execute|process|preprocess|"
    r"postprocess|run|gather|scatter|verify|draft|step|decode|prefill|extend|route|permute|unpermute|merge|filter|select|generate|accept|reject|penal\w*|"
    r"convert|map|move|copy|transfer|send|recv|receive|write|read|schedule|handle|maybe|make|fused|moe|attn|attention|get|pool|encode|resample|patch|rot|"
    r"split|pack|pad|unpad|compact|swap|load_kv|save_kv|store_kv|dynamic|train|clip|scale|zero|mask|count|stage|upload|fill|add|loss|reduce|sync|collect|"
    r"drain|emit|assign|sort|rank|score|search|beam|rope|norm|quantize|dequantize)(_\w*)?|"
    r"\w*_(forward|metadata|receiver|logprobs?|logits?|mask|masks|step|sample|sampled|batch|inputs?|indices|index|embeds?|embeddings?|experts?|states?|"
    r"tokens?|seqlens?|kv|cache|caches|extend|decode|prefill|topk|cu_seqlens|seq_idx|ids|rows|offsets|lengths|lens|counts|grads|slots|spans|positions)|"
    r"init_forward_metadata\w*)$"
)
COLD_NAME = Pattern(
    r"^(__init__|prepare_\w*layer\w*|add_model|_?ensure_\w*|health\w*|set_lora|create|__init_subclass__|__post_init__|__del__|__repr__|__str__|__reduce__|"
    r"__new__|__exit__|setup\w*|main|_?load_\w*|load|\w*weight_loader\w*|\w*_loader|_?process_weights\w*|_?warm\w*|\w*warmup\w*|_?capture\w*|"
    r"\w*_capture\w*|_?dummy\w*|_\w*_dummy\w*|\w*dumm(y|ies)\w*|shutdown|close|destroy\w*|_?register\w*|\w*profil\w*|_?init_(?!forward)\w*|initiali[sz]e\w*|"
    r"_?_?reset_parameters|_?save_(?!kv)\w*|\w*checkpoint\w*|\w*benchmark\w*|_?bench|_?bench_\w*|test_\w*|_?get_dummy\w*|\w*autotune\w*|tune_\w*|_?log_(?!softmax|prob|mel|sigmoid)\w*|"
    r"\w*_debug\w*|debug_\w*|print_\w*|dump_\w*|_?dump\w*|export\w*|parse_\w*|add_cli\w*|\w*reshard\w*|\w*quantize_weights?\w*|repack\w*|\w*_repack\w*|"
    r"shuffle_weight\w*|\w*convert_weights?\w*|\w*convert_moe_weight\w*|\w*_weight_in_place|state_dict|_?load_state\w*|sharded_state\w*|\w*_state_dict\w*|"
    r"weight_(load|update)\w*|extra_repr|validate\w*|_?validate\w*|create_weights|_?create_fwd_graph|_?create_bwd_graph|get_quant\w*|__setstate__|"
    r"__getstate__|from_pretrained|post_init|_init_weights|sleep|wake_up|reload\w*|\w*_from_disk|\w*self_test\w*|sanity_\w*|_?check_\w*|\w*timed_\w*|"
    r"\w*_metrics?|collect_env\w*|build_(model|tokenizer|processor|dataset|data)\w*|\w*_reference|ref_\w*|\w*_ref|torch_ref\w*|naive_\w*|\w*_cpu|cpu_\w*|"
    r"finalize_load\w*|(_?prepare|_?finalize|_?process|_?pack|_?transform|_?update|_?get_packed|_?swizzle|_?pad|_?fuse|_?split|_?merge|_?permute)_weights?(_\w*)?|"
    r"_?prepare_(nv|mx)?fp[48]\w*|\w*_after_load\w*|evaluate|eval_\w*|plot\w*|visuali[sz]e\w*|pretrain|fit_tokenizer|build_pos\w*|_build_pos\w*|\w*inv_freq|\w*_native_ref|calibrat\w*|_?setup_\w*|_?compute_\w*(rope|scaling|yarn|ntk|longrope|llama3)\w*_parameters|_?generate_\w*_inputs|_?prepare_\w*(_shared_expert|preshuffle\w*)|\w+_and_export(_\w+)?|"
    r"(_?(get|make)_)?(input_examples?|example_inputs?)|\w*_to_(onnx|trt|tensorrt|torchscript)(_\w+)?|apply_to_models?)$"
)
COLD_CLASS = Pattern(
    r"(?<!Logits)(?<!Result)(?<!Output)(?<!Attn)(?<!Attention)Processor\w*$|ProcessingInfo|DummyInputs|DataParser|Tokenizer|FeatureExtractor|Collator|Dataset|DataLoader|"
    r"Sampler\w*Dataset|Config$|Profiler|Monitor$|^Perturb|^FaultInject|Benchmark|Loader$|Checker$|TestCase$|^Test[A-Z]|Quantizer$|Exporter$"
)
COLD_PATH = Pattern(
    r"(^|/)(third_party|eplb|tests?|testing|benchmarks?|bench|examples?|tools?|scripts?|docs?|warmup|model_loader|datasets?|tokenizers?\w*|entrypoints?|"
    r"configs?|utils/(quantization|debug)\w*|profiler?|profiling|debug_utils?|autotuner?|autotune\w*|cpu|ci|test_\w+|conversion|convert\w*|export|"
    r"multimodal/processing|transformers_utils|compilation|eval|kernel_warmup\w*|resharding|dist_checkpointing|onnx|tuning|oracle|pruning|tvm\w*)(/|$)|"
    r"(^|/)(\w*_)?(warmup|benchmark\w*|bench|profil\w*|test_\w*|\w*_test|conftest|processing_\w+|image_processing\w*|feature_extraction\w*|"
    r"video_processing\w*|tokenization\w*|convert_\w*|data_collator|weight_utils|configuration_\w+|cli|setup|\w+(?<!_to)_cpu|\w*loader|testing\w*|"
    r"dataset\w*|data_samplers?|\w*(?<!logits)(?<!logprob)(?<!logit)(?<!attention)(?<!attn)_processor|\w+_bench_\w+|debug\w*|\w*metrics\w*|logging\w*|\w*checker\w*|\w*quantiz\w*|autotuner|"
    r"cuda_graphs?|checkpoint\w*|\w*_reference|reference|ref)\.py$|(^|/)cpu_\w+\.py$|(^|/|_)amx(_\w+)?\.py$"
)
# In the folder of one model this is the codebook that its forward looks codes up in, and not the tool that makes weights smaller.
_CODEBOOK_PATH = Pattern(r"(^|/)(models|modules|codecs?)/(\w+/)*(quantiz(ation|er)s?|\w*(vq|vector|codebook|residual)\w*quantiz\w*)\.py$")
KERNEL_PATH = Pattern(
    r"(^|/)(\w*cute\w*|cutlass\w*|tilelang\w*|pallas\w*|cutedsl\w*|quack\w*)(/|$)|(^|/)\w*(cute_?dsl|tilelang)\w*\.py$"
)


class Globs:
    """Globs over names, asked together. They are sorted when a name is first asked of them, since most belong to other
    frameworks than the one at hand. Nearly all say how a name begins, ends or what it holds, which needs no regular expression:
    compiling all of them would cost more than checking a file."""

    __slots__ = ("_ends", "_exact", "_heads", "_parts", "_pattern", "_wild", "patterns")

    def __init__(self, patterns: list[str]) -> None:
        self.patterns = tuple(patterns)
        self._wild = [pattern for pattern in patterns if any(mark in pattern for mark in "*?[")]
        self._exact = frozenset(patterns).difference(self._wild)
        self._heads: tuple[str, ...] | None = None
        self._ends: tuple[str, ...] = ()
        self._parts: tuple[str, ...] = ()
        self._pattern: Pattern | None = None

    @property
    def exact(self) -> frozenset[str]:
        """The names among them that are no patterns."""
        return self._exact

    @property
    def is_wild(self) -> bool:
        """True where one of them is a pattern."""
        return bool(self._wild)

    def match(self, name: str) -> bool:
        """True if one of the globs matches all of `name`."""
        if name in self._exact:
            return True
        if not self._wild:
            return False
        if self._heads is None:
            self._sort()
        if name.startswith(self._heads or ()) or name.endswith(self._ends):
            return True
        for part in self._parts:
            if part in name:
                return True
        return self._pattern is not None and self._pattern.match(name) is not None

    def _sort(self) -> None:
        heads, ends, parts, others = [], [], [], []
        for pattern in self._wild:
            plain = pattern.strip("*")
            match pattern.startswith("*"), pattern.endswith("*"), any(mark in plain for mark in "*?["):
                case False, True, False:
                    heads.append(plain)
                case True, False, False:
                    ends.append(plain)
                case True, True, False:
                    parts.append(plain)
                case _:
                    others.append(f"(?:{translate(pattern)})")
        self._heads, self._ends, self._parts = tuple(heads), tuple(ends), tuple(parts)
        self._pattern = Pattern("|".join(others)) if others else None


@dataclass(frozen=True, slots=True)
class Root:
    """A place where the walk through the call graph starts."""

    reason: str
    per: str = "step"
    off_launch_path: bool = False  # runs in a thread of its own, where waiting is the design
    is_habit: bool = False  # a name says so, and whoever calls it knows better


@dataclass(frozen=True, slots=True)
class BaseRoot:
    """These methods of a class and of everything that derives from it."""

    base: str
    home: Globs | None
    methods: Globs
    root: Root


@dataclass(frozen=True, slots=True)
class Framework:
    """The table of one framework, or the part that holds for every project."""

    name: str
    packages: tuple[str, ...]
    functions: tuple[tuple[Globs, Root, bool], ...]  # pattern, root, names the function exactly
    bases: tuple[BaseRoot, ...]
    decorators: dict[str, Root]
    walls: Globs
    exceptions: Globs
    weak: Globs
    classes: Globs
    paths: Globs
    means: dict[str, tuple[str, ...]]
    intermediate: dict[str, str]  # class name -> the base of a root that it is known to derive from
    host_names: Globs  # names and keys that hold host memory by the project's own convention
    host_keys: frozenset[str]  # what is read out of these lives on the host


def _globs(patterns: list[str]) -> Globs:
    return Globs(patterns)


@functools.cache
def frameworks() -> dict[str, Framework]:
    """All tables by name; `common` is the one that holds everywhere. Read once."""
    with open(os.path.join(os.path.dirname(os.path.dirname(__file__)), "facts", "roles.json"), encoding="utf-8") as file:
        data = json.load(file)
    return {name: _framework(name, table) for name, table in data.items() if isinstance(table, dict)}


def _framework(name: str, table: dict[str, Any]) -> Framework:
    cold = table.get("cold", {})
    functions, bases, decorators = [], [], {}
    for entry in table.get("hot", []):
        root = Root(entry.get("why", ""), entry.get("per", "step"), entry.get("off_launch_path", False))
        if "function" in entry:
            exact = "*" not in entry["function"].rpartition(".")[2]
            functions.append((_globs([entry["function"]]), root, exact))
        elif "base" in entry:
            home = _globs([entry["home"]]) if "home" in entry else None
            bases.append(BaseRoot(entry["base"], home, _globs(entry["methods"]), root))
        for decorator in entry.get("decorators", []):
            decorators[decorator] = root
    intermediate = {child: base for base, children in table.get("intermediate", {}).items() for child in children}
    return Framework(
        name,
        tuple(table.get("packages", [])),
        tuple(functions),
        tuple(bases),
        decorators,
        _globs(cold.get("functions", [])),
        _globs(cold.get("except", [])),
        _globs(cold.get("weak", [])),
        _globs(cold.get("classes", [])),
        _globs(cold.get("paths", [])),
        {key: tuple(value) if isinstance(value, list) else (value,) for key, value in table.get("means", {}).items()},
        intermediate,
        _globs(table.get("mirrors", {}).get("host_names", [])),
        frozenset(table.get("mirrors", {}).get("host_keys", [])),
    )


@functools.cache
def framework_of(package: str) -> Framework | None:
    """The table of the framework whose top-level package this is."""
    return next((item for item in frameworks().values() if package in item.packages), None)


@functools.cache
def tables_of(module: str) -> tuple[Framework, ...]:
    """The tables that decide about the functions of a module."""
    own = framework_of(module.partition(".")[0])
    common = frameworks()["common"]
    return (common, own) if own is not None else (common,)


@functools.lru_cache(maxsize=65536)
def cold_path(path: str, module: str) -> str:
    """Why a file is cold by its path, or an empty string. Only the part below the package's root counts."""
    inner = _inside(path, module)
    for table in tables_of(module):
        if table.paths.match(inner):
            return f"the path {inner} is not on the way of a step"
    found = COLD_PATH.search(inner)
    if found is not None and not _CODEBOOK_PATH.search(inner):
        return f"the path ({found.group().strip('/')}) is not on the way of a step"
    return ""


ACCELERATORS = Pattern(r"(?:^|[/_])(npu|ascend|xpu|hpu|tpu|mlx|musa|mps)(?=[/_.]|$)")


def other_device(path: str, module: str, devices: tuple[str, ...]) -> str:
    """The accelerator that a file is written for by its path, if it is none of `devices`; empty where all count."""
    if not devices:
        return ""
    found = ACCELERATORS.search(_inside(path, module))
    name = found.group(1) if found is not None else ""
    return "" if name in devices or (name == "ascend" and "npu" in devices) else name


_MEASURES = Pattern(r"(^|/)metrics?/")


def measures(path: str, module: str) -> bool:
    """True where a path says that the file compares results with what was wanted."""
    return _MEASURES.search(_inside(path, module)) is not None


def kernel_path(path: str, module: str) -> bool:
    """True where a path says that the file holds device code."""
    return bool(KERNEL_PATH.search(_inside(path, module)))


def _inside(path: str, module: str) -> str:
    """The path from the top-level package on: what lies above is the user's disk, not the project."""
    parts = path.replace("\\", "/").split("/")
    depth = len(module.split("."))
    if parts[-1] == "__init__.py":
        depth += 1
    return "/".join(parts[-depth:]) if depth else parts[-1]
