// Fixed seeds, so that a failure here is a regression; `./dev fuzz` tries new
// ones.
// RUN: attn-fuzz -n 2000 -seed 0 -pipeline-every 20 | FileCheck %s
// A value of a region used in an earlier one, in a loop that doesn't parse.
// RUN: attn-fuzz -n 1 -seed 6800 -pipeline-every 1 | FileCheck %s --check-prefix=ONE

// CHECK: attn-fuzz: 2000 inputs from seed 0: {{[1-9][0-9]*}} parsed, {{[1-9][0-9]*}} pipelines succeeded
// ONE: attn-fuzz: 1 inputs from seed 6800
