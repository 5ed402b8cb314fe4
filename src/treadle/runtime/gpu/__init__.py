"""Programs for GPUs: kernels as CUDA C."""
