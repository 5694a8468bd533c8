// The report of a benchmark; docs/Benchmarks.md says what its JSON holds.

const NAMES = data.backends;
const COLORS = ["--blue", "--orange", "--green", "--red", "--purple", "--sky"];
const colorOf = (backend) => COLORS[NAMES.indexOf(backend) % COLORS.length];

const timed = (result) => result && known(result.median_us);
const find = (benchCase, backend) => benchCase.results.find((result) => result.backend === backend);

/** Cases by dtype and rule, which a chart shows together. */
function getGroups() {
  const groups = new Map();
  for (const benchCase of data.cases) {
    const name = `${benchCase.dtype}, ${benchCase.mod}`;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(benchCase);
  }
  return [...groups];
}

/** From the tenth to the ninetieth percentile of each bar. */
const whiskers = {
  id: "whiskers",
  afterDatasetsDraw(chart) {
    const context = chart.ctx;
    context.save();
    context.strokeStyle = color("--text");
    context.lineWidth = 1.5;
    chart.data.datasets.forEach((dataset, index) => {
      chart.getDatasetMeta(index).data.forEach((bar, at) => {
        const range = dataset.ranges[at];
        if (!range) return;
        const [from, to] = range.map((value) => chart.scales.x.getPixelForValue(value));
        context.beginPath();
        context.moveTo(from, bar.y);
        context.lineTo(to, bar.y);
        for (const x of [from, to]) {
          context.moveTo(x, bar.y - 3);
          context.lineTo(x, bar.y + 3);
        }
        context.stroke();
      });
    });
    context.restore();
  },
};

function makeTimes(name, cases) {
  const results = cases.flatMap((benchCase) => benchCase.results.filter(timed));
  const [factor, unit] = timeUnit(Math.max(...results.map((result) => result.median_us)));
  // Unfused variants of long sequences take a hundred times as long.
  const isWide = Math.max(...results.map((result) => result.median_us))
    > 20 * Math.min(...results.map((result) => result.median_us));
  const config = () => ({
    type: "bar",
    plugins: [whiskers],
    data: {
      labels: cases.map((benchCase) => benchCase.shape),
      datasets: NAMES.map((backend) => {
        const shown = cases.map((benchCase) => find(benchCase, backend));
        return {
          label: backend,
          data: shown.map((result) => timed(result) ? result.median_us / factor : null),
          ranges: shown.map((result) => timed(result) ? [result.p10_us / factor, result.p90_us / factor] : null),
          backgroundColor: color(colorOf(backend)),
          maxBarThickness: 20,
        };
      }),
    },
    options: {
      indexAxis: "y",
      scales: {
        x: { suggestedMax: Math.max(...results.map((result) => result.p90_us)) / factor, type: isWide ? "logarithmic" : "linear", title: { display: true, text: unit + (isWide ? ", logarithmic" : "") },
          ticks: { maxRotation: 0 } },
        y: { grid: { display: false }, ticks: labelTicks() },
      },
      plugins: { tooltip: { callbacks: { label: (item) => {
        const result = find(cases[item.dataIndex], item.dataset.label);
        return `${result.backend}: ${duration(result.median_us)} (${duration(result.p10_us)} - ${duration(result.p90_us)})`
          + (known(result.ratio) ? `, ${ratio(result.ratio)} ${data.baseline}` : "");
      } } } },
    },
  });
  return figure(`Median times of ${name}`, 70 + cases.length * (14 + 18 * NAMES.length), config);
}

function addTimes() {
  const made = section("times", "Times",
    el("p", { class: "note" }, "Median of the rounds; whiskers from the 10th to the 90th percentile."),
    legend(NAMES.map((backend) => [backend, colorOf(backend)])));
  for (const [name, cases] of getGroups()) {
    made.append(el("h3", {}, name));
    made.append(cases.some((benchCase) => benchCase.results.some(timed)) ? makeTimes(name, cases)
      : el("p", { class: "muted" }, "Nothing ran."));
  }
}

/** A row a case: the times, and in parentheses their ratios. */
function addRatios() {
  const rows = data.cases.map((benchCase) => [`${benchCase.shape} ${benchCase.dtype} ${benchCase.mod}`,
    ...NAMES.map((backend) => {
      const result = find(benchCase, backend);
      if (!timed(result)) return "-";
      return backend === data.baseline || !known(result.ratio) ? duration(result.median_us)
        : `${duration(result.median_us)} (${ratio(result.ratio)})`;
    })]);
  section("ratios", "Side by side",
    el("p", { class: "note" }, `Medians, and in parentheses how many times ${data.baseline}'s of the same round, in the median: less than 1 is faster.`),
    table("Times side by side", [["case"], ...NAMES.map((backend) => [backend])], rows));
}

/** Each reason once, with the cases it is given for. */
function getRefusals() {
  const reasons = new Map();
  for (const benchCase of data.cases)
    for (const { backend, refusal } of benchCase.results.filter((result) => result.refusal)) {
      const key = JSON.stringify([backend, refusal]);
      if (!reasons.has(key)) reasons.set(key, { backend, refusal, names: [] });
      reasons.get(key).names.push(`${benchCase.shape} ${benchCase.dtype} ${benchCase.mod}`);
    }
  return [...reasons.values()];
}

function addTable() {
  const columns = [["shape"], ["dtype", "text"], ["mod", "text"], ["backend", "text"], ["median us"], ["p10 us"], ["p90 us"],
    [`of ${data.baseline}`], ["spread"], ["dense FLOP/s"], ["moved"], ["kernels"], ["kernels of", "text"]];
  if (data.verified) columns.push(["error"]);
  const hasClocks = data.cases.some((benchCase) => benchCase.results.some((result) => known(result.clock_mhz)));
  if (hasClocks) columns.push(["SM MHz"]);
  const rows = data.cases.flatMap((benchCase) => benchCase.results.map((result) => {
    const row = [benchCase.shape, benchCase.dtype, benchCase.mod, result.backend, fixed(result.median_us, 1),
      fixed(result.p10_us, 1), fixed(result.p90_us, 1), ratio(result.ratio),
      timed(result) ? percent((result.p90_us - result.p10_us) / result.median_us) : "-", known(result.tflops) ? flops(1e12 * result.tflops) : "-",
      bytes(result.bytes), integer(result.kernels), result.kernel_target || "-"];
    if (data.verified) row.push(known(result.error) ? result.error.toExponential(2) : "-");
    if (hasClocks) row.push(integer(result.clock_mhz));
    return row;
  }));
  const made = section("table", "All results",
    el("p", { class: "note" }, `${data.rounds} rounds; in each, every backend has one turn on the same arguments, `
      + `${data.warm ? "which may be in the cache" : "which are not in the cache"}. The ratio is the median over the rounds. `
      + "Spread: (p90 - p10) / median. FLOPs and bytes are analytic: FLOPs the least that any backend computes."),
    table("All results", columns, rows));
  const refusals = getRefusals().map(({ backend, refusal, names }) =>
    el("li", {}, el("span", { class: "chip" }, backend), `${names[0]}${names.length > 1 ? `, and ${names.length - 1} more` : ""}: ${refusal}`));
  if (refusals.length) made.append(el("h3", {}, "What didn't run"), el("ul", { class: "findings" }, ...refusals));
}

function addEnvironment() {
  section("environment", "Environment",
    definitions([["Device", data.device], ["Target", data.target], ["Date", data.date], ...Object.entries(data.versions)]),
    el("h3", {}, "The command that made this"), ...command(data.command), el("p", {}, saveButton("bench.json")));
}

startPage("Backends side by side", `${data.device}, ${data.target}, ${data.date}`);
addTimes();
addRatios();
addTable();
addEnvironment();
finishPage();
