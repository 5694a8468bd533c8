"""Sequences of lengths that only the device knows: packed, in a cache, in pages."""

import dataclasses
from typing import Tuple

import numpy as np


@dataclasses.dataclass
class Sequences:
    """How the queries and keys of some sequences lie in tensors.

    What belongs to no sequence is NaN.
    """

    q: Tuple[int, ...]  # lengths
    k: Tuple[int, ...]
    # q has one batch with all sequences (cu_q), or a batch for each.
    packed_queries: bool = True
    # "packed" (cu_k), "cache" (kv_len), "packed_cache" (both), "pages" (block_table) or "batch".
    keys: str = "packed"
    page: int = 16
    # Rows that belong to nobody: behind packed sequences, and in every cache.
    room: int = 5

    def operands(self):
        """name -> type, in the order of the operator."""
        count = len(self.q)
        types = {"cu_q": f"tensor<{count + 1}xi32>" if count % 2 else "tensor<?xi32>"} if self.packed_queries else {}
        if self.keys in ("packed", "packed_cache"):
            types["cu_k"] = "tensor<?xi32>"
        if self.keys in ("cache", "packed_cache", "pages"):
            types["kv_len"] = "tensor<?xi32>"
        if self.keys == "pages":
            types["block_table"] = "tensor<?x?xi32>"
        return types

    def type_sizes(self):
        """(batch, length) of q and of k in types."""
        q = ("1", "?") if self.packed_queries else ("?", "?")
        k = ("?", str(self.page)) if self.keys == "pages" else ("1" if "packed" in self.keys else "?", "?")
        return q, k

    def split(self, q, k, v):
        """The own rows of every sequence, of arrays with a batch a sequence and the greatest lengths."""
        return [
            (q[s : s + 1, :, :nq], k[s : s + 1, :, :nk], v[s : s + 1, :, :nk])
            for s, (nq, nk) in enumerate(zip(self.q, self.k))
        ]

    def lay_out(self, random, parts):
        """The arrays q, k, v and name -> array of the other operands."""
        arrays = {}
        qs, ks, vs = zip(*parts)
        if self.packed_queries:
            arrays["cu_q"] = _offsets(self.q)
        q = _pack(qs, self.room) if self.packed_queries else np.concatenate(qs)
        if "packed" in self.keys:
            # A cache has room behind every sequence.
            room = self.room if self.keys == "packed_cache" else 0
            arrays["cu_k"] = _offsets([n + room for n in self.k])
            k, v = (_pack([_extend(x, x.shape[2] + room) for x in xs], self.room) for xs in (ks, vs))
        elif self.keys == "cache":
            room = max(self.k) + self.room
            k, v = (np.concatenate([_extend(x, room) for x in xs]) for xs in (ks, vs))
        elif self.keys == "pages":
            k, v, arrays["block_table"] = self._make_pages(random, ks, vs)
        else:
            k, v = np.concatenate(ks), np.concatenate(vs)
        if self.keys in ("cache", "packed_cache", "pages"):
            arrays["kv_len"] = np.array(self.k, np.int32)
        return (q, k, v), arrays

    def _make_pages(self, random, ks, vs):
        counts = [-(-n // self.page) for n in self.k]
        order = random.permutation(sum(counts) + 3)
        table = np.full((len(counts), max(counts) + 1), 1 << 30, np.int32)
        pools = [np.full((len(order), x.shape[1], self.page, x.shape[3]), np.nan) for x in (ks[0], vs[0])]
        used = iter(order)
        for s, count in enumerate(counts):
            for p in range(count):
                table[s, p] = next(used)
                for pool, x in zip(pools, (ks[s], vs[s])):
                    rows = x[0, :, p * self.page : (p + 1) * self.page]
                    pool[table[s, p], :, : rows.shape[1]] = rows
        return (*pools, table)

    def split_captures(self, number, captures, dims):
        """What the rules read for sequence `number`, as if all were as long."""
        own = {"q": slice(self.q[number]), "k": slice(self.k[number])}
        return {name: x[tuple(own.get(d, slice(None)) for d in dims[name])] for name, x in captures.items()}

    def join(self, outputs):
        """What `outputs`, one array a sequence, look like in one tensor, without the rows of nobody."""
        return np.concatenate(outputs, axis=2 if self.packed_queries else 0)


def _offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _extend(x, rows):
    return np.concatenate([x, np.full((*x.shape[:2], rows - x.shape[2], x.shape[3]), np.nan)], axis=2)


def _pack(parts, room):
    packed = np.concatenate(parts, axis=2)
    return _extend(packed, packed.shape[2] + room)
