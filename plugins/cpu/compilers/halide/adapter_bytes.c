/* SPDX-License-Identifier: Apache-2.0 */
/* The object of adapter.c as bytes. */
__asm__(
    ".pushsection .rodata\n"
    ".globl mge_jit_adapter, mge_jit_adapter_end\n"
    ".hidden mge_jit_adapter, mge_jit_adapter_end\n"
    ".balign 16\n"
    "mge_jit_adapter:\n"
    ".incbin \"" MGE_JIT_ADAPTER
    "\"\n"
    "mge_jit_adapter_end:\n"
    ".popsection\n");
