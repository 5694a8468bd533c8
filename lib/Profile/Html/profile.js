// The report of a profile; docs/Profile.md says what its JSON holds.

const environment = data.environment;
const regions = data.regions;
const comparison = data.comparison;
const isGPU = environment.is_gpu;
const SOURCES = { cupti: "CUPTI", events: "CUDA events", "host clock": "the host's clock" };

// --- roles ------------------------------------------------------------------

// What a kernel is for decides its colour: a handful of colours that people
// remember, however many kernels there are.
const ROLES = [
  ["matrix product", "--blue"],
  ["other kernel", "--orange"],
  ["copy", "--red"],
  ["upload, download, memset", "--purple"],
  ["idle", "--grey"],
];
const ROLE_COLORS = Object.fromEntries(ROLES);

function getRole(kernel) {
  if (kernel.kind === "kernel") return kernel.is_product ? "matrix product" : "other kernel";
  return kernel.kind === "copy" ? "copy" : "upload, download, memset";
}

function getUsedRoles(roles) {
  const used = new Set(roles);
  return ROLES.filter(([role]) => used.has(role));
}

/** naive_qk_s16816_bf16 -> qk_s16816_bf16, where there is a region naive. */
function withoutRegion(name) {
  const region = regions.find((region) => name.startsWith(region.name + "_"));
  return region ? name.slice(region.name.length + 1) : name;
}

// --- summary ----------------------------------------------------------------

function addSummary() {
  const cards = comparison.rows.map((row) => el("div", { class: "card" },
    el("div", { class: "title" }, row.region),
    el("div", { class: "value" }, duration(row.us_per_call)),
    el("div", { class: "note" },
      (regions.length > 1 && known(row.ratio) ? `${ratio(row.ratio)} ${comparison.baseline}, ` : "")
      + `${counted(row.kernels_per_call, "kernel", "kernels")}, ${counted(row.copies_per_call, "copy", "copies")}`)));
  const columns = [["region"], ["us a call"], [`of ${comparison.baseline}`], ["spread"], ["kernels"], ["copies"], ["moved"],
    ["idle"], ["main kernel", "text"], ["path", "text"]];
  const rows = comparison.rows.map((row) => [row.region, fixed(row.us_per_call, 1), ratio(row.ratio), percent(row.spread),
    perCall(row.kernels_per_call), perCall(row.copies_per_call), bytes(row.bytes_per_call), percent(row.idle_fraction),
    known(row.main_kernel) ? shorten(row.main_kernel, 64) : "-", row.path || "-"]);
  const numbers = table("The regions side by side", ...withoutUnknown(columns, rows));
  section("summary", "Summary",
    el("p", { class: "note" }, "Wall time of a call in the steady phase. Spread: (p90 - p10) / median of the calls. Bytes and FLOPs are analytic."),
    el("div", { class: "cards" }, ...cards), numbers);
}

function costOf(finding) {
  const cost = known(finding.cost_us) ? duration(finding.cost_us) : known(finding.cost_bytes) ? bytes(finding.cost_bytes) : "";
  return cost ? [el("span", { class: "cost" }, `${cost} ${finding.once ? "once" : "a call"}`)] : [];
}

function addFindings() {
  const made = section("findings", "What the data says");
  for (const region of regions) {
    const items = region.summary.findings.map((finding) => el("li", {},
      el("div", { class: "head" }, el("span", { class: "chip" }, finding.rule), ...costOf(finding)), finding.text));
    made.append(el("h3", {}, region.name), items.length
      ? el("ul", { class: "findings" }, ...items)
      : el("p", { class: "muted" }, "Nothing stands out."));
    for (const note of region.notes) made.append(el("p", { class: "note" }, "Note: " + note));
  }
}

function addExpectations() {
  const rows = regions.flatMap((region) => region.summary.expectations.map((guess) => [guess.text, region.name,
    guess.measured, el("span", { class: guess.right ? "right" : "wrong" }, guess.right ? "\u2713 right" : "\u2717 wrong")]));
  for (const guess of data.not_run)
    rows.push([guess.text, guess.region, "didn't run", el("span", { class: "wrong" }, "\u2717 wrong")]);
  if (!rows.length) return;
  const wrong = data.not_run.length
    + regions.flatMap((region) => region.summary.expectations).filter((guess) => !guess.right).length;
  section("guesses", "Guesses",
    el("p", {}, wrong ? `${wrong} of ${rows.length} are wrong.` : `All ${rows.length} are right.`),
    table("What was expected and what was measured",
      [["expected"], ["region", "text"], ["measured"], ["guess", "text"]], rows));
}

// --- time by kernel ---------------------------------------------------------

/** The kernels of a region in the order in which a call runs them. */
function inOrder(region) {
  const first = new Map();
  region.device.rows.forEach((row, index) => {
    const key = row[0] + " " + region.names[row[1]];
    if (!first.has(key)) first.set(key, index);
  });
  const at = (kernel) => first.get(kernel.kind + " " + kernel.name) ?? Infinity;
  return [...region.summary.kernels].sort((a, b) => at(a) - at(b));
}

function addTimes() {
  const bars = regions.map((region) => [
    ...inOrder(region).map((kernel) => ({
      name: kernel.name,
      label: withoutRegion(kernel.name),
      role: getRole(kernel),
      us: kernel.total_us / region.summary.calls,
    })),
    { name: "idle", label: "idle", role: "idle", us: region.summary.idle_us / region.summary.calls },
  ]);
  const count = Math.max(...bars.map((segments) => segments.length));
  const [factor, unit] = timeUnit(Math.max(...comparison.rows.map((row) => row.us_per_call)));
  const config = () => ({
    type: "bar",
    plugins: [segmentLabels],
    data: {
      labels: regions.map((region) => region.name),
      datasets: Array.from({ length: count }, (_, index) => ({
        data: bars.map((segments) => (segments[index]?.us ?? 0) / factor),
        backgroundColor: bars.map((segments) => color(ROLE_COLORS[segments[index]?.role ?? "idle"])),
        segmentLabels: bars.map((segments) => segments[index]?.label),
        borderColor: color("--card"),
        borderWidth: { left: 0, right: 1.5 },
        borderSkipped: false,
        maxBarThickness: 44,
        stack: "time",
      })),
    },
    options: {
      indexAxis: "y",
      scales: {
        x: { stacked: true, title: { display: true, text: unit + " a call" } },
        y: { stacked: true, grid: { display: false }, ticks: labelTicks() },
      },
      plugins: {
        tooltip: {
          callbacks: {
            label: (item) => {
              const segment = bars[item.dataIndex][item.datasetIndex];
              return segment ? `${shorten(segment.name, 60)}: ${duration(segment.us)}` : "";
            },
          },
        },
      },
    },
  });
  const rows = regions.flatMap((region, index) =>
    bars[index].map((segment) => [nameCell(segment.name), region.name, segment.role, fixed(segment.us, 2)]));
  const overlaps = regions.filter((region) => region.summary.overlap_us >= 0.05);
  section("time", "Time by kernel",
    el("p", { class: "note" }, "What a call runs, one after the other"
      + (overlaps.length ? `; some of it side by side in ${overlaps.map((region) => region.name).join(", ")}.` : ".")),
    legend(getUsedRoles(bars.flat().map((segment) => segment.role))),
    figure("Time of each kernel in a call, a bar for each region", 70 + 54 * regions.length, config,
      table("Time by kernel", [["kernel"], ["region", "text"], ["role", "text"], ["us a call"]], rows)));
}

// --- kernels ----------------------------------------------------------------

/** Leaves out columns of which nothing is known, as those of a GPU on a CPU. */
function withoutUnknown(columns, rows) {
  const keep = (list) => list.filter((_, index) => rows.some((row) => row[index] !== "-"));
  return [keep(columns), rows.map(keep)];
}

function makeTimes(region) {
  const { summary } = region;
  const columns = [["name"], ["calls"], ["median us"], ["min us"], ["max us"], ["total us"], ["of wall"], ["moved"],
    ["of bandwidth"], ["FLOP"], ["of matrix rate"], ["bound", "text"], ["path", "text"]];
  const rows = summary.kernels.map((kernel) => [
    nameCell(kernel.name), integer(kernel.calls), fixed(kernel.median_us, 1), fixed(kernel.min_us, 1),
    fixed(kernel.max_us, 1), fixed(kernel.total_us, 1), percent(kernel.total_us / Math.max(summary.wall_us, 1e-3)),
    bytes(kernel.bytes), percent(kernel.bandwidth_fraction), flops(kernel.flops) + (kernel.dense ? " (dense)" : ""),
    percent(kernel.matrix_fraction), kernel.bound ?? "-",
    kernel.path ? kernel.path + (kernel.path_source === "name" ? " (by name)" : "") : "-",
  ]);
  return table(`Kernels of ${region.name}`, ...withoutUnknown(columns, rows));
}

/** A GPU's: what each kernel takes of a multiprocessor. */
function makeResources(region) {
  const kernels = region.summary.kernels.filter((kernel) => kernel.grid);
  if (!isGPU || !kernels.length) return [];
  const columns = [["name"], ["grid"], ["block"], ["cluster"], ["registers"], ["shared memory"], ["local"],
    ["blocks/SM"], ["limited by", "text"], ["occupancy*"], ["measured"], ["waves"], ["matrix units"], ["DRAM"]];
  const rows = kernels.map((kernel) => [
    nameCell(kernel.name), sizes(kernel.grid), sizes(kernel.block), sizes(kernel.cluster), integer(kernel.registers),
    bytes(kernel.smem_bytes), bytes(kernel.local_bytes), integer(kernel.blocks_per_sm), kernel.occupancy_limit ?? "-",
    percent(kernel.computed_occupancy), percent(kernel.measured_occupancy), fixed(kernel.waves, 2),
    percent(kernel.measured_matrix), bytes(kernel.measured_bytes),
  ]);
  return [table(`What the kernels of ${region.name} take of an SM`, ...withoutUnknown(columns, rows))];
}

function addKernels() {
  const made = section("kernels", "Kernels");
  for (const region of regions) {
    const { summary } = region;
    made.append(el("h3", {}, `${region.name} (${region.target})`),
      el("p", { class: "note" }, [`Times by ${SOURCES[region.source] ?? region.source}`, region.warm ? "inputs may be in the cache" : "",
        `${summary.calls} calls`].filter(Boolean).join(", ") + "."),
      summary.kernels.length ? makeTimes(region) : el("p", { class: "muted" }, "Nothing was seen on the device."),
      ...makeResources(region), el("p", { class: "note" }, describeTotals(summary)));
    if (summary.kernels.some((kernel) => kernel.dense))
      made.append(el("p", { class: "note" },
        "(dense): the whole products; what the kernel skips of them isn't known."));
    for (const line of describeHost(summary, region.origin)) made.append(el("p", { class: "note" }, line));
  }
  if (isGPU)
    made.append(el("p", { class: "note" }, "* computed, with shared memory opted in to."));
  if (regions.some((region) => region.summary.kernels.some((kernel) => known(kernel.measured_occupancy)
      || known(kernel.measured_bytes) || known(kernel.measured_matrix))))
    made.append(el("p", { class: "note" }, "By counters, in a run of their own: measured occupancy, how long the matrix units "
      + "worked, bytes of the device's memory."));
}

function describeTotals(summary) {
  const totals = new Map();
  for (const kernel of summary.kernels) totals.set(kernel.kind, (totals.get(kernel.kind) ?? 0) + kernel.total_us);
  const parts = [...totals].map(([kind, us]) => `${kind} ${us.toFixed(1)}`);
  return `wall ${summary.wall_us.toFixed(1)} us = ${[...parts, `idle ${summary.idle_us.toFixed(1)}`].join(" + ")}`
    + (summary.overlap_us >= 0.05 ? ` - side by side ${summary.overlap_us.toFixed(1)}` : "");
}

function describeHost(summary, origin) {
  // A CPU's launch is the kernel itself.
  const now = Object.entries(summary.host).filter(([kind]) => isGPU || kind !== "launch")
    .map(([kind, host]) => `${kind} ${host.count} x ${duration(host.median_us)}`);
  const before = ["lookup", "compile", "load", "plan"].filter((kind) => summary.setup[kind])
    .map((kind) => `${kind} ${duration(summary.setup[kind].total_us)}`);
  if (known(summary.first_call_us)) before.push(`first call ${duration(summary.first_call_us)}`);
  if (origin) before.push("code " + (origin === "compiled" ? origin : `from ${origin}`));
  return [["host", now], ["before that", before]].filter(([, parts]) => parts.length)
    .map(([name, parts]) => `${name}: ${parts.join(", ")}`);
}

// --- timeline ---------------------------------------------------------------

const CALLS_ON_TIMELINE = 3;

/**
 * How many calls a timeline shows, and when the last of them ends. Where all calls run equally many things on the
 * device, it ends with those; else calls are taken to be equally long.
 */
function getFirstCalls(region, start) {
  const { summary } = region;
  const perCall = summary.kernels.reduce((sum, kernel) => sum + kernel.calls, 0) / summary.calls;
  const shown = Math.min(CALLS_ON_TIMELINE, summary.calls);
  const calls = Math.min(shown, Math.floor(region.device.rows.length / perCall));
  if (!Number.isInteger(perCall) || !(calls >= 1))
    return { calls: shown, end: summary.wall_us / summary.calls * shown };
  const ends = [...region.device.rows].sort((a, b) => a[2] - b[2]).slice(0, calls * perCall).map((row) => row[3]);
  // The last call ends with its phase, and what the host does until then.
  return { calls, end: calls === summary.calls ? summary.wall_us : (Math.max(...ends) - start) / 1e3 };
}

/** What a timeline shows of a region: lanes, and spans in them. */
function getTimeline(region) {
  const steady = region.phases.find((phase) => phase.name === "steady");
  const rows = [...region.device.rows, ...region.host.rows];
  const start = steady?.start_ns ?? Math.min(...rows.map((row) => row[2]));
  const { calls, end } = getFirstCalls(region, start);
  const spans = [];
  const add = (row, lane, role) => {
    const [from, to] = [(row[2] - start) / 1e3, (row[3] - start) / 1e3];
    if (from < end) spans.push({ lane, role, from, to: Math.min(to, end), name: region.names[row[1]], us: to - from });
  };
  const products = new Set(region.summary.kernels.filter((kernel) => kernel.is_product).map((kernel) => kernel.name));
  for (const row of region.host.rows)
    if (isGPU || row[0] !== "launch") add(row, `host thread ${row[4]}`, "host");
  for (const row of region.device.rows)
    add(row, `${isGPU ? "GPU stream" : "CPU"} ${row[4]}`,
      getRole({ kind: row[0], is_product: products.has(region.names[row[1]]) }));
  return { spans, lanes: [...new Set(spans.map((span) => span.lane))], end, calls };
}

function makeTimeline(region, timeline) {
  const [factor, unit] = timeUnit(timeline.end);
  const config = () => ({
    type: "bar",
    plugins: [segmentLabels],
    data: {
      labels: timeline.lanes,
      datasets: [{
        data: timeline.spans.map((span) => ({ x: [span.from / factor, span.to / factor], y: span.lane })),
        backgroundColor: timeline.spans.map((span) => color(span.role === "host" ? "--sky" : ROLE_COLORS[span.role])),
        segmentLabels: timeline.spans.map((span) => withoutRegion(span.name)),
        borderColor: color("--card"),
        // Short ones would be nothing but border.
        borderWidth: timeline.spans.map((span) => ({ left: 0, right: span.us > timeline.end / 200 ? 1 : 0 })),
        borderSkipped: false,
        minBarLength: 1.5,
        barPercentage: 0.95,
        categoryPercentage: 0.9,
        maxBarThickness: 30,
      }],
    },
    options: {
      indexAxis: "y",
      scales: {
        x: { min: 0, max: timeline.end / factor, title: { display: true, text: unit },
          ticks: { maxRotation: 0, includeBounds: false } },
        y: { grid: { display: false }, ticks: labelTicks() },
      },
      plugins: {
        tooltip: {
          callbacks: {
            label: (item) => {
              const span = timeline.spans[item.dataIndex];
              return `${shorten(span.name, 60)}: ${duration(span.us)}, from ${duration(span.from)} on`;
            },
          },
        },
      },
    },
  });
  const rows = timeline.spans.map((span) =>
    [nameCell(span.name), span.lane, span.role, fixed(span.from, 2), fixed(span.us, 2)]);
  return figure(`Timeline of ${region.name}`, 62 + 40 * timeline.lanes.length, config,
    table(`Timeline of ${region.name}`, [["name"], ["lane", "text"], ["role", "text"], ["start us"], ["us"]], rows));
}

function addTimeline() {
  const made = section("timeline", "Timeline",
    el("p", { class: "note" }, `The first calls of the steady phase, at most ${CALLS_ON_TIMELINE}. `
      + "Each region has its own scale; attn-prof --trace writes all of it for Perfetto."));
  const timelines = regions.map(getTimeline);
  const used = getUsedRoles(timelines.flatMap((timeline) => timeline.spans.map((span) => span.role)));
  if (timelines.some((timeline) => timeline.spans.some((span) => span.role === "host"))) used.push(["host", "--sky"]);
  made.append(legend(used));
  regions.forEach((region, index) => {
    const timeline = timelines[index];
    made.append(el("h3", {}, `${region.name}: ${timeline.calls} of ${region.summary.calls} calls`));
    made.append(timeline.spans.length ? makeTimeline(region, timeline)
      : el("p", { class: "muted" }, "Nothing was recorded."));
  });
}

// --- roofline ---------------------------------------------------------------

const REGION_STYLES = [
  ["--blue", "circle"], ["--orange", "triangle"], ["--green", "rect"], ["--red", "rectRot"], ["--purple", "star"],
  ["--sky", "crossRot"],
];

function getRoofs() {
  const roofs = [];
  const paths = new Set(regions.flatMap((region) => region.summary.kernels.map((kernel) => kernel.path)));
  if (known(environment.matrix_flops_per_s)) {
    roofs.push({ name: "16-bit matrix products, measured", rate: environment.matrix_flops_per_s, dash: [] });
    if (["QGMMA", "IGMMA", "IMMA"].some((path) => paths.has(path)))
      roofs.push({ name: "8-bit matrix products, twice that", rate: 2 * environment.matrix_flops_per_s, dash: [8, 4] });
  }
  if (known(environment.vector_flops_per_s))
    roofs.push({ name: "FP32 on the CUDA cores, computed", rate: environment.vector_flops_per_s, dash: [3, 3] });
  return roofs;
}

/** Names of roofs, and of each region's first product at its point; none upon another. */
const pointLabels = {
  id: "pointLabels",
  afterDatasetsDraw(chart) {
    const context = chart.ctx;
    const { left, right } = chart.chartArea;
    const taken = [];
    context.save();
    context.font = `11px ${Chart.defaults.font.family}`;
    context.fillStyle = color("--text");
    chart.data.datasets.forEach((dataset, index) => {
      if (!dataset.pointLabels) return;
      chart.getDatasetMeta(index).data.forEach((point, at) => {
        const label = dataset.pointLabels[at];
        if (!label) return;
        const width = context.measureText(label).width;
        const x = Math.max(left + 4, Math.min(point.x + 9, right - width - 4));
        if (taken.some((box) => Math.abs(box.y - point.y) < 13 && x < box.x + box.width && box.x < x + width)) return;
        taken.push({ x, y: point.y, width });
        context.fillText(label, x, point.y - 8);
      });
    });
    context.restore();
  },
};

const logTicks = () => ({
  callback(value) {
    const exponent = Math.log10(value);
    return Math.abs(exponent - Math.round(exponent)) < 1e-9 ? String(Number(value.toPrecision(1))) : "";
  },
  maxRotation: 0,
});

function addRoofline() {
  const made = section("roofline", "Roofline");
  // A GPU's kernels reach TFLOP/s, a CPU's GFLOP/s.
  const [factor, unit] = isGPU ? [1e12, "TFLOP/s"] : [1e9, "GFLOP/s"];
  const points = regions.map((region) => region.summary.kernels
    .filter((kernel) => kernel.kind === "kernel" && kernel.flops > 0 && kernel.bytes > 0 && kernel.median_us > 0)
    .map((kernel) => ({ kernel, x: kernel.flops / kernel.bytes, y: kernel.flops / kernel.median_us * 1e6 / factor })));
  const all = points.flat();
  if (!all.length) {
    made.append(el("p", { class: "muted" }, "The FLOPs and bytes of no kernel are known."));
    return;
  }
  const bandwidth = environment.bandwidth_bytes_per_s;
  const roofs = known(bandwidth) ? getRoofs() : [];
  const ridges = roofs.map((roof) => roof.rate / bandwidth);
  const low = Math.min(...all.map((point) => point.x), ...ridges) / 3;
  const top = 2.5 * Math.max(...all.map((point) => point.y), ...roofs.map((roof) => roof.rate / factor));
  const high = Math.max(...all.map((point) => point.x), ...ridges) * 4;
  const lines = [];
  if (roofs.length) {
    const highest = Math.max(...roofs.map((roof) => roof.rate));
    lines.push({ name: "bandwidth of copies, measured", dash: [],
      data: [{ x: low, y: low * bandwidth / factor }, { x: highest / bandwidth, y: highest / factor }] });
    for (const roof of roofs)
      lines.push({ name: roof.name, dash: roof.dash,
        data: [{ x: roof.rate / bandwidth, y: roof.rate / factor }, { x: high, y: roof.rate / factor }] });
  }
  const style = (index) => REGION_STYLES[index % REGION_STYLES.length];
  const config = () => ({
    type: "scatter",
    plugins: [pointLabels],
    data: {
      datasets: [
        ...lines.map((line) => ({
          data: line.data, showLine: true, borderColor: color("--muted"), borderWidth: 1.5, borderDash: line.dash,
          pointRadius: 0, pointHitRadius: 0, lineName: line.name,
          pointLabels: line.name.startsWith("bandwidth") || isNarrow() ? [] : ["", line.name],
        })),
        ...points.map((list, index) => ({
          data: list, borderColor: color(style(index)[0]), backgroundColor: color(style(index)[0]),
          pointStyle: style(index)[1], pointRadius: 6, pointHoverRadius: 8, pointBorderWidth: 2,
          pointLabels: list.map((point) => point.kernel.is_product
            && point.kernel === regions[index].summary.kernels.find((kernel) => kernel.is_product)
            ? regions[index].name : ""),
        })),
      ],
    },
    options: {
      scales: {
        x: { type: "logarithmic", min: low, max: high, title: { display: true, text: "FLOP a byte" }, ticks: logTicks() },
        y: { type: "logarithmic", max: top, title: { display: true, text: unit }, ticks: logTicks() },
      },
      plugins: {
        legend: {
          display: true,
          labels: { usePointStyle: true, boxHeight: 8, generateLabels: (chart) => regions.map((region, index) => ({
            text: region.name, pointStyle: style(index)[1], fillStyle: color(style(index)[0]),
            strokeStyle: color(style(index)[0]), fontColor: color("--text"), lineWidth: 2,
            datasetIndex: lines.length + index, hidden: !chart.isDatasetVisible(lines.length + index),
          })) },
        },
        tooltip: {
          filter: (item) => item.datasetIndex >= lines.length,
          callbacks: {
            label: (item) => {
              const { kernel, x, y } = points[item.datasetIndex - lines.length][item.dataIndex];
              return [shorten(kernel.name, 60), `${x.toFixed(1)} FLOP a byte, ${y.toFixed(2)} ${unit}`,
                kernel.bound ? `bound by ${kernel.bound}` : ""].filter(Boolean);
            },
          },
        },
      },
    },
  });
  const rows = regions.flatMap((region, index) => points[index].map(({ kernel, x, y }) =>
    [nameCell(kernel.name), region.name, x.toFixed(2), y.toFixed(3), kernel.bound ?? "-", percent(kernel.bandwidth_fraction),
      percent(kernel.matrix_fraction)]));
  made.append(
    el("p", { class: "note" }, roofs.length
      ? "Under the slope a kernel waits for memory, under the flat roofs for the units that multiply. The roofs are this card's own: "
        + [`copies ${(bandwidth / 1e12).toFixed(2)} TB/s`,
          ...roofs.map((roof) => `${roof.name} ${(roof.rate / 1e12).toFixed(0)} TFLOP/s`)].join("; ") + "."
      : "The roofs of this device are not known."),
    figure("Roofline: FLOP/s of each kernel over its FLOPs a byte", 400, config,
      table("Roofline", [["kernel"], ["region", "text"], ["FLOP a byte"], [unit], ["bound", "text"],
        ["of bandwidth"], ["of matrix rate"]], rows)));
}

// --- bytes ------------------------------------------------------------------

function addBytes() {
  const rows = regions.map((region) => [region.name, region.summary.bytes_per_call, region.min_bytes,
    region.max_intermediate_bytes]);
  const made = section("bytes", "Bytes moved");
  if (!rows.some((row) => known(row[1]))) {
    made.append(el("p", { class: "muted" }, "The bytes that these kernels move are not known."));
    return;
  }
  const largest = Math.max(...rows.flatMap((row) => [row[1] ?? 0, row[2] ?? 0]));
  const [factor, unit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]].find(([size]) => largest >= size);
  const config = () => ({
    type: "bar",
    data: {
      labels: rows.map((row) => row[0]),
      datasets: [["moved", 1, "--blue"], ["least possible", 2, "--green"]].map(([label, column, variable]) => ({
        label, data: rows.map((row) => known(row[column]) ? row[column] / factor : null),
        backgroundColor: color(variable), maxBarThickness: 20, minBarLength: 2,
      })),
    },
    options: {
      indexAxis: "y",
      scales: {
        x: { title: { display: true, text: unit + " a call" } },
        y: { grid: { display: false }, ticks: labelTicks() },
      },
      plugins: { tooltip: { callbacks: { label: (item) =>
        `${item.dataset.label}: ${bytes(rows[item.dataIndex][item.datasetIndex + 1])}` } } },
    },
  });
  made.append(
    el("p", { class: "note" }, "Analytic: what the kernels of a call read and write, beside inputs and outputs alone."),
    legend([["moved", "--blue"], ["least possible", "--green"]]),
    figure("Bytes moved a call, beside the least possible", 70 + 58 * rows.length, config,
      table("Bytes a call", [["region"], ["moved"], ["least"], ["of least"], ["largest intermediate"]],
        rows.map((row) => [row[0], bytes(row[1]), bytes(row[2]),
          known(row[1]) && row[2] > 0 ? ratio(row[1] / row[2]) : "-", bytes(row[3])]))));
}

// --- occupancy --------------------------------------------------------------

const LIMIT_COLORS = ["--blue", "--orange", "--green", "--red", "--purple", "--sky"];

// Of a region: those that take the most time.
const KERNELS_IN_OCCUPANCY = 12;

function addOccupancy() {
  const all = regions.map((region) => region.summary.kernels
    .filter((kernel) => known(kernel.computed_occupancy)).map((kernel) => ({ region, kernel })));
  const kernels = all.flatMap((list) => list.slice(0, KERNELS_IN_OCCUPANCY));
  if (!kernels.length) return;
  const limits = [...new Set(kernels.map(({ kernel }) => kernel.occupancy_limit))].sort();
  const limitColor = (limit) => LIMIT_COLORS[limits.indexOf(limit) % LIMIT_COLORS.length];
  const config = () => ({
    type: "bar",
    data: {
      labels: kernels.map(({ region, kernel }) => `${region.name}: ${withoutRegion(kernel.name)}`),
      datasets: [{
        data: kernels.map(({ kernel }) => 100 * kernel.computed_occupancy),
        backgroundColor: kernels.map(({ kernel }) => color(limitColor(kernel.occupancy_limit))),
        maxBarThickness: 18, minBarLength: 2,
      }],
    },
    options: {
      indexAxis: "y",
      scales: {
        x: { min: 0, max: 100, title: { display: true, text: "% of an SM's warps" } },
        y: { grid: { display: false }, ticks: labelTicks() },
      },
      plugins: { tooltip: { callbacks: { label: (item) => {
        const { kernel } = kernels[item.dataIndex];
        return `${percent(kernel.computed_occupancy)}: ${kernel.blocks_per_sm} blocks an SM, limited by ${kernel.occupancy_limit}`;
      } } } },
    },
  });
  section("occupancy", "Occupancy",
    el("p", { class: "note" }, "What limits how many warps an SM holds: computed, with shared memory opted in to; never measured. Low is no fault by itself: "
      + "registers and shared memory that hold a tile are what makes a fused kernel fast."
      + (all.some((list) => list.length > KERNELS_IN_OCCUPANCY)
        ? ` Drawn are the ${KERNELS_IN_OCCUPANCY} kernels of each region that take the most time.` : "")),
    legend(limits.map((limit) => ["limited by " + limit, limitColor(limit)])),
    figure("Computed occupancy of each kernel", 64 + 24 * kernels.length, config,
      table("Occupancy", [["kernel"], ["region", "text"], ["occupancy"], ["blocks/SM"], ["limited by", "text"],
        ["registers"], ["shared memory"]],
        all.flat().map(({ region, kernel }) => [nameCell(kernel.name), region.name, percent(kernel.computed_occupancy),
          integer(kernel.blocks_per_sm), kernel.occupancy_limit, integer(kernel.registers), bytes(kernel.smem_bytes)]))));
}

// --- mask -------------------------------------------------------------------

const MASK_COLORS = { ".": "--line", "/": "--orange", "#": "--blue" };

/** One rectangle for each run of equal cells. */
function drawMask(map) {
  const width = Math.max(1, ...map.cells.map((row) => row.length));
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  const total = map.skipped + map.partial + map.full;
  const attributes = { class: "map", viewBox: `0 0 ${width} ${map.cells.length}`, role: "img",
    "shape-rendering": "crispEdges",
    "aria-label": `${map.title}: ${map.skipped} of ${total} tiles skipped, ${map.partial} partial, ${map.full} full` };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  map.cells.forEach((row, y) => {
    for (const run of row.matchAll(/(.)\1*/g)) {
      const cell = document.createElementNS(namespace, "rect");
      const place = { x: run.index, y, width: run[0].length, height: 1 };
      for (const [name, value] of Object.entries(place)) cell.setAttribute(name, value);
      cell.style.fill = `var(${MASK_COLORS[run[1]] ?? "--line"})`;
      svg.append(cell);
    }
  });
  return svg;
}

function addMasks() {
  const mapped = regions.filter((region) => region.mask_map);
  if (!mapped.length) return;
  const made = section("mask", "Tiles of the mask",
    el("p", { class: "note" }, "Query tiles down, key tiles across: what the kernel skips, where it evaluates the mask, "
      + "and where it knows that all is visible."),
    legend([["skipped", "--line"], ["partial: evaluates the mask", "--orange"], ["full", "--blue"]]));
  for (const region of mapped) {
    const map = region.mask_map;
    const total = Math.max(1, map.skipped + map.partial + map.full);
    made.append(el("h3", {}, region.name), el("p", { class: "note" }, map.title), drawMask(map),
      ...(map.scale ? [el("p", { class: "note" }, map.scale)] : []),
      table("Tiles of " + region.name, [["tiles"], ["number"], ["share"]],
        [["skipped", map.skipped], ["partial", map.partial], ["full", map.full]]
          .map(([name, count]) => [name, integer(count), percent(count / total)])));
  }
}

// --- environment ------------------------------------------------------------

function addEnvironment() {
  const rate = (value, unit) => known(value) ? `${(value / 1e12).toFixed(2)} ${unit}` : "";
  section("environment", "Environment",
    definitions([
      ["Device", environment.device],
      ["Architecture", environment.arch],
      ["Multiprocessors", environment.num_sms ? String(environment.num_sms) : ""],
      ["Last-level cache", environment.cache_bytes ? bytes(environment.cache_bytes) : ""],
      ["Driver for CUDA", environment.driver],
      ["Clock", known(environment.clock_mhz) && known(environment.max_clock_mhz)
        ? `${environment.clock_mhz} of ${environment.max_clock_mhz} MHz` : ""],
      ["Clock limited by", environment.throttle_reasons.join(", ")],
      ["Copies, measured", rate(environment.bandwidth_bytes_per_s, "TB/s read and written")],
      ["16-bit matrix products, measured", rate(environment.matrix_flops_per_s, "TFLOP/s")],
      ["FP32 on the CUDA cores, computed", rate(environment.vector_flops_per_s, "TFLOP/s")],
      ...Object.entries(environment.versions),
    ]),
    el("h3", {}, "The command that made this"),
    ...(data.command ? command(data.command) : [el("p", { class: "muted" }, "Not known.")]),
    el("p", { class: "note" }, "The numbers above are read from the JSON in this page, the profile's own file without most of its records. "),
    el("p", {}, saveButton("profile.json")));
}

startPage("Where the time goes", environment.device, regions.length ? `: ${regions.map((region) => region.name).join(", ")}` : "");
if (regions.length) {
  addSummary();
  addFindings();
  addExpectations();
  addTimes();
  addKernels();
  addTimeline();
  addRoofline();
  addBytes();
  addOccupancy();
  addMasks();
}
addEnvironment();
finishPage();
