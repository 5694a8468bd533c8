//===- Candidates.cpp - Schedules around a given one ----------------------===//

#include "Candidates.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using mlir::attn::DecodeAttr;
using mlir::attn::RolePipeline;
using mlir::attn::ScheduleAttr;
using mlir::attn::TargetInfo;
using mlir::attn::VTranspose;
using mlir::attn::WarpRolesAttr;

/// Of a kernel with warp roles: four warps load, and four compute 64 rows.
static constexpr int64_t kWarpgroupWarps = 4;
static constexpr int64_t kWarpgroupRows = 64;

namespace {

/// A schedule as numbers that can be varied one by one.
struct Point {
  int64_t blockM, blockN, numStages, numWarps;
  int64_t pipeline, lazyRescale, persistent, qStages, tmaStore, vTranspose;
  int64_t maxSplits, programsPerSM;
};

struct Parameter {
  int64_t Point::*field;
  llvm::ArrayRef<int64_t> values;
};

/// The points around a base that are worth a try.
class Neighbourhood {
public:
  Neighbourhood(const TargetInfo &target, ScheduleAttr base);

  /// Calls `visit` for every point that differs from the base in at most
  /// `distance` parameters, the base first.
  void forEach(unsigned distance,
               llvm::function_ref<void(ScheduleAttr)> visit) const {
    this->visit(base, parameters, distance, visit);
  }

private:
  void visit(Point point, llvm::ArrayRef<Parameter> rest, unsigned distance,
             llvm::function_ref<void(ScheduleAttr)> fn) const;
  ScheduleAttr toSchedule(Point point) const;

  mlir::MLIRContext *context;
  DecodeAttr decode;
  int64_t vColumns;
  bool hasRoles;
  Point base;
  llvm::ArrayRef<Parameter> parameters;
};

} // namespace

// The values that a parameter may take, whatever the base's is.
static constexpr int64_t kFlag[] = {0, 1};
static constexpr int64_t kCPURows[] = {8, 16, 32, 64, 128};
static constexpr int64_t kCPUKeys[] = {16, 32, 64, 128};
static constexpr int64_t kRows[] = {32, 64, 128, 256};
static constexpr int64_t kKeys[] = {16, 32, 48, 64, 80, 96, 128};
static constexpr int64_t kStages[] = {1, 2, 3, 4};
static constexpr int64_t kWarps[] = {2, 4, 8};
static constexpr int64_t kDecodeRows[] = {16, 32, 64, 128};
static constexpr int64_t kDecodeWarps[] = {1, 2, 4};
static constexpr int64_t kDecodeStages[] = {1, 2, 3, 4, 5, 6};
static constexpr int64_t kMaxSplits[] = {1, 8, 16, 32, 64, 128};
static constexpr int64_t kProgramsPerSM[] = {1, 2, 3, 4, 5, 6, 8};
static constexpr int64_t kRoleRows[] = {64, 128, 192, 256};
static constexpr int64_t kRoleKeys[] = {32,  48,  64,  80,  96, 112,
                                        128, 144, 160, 176, 192};
static constexpr int64_t kRoleStages[] = {1, 2, 3, 4, 5};
static constexpr int64_t kPipelines[] = {int64_t(RolePipeline::Simple),
                                         int64_t(RolePipeline::Overlap),
                                         int64_t(RolePipeline::Ahead)};
static constexpr int64_t kQStages[] = {1, 2};

static constexpr int64_t kVTranspose[] = {int64_t(VTranspose::Prepass),
                                          int64_t(VTranspose::Producer)};

static const Parameter kCPUParameters[] = {{&Point::blockM, kCPURows},
                                           {&Point::blockN, kCPUKeys}};
static const Parameter kGPUParameters[] = {{&Point::blockM, kRows},
                                           {&Point::blockN, kKeys},
                                           {&Point::numStages, kStages},
                                           {&Point::numWarps, kWarps}};
static const Parameter kCPUDecodeParameters[] = {
    {&Point::blockM, kCPURows},
    {&Point::blockN, kCPUKeys},
    {&Point::maxSplits, kMaxSplits},
    {&Point::programsPerSM, kProgramsPerSM}};
static const Parameter kDecodeParameters[] = {
    {&Point::blockM, kDecodeRows},
    {&Point::blockN, kKeys},
    {&Point::numStages, kDecodeStages},
    {&Point::numWarps, kDecodeWarps},
    {&Point::maxSplits, kMaxSplits},
    {&Point::programsPerSM, kProgramsPerSM}};
static const Parameter kRoleParameters[] = {
    {&Point::blockM, kRoleRows},      {&Point::blockN, kRoleKeys},
    {&Point::numStages, kRoleStages}, {&Point::pipeline, kPipelines},
    {&Point::lazyRescale, kFlag},     {&Point::persistent, kFlag},
    {&Point::qStages, kQStages},      {&Point::tmaStore, kFlag},
    {&Point::vTranspose, kVTranspose}};

Neighbourhood::Neighbourhood(const TargetInfo &target, ScheduleAttr schedule)
    : context(schedule.getContext()), decode(schedule.getDecode()),
      vColumns(schedule.getVColumns()),
      hasRoles(target.hasWarpRoles && !decode) {
  WarpRolesAttr roles = schedule.getWarpRoles();
  if (!roles)
    roles = WarpRolesAttr::get(context, RolePipeline::Overlap,
                               /*lazyRescale=*/false, /*persistent=*/false,
                               /*qStages=*/1, /*tmaStore=*/false,
                               VTranspose::Prepass);
  base = {schedule.getBlockM(),
          schedule.getBlockN(),
          schedule.getNumStages(),
          schedule.getNumWarps(),
          int64_t(roles.getPipeline()),
          roles.getLazyRescale(),
          roles.getPersistent(),
          roles.getQStages(),
          roles.getTmaStore(),
          int64_t(roles.getVTranspose()),
          decode ? decode.getMaxSplits() : 0,
          decode ? decode.getProgramsPerSm() : 0};
  if (hasRoles)
    parameters = kRoleParameters;
  else if (target.isGPU)
    parameters =
        decode ? llvm::ArrayRef<Parameter>(kDecodeParameters) : kGPUParameters;
  else
    parameters = decode ? llvm::ArrayRef<Parameter>(kCPUDecodeParameters)
                        : kCPUParameters;
}

ScheduleAttr Neighbourhood::toSchedule(Point point) const {
  WarpRolesAttr roles;
  if (hasRoles) {
    point.numWarps = kWarpgroupWarps * (1 + point.blockM / kWarpgroupRows);
    roles = WarpRolesAttr::get(context, RolePipeline(point.pipeline),
                               point.lazyRescale != 0, point.persistent != 0,
                               point.qStages, point.tmaStore != 0,
                               VTranspose(point.vTranspose));
  }
  DecodeAttr around;
  // Parts of so many keys aren't for tuning: their results would change.
  if (decode)
    around = DecodeAttr::get(context, point.maxSplits, point.programsPerSM,
                             decode.getSplitKeys());
  return ScheduleAttr::get(context, point.blockM, point.blockN, point.numStages,
                           point.numWarps, roles, around, vColumns);
}

void Neighbourhood::visit(Point point, llvm::ArrayRef<Parameter> rest,
                          unsigned distance,
                          llvm::function_ref<void(ScheduleAttr)> fn) const {
  fn(toSchedule(point));
  if (distance == 0)
    return;
  for (; !rest.empty(); rest = rest.drop_front()) {
    Point neighbour = point;
    for (int64_t value : rest.front().values) {
      if (value == point.*rest.front().field)
        continue;
      neighbour.*rest.front().field = value;
      visit(neighbour, rest.drop_front(), distance - 1, fn);
    }
  }
}

llvm::SmallVector<ScheduleAttr> attn::getCandidates(mlir::attn::AttentionOp op,
                                                    const TargetInfo &target,
                                                    ScheduleAttr base,
                                                    unsigned distance) {
  // Why a schedule isn't accepted doesn't matter here.
  mlir::ScopedDiagnosticHandler handler(
      op.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  llvm::SmallVector<ScheduleAttr> candidates;
  Neighbourhood(target, base).forEach(distance, [&](ScheduleAttr schedule) {
    if (mlir::succeeded(mlir::attn::verifySchedule(op, schedule, target)))
      candidates.push_back(schedule);
  });
  return candidates;
}

std::string attn::describe(ScheduleAttr schedule) {
  std::string text = llvm::formatv(
      "{0} x {1}, {2} stage{3}, {4} warp{5}", schedule.getBlockM(),
      schedule.getBlockN(), schedule.getNumStages(),
      schedule.getNumStages() == 1 ? "" : "s", schedule.getNumWarps(),
      schedule.getNumWarps() == 1 ? "" : "s");
  if (DecodeAttr decode = schedule.getDecode())
    text += llvm::formatv(
        ", at most {0} split{1}, {2} program{3} an SM", decode.getMaxSplits(),
        decode.getMaxSplits() == 1 ? "" : "s", decode.getProgramsPerSm(),
        decode.getProgramsPerSm() == 1 ? "" : "s");
  if (int64_t columns = schedule.getVColumns())
    text += llvm::formatv(", {0} columns", columns);
  WarpRolesAttr roles = schedule.getWarpRoles();
  if (!roles)
    return text;
  text += ", " + stringifyRolePipeline(roles.getPipeline()).str();
  if (roles.getLazyRescale())
    text += ", lazy";
  if (roles.getPersistent())
    text += ", persistent";
  if (roles.getQStages() != 1)
    text += ", " + std::to_string(roles.getQStages()) + " Q";
  if (roles.getTmaStore())
    text += ", TMA store";
  if (roles.getVTranspose() == VTranspose::Producer)
    text += ", V transposed by the producer";
  return text;
}
