// SPDX-License-Identifier: Apache-2.0
// The cost of an offer must not depend on the sizes of tensors. The tensors of these tests are larger than any memory.
#include <atomic>
#include <cstdlib>
#include <new>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "under_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
TEST(Offer, IsSkippedIfASanitizerReplacesTheAllocator) { GTEST_SKIP() << "operator new is the sanitizer's"; }
#else

namespace {

std::atomic<uint64_t> g_bytes{0};  // all bytes that the process, its backends included, has allocated

// Not inlined, because GCC would warn about free() after operator new.
[[gnu::noinline]] void Delete(void* memory) noexcept { std::free(memory); }

}  // namespace

void* operator new(size_t bytes) {
  g_bytes.fetch_add(bytes, std::memory_order_relaxed);
  void* out = std::malloc(bytes ? bytes : 1);
  if (!out) throw std::bad_alloc();
  return out;
}
void operator delete(void* memory) noexcept { Delete(memory); }
void operator delete(void* memory, size_t) noexcept { Delete(memory); }

namespace mge::testing {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40, kWide = int64_t{1} << 20;

// Returns a tensor that has a type but no memory.
Tensor TypeOnly(DType t, Shape shape) { return Tensor::View(t, std::move(shape), nullptr, nullptr); }
Tensor F32(Shape shape) { return TypeOnly(DType::kF32, std::move(shape)); }
Tensor I64(Shape shape) { return TypeOnly(DType::kI64, std::move(shape)); }

constexpr uint64_t kNothing = 64 << 10, kSlices = 8 << 20;  // kSlices: descriptions of hundreds of slices of long work

// Enumerates the candidates. Expects at least one, and that the backend allocates less memory than `limit`.
void OffersForNothing(const Case& c, std::vector<Tensor> outputs, uint64_t limit = kNothing) {
  uint64_t before = g_bytes;
  auto outcome = UnderTest().Offers(c, &outputs);
  uint64_t taken = g_bytes - before;
  EXPECT_THAT(outcome.candidates, ::testing::Not(::testing::IsEmpty()))
      << c.name << ": " << ::testing::PrintToString(outcome.refusals);
  EXPECT_LT(taken, limit) << c.name;
}

Attributes Mode(const char* mode) { return With({{"mode", std::string(mode)}}); }

TEST(Offer, OfAResizeAllocatesNoListOfPositions) {
  for (const char* mode : {"nearest", "linear"}) {
    OffersForNothing(OneNode("Resize", {F32({4}), Tensor(), Tensor(), Integers({kHuge})}, Mode(mode), {3}), {F32({kHuge})});
    OffersForNothing(OneNode("Resize", {F32({1, 1, 4}), Tensor(), Tensor(), Integers({1, 1, kHuge})}, Mode(mode), {3}),
                     {F32({1, 1, kHuge})});
  }
}

TEST(Offer, OfAPadAllocatesNoListOfPositions) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    OffersForNothing(OneNode("Pad", {F32({4}), Integers({kHuge, kHuge})}, Mode(mode), {1}), {F32({2 * kHuge + 4})});
    OffersForNothing(OneNode("Pad", {F32({1, 1, 4}), Integers({0, 0, kHuge, 0, 0, kHuge})}, Mode(mode), {1}),
                     {F32({1, 1, 2 * kHuge + 4})});
  }
}

TEST(Offer, OfABatchOfProductsAllocatesNoList) {
  for (DType t : {DType::kF32, DType::kF64}) {
    OffersForNothing(OneNode("MatMul", {TypeOnly(t, {kWide, 2, 3}), TypeOnly(t, {kWide, 3, 4})}),
                     {TypeOnly(t, {kWide, 2, 4})});
  }
}

TEST(Offer, OfAMovementAllocatesNothing) {
  OffersForNothing(OneNode("Transpose", {F32({kWide, 3, kWide})}), {F32({kWide, 3, kWide})});
  OffersForNothing(OneNode("Reshape", {F32({kHuge}), Integers({kWide, kWide})}, {}, {1}), {F32({kWide, kWide})});
  OffersForNothing(OneNode("Concat", {F32({kHuge}), F32({3})}, With({{"axis", int64_t{0}}})), {F32({kHuge + 3})});
  OffersForNothing(OneNode("Split", {F32({kHuge})}, With({{"axis", int64_t{0}}}), {}, 2), {F32({kHuge - 1}), F32({1})});
  OffersForNothing(
      OneNode("Slice", {F32({kHuge}), Integers({0}), Integers({kHuge}), Integers({0}), Integers({2})}, {}, {1, 2, 3, 4}),
      {F32({kHuge / 2})});
  OffersForNothing(OneNode("Expand", {F32({1}), Integers({kHuge})}, {}, {1}), {F32({kHuge})});
  OffersForNothing(OneNode("Tile", {F32({2}), Integers({kHuge})}, {}, {1}), {F32({2 * kHuge})});
  OffersForNothing(OneNode("DepthToSpace", {F32({1, 4, kWide, kWide})}, With({{"blocksize", int64_t{2}}})),
                   {F32({1, 1, 2 * kWide, 2 * kWide})});
}

TEST(Offer, OfASelectionAllocatesNothing) {
  Attributes first = With({{"axis", int64_t{0}}});
  OffersForNothing(OneNode("Gather", {F32({kHuge}), I64({kHuge})}, first), {F32({kHuge})});
  OffersForNothing(OneNode("GatherElements", {F32({kHuge}), I64({kHuge})}, first), {F32({kHuge})});
  OffersForNothing(OneNode("ScatterElements", {F32({kHuge}), I64({kHuge}), F32({kHuge})}, first), {F32({kHuge})});
  OffersForNothing(OneNode("OneHot", {I64({1}), Integers({kHuge}), F32({2})}, {}, {1}), {F32({1, kHuge})});
  OffersForNothing(OneNode("Trilu", {F32({kWide, kWide})}), {F32({kWide, kWide})});
  OffersForNothing(OneNode("TopK", {F32({kHuge}), Integers({kHuge})}, {}, {1}, 2), {F32({kHuge}), I64({kHuge})});
}

TEST(Offer, OfArithmeticAllocatesNothing) {
  OffersForNothing(OneNode("Relu", {F32({kHuge})}), {F32({kHuge})});
  OffersForNothing(OneNode("Add", {F32({kWide, 1}), F32({1, kWide})}), {F32({kWide, kWide})});
  OffersForNothing(OneNode("Softmax", {F32({kWide, kWide})}), {F32({kWide, kWide})});
  OffersForNothing(OneNode("ReduceSum", {F32({kWide, kWide}), Integers({1})}, {}, {1}), {F32({kWide, 1})});
  OffersForNothing(OneNode("CumSum", {F32({kWide, kWide}), Integers({1})}, {}, {1}), {F32({kWide, kWide})});
  OffersForNothing(OneNode("LayerNormalization", {F32({kWide, kWide}), F32({kWide})}), {F32({kWide, kWide})});
}

TEST(Offer, OfWindowsAllocatesOnlyTheirSlices) {
  const Shape image = {1, 8, kWide, kWide};
  Attributes window = With({{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}});
  OffersForNothing(OneNode("Conv", {F32(image), F32({8, 8, 3, 3})}, window), {F32(image)}, kSlices);
  OffersForNothing(OneNode("MaxPool", {F32(image)}, window), {F32(image)}, kSlices);
  OffersForNothing(OneNode("AveragePool", {F32(image)}, window), {F32(image)}, kSlices);
  OffersForNothing(OneNode("GlobalAveragePool", {F32(image)}), {F32({1, 8, 1, 1})});
}

}  // namespace
}  // namespace mge::testing

#endif
