"""Pages as Chromium makes them."""

import collections
import html.parser
import json
import re
import subprocess
import tempfile

# Runs in the page after it is drawn: pixels and values of the charts, and whether the page fits its window.
PROBE = """<script>
document.documentElement.dataset.probe = JSON.stringify({
  charts: [...document.querySelectorAll("canvas")].map((canvas) => {
    const chart = Chart.getChart(canvas), pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const colors = new Set();
    for (let i = 0; i < pixels.length; i += 4)
      if (pixels[i + 3]) colors.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
    return { title: canvas.getAttribute("aria-label"), colors: colors.size,
      labels: chart.data.labels, data: chart.data.datasets.map((dataset) => dataset.data) };
  }),
  wide: document.documentElement.scrollWidth > innerWidth,
  cut: [...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth).length,
  background: getComputedStyle(document.body).backgroundColor,
});
</script></body>"""


class Page(html.parser.HTMLParser):
    """The tables by caption, texts by class, and counts of elements and classes."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.counts, self.texts = {}, collections.Counter(), collections.defaultdict(list)
        self.probe, self.addresses, self.open = None, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.counts[tag] += 1
        self.counts.update((attributes.get("class") or "").split())
        self.addresses += [attributes[key] for key in ("src", "href") if key in attributes]
        self.probe = json.loads(attributes["data-probe"]) if "data-probe" in attributes else self.probe
        if tag == "table":
            self.rows = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        self.open.append((tag, attributes.get("class")))

    def handle_endtag(self, tag):
        if tag == "table":
            self.tables[self.caption] = [dict(zip(self.rows[0], row)) for row in self.rows[1:]]
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        tags = [tag for tag, _ in self.open]
        if "caption" in tags:
            self.caption = text
        elif "td" in tags or "th" in tags:
            # The short form of a long name comes first.
            self.rows[-1][-1] = text
        for tag, kind in self.open:
            self.texts[kind or tag].append(text)


def browse(path, *options):
    """The page as Chromium makes it of the file, which must not complain."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.count("</body>") == 1
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as probed, tempfile.TemporaryDirectory() as home:
        probed.write(text.replace("</body>", PROBE))
        probed.flush()
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
        command += ["--user-data-dir=" + home, *options, "--dump-dom", "file://" + probed.name]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, complaints
    page = Page(done.stdout)
    assert page.probe, done.stderr
    # Nothing comes from elsewhere.
    assert all(re.match(r"#|data:,$", address) for address in page.addresses), page.addresses
    assert not page.probe["wide"], "the page scrolls sideways"
    for chart in page.probe["charts"]:
        assert chart["colors"] > 3, chart["title"]
    return page
