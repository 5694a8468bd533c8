//===- MaskData.cpp - What a mask reads, for maps of its tiles ------------===//

#include "MaskData.h"
#include "attn/Dialect/Attn/IR/AttnSupport.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace ::attn;
using namespace mlir;
using mlir::attn::CaptureLoadOp;
using mlir::attn::getArgumentName;

static bool hasArgument(func::FuncOp func, StringRef name) {
  for (unsigned number = 0; number < func.getNumArguments(); ++number)
    if (getArgumentName(func, number) == name)
      return true;
  return false;
}

/// The captures that the mask reads and the lengths of a cache.
void MaskData::addArguments() {
  auto func = op->getParentOfType<func::FuncOp>();
  llvm::SetVector<Value> values;
  if (op.hasMaskMod())
    for (auto [capture, operand] : llvm::zip_equal(
             op.getMaskMod().getArguments().take_back(op.getCaptures().size()),
             op.getCaptures()))
      if (!capture.use_empty())
        values.insert(operand);
  if (op.getKvLen())
    values.insert(op.getKvLen());
  for (Value value : values) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &func.getBody().front())
      continue;
    unsigned number = argument.getArgNumber();
    arguments.push_back({number, getArgumentName(func, number), std::nullopt});
  }
}

const MaskData::Argument *MaskData::find(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  auto found = llvm::find_if(arguments, [&](const Argument &other) {
    return argument && other.number == argument.getArgNumber();
  });
  return found == arguments.end() ? nullptr : &*found;
}

std::string MaskData::listNames() const {
  return llvm::join(llvm::map_range(arguments,
                                    [](const Argument &argument) {
                                      return "'" + argument.name + "'";
                                    }),
                    ", ");
}

LogicalResult MaskData::bind(const llvm::StringMap<Tensor> &inputs) {
  auto func = op->getParentOfType<func::FuncOp>();
  for (const auto &[name, tensor] : inputs) {
    auto found = llvm::find_if(arguments, [name = name](const Argument &other) {
      return other.name == name;
    });
    if (found == arguments.end() && hasArgument(func, name))
      continue;
    if (found == arguments.end()) {
      InFlightDiagnostic diag = emitError(loc)
                                << "there is no argument '" << name << "'";
      if (!arguments.empty())
        diag << "; the mask reads " << listNames();
      return diag;
    }
    Type type = func.getArgumentTypes()[found->number];
    auto shaped = cast<ShapedType>(type);
    std::string element;
    llvm::raw_string_ostream(element) << shaped.getElementType();
    bool fits = getName(tensor.getDType()) == element &&
                tensor.getRank() == shaped.getRank() &&
                llvm::all_of_zip(shaped.getShape(), tensor.getShape(),
                                 [](int64_t declared, int64_t given) {
                                   return ShapedType::isDynamic(declared) ||
                                          declared == given;
                                 });
    if (!fits)
      return emitError(loc) << "argument '" << name << "' needs " << type
                            << ", the file holds " << tensor.getTypeString();
    found->tensor = tensor;
  }
  return success();
}

/// An index that is just one of the mask's, or a constant, needs a dimension
/// that holds it.
LogicalResult MaskData::checkSize(CaptureLoadOp load) {
  auto capture = cast<BlockArgument>(load.getSource());
  const unsigned first =
      op.getMaskMod().getNumArguments() - op.getCaptures().size();
  const Argument *argument =
      find(op.getCaptures()[capture.getArgNumber() - first]);
  if (!argument || !argument->tensor)
    return success();
  const int64_t ends[] = {point.batch + 1, op.getNumQueryHeads(),
                          point.queryLength, point.keyLength};
  for (auto [dim, index] : llvm::enumerate(load.getIndices())) {
    if (load.isBroadcast(dim))
      continue;
    auto position = dyn_cast<BlockArgument>(index);
    int64_t last;
    StringRef needed;
    if (APInt constant; matchPattern(index, m_ConstantInt(&constant))) {
      last = constant.getSExtValue();
      needed = "a tensor that has this element";
    } else if (position && position.getArgNumber() < 4) {
      last = ends[position.getArgNumber()] - 1;
      needed = position.getArgNumber() == 0 ? "a --batch that is there"
                                            : "--lengths that agree with it";
    } else {
      continue;
    }
    const int64_t size = argument->tensor->getShape()[dim];
    if (size <= last)
      return load.emitError()
             << "'" << argument->name << "' has size " << size
             << " in dimension " << dim << ", which is indexed up to " << last
             << "; give " << needed;
  }
  return success();
}

/// The lengths of a cache have one for the batch, and the cache room for it.
LogicalResult MaskData::checkCache() {
  const Argument *argument = find(op.getKvLen());
  if (!argument || !argument->tensor)
    return success();
  const int64_t size = argument->tensor->getShape()[0];
  if (point.batch >= size)
    return op.emitError() << "has no batch " << point.batch << "; '"
                          << argument->name << "' has lengths for " << size;
  const int64_t length = *read(argument->number, point.batch);
  if (length < 0 || length > point.keyLength)
    return op.emitError() << "'" << argument->name << "' says that batch "
                          << point.batch << " has " << length
                          << " keys, in a cache for " << point.keyLength
                          << "; give --lengths that hold them";
  numKeys = length;
  return success();
}

LogicalResult MaskData::createMask() {
  if (!numKeys)
    return success();
  std::vector<ReferenceCapture> captures;
  for (Value operand : op.getCaptures()) {
    const Argument *argument = find(operand);
    ReferenceCapture capture;
    if (argument && argument->tensor) {
      capture.data = argument->tensor->getData();
      llvm::append_range(capture.shape, argument->tensor->getShape());
      llvm::append_range(capture.strides, argument->tensor->getStrides());
    } else if (argument) {
      return success();
    } else {
      // The mask doesn't read it.
      capture.shape.assign(cast<ShapedType>(operand.getType()).getRank(), 0);
      capture.strides = capture.shape;
    }
    captures.push_back(std::move(capture));
  }
  auto created = ReferenceMask::create(op, captures);
  if (!created)
    return emitError(loc, llvm::toString(created.takeError()));
  mask = std::move(*created);
  return success();
}

FailureOr<MaskData> MaskData::create(mlir::attn::AttentionOp op,
                                     const llvm::StringMap<Tensor> &inputs,
                                     const tile::TileMapPoint &point) {
  MaskData data(op, point);
  data.addArguments();
  if (failed(data.bind(inputs)))
    return failure();
  if (op.getKvLen() && failed(data.checkCache()))
    return failure();
  if (!op.hasMaskMod())
    return data;
  for (auto load : op.getMaskMod().front().getOps<CaptureLoadOp>())
    if (failed(data.checkSize(load)))
      return failure();
  if (failed(data.createMask()))
    return failure();
  return data;
}

/// Booleans take a byte.
static int64_t readInteger(const Tensor &tensor, int64_t offset) {
  const char *bytes = static_cast<const char *>(tensor.getData());
  auto load = [&](auto zero) -> int64_t {
    std::memcpy(&zero, bytes + offset * sizeof(zero), sizeof(zero));
    return zero;
  };
  switch (tensor.getDType()) {
  case DType::I1:
    return load(uint8_t(0)) & 1;
  case DType::I8:
    return load(int8_t(0));
  case DType::I32:
    return load(int32_t(0));
  default:
    return load(int64_t(0));
  }
}

std::optional<int64_t> MaskData::read(unsigned number,
                                      llvm::ArrayRef<int64_t> indices) const {
  for (const Argument &argument : arguments) {
    if (argument.number != number || !argument.tensor)
      continue;
    int64_t offset = 0;
    for (auto [index, size, stride] :
         llvm::zip_equal(indices, argument.tensor->getShape(),
                         argument.tensor->getStrides())) {
      if (index < 0 || index >= size)
        return 0;
      offset += index * stride;
    }
    return readInteger(*argument.tensor, offset);
  }
  return std::nullopt;
}

FailureOr<llvm::BitVector> MaskData::getVisibleKeys(int64_t query) const {
  if (!mask)
    return emitError(loc)
           << "which tiles this mask hides follows from what it reads; give "
           << listNames() << " by --inputs";
  return mask->getVisibleKeys({point.batch, point.head, query},
                              point.queryLength, *numKeys);
}

tile::TileMapData MaskData::getFor(tile::LaunchOp launch) const {
  tile::TileMapData data;
  data.getVisibleKeys = [this](int64_t query) { return getVisibleKeys(query); };
  data.read = [this, launch](unsigned argument, ArrayRef<int64_t> indices) {
    // The launch's operands are views of the function's arguments.
    Value value = tile::LaunchOp(launch).getArgs()[argument];
    while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
      value = view.getViewSource();
    auto source = dyn_cast<BlockArgument>(value);
    return source ? read(source.getArgNumber(), indices)
                  : std::optional<int64_t>();
  };
  return data;
}
