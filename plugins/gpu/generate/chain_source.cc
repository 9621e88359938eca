// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/generate/chain_source.h"

#include <cstdio>

namespace mge::gpu {
namespace {

std::string Number(size_t i) { return std::to_string(i); }

// Returns a hash of a text (FNV-1a) as 16 digits.
std::string HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

bool HasStrides(Access a) { return a == Access::kRows || a == Access::kRepeatedRows; }

// Writes the parts of a source.
class Writer {
 public:
  explicit Writer(const ChainProgram& p) : p_(p) {
    for (const ChainProgram::Input& input : p_.inputs) strided_ += HasStrides(input.access);
  }

  std::string Arguments() const {
    std::string text = "struct Args {\n";
    if (!p_.inputs.empty()) text += "  const void* inputs[" + Number(p_.inputs.size()) + "];\n";
    text += "  void* outputs[" + Number(p_.outputs.size()) + "];\n  int64_t n;\n";
    if (p_.rank > 1) {
      text += "  int64_t dims[" + std::to_string(p_.rank) + "];\n";
      text += "  int64_t strides[" + Number(strided_) + "][" + std::to_string(p_.rank) + "];\n";
    }
    return text + "};\n";
  }

  // The function that computes one element.
  std::string Element() const {
    std::string text = "GPU_DEVICE void Element(", separator;
    for (size_t k = 0; k < p_.inputs.size(); ++k) {
      text += separator + StorageType(p_.inputs[k].type) + " x" + Number(k);
      separator = ", ";
    }
    for (size_t k = 0; k < p_.outputs.size(); ++k) {
      text += separator + StorageType(OutputType(k)) + "& y" + Number(k);
      separator = ", ";
    }
    text += ") {\n";
    for (size_t k = 0; k < p_.inputs.size(); ++k) {
      text += Declaration(p_.inputs[k].type, k) + "Widen(x" + Number(k) + ");\n";
    }
    for (size_t s = 0; s < p_.steps.size(); ++s) {
      const ProgramStep& step = p_.steps[s];
      const bool rounds = step.type == MGE_DTYPE_F16 || step.type == MGE_DTYPE_BF16;
      text += Declaration(step.type, p_.inputs.size() + s);
      text += rounds ? "Widen(Narrow<" + std::string(StorageType(step.type)) + ">::Of(" + step.expression + "));\n"
                     : step.expression + ";\n";
    }
    for (size_t k = 0; k < p_.outputs.size(); ++k) {
      text += "  y" + Number(k) + " = Narrow<" + StorageType(OutputType(k)) + ">::Of(v" +
              Number(p_.inputs.size() + static_cast<size_t>(p_.outputs[k])) + ");\n";
    }
    return text + "}\n";
  }

  // The kernel's function, a loop over groups of `width` elements, and one over the rest.
  std::string Run() const {
    std::string text = "GPU_DEVICE void Run(const Args& args) {\n";
    for (size_t k = 0; k < p_.inputs.size(); ++k) {
      const std::string type = StorageType(p_.inputs[k].type);
      text +=
          "  const " + type + "* x" + Number(k) + " = static_cast<const " + type + "*>(args.inputs[" + Number(k) + "]);\n";
      if (p_.inputs[k].access == Access::kOne) {
        text += "  const auto p" + Number(k) + " = Repeat<1>(x" + Number(k) + ", 0);\n";
      }
    }
    for (size_t k = 0; k < p_.outputs.size(); ++k) {
      const std::string type = StorageType(OutputType(k));
      text += "  " + type + "* y" + Number(k) + " = static_cast<" + type + "*>(args.outputs[" + Number(k) + "]);\n";
    }
    const std::string width = std::to_string(p_.width);
    const bool rest = p_.width > 1 && p_.rank == 1;  // with strides, the innermost dimension is a multiple of the width
    text += "  for (int64_t group = GridThread(); group < args.n / " + width + "; group += GridThreads()) {\n";
    text += "    const int64_t i = group * " + width + ";\n" + Group(p_.width) + "  }\n";
    if (rest) {
      text += "  for (int64_t i = args.n / " + width + " * " + width +
              " + GridThread(); i < args.n; i += GridThreads()) {\n" + Group(1) + "  }\n";
    }
    return text + "}\n";
  }

 private:
  mge_dtype OutputType(size_t k) const { return p_.steps[static_cast<size_t>(p_.outputs[k])].type; }
  static std::string Declaration(mge_dtype type, size_t value) {
    return "  const " + std::string(ComputeType(type)) + " v" + Number(value) + " = ";
  }

  // The body of a loop: reads, computes and writes `width` elements from element i on.
  std::string Group(int width) const {
    const std::string n = std::to_string(width), rank = std::to_string(p_.rank), indent(4, ' ');
    std::string text;
    if (p_.rank > 1) {
      const std::string index = p_.wide_index ? "uint64_t" : "uint32_t";
      text += indent + index + " at[" + rank + "];\n";
      text += indent + "Split<" + rank + ">(args.dims, static_cast<" + index + ">(i), at);\n";
    }
    size_t strided = 0;
    for (size_t k = 0; k < p_.inputs.size(); ++k) {
      const std::string x = "x" + Number(k), begin = indent + "const auto p" + Number(k) + " = ";
      std::string offset = "i";
      if (HasStrides(p_.inputs[k].access)) offset = "OffsetAt<" + rank + ">(at, args.strides[" + Number(strided++) + "])";
      switch (p_.inputs[k].access) {
        case Access::kDense: text += begin + "Load<" + n + ">(" + x + ", i);\n"; break;
        case Access::kOne: break;
        case Access::kRows: text += begin + "LoadAgain<" + n + ">(" + x + ", " + offset + ");\n"; break;
        case Access::kRepeatedRows: text += begin + "Repeat<" + n + ">(" + x + ", " + offset + ");\n"; break;
      }
    }
    std::string call = "Element(", separator;
    for (size_t k = 0; k < p_.inputs.size(); ++k) {
      call += separator + "p" + Number(k) + (p_.inputs[k].access == Access::kOne ? ".at[0]" : ".at[j]");
      separator = ", ";
    }
    for (size_t k = 0; k < p_.outputs.size(); ++k) {
      text += indent + "Pack<" + StorageType(OutputType(k)) + ", " + n + "> r" + Number(k) + ";\n";
      call += separator + "r" + Number(k) + ".at[j]";
      separator = ", ";
    }
    text += indent + "GPU_UNROLL\n" + indent + "for (int j = 0; j < " + n + "; ++j) " + call + ");\n";
    for (size_t k = 0; k < p_.outputs.size(); ++k) {
      text += indent + "Store<" + n + ">(y" + Number(k) + ", i, r" + Number(k) + ");\n";
    }
    return text;
  }

  const ChainProgram& p_;
  size_t strided_ = 0;
};

}  // namespace

KernelSource SourceOf(const ChainProgram& program) {
  const Writer writer(program);
  const std::string body = writer.Arguments() + "\n" + writer.Element() + "\n" + writer.Run();
  KernelSource source;
  source.name = "chain_" + HashOf(body);
  source.text =
      "#include \"plugins/gpu/generate/chain_functions.h\"\n\nnamespace mge::gpu {\n"
      "namespace in_" +
      source.name + " {\n\n" + body + "\n}  // namespace in_" + source.name + "\n\nGPU_KERNEL(" + source.name +
      ", 256, in_" + source.name + "::Args, in_" + source.name + "::Run)\n\n}  // namespace mge::gpu\n";
  return source;
}

}  // namespace mge::gpu
