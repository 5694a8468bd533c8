//===- NoCudnnGraph.cpp - A build without cudnn-frontend ------------------===//

#include "CudnnGraph.h"

using namespace attn;
using namespace attn::cudnn;

Graph::~Graph() = default;

std::string cudnn::getMissingSupport() {
  return "this build of attnc is without cuDNN: install cudnn-frontend (pip "
         "install nvidia-cudnn-frontend), cuDNN's and CUDA's headers, and "
         "configure again";
}

// Nothing below is reached.

std::string cudnn::getRuntimeName() { return ""; }
void cudnn::setLibrary(void *) {}
size_t cudnn::getVersion() { return 0; }
void *cudnn::createHandle(std::string &error) {
  error = getMissingSupport();
  return nullptr;
}
void cudnn::destroyHandle(void *) {}
std::string cudnn::setStream(void *, void *) { return getMissingSupport(); }
std::unique_ptr<Graph> cudnn::buildGraph(void *, const Problem &,
                                         std::string &error) {
  error = getMissingSupport();
  return nullptr;
}
