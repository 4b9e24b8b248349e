"""The dtypes of arrays, under the two names that jax has for each."""

DTYPES = {
    "bool": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
    "f4_e2m1fn": "float4_e2m1fn",
    "f8_e3m4": "float8_e3m4",
    "f8_e4m3": "float8_e4m3",
    "f8_e4m3fn": "float8_e4m3fn",
    "f8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2": "float8_e5m2",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e8m0fnu": "float8_e8m0fnu",
}
"""The numpy names by the names in jaxprs (`short_dtype_name`, jax/_src/dtypes.py)."""
