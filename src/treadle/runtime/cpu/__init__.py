"""The CPU target: native code through LLVM."""
