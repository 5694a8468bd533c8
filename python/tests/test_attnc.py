"""The package on the CPU, against float64 in numpy."""

import ast
import ctypes
import ctypes.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from unittest import mock

import numpy as np

try:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
except ImportError:
    torch = None

import attnc  # after torch: it then registers its operators
from attnc._library import library, python_library
from attnc._replay import Replays
from attnc._tensors import _DLTensor


def oracle(q, k, v, *, scale=None, score_mod=None, mask_mod=None, bias=None, sink=None):
    """(o, lse) in float64, a row at a time."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    batches, heads, length, dim = q.shape
    group = heads // k.shape[1]
    scale = dim**-0.5 if scale is None else scale
    o, lse = np.zeros((*q.shape[:3], v.shape[3])), np.full(q.shape[:3], -np.inf)
    j = np.arange(k.shape[2])
    for b, h, i in np.ndindex(batches, heads, length):
        s = scale * (k[b, h // group] @ q[b, h, i])
        position = i + k.shape[2] - length
        if score_mod:
            s = score_mod(s, h, position, j)
        if bias is not None:
            s = s + np.broadcast_to(bias, (batches, heads, length, len(j)))[b, h, i]
        if mask_mod:
            s = np.where(mask_mod(position, j), s, -np.inf)
        if sink is not None:
            s = np.append(s, sink[h])
        if np.all(np.isneginf(s)):
            continue
        weights = np.exp(s - s.max())
        lse[b, h, i] = s.max() + np.log(weights.sum())
        o[b, h, i] = weights[: len(j)] @ v[b, h // group] / weights.sum()
    return o, lse


def make(batches=2, heads=4, kv_heads=2, length=37, kv_length=50, dim=16, dtype=np.float32, seed=0):
    random = np.random.default_rng(seed)
    shapes = [(batches, heads, length, dim)] + 2 * [(batches, kv_heads, kv_length, dim)]
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


class AttentionTest(unittest.TestCase):
    def check(self, arguments, tolerance=1e-5, **expected):
        q, k, v = make()
        o, lse = attnc.attention(q, k, v, return_lse=True, **arguments)
        expected_o, expected_lse = oracle(q, k, v, **expected)
        np.testing.assert_allclose(o, expected_o, atol=tolerance)
        np.testing.assert_allclose(lse, expected_lse, atol=tolerance)

    def test_plain_and_scaled(self):
        self.check({})
        self.check({"scale": 0.5}, scale=0.5)
        self.check({"scale": 1e-7}, scale=1e-7)

    def test_causal(self):
        self.check({"is_causal": True}, mask_mod=lambda i, j: j <= i)

    def test_window(self):
        self.check({"window_size": (5, 3)}, mask_mod=lambda i, j: (j >= i - 5) & (j <= i + 3))
        self.check({"window_size": (5, -1)}, mask_mod=lambda i, j: j >= i - 5)
        self.check({"window_size": (-1, 2**31 - 1)}, mask_mod=lambda i, j: j >= 0)
        self.check({"window_size": (5, 2**40)}, mask_mod=lambda i, j: j >= i - 5)
        self.check(
            {"window_size": (5, 3), "is_causal": True}, mask_mod=lambda i, j: (j >= i - 5) & (j <= i)
        )

    def test_batch_invariant(self):
        q, k, v = make(batches=3, length=1, kv_length=4000)
        together = attnc.attention(q, k, v, batch_invariant=True)
        alone = attnc.attention(q[1:2], k[1:2], v[1:2], batch_invariant=True)
        np.testing.assert_array_equal(together[1:2], alone)
        np.testing.assert_allclose(together, oracle(q, k, v)[0], atol=1e-5)

    def test_softcap_then_alibi_then_score_mod(self):
        slopes = np.array([0.5, 0.25, 0.125, 1e-5], np.float32)

        def score_mod(s, h, i, j):
            return 2 * (3 * np.tanh(s / 3) - slopes[h] * abs(i - j))

        # Values of the names that the package might use itself.
        region = "{ %cap = arith.constant 2.0 : f32\n %x = arith.mulf %s, %cap : f32\n attn.yield %x : f32 }"
        self.check({"softcap": 3.0, "alibi_slopes": slopes, "score_mod": region}, score_mod=score_mod)

    def test_mask_mod_and_causal(self):
        region = """{
          %two = arith.constant 2 : i32
          %last = arith.remui %kv_idx, %two : i32
          %odd = arith.trunci %last : i32 to i1
          attn.yield %odd : i1
        }"""
        self.check(
            {"mask_mod": region, "is_causal": True}, mask_mod=lambda i, j: (j <= i) & (j % 2 == 1)
        )

    def test_mask_tensors(self):
        random = np.random.default_rng(1)
        for shape in ((37, 50), (1, 50), (2, 4, 37, 50), (2, 1, 1, 50), (1, 4, 37, 1), (1, 1)):
            seen = random.random(shape) < 0.7
            bias = np.where(seen, 0, -np.inf)
            with self.subTest(shape):
                self.check({"attn_mask": seen}, bias=bias)
                self.check(
                    {"attn_mask": seen, "is_causal": True}, bias=bias, mask_mod=lambda i, j: j <= i
                )
                for dtype in (np.float32, np.float16):
                    added = random.standard_normal(shape).astype(dtype)
                    self.check({"attn_mask": added}, bias=added)

    def test_alibi_by_batch_and_mask(self):
        slopes = np.array([[0.5, 0.25, 0.125, 0], [1, 2, 0.5, 0.1]], np.float32)
        added = np.random.default_rng(1).standard_normal((37, 50)).astype(np.float32)
        distance = abs(np.arange(37)[:, None] + 50 - 37 - np.arange(50))
        bias = added - slopes[:, :, None, None] * distance
        self.check({"alibi_slopes": slopes, "attn_mask": added}, bias=bias)

    def test_sink(self):
        for dtype in (np.float32, np.float16):
            sink = np.array([0.5, -3, 4, -np.inf], dtype)
            slopes = np.array([0.5, 0.25, 0.125, 0], np.float32)
            options = {"sink": sink, "alibi_slopes": slopes, "is_causal": True}
            score_mod = lambda s, h, i, j: s - slopes[h] * abs(i - j)  # noqa: E731
            self.check(options, sink=sink.astype(float), score_mod=score_mod, mask_mod=lambda i, j: j <= i)
            # The first 20 queries see no key.
            q, k, v = make(length=57, kv_length=37)
            o, lse = attnc.attention(q, k, v, sink=sink, is_causal=True, return_lse=True)
            expected = oracle(q, k, v, sink=sink.astype(float), mask_mod=lambda i, j: j <= i)
            np.testing.assert_allclose(o, expected[0], atol=1e-5)
            np.testing.assert_allclose(lse, expected[1], atol=1e-5)

    def test_sequences(self):
        lengths, kv_lengths = (5, 0, 33), (9, 4, 33)
        parts = [
            make(batches=1, length=n, kv_length=m, seed=s) for s, (n, m) in enumerate(zip(lengths, kv_lengths))
        ]
        q, k, v = (np.concatenate(x, axis=2) for x in zip(*parts))
        expected = [oracle(*part, mask_mod=lambda i, j: j <= i) for part in parts]
        ends, kv_ends = (np.cumsum([0, *x]).astype(np.int32) for x in (lengths, kv_lengths))

        # A cache of pages of 4 rows, in the order of their use; rows past a sequence's end are NaN.
        pages = [-(-m // 4) for m in kv_lengths]
        table = np.full((3, max(pages)), -1, np.int32)
        pools = [np.full((sum(pages), 2, 4, 16), np.nan, np.float32) for _ in "kv"]
        for s, n in enumerate(pages):
            table[s, :n] = np.arange(n) + sum(pages[:s])
            for page, pool, x in ((p, pool, x) for p in range(n) for pool, x in zip(pools, parts[s][1:])):
                rows = x[0, :, 4 * page : 4 * page + 4]
                pool[table[s, page], :, : rows.shape[1]] = rows
        used = np.array(kv_lengths, np.int32)

        for name, keys, options in (
            ("packed", (k, v), {"cu_seqlens_k": kv_ends}),
            ("pages", pools, {"seqused_k": used, "block_table": table}),
        ):
            with self.subTest(name):
                o, lse = attnc.attention(q, *keys, is_causal=True, cu_seqlens_q=ends, return_lse=True, **options)
                np.testing.assert_allclose(o, np.concatenate([x[0] for x in expected], axis=2), atol=2e-6)
                np.testing.assert_allclose(lse, np.concatenate([x[1] for x in expected], axis=2), atol=2e-6)
        with self.assertRaisesRegex(attnc.AttncError, r"cu_seqlens_q\[3\] is 37, less than the 38 before it"):
            attnc.attention(q, k, v, cu_seqlens_q=np.array([0, 5, 38, 37], np.int32), cu_seqlens_k=kv_ends)
        with self.assertRaisesRegex(attnc.AttncError, r"block_table\[0, 0\] is -1, but there are 13 pages"):
            attnc.attention(q, *pools, cu_seqlens_q=ends, seqused_k=used, block_table=np.full_like(table, -1))
        with self.assertRaisesRegex(TypeError, "cu_seqlens_q must be an int32 tensor of 1 dimensions"):
            attnc.attention(q, k, v, cu_seqlens_q=ends.astype(np.int64), cu_seqlens_k=kv_ends)

    def test_backends(self):
        for backend in ("auto", "fused", "naive", "inplace", "math"):
            with self.subTest(backend):
                self.check(
                    {"backend": backend, "is_causal": True}, mask_mod=lambda i, j: j <= i
                )

    def test_backend_scopes(self):
        q, k, v = make()
        with attnc.backend("naive"):
            self.assertEqual(attnc.explain(q, k, v).chosen, "naive")
            with attnc.backend("cudnn"):
                with self.assertRaisesRegex(attnc.AttncError, "cuDNN needs a GPU, the target is cpu"):
                    attnc.attention(q, k, v)
                # What a call names wins, and "auto" is an inner scope like others.
                np.testing.assert_allclose(attnc.attention(q, k, v, backend="fused"), oracle(q, k, v)[0], atol=1e-5)
                with attnc.backend("auto"):
                    self.assertEqual(attnc.explain(q, k, v).chosen, "fused")
                other = []
                thread = threading.Thread(target=lambda: other.append(attnc.explain(q, k, v).chosen))
                thread.start()
                thread.join()
                self.assertEqual(other, ["fused"])
            self.assertEqual(attnc.explain(q, k, v).chosen, "naive")
            self.assertEqual(attnc.explain(q, k, v, backend="math").chosen, "math")
        self.assertEqual(attnc.explain(q, k, v).chosen, "fused")
        with self.assertRaisesRegex(ValueError, "unknown backend 'fast'; known are auto, fused"):
            attnc.backend("fast")

    def test_explain(self):
        q, k, v = make(dtype=np.float16)
        explanation = attnc.explain(q, k, v, is_causal=True, backend="cudnn", target="sm_90a")
        self.assertEqual([entry["backend"] for entry in explanation.backends][0], "cudnn")
        for arguments, reason in (
            ({"softcap": 3.0}, "score_mod: softcap"),
            ({"alibi_slopes": np.ones(4, np.float32)}, "score_mod: a function of the positions"),
            ({"attn_mask": np.ones((37, 50), bool)}, "mask_mod: a tensor of i1"),
            ({"attn_mask": np.ones((1, 50), np.float16)}, "score_mod: a bias that is the same for all queries"),
            ({"sink": np.ones(4, np.float32)}, "a sink"),
            ({"batch_invariant": True}, "batch_invariant"),
        ):
            with self.subTest(reason):
                explanation = attnc.explain(q, k, v, backend="cudnn", target="sm_90a", **arguments)
                self.assertIsNone(explanation.chosen)
                self.assertEqual(explanation["cudnn"]["status"], "can't")
                self.assertIn(reason, explanation["cudnn"]["reason"])
                self.assertIn(reason, str(explanation))
                self.assertEqual(explanation["fused"]["status"], "available")
        bias, rows = np.ones((2, 1, 50, 50), np.float32), k[:, [0, 0, 1, 1]]
        served = attnc.explain(rows, k, v, attn_mask=bias, window_size=(4, -1), target="sm_90a")["cudnn"]
        self.assertEqual(served["status"], "available", served)
        queries = attnc.explain(rows, k[:, :, :9], v[:, :, :9], is_causal=True, target="sm_90a")
        self.assertIn("at least as many keys as queries", queries["cudnn"]["reason"])

    def test_half_and_strides(self):
        q, k, v = make(dtype=np.float16)
        # [B, N, H, D] memory, as models have it.
        q, k, v = (np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (q, k, v))
        out = np.full(q.shape, np.nan, np.float16)
        self.assertIs(attnc.attention(q, k, v, out=out), out)
        np.testing.assert_allclose(out, oracle(q, k, v)[0], atol=5e-3)

    def test_lengths_share_a_kernel(self):
        for length in (0, 1, 100):
            q, k, v = make(length=length, kv_length=length)
            np.testing.assert_allclose(attnc.attention(q, k, v), oracle(q, k, v)[0], atol=1e-5)

    def test_a_hundred_lengths_compile_once(self):
        script = (
            "import attnc, numpy as np\n"
            "random = np.random.default_rng(0)\n"
            "for n in [1000, 300, 301, 64, 65, 127, 128, 192, 1] + list(range(1, 101)):\n"
            "    q, k, v = (random.standard_normal((1 + n % 3, 2, m, 16), 'f') for m in (n, 2 * n % 61 + 1, 2 * n % 61 + 1))\n"
            "    s = q @ k.swapaxes(2, 3) / 4\n"
            "    p = np.exp(s - s.max(-1, keepdims=True))\n"
            "    expected = p @ v / p.sum(-1, keepdims=True)\n"
            "    np.testing.assert_allclose(attnc.attention(q, k, v), expected, atol=1e-5)\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "ATTNC_CACHE_DIR": folder})
            self.assertEqual(len(os.listdir(folder)), 1)

    def test_refusals(self):
        q, k, v = make()
        cases = [
            (lambda: attnc.attention(q, k, v, attn_mask=q), ValueError, "doesn't broadcast to (2, 4, 37, 50)"),
            (lambda: attnc.attention(q, k, v, attn_mask=q.astype(int)), TypeError, "attn_mask is of int64"),
            (lambda: attnc.attention(q, k, v, backend="fast"), ValueError, "known are auto, fused"),
            (lambda: attnc.attention(q[0], k, v), ValueError, "q has 3 dimensions"),
            (lambda: attnc.attention(q, k, v, enable_gqa=False), ValueError, "enable_gqa=True"),
            (lambda: attnc.attention(q, k, v, alibi_slopes=np.ones(3, "f")), ValueError, "(3,) doesn't broadcast to (4,)"),
            (lambda: attnc.attention(q, k, v, sink=np.ones(3, "f")), ValueError, "shape (4,), not f32 of (3,)"),
            (lambda: attnc.attention(q, k, v, sink=np.ones(4, int)), ValueError, "not i64 of (4,)"),
            (lambda: attnc.attention(q, k, v, window_size=(-2, 0)), ValueError, "two bounds"),
            (lambda: attnc.attention(q, k, v, window_size=(5.5, 0)), ValueError, "integers, not (5.5, 0)"),
            (lambda: attnc.attention(q, k, v, softcap=1e300), ValueError, "a finite float32, not 1e+300"),
            (lambda: attnc.attention(q, k, v, softcap=float("nan")), ValueError, "softcap must be 0"),
            (lambda: attnc.attention(q, k, v, scale=float("inf")), ValueError, "scale must be a finite"),
            (lambda: attnc.attention(q, k, v, score_mod=lambda s, *_: s), TypeError, "text of an MLIR region"),
            (lambda: attnc.attention(q, k, v, score_mod="%s"), ValueError, "in braces"),
            (lambda: attnc.attention(q, k, v, mask_mod="{ }"), ValueError, "attn.yield of i1"),
            (lambda: attnc.attention(q.astype(np.complex64), k, v), TypeError, "complex64"),
            (lambda: attnc.attention(q.astype(np.float64), k, v), TypeError, "q is of float64"),
            (lambda: attnc.attention(q, k.astype(np.float16), v), TypeError, "k is of float16, but q of float32"),
            (lambda: attnc.attention(q, k[:, :, ::-1], v), attnc.AttncError, "negative"),
            (lambda: attnc.attention(q, k, v[:, :, 1:]), ValueError, "k has 50 rows and v has 49"),
            (lambda: attnc.attention(q[:, :3], k, v), ValueError, "3 heads, which is no multiple of k's 2"),
            (lambda: attnc.attention(q, k, v, cu_seqlens_q=np.array([0, 37], "i4")), attnc.AttncError, "'q': needs 1x4x"),
            (lambda: attnc.attention(q, k, v, block_table=np.zeros((2, 2), "i4")), ValueError, "block_table needs seqused_k"),
            (lambda: attnc.attention(q, k, v, q_descale=np.ones(1, "f")), ValueError, "q_descale is for tensors of float8"),
            (lambda: attnc.attention(q, k, v, alibi_slopes=np.ones((), "f")), ValueError, "() doesn't broadcast"),
            (lambda: attnc.attention(q, k, v, window_size=5), TypeError, "window_size must be two bounds (left, right), not int"),
            (lambda: attnc.attention(q, k, v, softcap=None), TypeError, "softcap must be a number, not NoneType"),
            (lambda: attnc.attention(q, k, v, scale="small"), TypeError, "scale must be a number, not str"),
            (lambda: attnc.attention(q, k, v, is_causal="no"), TypeError, "is_causal must be True or False, not str"),
            (lambda: attnc.attention(q, k, v, return_lse=None), TypeError, "return_lse must be True or False"),
            (lambda: attnc.attention(q, k, v, stream="main"), TypeError, "stream must be a CUDA stream"),
            (lambda: attnc.attention(q, k, v, out=()), TypeError, "out has no tensors"),
            (lambda: attnc.compile(b"module {}"), TypeError, "mlir_text must be a string, not bytes"),
            (lambda: attnc.compile("module {}", device="cuda"), TypeError, "device must be a GPU's number, not str"),
            (lambda: attnc.compile("module {}", target=80), TypeError, "target must be a string, not int"),
            (lambda: attnc.attention(q, k, v, out=q[:, :1].copy()), attnc.AttncError, "'out': needs"),
            (lambda: attnc.attention(q, k, v, mask_mod="{ attn.yield %x : i1 }"), attnc.AttncError, "<module text>:"),
        ]
        for index, (call, error, text) in enumerate(cases):
            with self.subTest(index), self.assertRaises(error) as raised:
                call()
            self.assertIn(text, str(raised.exception), index)


    def test_arguments_are_refused_by_name(self):
        q, k, v = make()
        good = {
            "q": q, "k": k, "v": v, "attn_mask": np.ones((37, 50), bool), "alibi_slopes": np.ones(4, "f"), "sink": np.ones(4, "f"),
            "q_descale": np.ones(1, "f"), "cu_seqlens_q": np.array([0, 37], "i4"), "cu_seqlens_k": np.array([0, 50], "i4"),
            "seqused_k": np.array([9], "i4"), "block_table": np.zeros((1, 9), "i4"), "out": np.empty_like(q),
        }  # fmt: skip
        for name in good:
            for bad in ("text", 3.0, np.zeros(good[name].shape, "M8[s]"), np.zeros(good[name].shape, ">i8")):
                arguments = {"q": q, "k": k, "v": v, name: bad}
                for call in (attnc.attention,) if name == "out" else (attnc.attention, attnc.explain):
                    with self.subTest(f"{name}, {type(bad)}"):
                        with self.assertRaisesRegex(TypeError, rf"^{name} (must be a tensor, not|is of) "):
                            call(**arguments)

    def test_read_only_inputs(self):
        q, k, v = make()
        mask = np.random.default_rng(1).random((37, 50)) < 0.7
        expected = oracle(q, k, v, bias=np.where(mask, 0, -np.inf))[0]
        # Of strides that aren't row-major.
        turned = np.ascontiguousarray(q.swapaxes(1, 2)).swapaxes(1, 2)
        for array in (q, k, v, mask, turned):
            array.setflags(write=False)
        for query in (q, turned):
            np.testing.assert_allclose(attnc.attention(query, k, v, attn_mask=mask), expected, atol=1e-5)
            self.assertEqual(attnc.explain(query, k, v, attn_mask=mask).chosen, "fused")
        with self.assertRaisesRegex(ValueError, "out is read-only"):
            attnc.attention(q.copy(), k, v, out=q)
        odd = np.zeros(4 * q.size + 1, np.uint8)[1:].view(np.float32).reshape(q.shape)
        odd.setflags(write=False)
        with self.assertRaisesRegex(attnc.AttncError, "'q': its address is no multiple of 4"):
            attnc.attention(odd, k, v)

    def test_outputs_have_memory_of_their_own(self):
        q, k, v = make(kv_heads=4, kv_length=37)
        o, lse = np.empty_like(q), np.empty(q.shape[:3], np.float32)
        for out, name in ((q, "q"), (k, "k"), (v[:, ::-1][:, ::-1], "v")):
            with self.assertRaisesRegex(attnc.AttncError, f"'out' lies in the memory of '{name}'"):
                attnc.attention(q, k, v, out=out)
        with self.assertRaisesRegex(attnc.AttncError, "'out' lies in the memory of 'lse'"):
            attnc.attention(q, k, v, out=(o, o.reshape(-1)[: lse.size].reshape(lse.shape)), return_lse=True)
        with self.assertRaisesRegex(attnc.AttncError, "'out': dimension 0 has a stride of 0"):
            attnc.attention(q, k, v, out=np.lib.stride_tricks.as_strided(o, q.shape, (0, *o.strides[1:])))
        # Rows of one tensor, side by side, share none.
        packed = np.zeros((*q.shape[:3], 4, q.shape[3]), np.float32)
        for index, x in enumerate((q, k, v)):
            packed[..., index, :] = x
        attnc.attention(*[packed[..., index, :] for index in range(3)], out=packed[..., 3, :])
        np.testing.assert_allclose(packed[..., 3, :], oracle(q, k, v)[0], atol=1e-5)


class PackageTest(unittest.TestCase):
    FOLDER = os.path.dirname(attnc.__file__)

    def test_is_of_python_3_9(self):
        for name in os.listdir(self.FOLDER):
            if name.endswith(".py"):
                with open(os.path.join(self.FOLDER, name), encoding="utf-8") as file:
                    ast.parse(file.read(), name, feature_version=(3, 9))

    def test_signature(self):
        """PyTorch's and FlashAttention's names and defaults, those first that both tell about."""
        signature = inspect.signature(attnc.attention).parameters
        expected = {
            "attn_mask": None, "is_causal": False, "window_size": (-1, -1), "softcap": 0.0, "alibi_slopes": None, "scale": None,
            "enable_gqa": True, "score_mod": None, "mask_mod": None, "return_lse": False, "backend": "auto", "cu_seqlens_q": None,
            "cu_seqlens_k": None, "seqused_k": None, "block_table": None, "out": None, "stream": None,
        }  # fmt: skip
        self.assertEqual(list(signature)[:14], ["q", "k", "v", *list(expected)[:11]])
        for name, default in expected.items():
            self.assertEqual(signature[name].kind, inspect.Parameter.KEYWORD_ONLY, name)
            self.assertEqual(signature[name].default, default, name)
        of_explain = inspect.signature(attnc.explain).parameters
        self.assertEqual(set(signature) - set(of_explain), {"captures_unchanged", "out", "stream"})
        for name in set(of_explain) - {"target"}:
            self.assertEqual(of_explain[name], signature[name])

    def test_other_libraries_are_refused(self):
        for path, reason in (
            (ctypes.util.find_library("m"), "has no attnc_version, as this version of the package needs"),
            (__file__, "invalid ELF header"),
            ("", "has no attnc_version"),
        ):
            with mock.patch.dict(os.environ, {"ATTNC_LIBRARY": path}):
                with self.assertRaisesRegex(ImportError, f"set ATTNC_LIBRARY to its path\n.*{reason}"):
                    attnc._library._load()


TEXT = """
func.func @scaled(%q: tensor<?x2x?x8xf32> {attn.name = "q"}, %k: tensor<?x2x?x8xf32> {attn.name = "k"},
                  %v: tensor<?x2x?x8xf32> {attn.name = "v"}, %scale: f32 {attn.name = "scale"},
                  %o: tensor<?x2x?x8xf32> {attn.name = "o"}) -> tensor<?x2x?x8xf32> {
  %r = attn.attention ins(%q, %k, %v : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
    scale(%scale : f32) outs(%o : tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %r : tensor<?x2x?x8xf32>
}
"""


DOCUMENTS = """
func.func @documents(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>, %document: tensor<?xi32>,
                     %o: tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32> {
  %r = attn.attention ins(%q, %k, %v, %document :
                          tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?xi32>)
                      outs(%o : tensor<?x2x?x8xf32>)
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32, %document: tensor<?xi32>) {
      %of_query = attn.capture_load %document[%q_idx] : tensor<?xi32> -> i32
      %of_key = attn.capture_load %document[%kv_idx] : tensor<?xi32> -> i32
      %same = arith.cmpi eq, %of_query, %of_key : i32
      attn.yield %same : i1
    } -> tensor<?x2x?x8xf32>
  return %r : tensor<?x2x?x8xf32>
}
"""


class KernelTest(unittest.TestCase):
    def test_scalars(self):
        kernel = attnc.compile(TEXT, target="cpu").prepare()
        q, k, v = make(heads=2, dim=8)
        for scale in (0.25, 3, np.float32(1.5)):
            np.testing.assert_allclose(
                kernel(q, k, v, scale), oracle(q, k, v, scale=float(scale))[0], atol=1e-5
            )
        self.assertEqual(kernel.manifest["entry"], "scaled")
        self.assertIn("scaled: fused for cpu", repr(kernel))

    def test_refusals(self):
        kernel = attnc.compile(TEXT, target="cpu")
        q, k, v = make(heads=2, dim=8)
        with self.assertRaisesRegex(TypeError, r"4 inputs are needed \(q, k, v, scale\), 3 given"):
            kernel(q, k, v)
        with self.assertRaisesRegex(TypeError, "v must be a tensor, not list"):
            kernel(q, k, [v], 1)
        with self.assertRaisesRegex(TypeError, "1 outputs are needed, out= has 2"):
            kernel(q, k, v, 1, out=(q, q))
        with self.assertRaisesRegex(TypeError, "scale must be a number of f32, not str"):
            kernel(q, k, v, "1")
        for arguments, text in (
            ({"target": "cpu9"}, "unknown target 'cpu9'"),
            ({"variant": "quick"}, "unknown variant 'quick'"),
            ({"target": "cpu", "entry": "none"}, "no function named 'none'"),
        ):
            with self.assertRaisesRegex(attnc.AttncError, text):
                attnc.compile(TEXT, **arguments)

    def test_a_constant_index_past_a_capture(self):
        first = "%five = arith.constant 5 : i32\n      %of_query = attn.capture_load %document[%five]"
        text = DOCUMENTS.replace("%of_query = attn.capture_load %document[%q_idx]", first)
        q, k, v = make(heads=2, dim=8, length=5)
        out = np.full_like(q, 7)
        with self.assertRaisesRegex(attnc.AttncError, "capture 'arg3', indexed by 5 in dimension 0, has no such element"):
            attnc.compile(text, target="cpu")(q, k, v, np.zeros(5, np.int32), out=out)
        self.assertTrue((out == 7).all())
        with self.assertRaisesRegex(attnc.AttncError, "index -1 is out of range for dimension 0 of 'tensor<.xi32>'"):
            attnc.compile(text.replace("constant 5", "constant -1"), target="cpu")

    def test_threads(self):
        wrong = []

        def work(seed):
            q, k, v = make(heads=2, dim=8, length=seed + 1, seed=seed)
            expected = oracle(q, k, v, scale=1)[0]
            for _ in range(20):
                o = attnc.compile(TEXT, target="cpu")(q, k, v, 1)
                if not np.allclose(o, expected, atol=1e-5):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_processes_share_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            script = (
                "import sys, attnc, numpy as np\n"
                "k = attnc.compile(sys.argv[1], target='cpu', cache_dir=sys.argv[2])\n"
                "x = np.ones((1, 2, 4, 8), np.float32)\n"
                "assert (k(x, x, x, 1.0) == 1).all()\n"
            )
            command = [sys.executable, "-c", script, TEXT, folder]
            for _ in range(2):
                processes = [subprocess.Popen(command) for _ in range(2)]
                self.assertEqual([process.wait() for process in processes], [0, 0])
                (entry,) = os.listdir(folder)
                # The next two find it damaged.
                os.truncate(os.path.join(folder, entry), 100)


    def test_warns_where_kernels_cant_be_kept(self):
        with tempfile.TemporaryDirectory() as root:
            path = os.path.join(root, "file")
            with open(path, "w"):
                pass
            with self.assertWarnsRegex(attnc.AttncWarning, "the compiled kernel isn't kept: .*file") as caught:
                attnc.compile(TEXT.replace("@scaled", "@unkept"), target="cpu", cache_dir=path)
            self.assertEqual(caught.filename, __file__)


class ExchangeAPI(ctypes.Structure):
    """DLPack's, of a package whose tensors are numpy's."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("others", ctypes.c_void_p * 4),
        ("read", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_DLTensor))),
        ("get_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))),
    ]

    @classmethod
    def make(cls, major=1):
        def read(array, tensor):
            address, capsule = attnc._tensors.view(array)
            # Shape and strides are to live as long as the array.
            alive.append(capsule)
            ctypes.memmove(tensor, address, ctypes.sizeof(_DLTensor))
            return 0

        alive = []

        types = dict(cls._fields_)
        return cls(major, 3, (ctypes.c_void_p * 4)(), types["read"](read), types["get_stream"](lambda *_: 0))


class ReplayTest(unittest.TestCase):
    """attnc_replay of the C interface, with tensors of a package that isn't torch."""

    def setUp(self):
        self.kernel = attnc.compile(DOCUMENTS, target="cpu")
        self.tensors = make(batches=1, heads=2, kv_heads=2, length=30, kv_length=30, dim=8)
        self.tensors += [np.repeat(np.arange(3), 10).astype(np.int32), np.zeros((1, 2, 30, 8), np.float32)]

    def create(self, api):
        views = [attnc._tensors.view(tensor) for tensor in self.tensors]
        addresses = (ctypes.c_void_p * len(views))(*[address for address, _ in views])
        return library.attnc_replay_create(self.kernel.handle, ctypes.addressof(api), addresses, None, len(views))

    def test_launches_on_what_is_laid_out_alike(self):
        api = ExchangeAPI.make()
        replay = self.create(api)
        self.assertTrue(replay, attnc._library.last_error())
        types = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, *[ctypes.py_object] * 5]
        launch = ctypes.PYFUNCTYPE(ctypes.c_int, *types)(("attnc_replay_launch", python_library))
        for seed in (1, 2):
            q, k, v = make(batches=1, heads=2, kv_heads=2, length=30, kv_length=30, dim=8, seed=seed)
            document, o = self.tensors[3], np.full((1, 2, 30, 8), np.nan, np.float32)
            self.assertEqual(launch(replay, None, 0, q, k, v, document, o), 0)
            expected = oracle(q, k, v, mask_mod=lambda i, j: document[i] == document[j])[0]
            np.testing.assert_allclose(o, expected, atol=1e-5)
        o[:] = 7
        for other in (
            (q.astype(np.float16), k, v, document, o),
            (q[:, :, :29], k, v, document, o),
            (q, np.asfortranarray(k), v, document, o),
            (q, k, v, document[::2], o),
        ):
            self.assertEqual(launch(replay, None, 0, *other), 1)
        self.assertTrue((o == 7).all())
        library.attnc_replay_release(replay)

    def test_refusals(self):
        self.assertFalse(self.create(ExchangeAPI.make(major=2)))
        self.assertIn("exchange API of version 1", str(attnc._library.last_error()))
        self.tensors[0] = self.tensors[0].astype(np.complex64)
        self.assertFalse(self.create(ExchangeAPI.make()))
        self.assertIn("argument 'arg0' has DLPack type code 5", str(attnc._library.last_error()))
        self.tensors.pop()
        self.assertFalse(self.create(ExchangeAPI.make()))
        self.assertIn("takes 5 arguments, 4 were given", str(attnc._library.last_error()))


class ProfileTest(unittest.TestCase):
    def setUp(self):
        self.tensors = make()

    def profile(self):
        fused = lambda: attnc.attention(*self.tensors)  # noqa: E731
        naive = lambda: attnc.attention(*self.tensors, is_causal=True, backend="naive")  # noqa: E731
        return attnc.profile({"fused": fused, "naive": naive}, repeat=3, warmup=1, target="cpu")

    def test_sees_the_kernels(self):
        profile = self.profile()
        fused, naive = profile.data["regions"]
        self.assertEqual([kernel["calls"] for kernel in fused["summary"]["kernels"]], [3])
        self.assertEqual(len(naive["summary"]["kernels"]), 6)
        # The first call, one to warm up, and three.
        self.assertEqual(len(fused["device"]["rows"]), 5)
        self.assertTrue(profile.expect("fused:kernels=1,naive:kernels=5,naive:copies=1,time<60s"))
        self.assertFalse(profile.expect("copies=0"))
        self.assertRegex(profile.show_guesses("naive:copies=0"), r"naive:copies=0 +1 +wrong")
        self.assertIn("[hidden-copy]", str(profile))
        self.assertIn("In 7 layers", profile.show(layers=7))
        self.assertIn("unittest", profile.data["command"])

    def test_knows_bytes_and_flops(self):
        q, k, v = self.tensors
        fused, naive = self.profile().data["regions"]
        least = 4 * (2 * q.size + k.size + v.size)
        self.assertEqual(fused["min_bytes"], least)
        self.assertEqual(naive["min_bytes"], least)
        (facts,) = fused["facts"]
        self.assertEqual(facts["bytes"], least)
        products = 2 * q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] * (k.shape[3] + v.shape[3])
        self.assertEqual(facts["flops"], products)
        self.assertEqual(fused["max_intermediate_bytes"], 0)
        self.assertEqual(naive["max_intermediate_bytes"], 4 * q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2])
        self.assertEqual([f["flops"] for f in naive["facts"] if f["name"].startswith("naive_qk")], [products // 2])
        self.assertIn("[score-matrix]", str(self.profile()))

    def test_knows_bytes_of_the_last_phase_only(self):
        calls = []

        def call():
            q, k, v = make(length=300 if len(calls) < 2 else 8)
            calls.append(q)
            attnc.attention(q, k, v)

        (region,) = attnc.profile(call, repeat=3, warmup=1, target="cpu").data["regions"]
        self.assertEqual(region["min_bytes"], 4 * (2 * calls[-1].size + 2 * 2 * 2 * 50 * 16))

    def test_counts_the_flops_that_a_mask_leaves(self):
        q, k, v = make(batches=1, heads=2, kv_heads=2, length=500, kv_length=500, dim=16)
        document = np.repeat(np.arange(5), 100).astype(np.int32)
        documents = attnc.compile(DOCUMENTS, target="cpu")
        calls = {
            "whole": lambda: attnc.attention(q, k, v),
            "causal": lambda: attnc.attention(q, k, v, is_causal=True),
            # Read from memory, of which nobody knows.
            "documents": lambda: documents(*(x[..., :8] for x in (q, k, v)), document),
        }
        profile = attnc.profile(calls, repeat=2, warmup=0, target="cpu")
        whole, causal, masked = (region["summary"]["kernels"] for region in profile.data["regions"])
        products = 2 * 2 * 2 * 500 * 500 * 16
        self.assertEqual([(kernel["flops"], kernel["dense"]) for kernel in whole], [(products, False)])
        (kernel,) = causal
        self.assertFalse(kernel["dense"])
        # All that is visible, and of tiles along the diagonal what isn't.
        self.assertGreaterEqual(kernel["flops"], products * 501 / 1000)
        self.assertLess(kernel["flops"], products * 0.75)
        self.assertEqual([kernel["flops"] for kernel in masked if kernel["dense"]], [products / 2])
        self.assertEqual(str(profile).count("(dense):"), 1)

    def test_captures_unchanged_leaves_the_look_at_them_out(self):
        kernel = attnc.compile(DOCUMENTS, target="cpu")
        q, k, v = make(batches=1, heads=2, kv_heads=2, length=300, kv_length=300, dim=8)
        document = np.repeat(np.arange(3), 100).astype(np.int32)
        expected = oracle(q, k, v, mask_mod=lambda i, j: document[i] == document[j])[0]
        counts = {}
        for unchanged in (False, True):
            # Of the same memory in each call.
            call = lambda: kernel(q, k, v, document, out=o, captures_unchanged=unchanged)  # noqa: E731, B023
            o = np.empty_like(q)
            (region,) = attnc.profile(call, repeat=4, warmup=1, target="cpu").data["regions"]
            np.testing.assert_allclose(o, expected, atol=1e-5)
            counts[unchanged] = {kernel["name"]: kernel["calls"] for kernel in region["summary"]["kernels"]}
        self.assertEqual(list(counts[True].values()), [4])
        self.assertLess(counts[True].items(), counts[False].items())

    def test_tells_where_the_code_comes_from(self):
        with tempfile.TemporaryDirectory() as folder:
            text = TEXT.replace("@scaled", "@profiled")
            tensors = make(heads=2, dim=8)

            def compile_and_run():
                attnc.compile(text, "cpu", cache_dir=folder)(*tensors, 1)

            origins = []
            for _ in range(2):
                (region,) = attnc.profile(compile_and_run, repeat=2, warmup=0, target="cpu").data["regions"]
                origins.append(region["origin"])
                kinds = [row[0] for row in region["host"]["rows"]]
                self.assertEqual(kinds.count("compile"), int(origins == ["compiled"]))
                # Planned for the first tensors only.
                self.assertEqual(kinds.count("plan"), int(origins == ["compiled"]))
            self.assertEqual(origins, ["compiled", "memory"])

    def test_saves(self):
        profile = self.profile()
        with tempfile.TemporaryDirectory() as folder:
            profile.save(os.fsencode(os.path.join(folder, "p.json")))
            with open(os.path.join(folder, "p.json")) as file:
                self.assertEqual(json.load(file), profile.data)
            profile.save_trace(os.path.join(folder, "t.json"))
            with open(os.path.join(folder, "t.json")) as file:
                phases = {event["ph"] for event in json.load(file)["traceEvents"]}
            self.assertTrue({"X", "s", "f"} <= phases)
            self.assertEqual(len(os.listdir(folder)), 2)
            # A link stays one, and what isn't a file isn't replaced by one.
            link, pipe = os.path.join(folder, "link"), os.path.join(folder, "pipe")
            os.symlink("t.json", link)
            profile.save(link)
            self.assertTrue(os.path.islink(link))
            with open(os.path.join(folder, "t.json")) as file:
                self.assertEqual(json.load(file), profile.data)
            os.mkfifo(pipe)
            reader = threading.Thread(target=lambda: open(pipe, "rb").read())
            reader.start()
            profile.save(pipe)
            reader.join()
            self.assertFalse(os.path.isfile(pipe))
            with self.assertRaisesRegex(FileNotFoundError, "nowhere/p.json"):
                profile.save(os.path.join(folder, "nowhere", "p.json"))
            report = os.path.join(folder, "r.html")
            try:
                profile.save_report(report, "kernels=1")
            except attnc.AttncError as error:
                self.assertIn("libjs-chart.js", str(error))
            else:
                with open(report, encoding="utf-8") as file:
                    self.assertIn('"text":"kernels=1"', file.read())
            with self.assertRaisesRegex(attnc.AttncError, "expected KEY=VALUE"):
                profile.save_report(os.path.join(folder, "s.html"), "kernels")
            self.assertFalse(os.path.exists(os.path.join(folder, "s.html")))
            with self.assertRaises(FileNotFoundError):
                profile.save(os.path.join(folder, "none", "p.json"))

    def test_refusals(self):
        profile = attnc.profile(lambda: None, target="cpu")
        self.assertIn("nothing was seen on the device", str(profile))
        with self.assertRaisesRegex(attnc.AttncError, "unknown key 'kernel'"):
            profile.expect("kernel=1")
        with self.assertRaisesRegex(TypeError, "guesses must be a string such as .*, not int"):
            profile.expect(3)
        with self.assertRaisesRegex(TypeError, "layers must be an integer, not str"):
            profile.show(layers="7")
        with self.assertRaisesRegex(attnc.AttncError, "layers is -7"):
            profile.show(layers=-7)
        with self.assertRaisesRegex(ValueError, "repeat needs to be an integer of 1 or more"):
            attnc.profile(lambda: None, repeat=0)
        for function in (None, {}, {1: print}, {"name": "print"}):
            with self.assertRaisesRegex(TypeError, "function must be callable, or a dictionary"):
                attnc.profile(function)
        with self.assertRaisesRegex(attnc.AttncError, "unknown target 'sm_1'"):
            attnc.profile(lambda: None, target="sm_1")

        def fail():
            raise KeyError("theirs")

        with self.assertRaisesRegex(KeyError, "theirs"):
            attnc.profile(fail, target="cpu")
        # The next one can be recorded; two at a time can't.
        nested = lambda: attnc.profile(lambda: None, target="cpu")  # noqa: E731
        with self.assertRaisesRegex(attnc.AttncError, "being recorded already"):
            attnc.profile(nested, target="cpu")


@unittest.skipIf(torch is None, "torch can't be imported")
class TorchTest(unittest.TestCase):
    def test_bfloat16_on_the_cpu(self):
        q, k, v = (torch.from_numpy(x).bfloat16() for x in make())
        o = attnc.attention(q, k, v, is_causal=True)
        expected, _ = oracle(*(x.float().numpy() for x in (q, k, v)), mask_mod=lambda i, j: j <= i)
        self.assertEqual(o.dtype, torch.bfloat16)
        np.testing.assert_allclose(o.float().numpy(), expected, atol=4e-2)

    def test_repeated_calls(self):
        """Later calls take a shorter way, which must see what differs from the first."""
        kernel = attnc.compile(
            """func.func @f(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>, %o: tensor<?x2x?x8xf32>,
                 %l: tensor<?x2x?xf32>) -> (tensor<?x2x?x8xf32>, tensor<?x2x?xf32>) {
              %r:2 = attn.attention ins(%q, %k, %v : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
                outs(%o, %l : tensor<?x2x?x8xf32>, tensor<?x2x?xf32>) -> tensor<?x2x?x8xf32>, tensor<?x2x?xf32>
              return %r#0, %r#1 : tensor<?x2x?x8xf32>, tensor<?x2x?xf32> }""",
            target="cpu",
        )  # fmt: skip
        calls = {
            "kernel": lambda *tensors, **options: kernel(*tensors, **options),
            "attention": lambda *tensors, **options: attnc.attention(*tensors, return_lse=True, **options),
        }
        for name, call in calls.items():
            for seed in range(3):
                with self.subTest(f"{name}, call {seed}"):
                    arrays = make(batches=1, heads=2, kv_heads=2, length=5, kv_length=5, dim=8, seed=seed)
                    expected = oracle(*arrays)
                    tensors = [torch.from_numpy(array) for array in arrays]
                    # Memory of another order, of the same shape.
                    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors]
                    for given in (tensors, turned, [tensors[0], turned[1], tensors[2]]):
                        out = (torch.full((1, 2, 5, 8), torch.nan), torch.full((1, 2, 5), torch.nan))
                        for results in (call(*given), call(*given, out=out)):
                            for result, want in zip(results, expected):
                                np.testing.assert_allclose(result.numpy(), want, atol=1e-5)
                        np.testing.assert_allclose(out[0].numpy(), expected[0], atol=1e-5)
                    with self.assertRaisesRegex(NotImplementedError, "no backward pass"):
                        call(tensors[0].clone().requires_grad_(), *tensors[1:])
                    with self.assertRaises((attnc.AttncError, ValueError)):
                        call(*tensors[:2], tensors[2][:, :, 1:])
                    with self.assertRaises(attnc.AttncError):
                        call(*tensors, out=(out[0].half(), out[1]))

    def test_repeated_calls_count_tensors(self):
        kernel = attnc.compile(DOCUMENTS, target="cpu")
        q, k, v = (torch.from_numpy(x) for x in make(batches=1, heads=2, kv_heads=2, length=30, kv_length=30, dim=8))
        given = (q, k, v, torch.zeros(30).int())
        for _ in range(2):
            kernel(*given)
            for tensors in ((), given[:3], (*given, torch.empty_like(q))):
                with self.assertRaisesRegex(TypeError, rf"4 inputs are needed .*, {len(tensors)} given"):
                    kernel(*tensors)
            with self.assertRaisesRegex(TypeError, "out has no tensors"):
                kernel(*given, out=())
            with self.assertRaisesRegex(TypeError, "1 outputs are needed, out= has 2"):
                kernel(*given, out=(q, q))

    def test_arguments_are_refused_by_name(self):
        q, k, v = (torch.from_numpy(x) for x in make())
        changes = {
            "has the layout torch.sparse_coo; pass to_dense": torch.Tensor.to_sparse,
            "has the layout torch.sparse_csr": lambda x: x[0, 0].to_sparse_csr(),
            "has the layout torch._mkldnn": torch.Tensor.to_mkldnn,
            "is quantised; pass dequantize": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
            "is a nested tensor; pass sequences": lambda x: torch.nested.nested_tensor(list(x)),
            "requires a gradient, but attnc has no backward pass": lambda x: x.clone().requires_grad_(),
            "is on meta": lambda x: x.to("meta"),
            "stands for the negative of its memory; pass resolve_neg": torch._neg_view,
            "is of torch.complex64": lambda x: x.to(torch.complex64),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, of nested and sparse tensors
            for _ in range(2):  # the second time, such calls are known
                for name in ("q", "k", "v", "out"):
                    for reason, change in changes.items():
                        arguments = {"q": q, "k": k, "v": v, "out": torch.empty_like(q)}
                        arguments[name] = change(arguments[name])
                        if (name, reason) in (("q", "is on meta"), ("out", "is of torch.complex64")):
                            continue
                        with self.subTest(f"{name} {reason}"), self.assertRaises((TypeError, NotImplementedError)) as raised:
                            attnc.attention(**arguments)
                        self.assertIn(f"{name} {reason}", str(raised.exception))
                attnc.attention(q, k, v)
                attnc.attention(q, k, v, out=torch.empty_like(q))

    def test_out_of_repeated_calls_has_memory_of_its_own(self):
        q, k, v = (torch.from_numpy(x) for x in make(kv_heads=4, kv_length=37))
        for _ in range(2):
            attnc.attention(q, k, v, out=torch.empty_like(q))
            for out, name in ((q, "q"), (k, "k")):
                with self.assertRaisesRegex(attnc.AttncError, f"'out' lies in the memory of '{name}'"):
                    attnc.attention(q, k, v, out=out)

    def test_options_of_tensors_are_read_each_time(self):
        q, k, v = (torch.from_numpy(x) for x in make())
        scale, softcap = torch.tensor(0.25), torch.tensor(3.0)
        for factor in (1, 2, 3):
            scale.fill_(0.25 * factor), softcap.fill_(3 * factor)
            expected = attnc.attention(q, k, v, scale=0.25 * factor, softcap=3.0 * factor)
            np.testing.assert_array_equal(attnc.attention(q, k, v, scale=scale, softcap=softcap), expected)

    def test_repeated_calls_tell_options_apart(self):
        q, k, v = (torch.from_numpy(x) for x in make())
        mask = torch.rand(37, 50) < 0.5
        for _ in range(2):
            for options, expected in (
                ({}, {}),
                ({"is_causal": True}, {"mask_mod": lambda i, j: j <= i}),
                ({"scale": 0.5}, {"scale": 0.5}),
                ({"attn_mask": mask}, {"bias": np.where(mask.numpy(), 0, -np.inf)}),
                ({"attn_mask": mask[:1]}, {"bias": np.where(mask[:1].numpy(), 0, -np.inf)}),
            ):
                o = attnc.attention(q, k, v, **options)
                np.testing.assert_allclose(o.numpy(), oracle(*(x.numpy() for x in (q, k, v)), **expected)[0], atol=1e-5)

    def test_repeated_calls_are_found_again(self):
        """With DLPack's C exchange API (torch 2.10) and without."""
        mask = torch.rand(37, 50) < 0.5
        sink = torch.nn.Parameter(torch.rand(4), requires_grad=False)
        turned = lambda x: x.transpose(1, 2).contiguous().transpose(1, 2)  # noqa: E731
        for find in (attnc._tensors.exchange_api, lambda: None):
            with mock.patch("attnc._tensors.exchange_api", find), mock.patch("attnc._attention._replays", Replays()):
                for change in (lambda x: x, turned, lambda x: x.half()):
                    for options in ({}, {"attn_mask": mask}, {"sink": sink, "return_lse": True}, {"out": None}):
                        q, k, v = (change(torch.from_numpy(x)) for x in make())
                        if "out" in options:
                            options["out"] = turned(torch.empty_like(q))
                        first = attnc.attention(q, k, v, **options)
                        with mock.patch("attnc._attention._prepare", side_effect=AssertionError):
                            for _ in range(2):
                                again = attnc.attention(q, k, v, **options)
                                self.assertEqual(str(again), str(first))
                        with self.assertRaisesRegex(NotImplementedError, "no backward pass"):
                            attnc.attention(q.clone().requires_grad_(), k, v, **options)

    def test_repeated_calls_of_threads(self):
        failures = []

        def work(seed):
            for length in (5, 30, 7) * 5:
                q, k, v = (torch.from_numpy(x) for x in make(batches=1, length=length, seed=seed))
                for _ in range(20):
                    o = attnc.attention(q, k, v, is_causal=True)
                expected = oracle(*(x.numpy() for x in (q, k, v)), mask_mod=lambda i, j: j <= i)[0]
                if not np.allclose(o.numpy(), expected, atol=1e-5):
                    failures.append((seed, length))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_negative_views_are_refused(self):
        q, k, v = (torch.from_numpy(x) for x in make())
        negative = torch.complex(k, -k).conj().imag
        self.assertTrue(negative.is_neg())
        for _ in range(2):
            with self.assertRaisesRegex(TypeError, "resolve_neg"):
                attnc.attention(q, negative, v)
            attnc.attention(q, negative.resolve_neg(), v)

    def test_operator(self):
        q, k, v = (torch.from_numpy(x) for x in make())
        for return_lse, operator in ((False, "attention"), (True, "attention_lse")):
            options = {"is_causal": True, "sink": torch.tensor([0.5, -3, 4, -torch.inf])}
            self.assertEqual(
                str(attnc.attention(q, k, v, return_lse=return_lse, **options)),
                str(getattr(torch.ops.attnc, operator)(q, k, v, **options)),
            )
            torch.library.opcheck(getattr(torch.ops.attnc, operator).default, (q, k, v), options)

    def test_compile(self):
        def model(q, k, v, mask):
            o, lse = attnc.attention(2 * q, k, v, attn_mask=mask, return_lse=True)
            return attnc.attention(o, k, v, is_causal=True, window_size=(9, 9)) + lse[..., None]

        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        for length in (37, 20):
            q, k, v = (torch.from_numpy(x) for x in make(length=length))
            mask = torch.rand(length, 50)
            torch.testing.assert_close(compiled(q, k, v, mask), model(q, k, v, mask))

    def test_compile_takes_every_option(self):
        def model(q, k, v, sink, ends, used):
            packed = attnc.attention(q, k, v, cu_seqlens_q=ends, seqused_k=used, batch_invariant=True)
            return packed + attnc.attention(q, k[:1], v[:1], sink=sink, scale=0.5, captures_unchanged=True)

        q, k, v = (torch.from_numpy(x) for x in make())
        q = q[:1]
        sink = torch.tensor([0.5, -3, 4, 1])
        ends, used = torch.tensor([0, 9, 37]).int(), torch.tensor([50, 30]).int()
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(q, k, v, sink, ends, used), model(q, k, v, sink, ends, used))

    def test_compile_takes_the_backend_of_where_it_runs(self):
        compiled = torch.compile(lambda q, k, v: attnc.attention(q, k, v), backend="aot_eager", fullgraph=True)
        q, k, v = (torch.from_numpy(x) for x in make())
        expected = compiled(q, k, v)
        with attnc.backend("cudnn"):
            with self.assertRaisesRegex(attnc.AttncError, "cuDNN needs a GPU"):
                compiled(q, k, v)
        torch.testing.assert_close(compiled(q, k, v), expected)

        @torch.compile(backend="aot_eager")
        def scoped(q, k, v):
            with attnc.backend("cudnn"):
                return attnc.attention(q, k, v)

        with self.assertRaisesRegex(attnc.AttncError, "cuDNN needs a GPU"):
            scoped(q, k, v)
        np.testing.assert_array_equal(attnc.attention(q, k, v), expected)

    def test_compile_takes_sequences(self):
        """Packed rows, caches and pages, of lengths that change without compiling anew."""

        def model(q, packed, pool, ends, table, used):
            options = {"cu_seqlens_q": ends, "is_causal": True}
            o, lse = attnc.attention(q, packed, packed, cu_seqlens_k=ends, return_lse=True, **options)
            paged = attnc.attention(q, pool, pool, seqused_k=used, block_table=table, **options)
            decoded = attnc.attention(q[:, :, :1], pool[:1], pool[:1], seqused_k=used[:1].clamp(max=4))
            return o + lse[..., None], paged, decoded

        compiled = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=True)
        for lengths in ((5, 9), (17, 3), (8, 8)):
            ends = torch.tensor([0, lengths[0], sum(lengths)]).int()
            q, packed, _ = (torch.from_numpy(x) for x in make(1, length=sum(lengths), kv_length=sum(lengths)))
            pool = torch.from_numpy(make(10, kv_length=4)[1])
            table = torch.arange(10).reshape(2, 5).int()
            arguments = (q, packed, pool, ends, table, torch.tensor(lengths).int())
            with self.subTest(lengths):
                torch.testing.assert_close(compiled(*arguments), model(*arguments))

    def test_operators_have_fake_sequences(self):
        q, pool = torch.empty(1, 4, 9, 16), torch.empty(7, 2, 4, 16)
        ends, used, table = torch.tensor([0, 3, 9]).int(), torch.tensor([11, 9]).int(), torch.arange(6).reshape(2, 3).int()
        options = {"cu_seqlens_q": ends, "seqused_k": used, "block_table": table}
        for operator in (torch.ops.attnc.attention, torch.ops.attnc.attention_lse):
            torch.library.opcheck(operator.default, (torch.zeros_like(q), torch.zeros_like(pool), torch.zeros_like(pool)), options)
        with FakeTensorMode() as mode:
            fake = [mode.from_tensor(x) for x in (q, pool, pool)]
            options = {name: mode.from_tensor(x) for name, x in options.items()}
            o, lse = attnc.attention(*fake, return_lse=True, **options)
        self.assertEqual((type(o).__name__, o.shape, lse.shape), ("FakeTensor", q.shape, q.shape[:3]))
        # Outside of the mode, as well.
        self.assertEqual(attnc.attention(*fake, **options).shape, q.shape)

    def test_explains_sizes_that_no_memory_has(self):
        q, k, v = (torch.empty(64, 128, 1 << 17, 128, dtype=torch.bfloat16, device="meta") for _ in range(3))
        explanation = attnc.explain(q, k, v, is_causal=True, target="sm_90a")
        self.assertEqual(explanation.chosen, "fused")
        self.assertEqual(explanation["cudnn"]["status"], "available", str(explanation))
        with_sink = attnc.explain(q, k, v, sink=torch.empty(128, device="meta"), target="sm_90a")
        self.assertIn("a sink", with_sink["cudnn"]["reason"])
        fp8 = [x.to(torch.float8_e4m3fn) for x in (q, k, v)]
        scales = {"q_descale": torch.empty(64, 128, device="meta"), "k_descale": torch.empty(1, device="meta")}
        self.assertEqual(attnc.explain(*fp8, target="sm_90a", **scales).chosen, "fused")

    def test_tensors_without_memory(self):
        q, k, v = (torch.from_numpy(x) for x in make())
        o, lse = attnc.attention(q.to("meta"), k.to("meta"), v[..., :8].to("meta"), return_lse=True)
        self.assertEqual((o.device.type, o.shape, lse.shape), ("meta", (2, 4, 37, 8), (2, 4, 37)))
        with self.assertRaisesRegex(NotImplementedError, "out= and stream= aren't supported"):
            attnc.attention(q.to("meta"), k.to("meta"), v.to("meta"), out=q.to("meta"))

    def test_is_seen_by_what_watches_operators(self):
        q, k, v = (torch.from_numpy(x) for x in make())
        expected = attnc.attention(q, k, v)
        graph = torch.fx.experimental.proxy_tensor.make_fx(lambda *x: attnc.attention(*x))(q, k, v)
        self.assertIn("attnc.attention", graph.code)
        torch.testing.assert_close(graph(q, k, v), expected)
        # A call as often made before is seen, too.
        several = torch.stack([q, 2 * q])
        mapped = torch.vmap(lambda x: attnc.attention(x, k, v))(several)
        torch.testing.assert_close(mapped[1], attnc.attention(2 * q, k, v))
        fake = FakeTensorMode().from_tensor(q)
        for options, text in (({"window_size": 5}, "window_size"), ({"softcap": None}, "softcap"), ({"is_causal": "no"}, "is_causal")):
            with self.assertRaisesRegex(TypeError, f"^{text} must be"):
                attnc.attention(fake, fake, fake, **options)
        for transform in (torch.func.grad, torch.func.vjp):
            with self.assertRaisesRegex(NotImplementedError, "no backward pass yet"):
                transform(lambda x: attnc.attention(x, k, v).sum(), *[q] * (transform is torch.func.vjp))(q)

    def test_gradients_are_refused(self):
        q, k, v = (torch.from_numpy(x) for x in make())
        q.requires_grad_()
        with self.assertRaisesRegex(NotImplementedError, "no backward pass yet"):
            attnc.attention(q, k, v)
        compiled = torch.compile(attnc.attention, backend="aot_eager", fullgraph=True)
        # torch wraps what is raised while it traces the backward pass.
        with self.assertRaisesRegex(Exception, "no backward pass yet"):
            compiled(q, k, v).sum().backward()
        with torch.no_grad():
            self.assertFalse(attnc.attention(q, k, v).requires_grad)


if __name__ == "__main__":
    unittest.main()
