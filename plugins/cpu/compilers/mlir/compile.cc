// SPDX-License-Identifier: Apache-2.0
// The compiler of elementwise chains by MLIR and LLVM: builder.h writes the module, passes lower it, LLVM makes an object of it.
//
// Only libMLIR and libLLVM are used. MLIR's execution engine exists as a static library alone, which would register LLVM's options
// twice.
#include <memory>

#include "compilers/image.h"
#include "compilers/mlir/builder.h"
#include "compilers/steps.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "mlir/Conversion/ArithmeticToLLVM/ArithmeticToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arithmetic/IR/Arithmetic.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

namespace mge::jit {
namespace {

std::unique_ptr<llvm::TargetMachine> MachineOf(const std::string& target) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  const std::string triple = "x86_64-unknown-linux-gnu";
  std::string error, features = "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+popcnt";
  if (target == "avx512") features += ",+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd,-prefer-256-bit";
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) throw ChainError(error);
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(triple, "x86-64", features, llvm::TargetOptions(),
                                                                         llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                         llvm::CodeGenOpt::Aggressive));
}

// Lowers the text of a module to LLVM's dialect and translates it.
std::unique_ptr<llvm::Module> Lower(const std::string& text, llvm::LLVMContext& llvm_context) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context, [&said](mlir::Diagnostic& d) {
    said += (said.empty() ? "" : "; ") + d.str();
    return mlir::success();
  });
  context.loadDialect<mlir::func::FuncDialect, mlir::arith::ArithmeticDialect, mlir::math::MathDialect,
                      mlir::scf::SCFDialect, mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect>();
  mlir::registerLLVMDialectTranslation(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module) throw ChainError("the module is not valid: " + said);
  mlir::PassManager passes(&context);
  passes.addPass(mlir::createConvertSCFToCFPass());
  passes.addPass(mlir::createConvertMathToLLVMPass());
  passes.addPass(mlir::arith::createConvertArithmeticToLLVMPass());
  passes.addPass(mlir::createConvertFuncToLLVMPass());
  passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  if (mlir::failed(passes.run(*module))) throw ChainError("the module cannot be lowered: " + said);
  std::unique_ptr<llvm::Module> lowered = mlir::translateModuleToLLVMIR(*module, llvm_context);
  if (!lowered) throw ChainError("the module cannot be translated: " + said);
  return lowered;
}

std::string ObjectOf(const std::string& text, const std::string& target) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = Lower(text, context);
  const std::unique_ptr<llvm::TargetMachine> machine = MachineOf(target);
  module->setTargetTriple(machine->getTargetTriple().str());
  module->setDataLayout(machine->createDataLayout());
  if (auto error = mlir::makeOptimizingTransformer(/*optLevel=*/3, /*sizeLevel=*/0, machine.get())(module.get())) {
    throw ChainError(llvm::toString(std::move(error)));
  }
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CGFT_ObjectFile)) {
    throw ChainError("the target writes no objects");
  }
  passes.run(*module);
  return {object.data(), object.size()};
}

int Compile(const mge_jit_chain* chain, const char* target, int with_source, void* context,
            void (*deliver)(void* context, const char* kind, const void* data, uint64_t bytes)) {
  const auto send = [&](const char* kind, const std::string& text) { deliver(context, kind, text.data(), text.size()); };
  std::string error;
  try {
    const std::string text = ModuleOf(*chain, std::string_view(target) == "avx512" ? 32 : 16);
    if (with_source) send("source", text);
    const std::string object = ObjectOf(text, target);
    std::string image;
    error = LinkImage({object}, {}, "mge_jit_chain", &image);
    if (error.empty()) {
      send("image", image);
      return 0;
    }
  } catch (const std::exception& e) {
    error = e.what();
  }
  send("error", error);
  return 1;
}

}  // namespace
}  // namespace mge::jit

const mge_jit_compiler* mge_jit_query() {
  static const mge_jit_compiler compiler = {MGE_JIT_INTERFACE, "MLIR 15", mge::jit::Compile};
  return &compiler;
}
