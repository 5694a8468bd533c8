#!/usr/bin/env python3
"""Makes manual pages and shell completion of LLVM-style tools from what they say with --help.

    python3 cmake/tool_pages.py --output DIR TOOL...

writes, for each tool, DIR/man/man1/TOOL.1, DIR/bash-completion/completions/TOOL,
DIR/zsh/site-functions/_TOOL and DIR/fish/vendor_completions.d/TOOL.fish.
"""

import argparse
import os
import re
import shlex
import subprocess

OPTION = re.compile(r" {2}(--?[\w-]+)(\[?[= ]<.*?>\]?)? +- +(.*)")
VALUE = re.compile(r" {4}=([\w-]+) +- +(.*)")
PASS = re.compile(r" {6}(--[\w-]+)(=<.*?>)? +- +(.*)")
PASS_OPTION = re.compile(r" {8}--([\w-]+)(?:=<.*?>)? +- +(.*)")
SUBCOMMAND = re.compile(r" {2}(\w[\w-]*) +- (.*)")
# Values that a description lists, at its beginning or behind a colon: "naive, inplace, or all (default ...)"; some
# take one of their own ("window=LEFT").
VALUE_NAME = r"[a-z][\w-]*(?:=[^, ]+)?"
LISTED = re.compile(rf"(?:^|: )((?:{VALUE_NAME}(?: \([^)]*\))?, )+(?:or )?{VALUE_NAME})(?=[:,;.]| \(|$)(?:.*?, or ({VALUE_NAME}) \()?")
FILES = re.compile(r"FILE|FOLDER|DIR|OUT|STEM")


class Option:
    def __init__(self, name, value, text):
        self.name, self.text, self.values = name, text, []
        #: "FILE,..." of --inputs=<FILE,...>; empty without a value
        self.value = re.sub(r"[\[\]=<> ]", "", value or "")
        self.is_optional = (value or "").startswith("[")
        listed = LISTED.search(text)
        if self.value and listed:
            words = listed[1].split(", ") + ([listed[2]] if listed[2] else [])
            self.values = [re.sub(r"^or | \(.*\)|(?<==).*", "", word) for word in words]

    def is_long(self):
        return self.name.startswith("--")

    def takes_files(self):
        return bool(FILES.search(self.value))


class Tool:
    """What --help says."""

    def __init__(self, name, help_text):
        self.name, self.options, self.subcommands = name, [], []
        overview, _, rest = help_text.partition("USAGE: ")
        self.overview = overview.replace("OVERVIEW: ", "", 1).strip().split("\n\n")
        usage, _, rest = rest.partition("\n")
        self.usage = usage.strip()
        in_subcommands = False
        for line in rest.splitlines():
            if line.endswith(":") and not line.startswith(" "):
                in_subcommands = line == "SUBCOMMANDS:"
            elif in_subcommands:
                self.subcommands += [found.groups() for found in [SUBCOMMAND.fullmatch(line)] if found]
            elif found := OPTION.fullmatch(line) or PASS.fullmatch(line):
                self._add(Option(*found.groups()))
            elif found := PASS_OPTION.fullmatch(line):
                self.options[-1].value, self.options[-1].is_optional = "options", True
                self.options[-1].values.append(found[1] + "=")
                self.options[-1].text += f"\n{found[1]}: {found[2]}"
            elif found := VALUE.fullmatch(line):
                if any(value.endswith("=") for value in self.options[-1].values):
                    continue  # of an option of a pass
                self.options[-1].values.append(found[1])
                self.options[-1].text += f"\n{found[1]}: {found[2]}"


    def _add(self, option):
        """An option that is listed both with and without a value may have one."""
        last = self.options[-1] if self.options else None
        if last is not None and last.name == option.name:
            last.value, last.is_optional = last.value or option.value, True
        else:
            self.options.append(option)


# --- manual pages -----------------------------------------------------------


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.M)


def print_manual(tool, version, date):
    summary, *description = tool.overview
    summary = summary[0].lower() + summary[1:]
    lines = [f'.TH {tool.name.upper()} 1 "{date}" "attnc {version}" "attnc"', ".SH NAME"]
    lines += [f"{roff(tool.name)} \\- {roff(summary.rstrip('.'))}", ".SH SYNOPSIS"]
    lines += [f".B {roff(tool.name)}", roff(tool.usage.partition(" ")[2])]
    if description:
        lines += [".SH DESCRIPTION", "\n.PP\n".join(map(roff, description))]
    for title, entries in (
        ("COMMANDS", [(f"\\fB{roff(name)}\\fR", text) for name, text in tool.subcommands]),
        ("OPTIONS", [(format_option(option), option.text) for option in tool.options]),
    ):
        if entries:
            lines.append(f".SH {title}")
        for head, text in entries:
            first, *values = text.splitlines() or [""]
            lines += [".TP", head, roff(first) or "\\&"]
            for value in values:
                name, _, what = value.partition(": ")
                lines += [".br", f"\\fB{roff(name)}\\fR: {roff(what)}"]
    return "\n".join(lines) + "\n"


def format_option(option):
    text = f"\\fB{roff(option.name)}\\fR"
    if not option.value:
        return text
    value = f"\\fI{roff(option.value)}\\fR"
    if option.is_optional:
        return f"{text}[={value}]"
    return text + ("=" if option.is_long() else " ") + value


# --- completion -------------------------------------------------------------


def print_bash(tool):
    """`--name=value` comes as three words, since = is among COMP_WORDBREAKS."""
    function = "_" + tool.name.replace("-", "_")
    cases = [f"      {option.name}) words={shlex.quote(' '.join(option.values))} ;;" for option in tool.options if option.values]
    cases += [f"      {option.name}) files=1 ;;" for option in tool.options if option.takes_files() and not option.values]
    names = " ".join(o.name + ("=" if o.value and o.is_long() and not o.is_optional else "") for o in tool.options)
    start = " ".join(name for name, _ in tool.subcommands)
    return f"""# Completion of {tool.name}; made from its --help.
{function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} option= words= files= prefix=
  if [[ $current == = ]]; then
    option=${{COMP_WORDS[COMP_CWORD-1]}} current=
  elif (( COMP_CWORD > 1 )) && [[ ${{COMP_WORDS[COMP_CWORD-1]}} == = ]]; then
    option=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  if [[ -n $option ]]; then
    case $option in
{chr(10).join(cases)}
    esac
    if [[ -n $words && $current == *,* ]]; then
      prefix=${{current%,*}}, current=${{current##*,}}
    fi
  elif [[ $current == -* ]]; then
    words={shlex.quote(names)}
  else
    words={shlex.quote(start)} files=1
  fi
  COMPREPLY=()
  local word
  for word in $words; do
    [[ $word == "$current"* ]] && COMPREPLY+=("$prefix$word")
  done
  if [[ -n $files ]]; then
    compopt -o filenames 2> /dev/null
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
  fi
  [[ ${{#COMPREPLY[@]}} == 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace 2> /dev/null
  return 0
}}
complete -F {function} {tool.name}
"""


def print_zsh(tool):
    escape = lambda text: re.sub(r"([\\\[\]:])", r"\\\1", text.splitlines()[0] if text else "")  # noqa: E731
    lines = []
    for option in tool.options:
        spec = f"{option.name}{'=' if option.value and option.is_long() else ''}[{escape(option.text)}]"
        if option.value:
            action = f"({' '.join(option.values)})" if option.values else "_files" if option.takes_files() else " "
            spec += f"{'::' if option.is_optional else ':'}{escape(option.value)}:{action}"
        lines.append(shlex.quote(spec))
    start = f"(({' '.join(name + chr(92) + ':' + shlex.quote(text) for name, text in tool.subcommands)}))"
    lines.append(shlex.quote(f"1:command:{start}" if tool.subcommands else "*:file:_files"))
    body = " \\\n  ".join(lines)
    return f"#compdef {tool.name}\n# Made from its --help.\n_arguments \\\n  {body}\n"


def print_fish(tool):
    lines = [f"# Completion of {tool.name}; made from its --help."]
    quote = lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"  # noqa: E731
    for name, text in tool.subcommands:
        lines.append(f"complete -c {tool.name} -n __fish_use_subcommand -f -a {name} -d {quote(text)}")
    for option in tool.options:
        flag = f"-l {option.name[2:]}" if option.is_long() else f"-o {option.name[1:]}"
        if option.values:
            flag += f" {'-f' if option.is_optional else '-x'} -a {quote(' '.join(option.values))}"
        elif option.value and not option.is_optional:
            flag += " -r"
        lines.append(f"complete -c {tool.name} {flag} -d {quote((option.text.splitlines() or [''])[0])}")
    return "\n".join(lines) + "\n"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, metavar="DIR")
    parser.add_argument("--version", default="")
    parser.add_argument("--date", default="", help="of the manual pages")
    parser.add_argument("tools", nargs="+", metavar="TOOL")
    args = parser.parse_args()
    for path in args.tools:
        text = subprocess.run([path, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        tool = Tool(os.path.basename(path), text)
        for place, page in (
            (f"man/man1/{tool.name}.1", print_manual(tool, args.version, args.date)),
            (f"bash-completion/completions/{tool.name}", print_bash(tool)),
            (f"zsh/site-functions/_{tool.name}", print_zsh(tool)),
            (f"fish/vendor_completions.d/{tool.name}.fish", print_fish(tool)),
        ):
            write(os.path.join(args.output, place), page)


if __name__ == "__main__":
    main()
