//===- Arguments.cpp - Tensors from files or made up ----------------------===//

#include "Arguments.h"
#include "attn/Runtime/BoundPlan.h"
#include "attn/Runtime/Random.h"
#include "attn/Runtime/TensorFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace attn;

namespace {

using Shape = llvm::SmallVector<int64_t, 4>;

/// Makes the inputs of one manifest.
class InputMaker {
public:
  InputMaker(const Manifest &manifest, const ArgumentSources &sources)
      : sources(sources) {
    for (const Argument &argument : manifest.arguments)
      if (!argument.isOutput)
        inputs.push_back(&argument);
  }

  llvm::Expected<std::vector<Tensor>> make();

private:
  llvm::Error parseScalars();
  llvm::Error countError(llvm::StringRef option, llvm::StringRef what,
                         size_t given) const;
  llvm::Expected<std::vector<Tensor>> readNpyFiles() const;
  llvm::Expected<std::vector<Tensor>> readSafetensorsFile() const;
  llvm::Expected<std::vector<Tensor>> makeRandom() const;
  llvm::Expected<Shape> getShape(const Argument &argument,
                                 std::optional<llvm::StringRef> text) const;

  /// Inputs that are not given by --scalar.
  std::vector<const Argument *> getUnsetInputs() const {
    std::vector<const Argument *> unset;
    llvm::copy_if(inputs, std::back_inserter(unset),
                  [&](const Argument *argument) {
                    return !scalars.contains(argument->name);
                  });
    return unset;
  }
  /// Of those, the ones that `count` files or shapes are for: all, or all that
  /// have no value of their own.
  std::vector<const Argument *> getGivenInputs(size_t count) const {
    std::vector<const Argument *> given = getUnsetInputs();
    if (count != given.size())
      llvm::erase_if(given, [](const Argument *argument) {
        return argument->value.has_value();
      });
    return given;
  }
  llvm::Expected<std::vector<Tensor>>
  merge(llvm::ArrayRef<const Argument *> given,
        llvm::ArrayRef<Tensor> tensors) const;

  const ArgumentSources &sources;
  std::vector<const Argument *> inputs;
  llvm::StringMap<Tensor> scalars;
};

} // namespace

static bool isSafetensors(llvm::StringRef path) {
  return path.ends_with(".safetensors");
}

/// `tensor`, read from `path`, in row-major order.
static llvm::Expected<Tensor>
adapt(const Argument &argument, llvm::StringRef path, const Tensor &tensor) {
  if (argument.accepts(tensor.getDType(), tensor.getShape()))
    return tensor.toRowMajor();
  return llvm::createFileError(
      path,
      llvm::createStringError("argument '" + argument.name + "' needs " +
                              argument.getTypeString() + ", the file holds " +
                              tensor.getTypeString()));
}

llvm::Error InputMaker::parseScalars() {
  for (llvm::StringRef text : sources.scalars) {
    const llvm::StringRef name = text.split('=').first;
    double value;
    if (text.split('=').second.getAsDouble(value) || !std::isfinite(value))
      return llvm::createStringError("--scalar " + text +
                                     ": needs name=value with a finite number");
    const auto found = llvm::find_if(inputs, [&](const Argument *argument) {
      return argument->name == name && !argument->isTensor;
    });
    if (found == inputs.end())
      return llvm::createStringError(
          "--scalar " + text + ": there is no scalar argument '" + name + "'");
    llvm::Expected<Tensor> scalar = Tensor::scalar((*found)->dtype, value);
    if (!scalar)
      return scalar.takeError();
    scalars.insert_or_assign(name, *scalar);
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<Tensor>>
InputMaker::merge(llvm::ArrayRef<const Argument *> given,
                  llvm::ArrayRef<Tensor> tensors) const {
  std::vector<Tensor> result;
  for (const Argument *argument : inputs) {
    auto scalar = scalars.find(argument->name);
    if (scalar != scalars.end()) {
      result.push_back(scalar->second);
      continue;
    }
    if (!given.empty() && given.front() == argument) {
      result.push_back(tensors.front());
      given = given.drop_front();
      tensors = tensors.drop_front();
      continue;
    }
    llvm::Expected<Tensor> own =
        Tensor::copyOf(argument->dtype, argument->shape, *argument->value);
    if (!own)
      return own.takeError();
    result.push_back(std::move(*own));
  }
  return result;
}

/// The inputs that `option` gives are too few or too many.
llvm::Error InputMaker::countError(llvm::StringRef option, llvm::StringRef what,
                                   size_t given) const {
  std::string names, scalarHint;
  for (const Argument *argument : getUnsetInputs()) {
    names += (names.empty() ? "" : ", ") + argument->name;
    if (!argument->isTensor)
      scalarHint += "; --scalar " + argument->name + "=VALUE gives a scalar";
  }
  return llvm::createStringError(
      option + ": the entry takes " + llvm::Twine(getUnsetInputs().size()) +
      " inputs (" + names + "), " + llvm::Twine(given) + " " + what +
      " are given" + scalarHint);
}

llvm::Expected<std::vector<Tensor>> InputMaker::readNpyFiles() const {
  const std::vector<const Argument *> given =
      getGivenInputs(sources.files.size());
  if (sources.files.size() != given.size())
    return countError("--inputs", "files", sources.files.size());
  std::vector<Tensor> tensors;
  for (auto [argument, path] : llvm::zip_equal(given, sources.files)) {
    llvm::Expected<Tensor> tensor = readNpy(path);
    if (tensor)
      tensor = adapt(*argument, path, *tensor);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return merge(given, tensors);
}

llvm::Expected<std::vector<Tensor>> InputMaker::readSafetensorsFile() const {
  const std::string &path = sources.files.front();
  llvm::Expected<llvm::StringMap<Tensor>> file = readSafetensors(path);
  if (!file)
    return file.takeError();
  std::vector<const Argument *> given;
  std::vector<Tensor> tensors;
  for (const Argument *argument : getUnsetInputs()) {
    auto found = file->find(argument->name);
    if (found == file->end() && argument->value)
      continue;
    given.push_back(argument);
    if (found == file->end())
      return llvm::createFileError(
          path,
          llvm::createStringError("holds no tensor '" + argument->name + "'"));
    llvm::Expected<Tensor> tensor = adapt(*argument, path, found->second);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return merge(given, tensors);
}

/// "2x16x1024x64"
static std::optional<Shape> parseShape(llvm::StringRef text) {
  Shape shape;
  for (llvm::StringRef part : llvm::split(text, 'x')) {
    int64_t size;
    if (part.getAsInteger(10, size) || size < 0)
      return std::nullopt;
    shape.push_back(size);
  }
  return shape;
}

/// `text` is absent where no --shapes are given.
llvm::Expected<Shape>
InputMaker::getShape(const Argument &argument,
                     std::optional<llvm::StringRef> text) const {
  if (!argument.isTensor)
    return llvm::createStringError("scalar argument '" + argument.name +
                                   "': give --scalar " + argument.name +
                                   "=VALUE");
  if (!text) {
    if (!llvm::is_contained(argument.shape, kDynamicSize))
      return argument.shape;
    return llvm::createStringError(
        "argument '" + argument.name + "' is " + argument.getTypeString() +
        ": give its values with --inputs, or its size with --shapes");
  }
  std::optional<Shape> shape = parseShape(*text);
  if (!shape)
    return llvm::createStringError("--shapes: '" + *text +
                                   "' is not a shape such as 2x16x1024x64");
  if (!argument.accepts(argument.dtype, *shape))
    return llvm::createStringError("--shapes: argument '" + argument.name +
                                   "' needs " + argument.getTypeString() +
                                   ", got " + *text);
  return *shape;
}

llvm::Expected<std::vector<Tensor>> InputMaker::makeRandom() const {
  const std::vector<const Argument *> given =
      getGivenInputs(sources.shapes.size());
  if (!sources.shapes.empty() && sources.shapes.size() != given.size())
    return countError("--shapes", "shapes", sources.shapes.size());
  std::vector<Tensor> tensors;
  for (auto [index, argument] : llvm::enumerate(given)) {
    std::optional<llvm::StringRef> text;
    if (!sources.shapes.empty())
      text = sources.shapes[index];
    llvm::Expected<Shape> shape = getShape(*argument, text);
    if (!shape)
      return shape.takeError();
    if (sources.isWithoutData) {
      tensors.push_back(Tensor::borrow(argument->dtype, *shape,
                                       getRowMajorStrides(*shape), nullptr));
      continue;
    }
    llvm::Expected<Tensor> tensor = Tensor::allocate(argument->dtype, *shape);
    if (!tensor)
      return tensor.takeError();
    fillNormal(*tensor, sources.seed, /*stream=*/index);
    tensors.push_back(std::move(*tensor));
  }
  return merge(given, tensors);
}

llvm::Expected<std::vector<Tensor>> InputMaker::make() {
  if (!sources.files.empty() && !sources.shapes.empty())
    return llvm::createStringError("--inputs and --shapes exclude each other");
  if (llvm::Error error = parseScalars())
    return std::move(error);
  if (sources.files.empty())
    return makeRandom();
  if (sources.files.size() == 1 && isSafetensors(sources.files.front()))
    return readSafetensorsFile();
  return readNpyFiles();
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

/// Sequences of the same length in `rows` rows.
static void fillOffsets(const Tensor &offsets, int64_t rows) {
  auto *values = static_cast<int32_t *>(offsets.getData());
  const int64_t count = offsets.getShape()[0] - 1;
  for (int64_t i = 0; i <= count; ++i)
    values[i] = count > 0 ? rows * i / count : 0;
}

/// All room that there is.
static void fillLengths(const Tensor &lengths, const Tensor *offsets,
                        int64_t room) {
  auto *values = static_cast<int32_t *>(lengths.getData());
  for (int64_t s = 0; s < lengths.getShape()[0]; ++s) {
    values[s] = room;
    if (!offsets)
      continue;
    const auto *ends = static_cast<const int32_t *>(offsets->getData());
    values[s] = ends[s + 1] - ends[s];
  }
}

/// Pages one after the other; the table may ask for more than there are.
static void fillPages(const Tensor &table, int64_t pages) {
  auto *values = static_cast<int32_t *>(table.getData());
  for (int64_t i = 0; i < table.getNumElements(); ++i)
    values[i] = i % std::max<int64_t>(pages, 1);
}

/// Random numbers make no sequences: those of the made `arguments` become some.
static llvm::Error fillSequences(const Manifest &manifest,
                                 llvm::ArrayRef<Tensor> arguments) {
  if (manifest.sequences.empty())
    return llvm::Error::success();
  auto plan = BoundPlan::create(manifest, /*numSMs=*/1, arguments);
  if (!plan)
    return plan.takeError();
  for (auto [check, limits] :
       llvm::zip_equal(manifest.sequences, plan->sequenceLimits)) {
    if (check.cuQ)
      fillOffsets(arguments[*check.cuQ], limits.qRows);
    if (check.cuK)
      fillOffsets(arguments[*check.cuK], limits.kRows);
    int64_t room = limits.kRows;
    if (check.blockTable) {
      const Tensor &table = arguments[*check.blockTable];
      fillPages(table, limits.kBatches);
      room *= table.getShape()[1];
    }
    if (check.kvLen)
      fillLengths(arguments[*check.kvLen],
                  check.cuK ? &arguments[*check.cuK] : nullptr, room);
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<Tensor>>
attn::makeInputs(const Manifest &manifest, const ArgumentSources &sources) {
  return InputMaker(manifest, sources).make();
}

llvm::Expected<std::vector<Tensor>>
attn::makeArguments(const Manifest &manifest, const ArgumentSources &sources) {
  llvm::Expected<std::vector<Tensor>> inputs = makeInputs(manifest, sources);
  if (!inputs)
    return inputs.takeError();
  std::vector<Shape> inputShapes;
  for (const Tensor &input : *inputs)
    inputShapes.emplace_back(input.getShape());
  auto shapes = manifest.inferShapes(inputShapes);
  if (!shapes)
    return shapes.takeError();

  std::vector<Tensor> arguments;
  auto nextInput = inputs->begin();
  for (auto [argument, shape] : llvm::zip_equal(manifest.arguments, *shapes)) {
    if (!argument.isOutput) {
      arguments.push_back(*nextInput++);
      continue;
    }
    llvm::Expected<Tensor> output = Tensor::allocate(argument.dtype, shape);
    if (!output)
      return output.takeError();
    arguments.push_back(std::move(*output));
  }
  if (sources.files.empty())
    if (llvm::Error error = fillSequences(manifest, arguments))
      return std::move(error);
  return arguments;
}
