// SPDX-License-Identifier: Apache-2.0
// The kernels in the images that nvcc and hipcc have written: read from the symbols of the code, without a vendor's tool.
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/runtime/images.h"

namespace mge::gpu {

// The code of an image for one target.
struct DeviceCode {
  std::string target;  // "sm_75"; "compute_75": intermediate code (PTX); "gfx90a"
  std::set<std::string, std::less<>> kernels;
  // Machine code of nvcc only: by kernel, its instructions and those of the functions that it calls, and their names.
  std::map<std::string, std::string, std::less<>> text;
  std::map<std::string, std::vector<std::string>, std::less<>> functions;
};

template <typename T>
T ReadAt(const char* data, uint64_t offset) {
  T value;
  std::memcpy(&value, data + offset, sizeof(T));
  return value;
}

// Calls f(name, symbol) for each symbol of an ELF file.
template <typename F>
void ForSymbols(const char* elf, F&& f) {
  const auto header = ReadAt<Elf64_Ehdr>(elf, 0);
  auto section = [&](uint64_t i) { return ReadAt<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr)); };
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB && symbols.sh_type != SHT_DYNSYM) continue;
    const char* names = elf + section(symbols.sh_link).sh_offset;
    for (uint64_t at = 0; at < symbols.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = ReadAt<Elf64_Sym>(elf, symbols.sh_offset + at);
      f(std::string_view(names + symbol.st_name), symbol);
    }
  }
}

// Adds the machine code of all kernels of an ELF file of nvcc. Each kernel has a section of its own.
inline void ReadMachineCode(const char* elf, DeviceCode* out) {
  constexpr uint8_t kEntry = 0x10;  // in st_other of a kernel's symbol
  const auto header = ReadAt<Elf64_Ehdr>(elf, 0);
  std::map<uint16_t, std::string> kernel_of;  // by section
  ForSymbols(elf, [&](std::string_view name, const Elf64_Sym& symbol) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & kEntry)) return;
    const auto section = ReadAt<Elf64_Shdr>(elf, header.e_shoff + symbol.st_shndx * sizeof(Elf64_Shdr));
    out->kernels.emplace(name);
    out->text.emplace(name, std::string(elf + section.sh_offset, section.sh_size));
    kernel_of.emplace(symbol.st_shndx, name);
  });
  ForSymbols(elf, [&](std::string_view name, const Elf64_Sym& symbol) {
    const auto kernel = kernel_of.find(symbol.st_shndx);
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && kernel != kernel_of.end()) {
      out->functions[kernel->second].emplace_back(name);
    }
  });
}

// Decompresses by libzstd, which every Debian has. Returns "" if it cannot.
inline std::string Decompressed(const char* data, uint64_t bytes, uint64_t result_bytes) {
  void* zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!zstd) return "";
  const auto decompress = reinterpret_cast<size_t (*)(void*, size_t, const void*, size_t)>(dlsym(zstd, "ZSTD_decompress"));
  std::string result(result_bytes, '\0');
  return decompress(result.data(), result.size(), data, bytes) == result_bytes ? result : "";
}

// Reads a fat binary of nvcc: a header, then entries of machine code and PTX, each with its own header.
inline std::vector<DeviceCode> CudaCodeIn(const char* image) {
  constexpr uint32_t kFatBinary = 0xba55ed50;
  constexpr uint16_t kPtx = 1, kMachine = 2;
  std::vector<DeviceCode> codes;
  EXPECT_EQ(ReadAt<uint32_t>(image, 0), kFatBinary);
  uint64_t at = ReadAt<uint16_t>(image, 6);
  const uint64_t end = at + ReadAt<uint64_t>(image, 8);
  while (at < end) {
    const auto kind = ReadAt<uint16_t>(image, at);
    const uint64_t header = ReadAt<uint32_t>(image, at + 4), bytes = ReadAt<uint64_t>(image, at + 8);
    const uint64_t compressed = ReadAt<uint32_t>(image, at + 16), plain = ReadAt<uint64_t>(image, at + 56);
    const std::string number = std::to_string(ReadAt<uint32_t>(image, at + 28));
    const char* data = image + at + header;
    const std::string code = compressed ? Decompressed(data, compressed, plain) : std::string(data, bytes);
    at += header + bytes;
    DeviceCode& out = codes.emplace_back();
    out.target = (kind == kPtx ? "compute_" : "sm_") + number;
    if (code.empty()) {
      ADD_FAILURE() << "the code for " << out.target << " cannot be decompressed by libzstd.so.1";
    } else if (kind == kMachine) {
      ReadMachineCode(code.data(), &out);
    } else {
      constexpr std::string_view kDeclaration = ".entry ";
      for (size_t found = code.find(kDeclaration); found != std::string::npos; found = code.find(kDeclaration, found)) {
        found += kDeclaration.size();
        out.kernels.insert(code.substr(found, code.find('(', found) - found));
      }
    }
  }
  return codes;
}

// Reads a bundle of hipcc: a list of places of code with the names of their targets.
inline std::vector<DeviceCode> HipCodeIn(const char* image) {
  constexpr std::string_view kBundle = "__CLANG_OFFLOAD_BUNDLE__", kDescriptor = ".kd", kHost = "host";
  std::vector<DeviceCode> codes;
  EXPECT_EQ(std::string_view(image, kBundle.size()), kBundle);
  uint64_t at = kBundle.size();
  const auto count = ReadAt<uint64_t>(image, at);
  at += 8;
  for (uint64_t i = 0; i < count; ++i) {
    const auto offset = ReadAt<uint64_t>(image, at), name_bytes = ReadAt<uint64_t>(image, at + 16);
    const std::string_view name(image + at + 24, name_bytes);
    at += 24 + name_bytes;
    if (name.starts_with(kHost)) continue;
    DeviceCode& out = codes.emplace_back();
    out.target = name.substr(name.rfind('-') + 1);
    ForSymbols(image + offset, [&](std::string_view symbol, const Elf64_Sym&) {
      if (symbol.ends_with(kDescriptor)) out.kernels.emplace(symbol.substr(0, symbol.size() - kDescriptor.size()));
    });
  }
  return codes;
}

// Compares the kernels in the code of an image with those of the table from which rows take kernels, and with the emulated
// ones. `has(target, kernel)` returns whether rows may launch a kernel on a target.
template <typename Has>
void ExpectCodesHaveTheKernelsOfTheTable(uint32_t image, const std::vector<DeviceCode>& codes, Has&& has) {
  std::set<std::string, std::less<>> emulated, listed;
  for (uint32_t i = 0; i < KernelCount(); ++i) emulated.emplace(KernelName(i));
  for (const ImageKernel& k : kImageKernels) {
    if (k.image == image) listed.emplace(k.name);
  }
  EXPECT_FALSE(codes.empty()) << kImages[image].name;
  for (const DeviceCode& code : codes) {
    const std::string where = " in the image of " + std::string(kImages[image].name) + ".cu for " + code.target;
    for (const std::string& name : listed) {
      EXPECT_TRUE(emulated.contains(name)) << name << " has no emulated twin";
      const bool missing = has(code.target, name) && !code.kernels.contains(name);
      EXPECT_FALSE(missing) << "rows may launch " << name << ", which is not" << where;
    }
    for (const std::string& name : code.kernels) {
      EXPECT_TRUE(emulated.contains(name)) << name << where << " has no emulated twin";
      EXPECT_TRUE(listed.contains(name)) << name << where << " is not in the table";
      EXPECT_TRUE(has(code.target, name)) << name << where << " is not launched there";
    }
  }
}

// Does so for all images of the backend. `code_in(image)` reads an image.
template <typename Read, typename Has>
void ExpectImagesHaveTheKernelsOfTheTable(Read&& code_in, Has&& has) {
  ASSERT_GT(kImageKernels.size(), 500u);
  for (uint32_t i = 0; i < kImages.size(); ++i) {
    ExpectCodesHaveTheKernelsOfTheTable(i, code_in(static_cast<const char*>(kImages[i].data)), has);
  }
}

}  // namespace mge::gpu
