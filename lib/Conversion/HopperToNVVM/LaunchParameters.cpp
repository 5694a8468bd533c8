//===- LaunchParameters.cpp - What launches pass beside the ABI -----------===//

#include "LaunchParameters.h"
#include "../HostToPlan/PlanExpr.h"

using namespace mlir;
using namespace mlir::hopper;

namespace {
/// The arguments of one launch in the plan, as the kernel ABI orders them.
class LaunchArguments {
public:
  LaunchArguments(tile::KernelOp kernel, ArrayAttr args)
      : kernel(kernel), args(args), builder(kernel.getContext()),
        expr(kernel.getContext()) {}

  DictionaryAttr describe(const TensorMap &map) {
    auto type = cast<MemRefType>(kernel.getArgumentTypes()[map.argument]);
    auto pointer = cast<DictionaryAttr>(args[getPosition(map.argument)]);
    SmallVector<Attribute> sizes = getSizes(map.argument);
    SmallVector<Attribute> strides = getStrides(map.argument, sizes);
    SmallVector<Attribute> box(type.getRank(), expr.constant(1));
    box[0] = expr.constant(map.columns);
    box[1] = expr.constant(map.rows);
    std::string dtype;
    llvm::raw_string_ostream(dtype) << type.getElementType();
    Attribute lead;
    if (map.isForParts) {
      Attribute rows = sizes[sizes.size() - 2];
      Attribute rowStride = strides[strides.size() - 2];
      sizes.insert(sizes.begin(), expr.add(rows, expr.constant(1)));
      strides.insert(strides.begin(), rowStride);
      box.push_back(expr.constant(1));
      lead = expr.mul(rows, rowStride);
    }
    // Innermost first, as the driver wants them; the innermost stride is 1.
    ArrayRef<Attribute> outer = ArrayRef(strides).drop_back();
    SmallVector<NamedAttribute> fields = {
        builder.getNamedAttr("type", builder.getStringAttr("tensor_map")),
        builder.getNamedAttr("buffer", pointer.get("buffer")),
        builder.getNamedAttr("offset_bytes", pointer.get("offset_bytes")),
        builder.getNamedAttr("dtype", builder.getStringAttr(dtype)),
        builder.getNamedAttr("dims", getReversed(sizes)),
        builder.getNamedAttr("strides", getReversed(outer)),
        builder.getNamedAttr("box", builder.getArrayAttr(box))};
    if (lead)
      fields.push_back(builder.getNamedAttr("lead", lead));
    return builder.getDictionaryAttr(fields);
  }

private:
  ArrayAttr getReversed(ArrayRef<Attribute> values) {
    return builder.getArrayAttr(llvm::to_vector(llvm::reverse(values)));
  }

  MemRefType getMemRef(unsigned argument) {
    return dyn_cast<MemRefType>(kernel.getArgumentTypes()[argument]);
  }
  static int64_t countDynamicStrides(MemRefType type) {
    if (type.getLayout().isIdentity())
      return 0;
    return llvm::count_if(type.getStridesAndOffset().first,
                          ShapedType::isDynamic);
  }

  /// Where the parameters of a kernel argument begin.
  unsigned getPosition(unsigned argument) {
    unsigned position = 0;
    for (unsigned i = 0; i < argument; ++i) {
      ++position;
      if (MemRefType type = getMemRef(i))
        position += type.getNumDynamicDims() + countDynamicStrides(type);
    }
    return position;
  }

  Attribute getValue(unsigned position) {
    return cast<DictionaryAttr>(args[position]).get("value");
  }

  SmallVector<Attribute> getSizes(unsigned argument) {
    unsigned next = getPosition(argument) + 1;
    SmallVector<Attribute> sizes;
    for (int64_t size : getMemRef(argument).getShape())
      sizes.push_back(ShapedType::isDynamic(size) ? getValue(next++)
                                                  : expr.constant(size));
    return sizes;
  }

  SmallVector<Attribute> getStrides(unsigned argument,
                                    ArrayRef<Attribute> sizes) {
    MemRefType type = getMemRef(argument);
    SmallVector<Attribute> strides;
    if (type.getLayout().isIdentity()) {
      strides.assign(type.getRank(), expr.constant(1));
      for (int64_t dim = type.getRank() - 2; dim >= 0; --dim)
        strides[dim] = expr.mul(strides[dim + 1], sizes[dim + 1]);
      return strides;
    }
    unsigned next = getPosition(argument) + 1 + type.getNumDynamicDims();
    for (int64_t stride : type.getStridesAndOffset().first)
      strides.push_back(ShapedType::isDynamic(stride) ? getValue(next++)
                                                      : expr.constant(stride));
    return strides;
  }

  tile::KernelOp kernel;
  ArrayAttr args;
  Builder builder;
  attn::PlanExprBuilder expr;
};
} // namespace

namespace {
/// Rewrites the plan of a module.
class PlanRewriter {
public:
  PlanRewriter(tile::KernelOp kernel, const LaunchParameters &parameters)
      : kernel(kernel), parameters(parameters), builder(kernel.getContext()),
        expr(kernel.getContext()) {}

  ArrayAttr rewrite(ArrayAttr plan) {
    for (Attribute step : plan)
      addStep(cast<DictionaryAttr>(step));
    return builder.getArrayAttr(steps);
  }

private:
  void addStep(DictionaryAttr step) {
    auto name = step.getAs<StringAttr>("kernel");
    auto args = step.getAs<ArrayAttr>("args");
    if (!args || !name || name.getValue() != kernel.getSymName()) {
      steps.push_back(step);
      return;
    }
    NamedAttrList fields(step);
    SmallVector<Attribute> newArgs(args.getValue());
    if (parameters.isPersistent)
      addTileCounter(fields, newArgs);
    LaunchArguments arguments(kernel, args);
    for (const TensorMap &map : parameters.maps)
      newArgs.push_back(arguments.describe(map));
    fields.set("args", builder.getArrayAttr(newArgs));
    steps.push_back(fields.getDictionary(kernel.getContext()));
  }

  void addTileCounter(NamedAttrList &fields, SmallVectorImpl<Attribute> &args) {
    constexpr int64_t kCounterBytes = 4;
    StringAttr buffer = builder.getStringAttr(kernel.getSymName() + ".tiles" +
                                              Twine(steps.size()));
    steps.push_back(builder.getDictionaryAttr(
        {field("op", builder.getStringAttr("alloc")), field("buffer", buffer),
         field("bytes", expr.constant(kCounterBytes)),
         field("zeroed", builder.getBoolAttr(true))}));
    Attribute numTiles = fields.get("grid");
    args.push_back(builder.getDictionaryAttr(
        {field("type", builder.getStringAttr("ptr")), field("buffer", buffer),
         field("offset_bytes", expr.constant(0))}));
    args.push_back(
        builder.getDictionaryAttr({field("type", builder.getStringAttr("i32")),
                                   field("value", numTiles)}));
    fields.set("grid", expr.binary("min", numTiles, expr.numSMs()));
  }

  NamedAttribute field(StringRef name, Attribute value) {
    return builder.getNamedAttr(name, value);
  }

  tile::KernelOp kernel;
  const LaunchParameters &parameters;
  Builder builder;
  attn::PlanExprBuilder expr;
  SmallVector<Attribute> steps;
};
} // namespace

void hopper::addLaunchParameters(ModuleOp module, tile::KernelOp kernel,
                                 const LaunchParameters &parameters) {
  auto plan = module->getAttrOfType<DictionaryAttr>("attn.plan");
  if (!plan)
    return;
  NamedAttrList fields(plan);
  fields.set(
      "plan",
      PlanRewriter(kernel, parameters).rewrite(plan.getAs<ArrayAttr>("plan")));
  module->setAttr("attn.plan", fields.getDictionary(module.getContext()));
}
