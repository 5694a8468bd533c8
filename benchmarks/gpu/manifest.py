"""Reads the manifests that attn-compile writes (docs/Manifest.md)."""

_INT_OPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "eq": lambda a, b: int(a == b),
    "le": lambda a, b: int(a <= b),
    "lt": lambda a, b: int(a < b),
    "and": lambda a, b: int(bool(a) and bool(b)),
}


def evaluate(expr, symbols):
    """The value of an expression."""
    if isinstance(expr, str):
        return symbols[expr]
    if isinstance(expr, list):
        operands = [evaluate(e, symbols) for e in expr[1:]]
        value = operands[0]
        for operand in operands[1:]:
            value = _INT_OPS[expr[0]](value, operand)
        return value
    return expr


def launched_kernel(manifest, shapes):
    """The attention kernel that a fused plan launches on tensors of these shapes."""
    symbols = {"num_sms": 1}
    for name, shape in shapes.items():
        symbols.update({f"{name}.dim{i}": size for i, size in enumerate(shape)})
    kernels = {kernel["name"]: kernel for kernel in manifest["kernels"]}
    for step in manifest["plan"]:
        # What bounds a mask beforehand has no schedule.
        if step["op"] == "launch" and "schedule" in kernels[step["kernel"]]:
            if evaluate(step["grid"], symbols):
                return kernels[step["kernel"]]
    raise ValueError("the plan launches no kernel with a schedule")
