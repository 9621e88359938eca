// SPDX-License-Identifier: Apache-2.0
// Models for the tests of the public C++ API.
//
// They are built in a source file of their own: the API's classes have the same names as the core's, so one source file
// cannot include the headers of both.
#pragma once

#include <cstdint>
#include <string>

namespace mge::api_models {

// Returns the model x[batch,2] -> Relu -> t -> Neg -> y, z = weights[i] with the metadata author=me.
// Computing z fails if i is neither 0 nor 1.
std::string TwoOutputs();

// Returns the model total = state + x, y = relu(total) * total. All are float32[n].
std::string RunningTotal();

// Returns the model y = x w + b with w = 1 and b = 0.5. x and y are float32[N,1]. `rest` receives the bytes of an initializer
// that no node reads, and of a node.
std::string Line(std::string rest[2]);

// Returns the model y[2,3] = Gather(emb.weight[3,2], ids[2]) * transpose(emb.weight) as PyTorch's exporter writes it: with a transposed
// copy of the weight, which the notes of the nodes call the same parameter.
std::string TiedEmbedding();

// Returns the model length = SequenceLength(parts), whose input is a sequence of float32 tensors.
std::string SequenceLength();

// Returns the model maps = ZipMap(scores[n,2]) with the labels "no" and "yes".
std::string LabelledScores();

// Returns the model y = x w + table[row], with x and y float32[n,size]. The weights w and the table are float32[size,size]; their
// elements are weight + i % period, where i counts them. With `folds`, w is transposed first.
std::string LargeWeights(int64_t size, float weight, int64_t period, bool folds);

// Writes a folder with the smallest language model: see tests/support/decoder_folder.h.
void WriteDecoder(const std::string& folder);

}  // namespace mge::api_models
