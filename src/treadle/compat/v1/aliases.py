"""Names of TensorFlow 1 for functions that treadle has elsewhere."""

# The name in `treadle.compat.v1`, and behind it the function of treadle.
ALIASES = {
    name: place
    for name, _, place in (
        entry.partition("=")
        for entry in [
            "accumulate_n=math.accumulate_n", "acos=math.acos", "angle=math.angle",
            "as_string=strings.as_string", "batch_to_space_nd=batch_to_space",
            "betainc=math.betainc", "bincount=math.bincount", "ceil=math.ceil",
            "cholesky=linalg.cholesky", "cholesky_solve=linalg.cholesky_solve", "complex_abs=abs",
            "concat_v2=concat", "confusion_matrix=math.confusion_matrix", "conj=math.conj",
            "cross=linalg.cross", "cumprod=math.cumprod", "decode_base64=io.decode_base64",
            "decode_csv=io.decode_csv", "decode_raw=io.decode_raw", "diag=linalg.diag",
            "diag_part=linalg.diag_part", "digamma=math.digamma", "div_no_nan=math.divide_no_nan",
            "encode_base64=io.encode_base64", "erf=math.erf", "erfc=math.erfc", "expm1=math.expm1",
            "extract_image_patches=image.extract_patches", "fft=signal.fft", "fft2d=signal.fft2d",
            "ifft=signal.ifft", "floor_div=floordiv", "global_norm=linalg.global_norm",
            "igamma=math.igamma", "igammac=math.igammac", "imag=math.imag",
            "invert_permutation=math.invert_permutation", "is_finite=math.is_finite",
            "is_inf=math.is_inf", "is_nan=math.is_nan", "lbeta=math.lbeta", "lgamma=math.lgamma",
            "log=math.log", "log1p=math.log1p", "log_sigmoid=math.log_sigmoid",
            "matching_files=io.matching_files", "matrix_band_part=linalg.band_part",
            "matrix_determinant=linalg.det", "matrix_diag=linalg.diag",
            "matrix_diag_part=linalg.diag_part", "matrix_inverse=linalg.inv",
            "matrix_set_diag=linalg.set_diag", "matrix_solve=linalg.solve",
            "matrix_solve_ls=linalg.lstsq", "matrix_transpose=linalg.matrix_transpose",
            "matrix_triangular_solve=linalg.triangular_solve", "parse_example=io.parse_example",
            "parse_single_example=io.parse_single_example", "parse_tensor=io.parse_tensor",
            "polygamma=math.polygamma", "pack=stack", "qr=linalg.qr", "read_file=io.read_file",
            "real=math.real", "reciprocal=math.reciprocal", "regex_replace=strings.regex_replace",
            "reverse_v2=reverse", "rint=math.rint", "rsqrt=math.rsqrt",
            "segment_max=math.segment_max", "segment_mean=math.segment_mean",
            "segment_min=math.segment_min", "segment_prod=math.segment_prod",
            "segment_sum=math.segment_sum", "self_adjoint_eig=linalg.eigh",
            "self_adjoint_eigvals=linalg.eigvalsh", "serialize_tensor=io.serialize_tensor",
            "space_to_depth=nn.space_to_depth", "depth_to_space=nn.depth_to_space",
            "string_join=strings.join", "string_strip=strings.strip",
            "string_to_number=strings.to_number", "string_to_hash_bucket=strings.to_hash_bucket",
            "string_to_hash_bucket_fast=strings.to_hash_bucket_fast",
            "svd=linalg.svd", "trace=linalg.trace", "unpack=unstack",
            "unsorted_segment_max=math.unsorted_segment_max",
            "unsorted_segment_mean=math.unsorted_segment_mean",
            "unsorted_segment_min=math.unsorted_segment_min",
            "unsorted_segment_prod=math.unsorted_segment_prod",
            "unsorted_segment_sqrt_n=math.unsorted_segment_sqrt_n",
            "unsorted_segment_sum=math.unsorted_segment_sum", "write_file=io.write_file",
            "zeta=math.zeta", "fft3d=signal.fft3d", "ifft2d=signal.ifft2d",
            "ifft3d=signal.ifft3d", "lin_space=linspace", "where_v2=where",
            "string_to_hash_bucket_strong=strings.to_hash_bucket_strong",
            "tensor_scatter_add=tensor_scatter_nd_add", "tensor_scatter_sub=tensor_scatter_nd_sub",
            "tensor_scatter_update=tensor_scatter_nd_update",
        ]
    )
}

# The same for names in modules of `treadle.compat.v1`.
_IN_MODULES = {
    "debugging": "is_finite=math.is_finite is_inf=math.is_inf is_nan=math.is_nan "
    "is_non_decreasing=math.is_non_decreasing is_strictly_increasing=math.is_strictly_increasing",
    "dtypes": "as_string=strings.as_string",
    "image": "extract_image_patches=image.extract_patches transpose_image=image.transpose",
    "linalg": "transpose=linalg.matrix_transpose",
    "nn": "avg_pool_v2=nn.avg_pool max_pool_v2=nn.max_pool "
    "log_uniform_candidate_sampler=random.log_uniform_candidate_sampler "
    "uniform_candidate_sampler=random.uniform_candidate_sampler",
    "random": "stateless_multinomial=random.stateless_categorical",
    "sets": "set_difference=sets.difference set_intersection=sets.intersection "
    "set_size=sets.size set_union=sets.union",
    "train": "NewCheckpointReader=train.load_checkpoint",
    # Modules that treadle has not.
    "manip": "batch_to_space_nd=batch_to_space gather_nd=gather_nd reshape=reshape "
    "reverse=reverse roll=roll scatter_nd=scatter_nd space_to_batch_nd=space_to_batch tile=tile",
    "spectral": " ".join(
        f"{name}=signal.{name}"
        for name in [
            "dct", "idct", "fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d", "irfft", "irfft2d",
            "irfft3d", "rfft", "rfft2d", "rfft3d",
        ]
    ),
}
ALIASES_IN = {
    module: dict(entry.split("=") for entry in text.split())
    for module, text in _IN_MODULES.items()
}
