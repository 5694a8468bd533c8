// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(hopper-assign-layouts))' --verify-diagnostics

// expected-error @+1 {{has no warp roles; run convert-tile-to-hopper first}}
tile.kernel @no_roles() attributes {num_warps = 4 : i32} {
  tile.return
}
