"""Gives the kernels of a profile names that would break a page, one that made no difference between text and markup."""

import json
import sys

NAMES = [
    "</script><script>document.body.textContent = 'gone'</script>",
    "<img src=x onerror=\"document.title='gone'\">",
    "quotes ' \" ` and \\ and \u2028 and & &lt; ${1}",
    "<!-- <script> -->",
    "void cutlass::Kernel<" + "cute::tuple<cute::C<64>, " * 200 + ">" * 200,
]

with open(sys.argv[1]) as file:
    profile = json.load(file)
for region in profile["regions"]:
    kernels = [fact["name"] for fact in region["facts"]]
    new = dict(zip(kernels, NAMES))
    region["names"] = [new.get(name, name) for name in region["names"]]
    for fact in region["facts"]:
        fact["name"] = new.get(fact["name"], fact["name"])
json.dump(profile, sys.stdout)
