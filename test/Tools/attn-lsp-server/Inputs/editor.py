"""Talks to attn-lsp-server as an editor does: opens a file, edits it, asks for hovers, leaves."""

import json
import subprocess
import sys

TEXT = """// RUN: attn-opt %s --attn-select-schedule=target=sm_80 --canonicalize | attn-opt --attn-fused=target=sm_80
func.func @f(%q: tensor<1x2x?x64xbf16>, %o: tensor<1x2x?x64xbf16>) -> tensor<1x2x?x64xbf16> {
  %r = attn.attention ins(%q, %q, %q : tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>)
    outs(%o : tensor<1x2x?x64xbf16>) {batch_invariant, schedule = #attn.schedule<block_m = 128, block_n = 64, num_stages = 2, num_warps = 4>}
    mask_mod (%b: i32, %h: i32, %q_idx: i32, %kv_idx: i32) {
      %n = attn.kv_len : i32
      %seen = arith.cmpi slt, %kv_idx, %n : i32
      attn.yield %seen : i1
    } -> tensor<1x2x?x64xbf16>
  return %r : tensor<1x2x?x64xbf16>
}
"""
URI = "file:///causal.mlir"


class Editor:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.requests, self.version = 0, 1

    def send(self, method, params, **more):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def read(self):
        length = int(self.process.stdout.readline().split(b":")[1])
        self.process.stdout.readline()
        return json.loads(self.process.stdout.read(length))

    def wait_for(self, method):
        while True:
            message = self.read()
            if message.get("method") == method:
                return message["params"]

    def ask(self, method, params):
        self.requests += 1
        self.send(method, params, id=self.requests)
        while True:
            message = self.read()
            if message.get("id") == self.requests:
                return message["result"]

    def change(self, text):
        """To a whole new text, as the server asks for."""
        self.version += 1
        document = {"uri": URI, "version": self.version}
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def hover(self, text, word):
        before = text[: text.index(word)]
        at = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") + 1}
        answer = self.ask("textDocument/hover", {"textDocument": {"uri": URI}, "position": at})
        print(f"--- {word}\n{answer['contents']['value'] if answer else 'nothing'}")


def show(diagnostics):
    for diagnostic in diagnostics["diagnostics"]:
        print(f"line {diagnostic['range']['start']['line']}: {diagnostic['message']}")
    print(len(diagnostics["diagnostics"]), "diagnostics")


def main(command):
    editor = Editor(command)
    answer = editor.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    print(answer["serverInfo"])
    editor.send("initialized", {})
    document = {"uri": URI, "languageId": "mlir", "version": 1, "text": TEXT}
    editor.send("textDocument/didOpen", {"textDocument": document})
    show(editor.wait_for("textDocument/publishDiagnostics"))
    for word in ("attn.attention", "attn-select-schedule", "canonicalize", "attn-fused", "attn.schedule", "return", "mask_mod", "batch_invariant", "attn.kv_len", "arith.cmpi", "kv_idx"):
        editor.hover(TEXT, word)
    editor.change(TEXT.replace("return %r", "return %s"))
    show(editor.wait_for("textDocument/publishDiagnostics"))
    editor.change("// \n" + TEXT)
    editor.hover("// \n" + TEXT, "attn.attention")
    editor.ask("shutdown", None)
    editor.send("exit", None)
    # Its input stays open, as with an editor that goes on.
    print("status", editor.process.wait(20))


main(sys.argv[1:])
