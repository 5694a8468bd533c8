"""check_pages.py FOLDER TOOL...: whether what was made from the tools' --help offers each option and value that it lists.

Reads --help on its own: an option is what begins a line with a hyphen, a value what begins one with an equals sign.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def read_help(path):
    """{option: its enumerated values} and the names of subcommands"""
    options, commands, in_commands = {}, [], False
    for line in subprocess.run([path, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if text and indent == 0:
            in_commands = line == "SUBCOMMANDS:"
        elif in_commands and " - " in line:
            commands.append(text.split()[0])
        elif text.startswith("-") and indent < 8:  # deeper are options of passes
            options.setdefault(re.match(r"[-\w]+", text)[0], [])
        elif text.startswith("-"):
            options[list(options)[-1]].append(re.match(r"--([-\w]+)", text)[1] + "=")
        elif text.startswith("=") and not text.startswith("=<"):  # "<empty>" is nothing to type
            values = options[list(options)[-1]]
            if not any(value.endswith("=") for value in values):  # else it is one of an option of a pass
                values.append(text[1:].split()[0])
    return options, commands


def complete(file, *words):
    command = ["bash", os.path.join(HERE, "complete.sh"), file, os.path.basename(file), *words]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(re.findall("offered: (.+)", text))


def main(folder, *tools):
    problems = 0

    def expect(wanted, found, what):
        nonlocal problems
        for name in sorted(set(wanted) - set(found)):
            problems += 1
            print(f"{what} lacks {name}")

    for path in tools:
        tool = os.path.basename(path)
        options, commands = read_help(path)
        bash = f"{folder}/bash-completion/completions/{tool}"
        names = {name for name in options if name.startswith("--")}
        expect(options, {name.rstrip("=") for name in complete(bash, "-")}, f"bash, {tool},")
        expect(commands, complete(bash, ""), f"bash, {tool},")
        for name, values in options.items():
            if values:
                expect(values, complete(bash, name, "=", ""), f"bash, {tool} {name}")
        with open(f"{folder}/zsh/site-functions/_{tool}") as file:
            zsh = file.read()
        expect(options, re.findall(r"^ *'?(-[-\w]+)", zsh, re.M), f"zsh, {tool},")
        expect(commands, re.findall(r"[( ](\w+)\\:", zsh), f"zsh, {tool},")
        with open(f"{folder}/fish/vendor_completions.d/{tool}.fish") as file:
            fish = file.read()
        expect(names, {"--" + name for name in re.findall(r" -l ([-\w]+)", fish)}, f"fish, {tool},")
        expect(set(options) - names, {"-" + name for name in re.findall(r" -o ([-\w]+)", fish)}, f"fish, {tool},")
        expect(commands, re.findall(r"-f -a (\w+) ", fish), f"fish, {tool},")
        for name, values in options.items():
            for shell, text, marks in (("zsh", zsh, (name + "=", name + "[")), ("fish", fish, (f" -l {name.lstrip('-')} ",))):
                line = next((line for line in text.splitlines() if any(mark in line for mark in marks)), "")
                expect(values, re.findall(r"\w[-\w]*=?", line), f"{shell}, {tool} {name}")
        with open(f"{folder}/man/man1/{tool}.1") as file:
            manual = file.read().replace("\\-", "-")
        expect(options, re.findall(r"^\\fB(-[-\w]+)", manual, re.M), f"manual of {tool}")
        expect(commands, re.findall(r"^\\fB(\w+)", manual, re.M), f"manual of {tool}")
        print(f"{tool}: {len(options)} options, {sum(map(len, options.values()))} values, {len(commands)} commands")
    print(problems, "problems")


main(*sys.argv[1:])
