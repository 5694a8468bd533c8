//===- attn-lsp-server.cpp - MLIR in an editor, with our dialects ---------===//
//
// MLIR's language server on our dialects. It runs between two pipes, through
// which its messages pass a filter that adds the reference to hovers.
//
//===----------------------------------------------------------------------===//

#include "HoverFilter.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LSP/Transport.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <thread>
#include <unistd.h>

using namespace attn;
namespace json = llvm::json;

/// Writes a message as the protocol frames it; false if nobody reads it.
static bool send(int fd, llvm::StringRef message) {
  std::string text = "Content-Length: " + std::to_string(message.size()) +
                     "\r\n\r\n" + message.str();
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count < 0)
      return false;
    done += count;
  }
  return true;
}

/// Passes messages on until one side ends; `see` may change them.
static void forward(
    FILE *input, int output,
    llvm::function_ref<void(std::string &message, json::Value &value)> see) {
  llvm::lsp::JSONTransportInputOverFile transport(input);
  while (!transport.isEndOfInput() && !transport.hasError()) {
    std::string message;
    if (failed(transport.readStandardMessage(message)))
      continue;
    if (llvm::Expected<json::Value> value = json::parse(message))
      see(message, *value);
    else
      llvm::consumeError(value.takeError());
    if (!send(output, message))
      break;
  }
  close(output);
}

namespace {
/// The two ends of a pipe.
struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (pipe(ends))
      return false;
    read = ends[0], write = ends[1];
    return true;
  }
};
} // namespace

/// In the answer that says who serves. Whether it was that.
static bool rename(json::Value &message) {
  json::Object *object = message.getAsObject();
  json::Object *result = object ? object->getObject("result") : nullptr;
  json::Object *server = result ? result->getObject("serverInfo") : nullptr;
  if (!server)
    return false;
  *server =
      json::Object{{"name", "attn-lsp-server"}, {"version", ATTNC_VERSION}};
  return true;
}

/// Runs the server between pipes; its status.
static int serve(int argc, char **argv, mlir::DialectRegistry &registry) {
  Pipe requests, responses;
  FILE *editor = fdopen(dup(STDIN_FILENO), "r");
  const int screen = dup(STDOUT_FILENO);
  if (!editor || screen < 0 || !requests.open() || !responses.open() ||
      dup2(requests.read, STDIN_FILENO) < 0 ||
      dup2(responses.write, STDOUT_FILENO) < 0) {
    llvm::errs() << "attn-lsp-server: no pipes\n";
    return 1;
  }
  close(responses.write);
  FILE *server = fdopen(responses.read, "r");
  HoverFilter filter;
  std::thread([&, editor] {
    forward(editor, requests.write, [&](std::string &, json::Value &value) {
      filter.seeRequest(value);
    });
  }).detach();
  std::thread answers([&] {
    forward(server, screen, [&](std::string &message, json::Value &value) {
      if (filter.amendResponse(value) || rename(value))
        message = llvm::formatv("{0}", value).str();
    });
  });
  const bool hasFailed = failed(mlir::MlirLspServerMain(argc, argv, registry));
  llvm::outs().flush();
  close(STDOUT_FILENO);
  answers.join();
  // The other thread may wait for the editor, which needn't close its end.
  std::_Exit(hasFailed);
}

/// MLIR's main reads the command line, whose help would be that of all of LLVM.
static constexpr llvm::StringLiteral kHelp =
    R"(OVERVIEW: Language server for MLIR with attnc's dialects, which an editor starts

It speaks the language server protocol on stdin and stdout.

USAGE: attn-lsp-server [options]

OPTIONS:

  --help        - Display this text
  --log=<value> - What to say on stderr
    =error      -   errors
    =info       -   requests and answers, too (default)
    =verbose    -   with their texts
  --version     - Display the version of this program
)";

int main(int argc, char **argv) {
  for (llvm::StringRef argument : llvm::ArrayRef(argv, argc).drop_front()) {
    if (argument == "--help" || argument == "-h") {
      llvm::outs() << kHelp;
      return EXIT_SUCCESS;
    }
    if (argument == "--version") {
      const char *version[] = {argv[0], "--version"};
      llvm::cl::ParseCommandLineOptions(2, version); // which exits
    }
    if (argument.ltrim('-').split('=').first != "log") {
      llvm::WithColor::error(llvm::errs(), "attn-lsp-server")
          << "unknown argument '" << argument << "'; see --help\n";
      return EXIT_FAILURE;
    }
  }
  mlir::DialectRegistry registry;
  mlir::attn::registerAttncDialects(registry);
  mlir::attn::registerAttncPasses();
  mlir::registerTransformsPasses();
  return serve(argc, argv, registry);
}
