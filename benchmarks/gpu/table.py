"""Rows of the suites as lines for a terminal and as Markdown tables."""

import math

MASK_NAMES = {"none": "no mask", "causal": "causal", "window": "window"}
GROUPS = {
    "long": "B*N = 16384, H = 2048/D",
    "short": "The same at N = 512",
    "gqa": "GQA: B = 2, 32 heads of Q and 8 of K and V",
    "window": "Sliding window of 1024 keys",
    "other": "Other head dimensions",
}


def cells(values):
    return "| " + " | ".join(values) + " |"


def table(header, rows):
    return [cells(header), "|" + "---|" * len(header), *map(cells, rows), ""]


def percent(value):
    return f"{100 * value:.1f} %"


def optional(value, form):
    return "" if value is None else format(value, form)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def describe(problem):
    """What is the same in every suite's rows."""
    mask = problem.get("mod") or MASK_NAMES[problem["mask"]]
    if problem["window"]:
        mask += f" {problem['window']}"
    batch = f"B={problem['batch']} " if problem.get("queries") == 1 else ""
    return f"{batch}D={problem['dim']} N={problem['length']} {mask}"


def line(row):
    """One row as it is measured."""
    if "variant" in row:
        text = f"{row['variant']:12s} {row['median_us']:8.1f} us (min {row['min_us']:.1f})"
        return f"{text}, error {row['error']:.2e}"
    text = f"{describe(row):25s}"
    for key, describe_rest in LINES.items():
        if key in row:
            return f"{text} {describe_rest(row)}"
    if "change" in row:
        text += f" {row['change'] or row['schedule']:30s}"
    if "refused" in row:
        return f"{text} refused: {row['refused']}"
    if "ratio" not in row:
        return f"{text} error {row['error']:.2e}"
    text += f" {row['ratio']:.3f} of {row['peer']}: {row['ours_tflops']:.0f} and"
    text += f" {row['peer_tflops']:.0f} TFLOP/s, spread {percent(row['ours_spread'])} and"
    text += f" {percent(row['peer_spread'])}, error {row['error']:.2e}"
    if row.get("peer_error") is not None:
        text += f" and {row['peer_error']:.2e}"
    if row.get("spilled_bytes"):
        text += f", {row['spilled_bytes']} bytes spilled"
    if "sm_clock_mhz" in row:
        text += f", {row['sm_clock_mhz']:.0f} MHz, {row['power_w']:.0f} W"
    return text


def comparison(rows):
    """Ratios to peers, one line each."""
    header = ["D", "N", "mask", "ours : peer", "ours TFLOP/s", "peer TFLOP/s"]
    header += ["spread, ours and peer", "error", "peer's error", "SM MHz", "W", "peer"]
    return table(header, [comparison_cells(row) for row in rows])


def comparison_cells(row):
    return [
        str(row["dim"]),
        str(row["length"]),
        MASK_NAMES[row["mask"]],
        f"{row['ratio']:.2f}",
        f"{row['ours_tflops']:.0f}",
        f"{row['peer_tflops']:.0f}",
        f"{percent(row['ours_spread'])}, {percent(row['peer_spread'])}",
        f"{row['error']:.2e}",
        optional(row["peer_error"], ".2e"),
        optional(row.get("sm_clock_mhz"), ".0f"),
        optional(row.get("power_w"), ".0f"),
        row["peer"],
    ]


def hopper(rows):
    lines = []
    for group, title in GROUPS.items():
        members = [row for row in rows if row["group"] == group]
        if not members:
            continue
        lines += [f"{title}:", "", *comparison(members)]
        if group in ("long", "short"):
            lines += [mean_line(members), ""]
    return lines


def mean_line(rows):
    mean = geometric_mean([row["ratio"] for row in rows])
    worst = min(rows, key=lambda row: row["ratio"])
    return (
        f"Geometric mean of these {len(rows)} ratios: {mean:.3f}; "
        f"least: {worst['ratio']:.3f} ({describe(worst)})."
    )


def ablation(rows):
    """One line per change, one column per problem; what a schedule has already stays blank."""
    problems = list(dict.fromkeys(describe(row) for row in rows))
    changes = list(dict.fromkeys(row["change"] for row in rows if row["change"]))
    found = {(row["change"], describe(row)): ablation_cell(row) for row in rows if row["change"]}
    body = [[f"`{c}`", *(found.get((c, p), "") for p in problems)] for c in changes]
    return table(["change", *problems], body) + ablation_bases(rows)


def ablation_bases(rows):
    """The table's schedules and the problems that each is for."""
    bases = {}
    for row in rows:
        if not row["change"]:
            bases.setdefault(f"`{row['schedule']}`", []).append(describe(row))
    return table(["schedule of the table", "for"], [[s, "; ".join(p)] for s, p in bases.items()])


def ablation_cell(row):
    if "refused" in row:
        return "refused"
    return f"{row['ratio']:.3f}" + (" (spills)" if row.get("spilled_bytes") else "")


def variants(rows):
    header = ["B8 H16 N1024 D64 causal", "median us", "min us", "error", "of its torch counterpart's"]
    return table(
        header,
        [
            [
                row["variant"],
                f"{row['median_us']:.1f}",
                f"{row['min_us']:.1f}",
                f"{row['error']:.2e}",
                optional(row.get("error_ratio"), ".2f"),
            ]
            for row in rows
        ],
    )


def mods_line(row):
    text = f"{row['ratio']:.3f} of {row['peer']}: {row['ours_ms']:.3f} and {row['peer_ms']:.3f} ms, "
    text += f"spread {percent(row['ours_spread'])} and {percent(row['peer_spread'])}, "
    text += f"error {row['error']:.2e} and {row['peer_error']:.2e}, "
    return text + f"first call {row['ours_first_call_s']:.2f} and {row['peer_first_call_s']:.2f} s"


def skip_line(row):
    return (
        f"hides {percent(row['hidden'])}, {row['over_visible']:.3f} of what the rest would take: "
        f"{row['ours_ms']:.3f} ms of {row['none_ms']:.3f}, error {row['error']:.2e}"
    )


def scoremods_line(row):
    return f"{percent(row['overhead'])} over {row['none_ms']:.3f} ms, error {row['error']:.2e}"


def decode_line(row):
    return (
        f"{row['kernel']:32s} {row['gb_per_s']:6.0f} GB/s, {row['kernel_us']:.1f} us, "
        f"spread {percent(row['spread'])}, error {row['error']:.2e}"
    )


# A key that only a suite's rows have -> what follows the problem in a line.
LINES = {
    "ours_first_call_s": mods_line,
    "hidden": skip_line,
    "overhead": scoremods_line,
    "gb_per_s": decode_line,
}


def problem_cells(row):
    return [str(row["dim"]), str(row["length"]), row["mod"] or MASK_NAMES[row["mask"]]]


def mods_table(rows):
    header = ["D", "N", "rules", "ours : FlexAttention", "ours ms", "with its pre-pass", "FlexAttention ms"]
    header += ["spread, both", "error, both", "first call s, both", "its block mask s"]
    body = [
        [
            *problem_cells(row),
            f"{row['ratio']:.2f}",
            f"{row['ours_ms']:.3f}",
            f"{row['ours_with_prepass_ms']:.3f}",
            f"{row['peer_ms']:.3f}",
            f"{percent(row['ours_spread'])}, {percent(row['peer_spread'])}",
            f"{row['error']:.2e}, {row['peer_error']:.2e}",
            f"{row['ours_first_call_s']:.2f}, {row['peer_first_call_s']:.1f}",
            f"{row['peer_block_mask_s']:.2f}",
        ]
        for row in rows
    ]
    faster = [row["peer_first_call_s"] / row["ours_first_call_s"] for row in rows]
    first = f"First calls: {geometric_mean(faster):.0f} times as fast in the geometric mean, {min(faster):.0f} at least."
    return table(header, body) + [mean_line(rows) + " " + first, ""]


def skip_table(rows):
    header = ["D", "N", "mask", "tile", "hidden", "time : no mask", "over (1 - hidden)", "spread", "error"]
    body = [
        [
            *problem_cells(row),
            "x".join(map(str, row["tile"])),
            percent(row["hidden"]),
            f"{row['time_part']:.3f}",
            f"{row['over_visible']:.2f}",
            percent(row["spread"]),
            f"{row['error']:.2e}",
        ]
        for row in rows
    ]
    return table(header, body)


def scoremods_table(rows):
    header = ["D", "N", "rules", "over none", "none ms", "spread", "error"]
    body = [
        [
            *problem_cells(row),
            percent(row["overhead"]),
            f"{row['none_ms']:.3f}",
            percent(row["spread"]),
            f"{row['error']:.2e}",
        ]
        for row in rows
    ]
    return table(header, body)


def decode_table(rows):
    header = ["B", "keys", "kernel", "GB/s of K and V", "us", "ours : it", "spread", "error"]
    body = [
        [
            str(row["batch"]),
            str(row["length"]),
            row["kernel"],
            f"{row['gb_per_s']:.0f}",
            f"{row['kernel_us']:.1f}",
            f"{row['ratio']:.2f}",
            percent(row["spread"]),
            f"{row['error']:.2e}",
        ]
        for row in rows
    ]
    return table(header, body)


def with_refused(render):
    """Renders what was measured, and says what was not and why."""

    def lines(rows):
        measured = [row for row in rows if "refused" not in row]
        refused = [f"- {describe(row)}: {row['refused']}" for row in rows if "refused" in row]
        result = render(measured) if measured else []
        return result + (["Refused:", "", *refused, ""] if refused else [])

    return lines


SUITES = {
    "fused": comparison,
    "hopper": hopper,
    "ablation": ablation,
    "variants": variants,
    "mods": with_refused(mods_table),
    "skip": with_refused(skip_table),
    "scoremods": with_refused(scoremods_table),
    "decode": with_refused(decode_table),
    "fp8": with_refused(comparison),
}


def markdown(result):
    about = [result["device"], result["date"]]
    if result["driver"]:
        about.append(f"driver {result['driver']}")
    if result["power_limit_w"]:
        about.append(f"power limit {result['power_limit_w']:.0f} W")
    about += [f"torch {result['torch']}", f"CUDA {result['cuda']}", f"cuDNN {result['cudnn']}"]
    if result["cudnn_frontend"]:
        about.append(f"cudnn-frontend {result['cudnn_frontend']}")
    about += [f"target {result['target']}", result["dtype"]]
    lines = [", ".join(about) + ".", ""]
    for suite, render in SUITES.items():
        if result.get(suite):
            lines += render(result[suite])
    return "\n".join(lines)
