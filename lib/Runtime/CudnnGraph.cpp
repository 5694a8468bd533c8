//===- CudnnGraph.cpp - cuDNN's attention by cudnn-frontend ---------------===//

#include "CudnnGraph.h"
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <string>

/// cudnn-frontend tries the CUDA runtimes of several versions and fails where
/// it finds two. It reads structures of the one whose headers it was compiled
/// with, so that only this one will do.
static void *openRuntime(const char *name, int flags) {
  const std::string library = name;
  if (library.rfind("libcudart", 0) == 0 &&
      library != attn::cudnn::getRuntimeName())
    return nullptr;
  return dlopen(name, flags);
}

#define dlopen openRuntime
#include <cudnn_frontend.h>
#undef dlopen
#include <unordered_map>
#include <vector>

using namespace attn;
using namespace attn::cudnn;

namespace fe = cudnn_frontend;
namespace sdpa = cudnn_frontend::graph;

namespace cudnn_frontend {
/// The frontend's: what it looks functions up in.
void *cudnn_dlhandle = nullptr;
} // namespace cudnn_frontend

Graph::~Graph() = default;

namespace {

/// Names of the tensors in a graph.
enum Uid : int64_t { Q = 1, K, V, O, Lse, Bias, QueryLengths, KeyLengths };

using TensorPtr = std::shared_ptr<sdpa::Tensor_attributes>;

class SdpaGraph : public Graph {
public:
  std::string build(cudnnHandle_t handle, const Problem &problem);

  int64_t getWorkspaceBytes() const override { return workspaceBytes; }
  std::string execute(void *handle, const Addresses &addresses,
                      void *workspace) const override;

private:
  TensorPtr addTensor(Uid uid, const char *name, const TensorShape &shape,
                      fe::DataType_t dtype);
  void setOutput(const TensorPtr &tensor, Uid uid, const TensorShape &shape,
                 fe::DataType_t dtype);
  void addAttention(const Problem &problem);

  sdpa::Graph graph;
  int64_t workspaceBytes = 0;
};

} // namespace

/// Calls `fn`, which returns what went wrong, and catches what it throws.
template <typename Fn>
static std::string guard(Fn fn) {
  try {
    return fn();
  } catch (const std::exception &exception) {
    return exception.what();
  }
}

static fe::DataType_t getDataType(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return fe::DataType_t::HALF;
  case DType::BF16:
    return fe::DataType_t::BFLOAT16;
  default:
    return fe::DataType_t::FLOAT;
  }
}

template <size_t n>
static std::vector<int64_t> toVector(const std::array<int64_t, n> &values) {
  return {values.begin(), values.end()};
}

TensorPtr SdpaGraph::addTensor(Uid uid, const char *name,
                               const TensorShape &shape, fe::DataType_t dtype) {
  return graph.tensor(sdpa::Tensor_attributes()
                          .set_name(name)
                          .set_uid(uid)
                          .set_dim(toVector(shape.sizes))
                          .set_stride(toVector(shape.strides))
                          .set_data_type(dtype));
}

void SdpaGraph::setOutput(const TensorPtr &tensor, Uid uid,
                          const TensorShape &shape, fe::DataType_t dtype) {
  tensor->set_output(true)
      .set_uid(uid)
      .set_dim(toVector(shape.sizes))
      .set_stride(toVector(shape.strides))
      .set_data_type(dtype);
}

void SdpaGraph::addAttention(const Problem &problem) {
  const fe::DataType_t dtype = getDataType(problem.dtype);
  TensorPtr q = addTensor(Q, "q", problem.q, dtype);
  TensorPtr k = addTensor(K, "k", problem.k, dtype);
  TensorPtr v = addTensor(V, "v", problem.v, dtype);
  auto attributes = sdpa::SDPA_attributes()
                        .set_name("attention")
                        .set_attn_scale(problem.scale)
                        .set_generate_stats(problem.lse.has_value());
  if (problem.left || problem.right)
    attributes.set_diagonal_alignment(
        problem.isBottomRight ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                              : fe::DiagonalAlignment_t::TOP_LEFT);
  // The left bound counts the query's own key, the right one doesn't.
  if (problem.left)
    attributes.set_diagonal_band_left_bound(*problem.left + 1);
  if (problem.right)
    attributes.set_diagonal_band_right_bound(*problem.right);
  if (problem.bias)
    attributes.set_bias(
        addTensor(Bias, "bias", *problem.bias, getDataType(problem.biasDType)));
  if (problem.hasLengths) {
    const TensorShape one = {{problem.q.sizes[0], 1, 1, 1}, {1, 1, 1, 1}};
    attributes.set_padding_mask(true)
        .set_seq_len_q(addTensor(QueryLengths, "query_lengths", one,
                                 fe::DataType_t::INT32))
        .set_seq_len_kv(
            addTensor(KeyLengths, "key_lengths", one, fe::DataType_t::INT32));
  }
  auto [o, stats] = graph.sdpa(q, k, v, attributes);
  setOutput(o, O, problem.o, dtype);
  if (problem.lse)
    setOutput(stats, Lse, *problem.lse, fe::DataType_t::FLOAT);
}

/// The frontend's sentence, without the names of nodes and what engines say.
static std::string getReason(const std::string &message) {
  if (message.rfind("No valid engine configs", 0) == 0 ||
      message.rfind("[cudnn_frontend] Error: No valid", 0) == 0)
    return "it has no engine for these sizes and rules on this GPU";
  return message.substr(0, message.find('\n'));
}

std::string SdpaGraph::build(cudnnHandle_t handle, const Problem &problem) {
  graph.set_io_data_type(getDataType(problem.dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  addAttention(problem);
  fe::error_t error =
      graph.build(handle, {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
  if (error.is_good())
    error = graph.get_workspace_size(workspaceBytes);
  return error.is_good() ? "" : getReason(error.get_message());
}

std::string SdpaGraph::execute(void *handle, const Addresses &addresses,
                               void *workspace) const {
  return guard([&]() -> std::string {
    std::unordered_map<int64_t, void *> pointers = {
        {Q, addresses.q}, {K, addresses.k}, {V, addresses.v}, {O, addresses.o}};
    for (auto [uid, address] : {std::pair(Lse, addresses.lse),
                                {Bias, addresses.bias},
                                {QueryLengths, addresses.queryLengths},
                                {KeyLengths, addresses.keyLengths}})
      if (address)
        pointers[uid] = address;
    fe::error_t error =
        graph.execute(static_cast<cudnnHandle_t>(handle), pointers, workspace);
    return error.is_good() ? "" : error.get_message();
  });
}

std::string cudnn::getMissingSupport() { return ""; }

std::string cudnn::getRuntimeName() {
  return "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
}

void cudnn::setLibrary(void *library) { fe::cudnn_dlhandle = library; }

size_t cudnn::getVersion() {
  size_t version = 0;
  guard([&]() -> std::string {
    version = fe::detail::get_backend_version();
    return "";
  });
  return version;
}

/// `status` of `call` as text.
static std::string describe(cudnnStatus_t status, const char *call) {
  if (status == CUDNN_STATUS_SUCCESS)
    return "";
  return std::string(call) + ": " + fe::detail::get_error_string(status);
}

void *cudnn::createHandle(std::string &error) {
  cudnnHandle_t handle = nullptr;
  error = guard([&] {
    return describe(fe::detail::create_handle(&handle), "cudnnCreate");
  });
  return handle;
}

void cudnn::destroyHandle(void *handle) {
  guard([&] {
    return describe(
        fe::detail::destroy_handle(static_cast<cudnnHandle_t>(handle)),
        "cudnnDestroy");
  });
}

std::string cudnn::setStream(void *handle, void *stream) {
  return guard([&] {
    return describe(fe::detail::set_stream(static_cast<cudnnHandle_t>(handle),
                                           static_cast<cudaStream_t>(stream)),
                    "cudnnSetStream");
  });
}

std::unique_ptr<Graph> cudnn::buildGraph(void *handle, const Problem &problem,
                                         std::string &error) {
  auto graph = std::make_unique<SdpaGraph>();
  error = guard([&] {
    return graph->build(static_cast<cudnnHandle_t>(handle), problem);
  });
  if (!error.empty())
    return nullptr;
  return graph;
}
