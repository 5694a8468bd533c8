#!/usr/bin/env python3
"""Imports ONNX Attention nodes, runs them and compares with float64.

    python3 test/Integration/onnx_attention.py --bin build/bin [--target cpu|sm_80|sm_90a] [--filter TEXT] [--xunit FILE]

The models are written as text here, so that the onnx package isn't needed; where it is installed, each model must
pass its checker, the float64 results must agree with its reference implementation, and its own test cases are run,
too. Needs numpy and the tools only.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import os
import subprocess
import sys
import tempfile
import warnings
import xml.etree.ElementTree as ElementTree
import zlib
from typing import Optional, Tuple

import numpy as np

import oracle
import run

try:
    import onnx
    import onnx.checker
    import onnx.reference
    from onnx.backend.test.case.node import collect_testcases

    # Earlier ones do otherwise with rows that see no key, and with lengths of padded keys.
    if tuple(int(part) for part in onnx.__version__.split(".")[:2]) < (1, 23):
        onnx = None
except ImportError:
    onnx = None

ELEMENT_TYPES = {"f32": 1, "i64": 7, "i1": 9, "f16": 10, "bf16": 16}
# Of scores, which a 16-bit output alone rounds by 2^-9 or 2^-12.
SCORE_TOLERANCE = {"bf16": 3e-3, "f16": 4e-4, "f32": 3e-6}


@dataclasses.dataclass
class Case:
    name: str
    shape: Tuple[int, int, int, int, int] = (2, 4, 2, 5, 7)  # batch, heads, K/V heads, queries, new keys
    dtype: str = "f32"
    dims: Tuple[int, int] = (32, 32)  # of q and k, of v
    packed: bool = False  # 3-D inputs
    opset: int = 24
    # Letters of BHQK, 1 where it is broadcast, a number for a size of its own; and its type.
    mask: Optional[Tuple] = None
    mask_dtype: str = "i1"
    past: Optional[int] = None
    present: bool = False
    nonpad: Optional[Tuple[int, ...]] = None
    nan_padding: bool = False  # K and V are NaN behind them
    causal: bool = False
    scale: Optional[float] = None
    softcap: Optional[float] = None
    softmax_precision: Optional[int] = None
    windows: Tuple[Optional[int], Optional[int]] = (None, None)
    mode: Optional[int] = None  # of qk_matmul_output, if it is an output
    # How the model gives the sizes of batch and lengths: numbers, names, or not at all.
    sizes: str = "symbol"
    # The name of the keys' length, if it isn't one of its own.
    key_symbol: str = "K"
    mask_initializer: bool = False
    hide_row: bool = False  # the mask hides all keys of a query

    @property
    def total(self):
        return self.shape[4] + (self.past or 0)


def text_type(dtype, dims):
    shape = "".join(
        f' dim {{ {f"dim_value: {dim}" if isinstance(dim, int) else f"dim_param: {chr(34)}{dim}{chr(34)}" if dim else ""} }}'
        for dim in dims
    )
    return f"type {{ tensor_type {{ elem_type: {ELEMENT_TYPES[dtype]} shape {{{shape} }} }} }}"


def text_attribute(name, value):
    if isinstance(value, float):
        return f'attribute {{ name: "{name}" type: FLOAT f: {value} }}'
    return f'attribute {{ name: "{name}" type: INT i: {int(value)} }}'


class Model:
    """The values of a case, and the model as text."""

    def __init__(self, case):
        self.case = case
        self.random = np.random.default_rng(zlib.crc32(case.name.encode()))
        batch, heads, kv_heads, nq, nk = case.shape
        dim, v_dim = case.dims
        self.inputs = {}  # name: (dtype, values, declared dims)
        self.outputs = {}
        self.initializers = []
        self.add_tensor("Q", heads, nq, dim, "Q", case.packed)
        self.add_tensor("K", kv_heads, nk, dim, case.key_symbol, case.packed)
        self.add_tensor("V", kv_heads, nk, v_dim, case.key_symbol, case.packed)
        if case.mask is not None:
            self.add_mask()
        if case.past is not None:
            self.add_tensor("past_key", kv_heads, case.past, dim, "P", False)
            self.add_tensor("past_value", kv_heads, case.past, v_dim, "P", False)
        if case.nonpad is not None:
            self.inputs["nonpad_kv_seqlen"] = ("i64", np.array(case.nonpad, np.int64), (self.size(batch, "B"),))
        if case.nan_padding:
            for name, length in itertools.product("KV", range(batch)):
                rows = self.inputs[name][1][length]
                (rows if case.packed else rows.swapaxes(0, 1))[case.nonpad[length] :] = np.nan
        width = (heads * v_dim,) if case.packed else (v_dim,)
        front = (self.size(batch, "B"),) if case.packed else (self.size(batch, "B"), heads)
        self.outputs["Y"] = front + (self.size(nq, "Q"),) + width
        if case.present:
            self.outputs["present_key"] = (self.size(batch, "B"), kv_heads, None, dim)
            self.outputs["present_value"] = (self.size(batch, "B"), kv_heads, None, v_dim)
        if case.mode is not None:
            self.outputs["qk_matmul_output"] = (self.size(batch, "B"), heads, self.size(nq, "Q"), None)

    def size(self, size, symbol):
        return {"static": size, "symbol": symbol, "none": None}[self.case.sizes]

    def add_tensor(self, name, heads, length, dim, symbol, packed):
        batch = self.case.shape[0]
        values = self.random.standard_normal((batch, heads, length, dim))
        declared = (self.size(batch, "B"), heads, self.size(length, symbol), dim)
        if packed:
            values = values.swapaxes(1, 2).reshape(batch, length, heads * dim)
            declared = (declared[0], declared[2], heads * dim)
        self.inputs[name] = (self.case.dtype, values, declared)

    def add_mask(self):
        case = self.case
        sizes = dict(zip("BHQ", (case.shape[0], case.shape[1], case.shape[3])), K=case.total)
        shape = [sizes.get(dim, dim) for dim in case.mask]
        if case.mask_dtype == "i1":
            values = self.random.random(shape) < 0.6
        else:
            values = self.random.standard_normal(shape)
            values[self.random.random(shape) < 0.2] = -np.inf
        if case.hide_row:
            values[..., 1, :] = False if case.mask_dtype == "i1" else -np.inf
        symbols = dict(B="B", H=case.shape[1], Q="Q", K=None if case.past else case.key_symbol)
        declared = tuple(
            size if dim == 1 or case.mask_initializer else self.size(size, symbols.get(dim, "M")) for dim, size in zip(case.mask, shape)
        )
        if case.mask_initializer:
            self.initializers.append("attn_mask")
        self.inputs["attn_mask"] = (case.mask_dtype, values, declared)

    def attributes(self):
        case = self.case
        attributes = dict(is_causal=case.causal or None, scale=case.scale, softcap=case.softcap)
        attributes.update(softmax_precision=case.softmax_precision, qk_matmul_output_mode=case.mode)
        attributes.update(left_window_size=case.windows[0], right_window_size=case.windows[1])
        if case.packed:
            attributes.update(q_num_heads=case.shape[1], kv_num_heads=case.shape[2])
        return {name: value for name, value in attributes.items() if value is not None}

    def text(self):
        def positional(names, present):
            names = [name if name in present else "" for name in names]
            while not names[-1]:
                names.pop()
            return names

        inputs = positional(
            ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"], self.inputs
        )
        outputs = positional(["Y", "present_key", "present_value", "qk_matmul_output"], self.outputs)
        lines = ["ir_version: 10", f'opset_import {{ domain: "" version: {self.case.opset} }}', "graph {", '  name: "g"']
        lines += ['  node {', '    name: "attention" op_type: "Attention"']
        lines += [f'    input: "{name}"' for name in inputs] + [f'    output: "{name}"' for name in outputs]
        lines += ["    " + text_attribute(*item) for item in self.attributes().items()] + ["  }"]
        for name, (dtype, values, dims) in self.inputs.items():
            if name not in self.initializers:
                lines.append(f'  input {{ name: "{name}" {text_type(dtype, dims)} }}')
                continue
            raw = oracle.to_bf16(values) if dtype == "bf16" else values.astype(oracle.NUMPY_TYPES[dtype])
            data = "".join(f"\\{byte:03o}" for byte in raw.tobytes())
            sizes = " ".join(f"dims: {size}" for size in values.shape)
            lines.append(f'  initializer {{ name: "{name}" {sizes} data_type: {ELEMENT_TYPES[dtype]} raw_data: "{data}" }}')
        lines += [f'  output {{ name: "{name}" {text_type(self.case.dtype, dims)} }}' for name, dims in self.outputs.items()]
        return "\n".join(lines + ["}", ""])


def reference(case, attributes, inputs):
    """The outputs by name in float64, by the operator's specification."""

    def split(x, heads):
        if not case.packed:
            return x
        return x.reshape(x.shape[0], x.shape[1], heads, -1).swapaxes(1, 2)

    _, heads, kv_heads, nq, _ = case.shape
    q, k, v = (split(inputs[n].astype(np.float64), h) for n, h in (("Q", heads), ("K", kv_heads), ("V", kv_heads)))
    past = 0
    if case.past is not None:
        past = case.past
        k = np.concatenate([inputs["past_key"].astype(np.float64), k], axis=2)
        v = np.concatenate([inputs["past_value"].astype(np.float64), v], axis=2)
    batch, total = q.shape[0], k.shape[2]
    results = dict(present_key=k, present_value=v)
    if case.nan_padding:
        k, v = (np.nan_to_num(x) for x in (k, v))
    k, v = (np.repeat(x, heads // kv_heads, axis=1) for x in (k, v))
    scores = [q @ k.swapaxes(-1, -2) * (case.dims[0] ** -0.5 if case.scale is None else case.scale)]
    cap = case.softcap
    scores.append(np.tanh(scores[0] / cap) * cap if cap else scores[0])

    # A query's own position among the keys.
    nonpad = inputs.get("nonpad_kv_seqlen")
    offset = past if nonpad is None else (nonpad - nq)[:, None, None, None]
    position = np.arange(nq)[:, None] + offset
    key = np.arange(total)
    bias = np.zeros((batch, 1, nq, total))
    if case.causal:
        bias = np.where(key <= position, bias, -np.inf)
    left, right = case.windows
    if left is not None and left >= 0:
        bias = np.where(key >= position - left, bias, -np.inf)
    if right is not None and right >= 0:
        bias = np.where(key <= position + right, bias, -np.inf)
    if nonpad is not None:
        bias = np.where(key < nonpad[:, None, None, None], bias, -np.inf)
    if case.mask is not None:
        mask = inputs["attn_mask"]
        mask = np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else mask.astype(np.float64)
        if mask.ndim and case.opset >= 24 and mask.shape[-1] < total:
            widths = [(0, 0)] * (mask.ndim - 1) + [(0, total - mask.shape[-1])]
            mask = np.pad(mask, widths, constant_values=-np.inf)
        bias = bias + mask
    scores.append(scores[1] + bias)
    top = scores[2].max(axis=-1, keepdims=True, initial=-np.inf)
    p = np.exp(scores[2] - np.where(np.isinf(top), 0.0, top))
    sums = p.sum(axis=-1, keepdims=True)
    scores.append(np.divide(p, sums, out=np.zeros_like(p), where=sums > 0))
    y = scores[3] @ v
    if case.packed:
        y = y.swapaxes(1, 2).reshape(batch, nq, -1)
    results.update(Y=y, qk_matmul_output=scores[case.mode or 0])
    return results


def check_with_onnx(case, model, inputs, expected):
    """The float64 results are those of ONNX's own implementation."""
    proto = onnx.load_from_string(model.text(), format="textproto")
    onnx.checker.check_model(proto)
    if case.dtype == "bf16":
        return
    feeds = {name: x for name, x in inputs.items() if name not in model.initializers}
    if case.nan_padding:
        feeds = {name: np.nan_to_num(x) for name, x in feeds.items()}  # it multiplies what is hidden by 0
    if case.opset == 23 and case.mask and case.mask[-1] == 1:
        return  # it pads the dimension, as from opset 24 on; the specification of 23 broadcasts it
    outputs = onnx.reference.ReferenceEvaluator(proto).run(list(model.outputs), feeds)
    tolerance = {"f32": 1e-5, "f16": 5e-3}[case.dtype]
    for name, actual in zip(model.outputs, outputs):
        if name == "qk_matmul_output" and case.mode == 0 and case.softcap:
            continue  # the implementation (of 1.23) gives what the specification and the operator's function say of mode 1
        run.compare("onnx.reference's " + name, np.asarray(actual, np.float64), expected[name], tolerance)


def import_model(args, model, output):
    command = [os.path.join(args.bin, "attn-import-onnx"), model, "-o", output]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    if done.returncode:
        raise run.Mismatch(f"attn-import-onnx: exit {done.returncode}: {done.stderr.strip()[-2000:]}")


def check_case(args, worker, case, variants):
    """Raises run.Mismatch."""
    model = Model(case)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        with open(path("model.textproto"), "w") as file:
            file.write(model.text())
        inputs = {
            name: oracle.save(path(name + ".npy"), values, dtype) for name, (dtype, values, _) in model.inputs.items()
        }
        expected = reference(case, model.attributes(), inputs)
        if onnx:
            check_with_onnx(case, model, inputs, expected)
        import_model(args, path("model.textproto"), path("model.mlir"))
        files = [path(name + ".npy") for name in model.inputs if name not in model.initializers]
        for variant in variants:
            outputs = [path(name + ".npy") for name in model.outputs]
            command = [path("model.mlir"), f"--variant={variant}", f"--target={args.target}", "--repeat=0"]
            worker.run(command + ["--inputs=" + ",".join(files), "--outputs=" + ",".join(outputs)])
            for name, file in zip(model.outputs, outputs):
                tolerance = run.TOLERANCE[variant][case.dtype]
                if name == "qk_matmul_output" and case.mode != 3:
                    tolerance = SCORE_TOLERANCE[case.dtype]
                elif name.startswith("present"):
                    tolerance = 0
                run.compare(f"{variant}: {name}", oracle.load(file), expected[name], tolerance)


def backend_cases():
    """onnx's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other operators' cases
        cases = collect_testcases("Attention")
    return [case for case in cases if case.name.startswith("test_attention_") and "_expanded" not in case.name]


def check_backend_case(args, worker, case, variants):
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        onnx.save(case.model, path("model.onnx"))
        import_model(args, path("model.onnx"), path("model.mlir"))
        inputs, outputs = case.data_sets[0]
        files = [path(f"input{number}.npy") for number in range(len(inputs))]
        for file, values in zip(files, map(np.asarray, inputs)):
            np.save(file, values.view("V2") if values.dtype.name == "bfloat16" else values)
        names = [output.name for output in case.model.graph.output]
        for variant in variants:
            command = [path("model.mlir"), f"--variant={variant}", f"--target={args.target}", "--repeat=0"]
            command += ["--inputs=" + ",".join(files), "--outputs=" + ",".join(path(name) for name in names)]
            worker.run(command)
            for name, expected in zip(names, map(np.asarray, outputs)):
                # The results in 16 bits are rounded in every step.
                tolerance = 1e-5 if expected.dtype == np.float32 else 1e-2
                run.compare(f"{variant}: {name}", oracle.load(path(name)), expected.astype(np.float64), tolerance)


def all_cases():
    yield Case("4d")
    yield Case("4d_static", sizes="static")
    yield Case("4d_no_sizes", sizes="none")
    yield Case("opset_23", opset=23, causal=True)
    yield Case("mqa", shape=(2, 4, 1, 5, 7))
    yield Case("mha_v_dim", shape=(2, 3, 3, 5, 7), dims=(32, 64))
    yield Case("empty_batch", shape=(0, 4, 2, 5, 7))
    yield Case("one_query", shape=(3, 4, 2, 1, 130), causal=True)
    yield Case("scale", scale=0.25)
    yield Case("scale_0", scale=0.0)
    yield Case("softcap", softcap=2.0)
    yield Case("softcap_0", softcap=0.0)
    for precision in (1, 10, 16):
        yield Case(f"softmax_precision_{precision}", softmax_precision=precision, dtype="f32" if precision == 1 else "f16")
    for dtype in ("f16", "bf16", "f32"):
        for packed in (False, True):
            name = f"{dtype}_{'3d' if packed else '4d'}"
            yield Case(name, dtype=dtype, packed=packed, shape=(2, 4, 2, 70, 130), dims=(64, 64), causal=True)
            yield Case(
                name + "_everything", dtype=dtype, packed=packed, past=3, present=True, causal=True, softcap=3.0,
                mask=("B", "H", "Q", "K"), mask_dtype=dtype, mode=2, scale=0.3,
            )
    for packed in (False, True):
        prefix = "3d_" if packed else "4d_"
        # Without a past, the first query is at the first key, whatever the lengths.
        for nq, nk in ((5, 7), (7, 5), (6, 6)):
            yield Case(f"{prefix}causal_{nq}_{nk}", packed=packed, shape=(2, 4, 2, nq, nk), causal=True)
        # With one it is behind the past, also where Q and K have different lengths.
        for sizes in ("static", "symbol", "none"):
            yield Case(f"{prefix}causal_past_{sizes}", packed=packed, past=4, causal=True, sizes=sizes, present=True)
        yield Case(f"{prefix}causal_past_same", packed=packed, shape=(2, 4, 2, 6, 6), past=4, causal=True, key_symbol="Q")
        yield Case(f"{prefix}past_without_present", packed=packed, past=9, dims=(32, 64))
        yield Case(f"{prefix}past_empty", packed=packed, past=0, present=True, causal=True)
        yield Case(f"{prefix}present_without_past", packed=packed, present=True)
        for nonpad in ((3, 7), (0, 5), (7, 1)):
            yield Case(f"{prefix}nonpad_{nonpad[0]}_{nonpad[1]}", packed=packed, nonpad=nonpad)
            yield Case(f"{prefix}nonpad_causal_{nonpad[0]}_{nonpad[1]}", packed=packed, nonpad=nonpad, causal=True)
        for causal in (False, True):
            fields = dict(shape=(2, 4, 2, 70, 300), nonpad=(95, 201), nan_padding=True, causal=causal)
            yield Case(f"{prefix}nonpad_nan_{'causal' if causal else 'all'}", packed=packed, **fields)
        for mode in range(4):
            yield Case(f"{prefix}mode_{mode}", packed=packed, mode=mode, softcap=2.0, causal=True, shape=(2, 4, 2, 7, 5))
            yield Case(f"{prefix}mode_{mode}_past", packed=packed, mode=mode, past=3, mask=("Q", "K"), hide_row=True)
    for mode in range(4):
        yield Case(f"f16_mode_{mode}", dtype="f16", mode=mode, softcap=2.0, mask=("B", 1, "Q", "K"), mask_dtype="f16")
    yield Case("bf16_mode_3_nonpad", dtype="bf16", mode=3, nonpad=(0, 5), causal=True)
    shapes = [("K",), ("Q", "K"), (1, "K"), ("Q", 1), ("H", "Q", "K"), (1, "Q", "K"), ("H", 1, "K"), ("H", 1, 1)]
    shapes += [("B", "H", "Q", "K"), ("B", 1, 1, "K"), (1, "H", "Q", "K"), (1, 1, "Q", "K"), ("B", 1, "Q", 1)]
    for shape in shapes:
        for dtype in ("i1", "f32"):
            name = f"mask_{dtype}_" + "".join(map(str, shape))
            # A last dimension of 1 is broadcast in opset 23, and padded from 24 on.
            for opset in (23, 24):
                yield Case(f"{name}_{opset}", mask=shape, mask_dtype=dtype, opset=opset)
    for dtype in ("i1", "f32"):
        yield Case(f"mask_{dtype}_causal", mask=("B", 1, "Q", "K"), mask_dtype=dtype, causal=True, hide_row=True)
        yield Case(f"mask_{dtype}_static", mask=("B", "H", "Q", "K"), mask_dtype=dtype, sizes="static")
        yield Case(f"mask_{dtype}_past", mask=("B", "H", "Q", "K"), mask_dtype=dtype, past=3, causal=True)
        yield Case(f"mask_{dtype}_initializer", mask=("Q", "K"), mask_dtype=dtype, mask_initializer=True)
        for sizes in ("static", "symbol"):
            yield Case(
                f"mask_{dtype}_short_{sizes}", mask=("B", 1, "Q", 5), mask_dtype=dtype, nonpad=(5, 2), sizes=sizes
            )
        yield Case(f"mask_{dtype}_short_static_past", mask=("Q", 5), mask_dtype=dtype, past=2, sizes="static")
        yield Case(f"mask_{dtype}_short_initializer", mask=("Q", 5), mask_dtype=dtype, mask_initializer=True, mode=2)
    yield Case("mask_f16_of_f32", mask=("Q", "K"), mask_dtype="f16")
    yield Case("mask_f32_of_f16", mask=("Q", "K"), mask_dtype="f32", dtype="f16")
    for left, right in ((2, None), (None, 1), (2, 1), (0, 0), (-1, -1), (3, 0)):
        name = f"windows_{left}_{right}"
        yield Case(name, windows=(left, right), opset=25)
        yield Case(name + "_past", windows=(left, right), opset=25, past=4, causal=left == 3)
        yield Case(name + "_nonpad", windows=(left, right), opset=25, nonpad=(6, 2))
    yield Case("opset_26", opset=26, windows=(2, 0), causal=True)


def choose_tests(args):
    """(name, check, case, variants): the fused kernel, and in turn one of the others, which share all but the operator."""
    tests = [(case.name, check_case, case) for case in all_cases()]
    if onnx:
        tests += [("backend/" + case.name, check_backend_case, case) for case in backend_cases()]
    # The unfused kernels that run on sm_90a are sm_80's.
    others = ("naive", "inplace", "math") if args.target != "sm_90a" else ("fused",)
    chosen = []
    for number, test in enumerate(tests):
        if args.filter in test[0]:
            chosen.append(test + (sorted({"fused", others[number % len(others)]}),))
    return chosen


def start_job(args):
    global run_chosen_here
    worker, tests = run.Worker(os.path.join(args.bin, "attn-run")), choose_tests(args)

    def run_chosen_here(n):
        _, check, case, variants = tests[n]
        check(args, worker, case, variants)


def run_chosen(n):
    return run_chosen_here(n)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder of the tools")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--xunit", help="report for CI")
    args = parser.parse_args()
    args.bin = os.path.abspath(args.bin)

    tests, failed = choose_tests(args), 0
    report = ElementTree.Element("testsuite", name=f"ONNX-{args.target}")
    with concurrent.futures.ProcessPoolExecutor(args.jobs, initializer=start_job, initargs=(args,)) as pool:
        running = [(name, pool.submit(run_chosen, n)) for n, (name, *_) in enumerate(tests)]
        for name, future in running:
            element = ElementTree.SubElement(report, "testcase", name=name, classname=args.target)
            try:
                future.result()
            except (run.Mismatch, subprocess.TimeoutExpired) as failure:
                failed += 1
                ElementTree.SubElement(element, "failure", message=str(failure))
                print(f"FAIL {name}: {failure}", file=sys.stderr, flush=True)
    if args.xunit:
        ElementTree.ElementTree(report).write(args.xunit)
    compared = f"compared with onnx {onnx.__version__}" if onnx else "without the onnx package, of 1.23 or later"
    print(f"onnx, {args.target}: {len(tests) - failed} of {len(tests)} right, {compared}")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
