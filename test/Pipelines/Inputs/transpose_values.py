"""Runs the warps that transpose V, out of the PTX of whole kernels, and compares shared memory with what wgmma reads.

The instructions are interpreted as the PTX ISA describes them, a warp at a time with barriers that never wait. Layouts are
written down here a second time: swizzles as exchanged address bits, and the order of keys as the registers that one wgmma
leaves and another takes.

    transpose_values.py attn-compile
"""

import operator
import re
import subprocess
import sys
from dataclasses import dataclass

import numpy as np

WARP = np.arange(32)
SHARED_BASE = 16  # Not aligned to a slot, as the driver may choose it.
ALIGNMENT = 1024


@dataclass
class Shape:
    head_dim: int
    block_m: int
    block_n: int
    num_stages: int = 2
    persistent: bool = False

    def source(self):
        qkv = f"memref<1x1x{2 * self.block_n}x{self.head_dim}xf8E4M3FN>"
        out = f"memref<1x1x{2 * self.block_n}x{self.head_dim}xbf16>"
        roles = f"persistent = {str(self.persistent).lower()}, v_transpose = producer"
        warps = 4 + self.block_m // 16
        return f"""
func.func @attention(%q: {qkv}, %k: {qkv}, %v: {qkv}, %o: {out}) {{
  attn.attention ins(%q, %k, %v : {qkv}, {qkv}, {qkv}) outs(%o : {out})
    {{schedule = #attn.schedule<block_m = {self.block_m}, block_n = {self.block_n}, num_stages = {self.num_stages},
      num_warps = {warps}, warp_roles = <{roles}>>}}
  return
}}"""

    @property
    def columns(self):
        """Of a tile of V, in whole depths of a product."""
        return -(-self.head_dim // 32) * 32


# Layouts


def block_bytes(columns):
    """Of a row: the widest swizzle that divides it."""
    return next(b for b in (128, 64, 32) if columns % b == 0)


def addresses(rows, columns):
    """Of every element of an 8-bit tile at an address that is a multiple of 1024."""
    width = block_bytes(columns)
    row, column = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    linear = column // width * rows * width + row * width + column % width
    bits = {128: 3, 64: 2, 32: 1}[width]
    return linear ^ ((linear >> 7 & (1 << bits) - 1) << 4)


def key_of_slot(slot):
    """Byte `slot` of a row of P: thread t has bytes 4 t to 4 t + 3 of 16 in a register, which it fills with its columns 2 t and
    2 t + 1 of two blocks of 8 scores."""
    first, byte = slot // 16 * 16, slot % 16
    thread, own = byte // 4, byte % 4
    return first + 8 * (own // 2) + 2 * thread + own % 2


# PTX


class Machine:
    """One warp. Registers hold a value for every lane."""

    def __init__(self, ptx, shared):
        self.shared = shared
        self.lines, self.labels = [], {}
        body = re.sub(r"//.*", "", ptx[ptx.index(".entry") :])
        for line in body.split("\n"):
            line = line.strip().lstrip("{").rstrip(";").strip()
            while match := re.match(r"([$\w]+):\s*", line):
                self.labels[match[1]] = len(self.lines)
                line = line[match.end() :]
            if re.match(r"@|[a-z]", line):
                self.lines.append(line)
        self.transposed = 0

    def run(self, warp, numbers):
        """`numbers`: those of a persistent kernel that it reads, a tile, its steps and that no other follows."""
        self.values = {"%tid.x": warp * 32 + WARP, "%ctaid.x": WARP * 0}
        self.numbers = iter(numbers)
        at = 0
        while at is not None:
            at = self.step(self.lines[at], at + 1)

    def get(self, name):
        if name in self.values:
            return self.values[name]
        if name.startswith("%"):
            raise KeyError(f"{name} is read before it is written")
        if re.match(r"-?(0x)?[\da-fA-F]+$", name):
            return WARP * 0 + int(name, 0)
        return WARP * 0 + SHARED_BASE  # The only symbol.

    def set(self, name, value):
        self.values[name] = np.asarray(value) & 0xFFFFFFFF

    @staticmethod
    def signed(value):
        return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000

    def address(self, text):
        base, offset = re.fullmatch(r"\[([$%\w.]+)(?:\s*\+\s*(-?\d+))?\]", text).groups()
        return self.get(base) + int(offset or 0)

    def step(self, line, after):
        """Runs an instruction; returns the index of the next, None at the end."""
        match = re.match(r"(?:@(!?)(%?\w+)\s+)?([\w.:]+)\s*(.*)", line, re.S)
        negated, predicate, name, rest = match.groups()
        active = None
        if predicate:
            active = self.get(predicate).astype(bool) ^ bool(negated)
        operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest)
        base = name.split(".")[0]
        if base in ("ret", "bra"):
            if active is not None:
                assert active.all() == active.any(), f"a warp that takes both ways: {line}"
                if not active.any():
                    return after
            return None if base == "ret" else self.labels[operands[-1]]
        getattr(self, "do_" + base, self.do_arithmetic)(name, operands)
        return after

    # What neither moves values that matter here nor waits.
    def do_nothing(self, name, operands):
        pass

    do_setmaxnreg = do_bar = do_barrier = do_fence = do_nothing

    def do_mbarrier(self, name, operands):
        if "try_wait" in name:
            self.values[operands[0]] = WARP * 0 + 1

    def do_ld(self, name, operands):
        if ".param" in name:
            self.set(operands[0], WARP * 0)
            return
        assert ".shared" in name, name
        self.set(operands[0], WARP * 0 + next(self.numbers))

    def do_shfl(self, name, operands):
        self.set(operands[0], self.get(operands[1])[self.get(operands[2])])

    def rows_of_matrices(self, operand):
        """The addresses of the rows of four matrices."""
        rows = self.address(operand)
        assert (rows % 16 == 0).all()
        for matrix in rows.reshape(4, 8):
            assert len(set(matrix // 16 % 8)) == 8, f"rows in the same banks: {matrix}"
        return rows

    def do_ldmatrix(self, name, operands):
        assert ".x4.trans." in name, name
        rows = self.rows_of_matrices(operands[1])
        for block, register in enumerate(re.findall(r"%\w+", operands[0])):
            value = 0
            for half in range(2):
                # Row 2 t + half, column g of pairs of bytes.
                at = rows[8 * block + 2 * (WARP % 4) + half] + 2 * (WARP // 4)
                pair = self.shared[at].astype(np.int64) | self.shared[at + 1].astype(np.int64) << 8
                value = value | pair << 16 * half
            self.set(register, value)

    def do_stmatrix(self, name, operands):
        assert ".x4." in name and ".trans" not in name, name
        rows = self.rows_of_matrices(operands[0])
        for block, register in enumerate(re.findall(r"%\w+", operands[1])):
            for byte in range(4):
                at = rows[8 * block + WARP // 4] + 4 * (WARP % 4) + byte
                self.shared[at] = self.get(register) >> 8 * byte & 0xFF
        self.transposed += 1

    def do_prmt(self, name, operands):
        a, b, selector = map(self.get, operands[1:])
        both = [a >> 8 * i & 0xFF for i in range(4)] + [b >> 8 * i & 0xFF for i in range(4)]
        result = 0
        for byte in range(4):
            assert not (selector >> 4 * byte & 8).any()
            result = result | np.choose(selector >> 4 * byte & 7, both) << 8 * byte
        self.set(operands[0], result)

    COMPARE = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}

    def do_setp(self, name, operands):
        a, b = map(self.get, operands[1:])
        kind, type_ = name.split(".")[1:3]
        if type_.startswith("s"):
            a, b = self.signed(a), self.signed(b)
        self.values[operands[0]] = self.COMPARE[kind](a, b).astype(np.int64)

    def do_bfe(self, name, operands):
        a, start, length = map(self.get, operands[1:])
        assert ".u32" in name
        self.set(operands[0], a >> start & (1 << length) - 1)

    def do_arithmetic(self, name, operands):
        op = name.split(".")[0]
        args = [self.get(o) for o in operands[1:]]
        signed = ".s32" in name
        if op in ("shr", "min", "max", "div", "rem") and signed:
            args[0] = self.signed(args[0])
            if op != "shr":
                args[1] = self.signed(args[1])
        functions = {
            "mov": lambda a: a,
            "cvt": lambda a: a,
            "cvta": lambda a: a,
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "mad": lambda a, b, c: a * b + c,
            "shl": lambda a, b: a << b,
            "shr": lambda a, b: a >> b,
            "and": lambda a, b: a & b,
            "or": lambda a, b: a | b,
            "xor": lambda a, b: a ^ b,
            "not": lambda a: ~a,
            "min": np.minimum,
            "max": np.maximum,
            "div": lambda a, b: a // b,
            "rem": lambda a, b: a % b,
            "selp": lambda a, b, p: np.where(p, a, b),
        }
        assert ".hi" not in name and ".wide" not in name and ".f32" not in name, name
        self.set(operands[0], functions[op](*args))


# The check


def align(value):
    return -(-value // ALIGNMENT) * ALIGNMENT


def check(compiler, shape):
    text = subprocess.run(
        [compiler, "--target=sm_90a", "--emit=ptx", "-", "-o", "-"], input=shape.source(), capture_output=True, text=True, check=True
    ).stdout
    rows, columns = shape.block_n, shape.columns
    # Rings lie in the order of q, k, v and v as it came.
    values = align(SHARED_BASE) + align(shape.block_m * columns) + align(shape.num_stages * rows * columns)
    staged = values + align(shape.num_stages * rows * columns)
    shared = np.zeros(staged + align(2 * rows * columns), dtype=np.uint8)
    random = np.random.default_rng(rows * columns)
    tiles = [random.integers(0, 256, (rows, columns), dtype=np.uint8) for _ in range(2)]
    for slot, tile in enumerate(tiles):
        shared[staged + slot * rows * columns + addresses(rows, columns)] = tile
    before = shared.copy()
    machine = Machine(text, shared)
    for warp in (1, 2, 3):
        machine.run(warp, [0, len(tiles), -1])
    slots = key_of_slot(np.arange(rows))
    for slot, tile in enumerate(tiles):
        begin = values + slot * rows * columns
        got = shared[begin + addresses(columns, rows)]
        assert np.array_equal(got, tile[slots].T), f"{shape}: tile {slot} isn't V transposed"
        before[begin : begin + rows * columns] = shared[begin : begin + rows * columns]
    assert np.array_equal(shared, before), f"{shape}: something else has been written"
    expected = 2 * (rows // 32) * (columns // 16)
    assert machine.transposed == expected, f"{shape}: {machine.transposed} matrix stores, not {expected}"


SHAPES = [
    Shape(128, 192, 96),
    Shape(128, 192, 96, persistent=True),
    Shape(64, 192, 128),
    Shape(64, 64, 32),
    Shape(96, 128, 64),
    Shape(80, 128, 160),
    Shape(32, 64, 256),
    Shape(192, 128, 128),
    Shape(256, 128, 96),
    Shape(16, 64, 224),
]


def main():
    for shape in SHAPES:
        check(sys.argv[1], shape)
    print(f"{len(SHAPES)} kernels transpose V")


if __name__ == "__main__":
    main()
