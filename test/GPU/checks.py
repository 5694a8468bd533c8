"""Checks of a GPU test, a line each."""


class Checks:
    def __init__(self):
        self.failed = 0
        self.lines = []

    def check(self, what, right, detail=""):
        line = f"{'right' if right else 'WRONG'}: {what}{': ' if detail else ''}{detail}"
        print(line, flush=True)
        self.lines.append(line)
        self.failed += not right
