#!/bin/sh
# Stands for ptxas: finds one kernel slow, and writes what isn't machine code.
# Called as ptxas -v -arch ARCH -o OUT IN.
printf "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill formed pipeline stage in the function 'fused_attn_wgmma_bf16_d64'\n"
printf "ptxas info    : Compiling entry function 'fused_attn_wgmma_bf16_d64' for '$3'\n"
printf "ptxas info    : Function properties for fused_attn_wgmma_bf16_d64\n"
printf "    24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads\n"
printf "ptxas info    : Used 128 registers, used 1 barriers\n"
printf "code" > "$5"
