"""Score and mask rules as attnc's MLIR, by name; flex.py has the same for torch.

A number at the end of a name is the rule's size: "window 1024", "softcap 50".
"""

import dataclasses
import re

_POSITION = """
      %q_len = attn.q_len : i32
      %kv_len = attn.kv_len : i32
      %shift = arith.subi %kv_len, %q_len : i32
      %position = arith.addi %q_idx, %shift : i32"""

_DISTANCE = f"""{_POSITION}
      %distance = arith.subi %kv_idx, %position : i32"""

_FLOAT_DISTANCE = f"""{_DISTANCE}
      %far = arith.sitofp %distance : i32 to f32"""

_CAUSAL = f"""{_POSITION}
      %visible = arith.cmpi sle, %kv_idx, %position : i32"""


def _band(left, right):
    return f"""{_DISTANCE}
      %left = arith.constant {-left} : i32
      %right = arith.constant {right} : i32
      %not_before = arith.cmpi sge, %distance, %left : i32
      %not_after = arith.cmpi sle, %distance, %right : i32
      %visible = arith.andi %not_before, %not_after : i1"""


def _document(visible):
    return """
      %of_query = attn.capture_load %document[%b, %q_idx] : {document} -> i32
      %of_key = attn.capture_load %document[%b, %kv_idx] : {document} -> i32""" + visible


_SAME_DOCUMENT = _document("""
      %visible = arith.cmpi eq, %of_query, %of_key : i32""")

_SAME_DOCUMENT_CAUSAL = _document("""
      %same = arith.cmpi eq, %of_query, %of_key : i32
      %before = arith.cmpi sle, %kv_idx, %q_idx : i32
      %visible = arith.andi %same, %before : i1""")


def _prefix(size):
    return f"""{_POSITION}
      %prefix = arith.constant {size} : i32
      %in_prefix = arith.cmpi slt, %kv_idx, %prefix : i32
      %before = arith.cmpi sle, %kv_idx, %position : i32
      %visible = arith.ori %in_prefix, %before : i1"""


# Kind -> (height, width) of an image of 16384 pixels. The wide one's rows are several tiles long.
IMAGES = {"neighborhood": (128, 128), "wide neighborhood": (16, 1024)}


def _neighborhood(size, image):
    """A pixel sees those at most `size` rows and columns away, at a border as many further
    in (as examples/neighborhood.mlir)."""
    height, width = IMAGES[image]
    text = f"""
      %width = arith.constant {width} : i32
      %radius = arith.constant {size} : i32
      %minus_radius = arith.constant {-size} : i32
      %last_row = arith.constant {height - 1 - size} : i32
      %last_column = arith.constant {width - 1 - size} : i32
      %band = arith.constant {(2 * size + 1) * width} : i32
      %minus_band = arith.constant {-(2 * size + 1) * width} : i32
      %distance = arith.subi %kv_idx, %q_idx : i32
      %not_before = arith.cmpi sge, %distance, %minus_band : i32
      %not_after = arith.cmpi sle, %distance, %band : i32
      %in_band = arith.andi %not_before, %not_after : i1"""
    for axis, op in (("row", "divsi"), ("column", "remsi")):
        text += f"""
      %q_{axis} = arith.{op} %q_idx, %width : i32
      %inside_{axis} = arith.maxsi %q_{axis}, %radius : i32
      %center_{axis} = arith.minsi %inside_{axis}, %last_{axis} : i32
      %k_{axis} = arith.{op} %kv_idx, %width : i32
      %{axis}s = arith.subi %k_{axis}, %center_{axis} : i32
      %not_before_{axis} = arith.cmpi sge, %{axis}s, %minus_radius : i32
      %not_after_{axis} = arith.cmpi sle, %{axis}s, %radius : i32
      %near_{axis} = arith.andi %not_before_{axis}, %not_after_{axis} : i1"""
    return text + """
      %near = arith.andi %near_row, %near_column : i1
      %visible = arith.andi %in_band, %near : i1"""


def _softcap(size):
    return f"""
      %cap = arith.constant {float(size)} : f32
      %scaled = arith.divf %s, %cap : f32
      %squashed = math.tanh %scaled : f32
      %result = arith.mulf %squashed, %cap : f32"""


_ALIBI = f"""{_FLOAT_DISTANCE}
      %slope = attn.capture_load %slopes[%h] : {{slopes}} -> f32
      %bias = arith.mulf %slope, %far : f32
      %result = arith.addf %s, %bias : f32"""

_BIAS = """
      %x = attn.capture_load %bias[%b, %h, %q_idx, %kv_idx] : {bias} -> {dtype}
      %f = arith.extf %x : {dtype} to f32
      %result = arith.addf %s, %f : f32"""

_HEAD_OFFSET = """
      %x = attn.capture_load %offsets[%h] : {offsets} -> f32
      %result = arith.addf %s, %x : f32"""

_RELATIVE = f"""{_FLOAT_DISTANCE}
      %result = arith.addf %s, %far : f32"""

_DOUBLE = """
      %two = arith.constant 2.0 : f32
      %result = arith.mulf %s, %two : f32"""


@dataclasses.dataclass(frozen=True)
class Mod:
    score: str = ""
    mask: str = ""
    # Name -> type; {heads} and {dtype} are the problem's.
    captures: dict = dataclasses.field(default_factory=dict)


_DOCUMENT_TYPE = {"document": "tensor<?x?xi32>"}
_SLOPES_TYPE = {"slopes": "tensor<{heads}xf32>"}

_MODS = {
    "none": lambda size: Mod(),
    "causal": lambda size: Mod(mask=_CAUSAL),
    "window": lambda size: Mod(mask=_band(size - 1, 0)),
    "band": lambda size: Mod(mask=_band(size, size)),
    "prefix": lambda size: Mod(mask=_prefix(size)),
    "neighborhood": lambda size: Mod(mask=_neighborhood(size, "neighborhood")),
    "wide neighborhood": lambda size: Mod(mask=_neighborhood(size, "wide neighborhood")),
    "document": lambda size: Mod(mask=_SAME_DOCUMENT, captures=_DOCUMENT_TYPE),
    "causal document": lambda size: Mod(mask=_SAME_DOCUMENT_CAUSAL, captures=_DOCUMENT_TYPE),
    "alibi": lambda size: Mod(_ALIBI, captures=_SLOPES_TYPE),
    "softcap": lambda size: Mod(_softcap(size)),
    "causal softcap": lambda size: Mod(_softcap(size), _CAUSAL),
    "bias": lambda size: Mod(_BIAS, captures={"bias": "tensor<1x1x?x?x{dtype}>"}),
    "head bias": lambda size: Mod(_BIAS, captures={"bias": "tensor<1x{heads}x?x?x{dtype}>"}),
    "head offset": lambda size: Mod(_HEAD_OFFSET, captures={"offsets": "tensor<{heads}xf32>"}),
    "relative": lambda size: Mod(_RELATIVE),
    "double": lambda size: Mod(_DOUBLE),
}


def split(name):
    """The kind and the size of a rule's name."""
    kind, size = re.fullmatch(r"(.*?)(?: (\d+))?", name).groups()
    return kind, int(size or 0)


def mod(name):
    kind, size = split(name)
    return _MODS[kind](size)
