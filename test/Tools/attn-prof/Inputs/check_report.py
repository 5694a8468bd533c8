"""Opens a report in Chromium and compares what it shows with the records of its profile.

    check_report.py REPORT.html PROFILE.json [PART=COUNT ...]

The profile's steady phases must have all their work on one stream. PART=COUNT: so many of those elements are
expected, such as figure=7, or right=3 (the class).
"""

import collections
import json
import os
import statistics
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Inputs"))
from browser import browse  # noqa: E402


def get_steady(region):
    """The steady phase, and its device records in microseconds from its start."""
    (phase,) = [phase for phase in region["phases"] if phase["name"] == "steady"]
    records = []
    for row in region["device"]["rows"]:
        row = dict(zip(region["device"]["columns"], row))
        if phase["start_ns"] <= row["start_ns"] < phase["end_ns"]:
            begin, end = ((row[key] - phase["start_ns"]) / 1e3 for key in ("start_ns", "end_ns"))
            records.append((region["names"][row["name"]], begin, end))
    return phase, records


def check_kernels(page, region):
    phase, records = get_steady(region)
    times = collections.defaultdict(list)
    for name, begin, end in records:
        times[name].append(end - begin)
    wall = (phase["end_ns"] - phase["start_ns"]) / 1e3
    rows = page.tables["Kernels of " + region["name"]]
    assert {row["name"] for row in rows} == set(times), rows
    for row in rows:
        samples = times[row["name"]]
        shown = row["calls"], row["median us"], row["total us"], row["of wall"]
        expected = len(samples), statistics.median(samples), sum(samples), 100 * sum(samples) / wall
        assert int(shown[0]) == expected[0], row
        for text, value in zip(shown[1:], expected[1:]):
            assert abs(float(text.rstrip(" %")) - value) <= 0.0501, (row, expected)
    facts = {entry["name"]: entry for entry in region["facts"]}
    for row in rows:
        if row["name"] in facts and facts[row["name"]]["path"]:
            assert row["path"] == facts[row["name"]]["path"], row


def find_chart(page, title):
    (chart,) = [chart for chart in page.probe["charts"] if chart["title"].startswith(title)]
    return chart


def check_charts(page, profile):
    """The values that are drawn, whatever the unit of the axis."""
    regions = profile["regions"]
    walls = []
    for region in regions:
        phase, records = get_steady(region)
        walls.append((phase["end_ns"] - phase["start_ns"]) / 1e3 / phase["calls"])
    times = find_chart(page, "Time of each kernel")
    assert times["labels"] == [region["name"] for region in regions]
    sums = [sum(values) for values in zip(*times["data"])]
    unit = sums[0] / walls[0]
    assert min(abs(unit / factor - 1) for factor in (1, 1e-3, 1e-6)) < 1e-6, unit
    for shown, wall in zip(sums, walls):
        assert abs(shown - wall * unit) < 1e-6 * shown, (shown, wall)
    for region, wall in zip(regions, walls):
        phase, records = get_steady(region)
        # Each call has as many records; the last one ends with the phase.
        shown = min(3, phase["calls"])
        last = shown * len(records) // phase["calls"]
        end = wall * shown if shown == phase["calls"] else sorted(records, key=lambda record: record[1])[last - 1][2]
        expected = [(begin, min(to, end)) for _, begin, to in records if begin < end]
        chart = find_chart(page, "Timeline of " + region["name"])
        spans = [span["x"] for span in chart["data"][0] if not span["y"].startswith("host")]
        assert len(spans) == len(expected), (len(spans), len(expected))
        unit = spans[-1][1] / expected[-1][1]
        for span, (begin, to) in zip(spans, sorted(expected)):
            assert abs(span[0] - begin * unit) + abs(span[1] - to * unit) < 1e-6 * end, (span, begin, to)
        rows = [row for row in page.tables["Timeline of " + region["name"]] if row["role"] != "host"]
        shown = sorted((row["name"], float(row["start us"])) for row in rows)
        actual = sorted((name, begin) for name, begin, _ in records if begin < end)
        assert len(shown) == len(actual)
        for (name, start), (expected_name, begin) in zip(shown, actual):
            assert name == expected_name and abs(start - begin) < 0.0051, (name, start, expected_name, begin)
    moved = find_chart(page, "Bytes moved")
    assert len(moved["data"]) == 2 and len(moved["data"][0]) == len(regions)
    for index, region in enumerate(regions):
        factor = moved["data"][1][0] / regions[0]["min_bytes"]
        assert abs(moved["data"][1][index] - region["min_bytes"] * factor) < 1e-9 * moved["data"][1][index]


def check_summary(page, profile):
    rows = page.tables["The regions side by side"]
    assert [row["region"] for row in rows] == [region["name"] for region in profile["regions"]]
    for row, region in zip(rows, profile["regions"]):
        phase, records = get_steady(region)
        wall = (phase["end_ns"] - phase["start_ns"]) / 1e3
        assert abs(float(row["us a call"]) - wall / phase["calls"]) <= 0.0501, row
        assert abs(float(row["idle"].rstrip(" %")) - 100 * (1 - sum(to - begin for _, begin, to in records) / wall)) <= 0.0501


def main():
    report, profile = sys.argv[1:3]
    with open(profile, encoding="utf-8") as file:
        profile = json.load(file)
    page = browse(report, "--window-size=1366,900")
    assert page.probe["cut"] == 0, "a laptop doesn't show all of a table"
    for region in profile["regions"]:
        check_kernels(page, region)
    check_charts(page, profile)
    check_summary(page, profile)
    for part, count in (argument.split("=") for argument in sys.argv[3:]):
        assert page.counts[part] == int(count), (part, page.counts[part])
    phone = browse(report, "--window-size=390,844", "--blink-settings=preferredColorScheme=0")
    assert phone.probe["background"] != page.probe["background"], "no dark theme"
    assert phone.probe["cut"] == 0, "a phone doesn't show all of a table"


main()
