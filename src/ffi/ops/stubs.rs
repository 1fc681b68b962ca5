//! Operators that PyTorch 2.13's `c_shim_mps.h` declares and this library does not have: a
//! program that calls one fails with a sentence, not when it is loaded.
//!
//! None of them looks at its arguments, so each is a function without: in the C calling
//! conventions of the 64-bit targets the caller alone knows what it passed.

use crate::error::Error;
use crate::ffi::AOTITorchError;
use crate::ffi::boundary::guard;

macro_rules! stubs {
    ($($name:ident)*) => {
        $(
            #[allow(non_snake_case, missing_docs)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> AOTITorchError {
                guard(|| Err(Error::NotImplemented(stringify!($name))))
            }
        )*

        /// The names of all of them.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

stubs! {
    aoti_torch_mps__adaptive_avg_pool2d
    aoti_torch_mps__adaptive_avg_pool2d_backward
    aoti_torch_mps__cdist_backward
    aoti_torch_mps__cdist_forward
    aoti_torch_mps__efficientzerotensor
    aoti_torch_mps__embedding_bag
    aoti_torch_mps__embedding_bag_dense_backward
    aoti_torch_mps__embedding_bag_forward_only
    aoti_torch_mps__embedding_bag_per_sample_weights_backward
    aoti_torch_mps__fft_c2c
    aoti_torch_mps__fft_r2c
    aoti_torch_mps__fused_moving_avg_obs_fq_helper_functional
    aoti_torch_mps__fused_rms_norm
    aoti_torch_mps__grouped_mm
    aoti_torch_mps__histogramdd_from_bin_cts
    aoti_torch_mps__scaled_dot_product_fused_attention_overrideable
    aoti_torch_mps__scaled_dot_product_fused_attention_overrideable_backward
    aoti_torch_mps__to_sparse
    aoti_torch_mps__trilinear
    aoti_torch_mps__weight_int4pack_mm
    aoti_torch_mps__weight_int8pack_mm
    aoti_torch_mps_abs
    aoti_torch_mps_adaptive_max_pool2d
    aoti_torch_mps_adaptive_max_pool2d_backward
    aoti_torch_mps_add_Scalar
    aoti_torch_mps_add_Tensor
    aoti_torch_mps_addbmm
    aoti_torch_mps_addmv
    aoti_torch_mps_angle
    aoti_torch_mps_avg_pool2d_backward
    aoti_torch_mps_avg_pool3d
    aoti_torch_mps_avg_pool3d_backward
    aoti_torch_mps_bernoulli__Tensor
    aoti_torch_mps_bernoulli__float
    aoti_torch_mps_bucketize_Tensor
    aoti_torch_mps_cholesky_inverse
    aoti_torch_mps_cholesky_solve
    aoti_torch_mps_convolution_backward
    aoti_torch_mps_cummax
    aoti_torch_mps_cummin
    aoti_torch_mps_cumprod
    aoti_torch_mps_exponential
    aoti_torch_mps_gcd
    aoti_torch_mps_grid_sampler_2d_backward
    aoti_torch_mps_grid_sampler_3d
    aoti_torch_mps_grid_sampler_3d_backward
    aoti_torch_mps_hann_window
    aoti_torch_mps_histc
    aoti_torch_mps_histogram_bin_ct
    aoti_torch_mps_index_reduce
    aoti_torch_mps_kthvalue
    aoti_torch_mps_logcumsumexp
    aoti_torch_mps_lu_unpack
    aoti_torch_mps_masked_scatter
    aoti_torch_mps_masked_scatter_backward
    aoti_torch_mps_masked_select
    aoti_torch_mps_max_pool2d_with_indices_backward
    aoti_torch_mps_max_pool3d_with_indices
    aoti_torch_mps_max_pool3d_with_indices_backward
    aoti_torch_mps_max_unpool2d
    aoti_torch_mps_max_unpool3d
    aoti_torch_mps_median
    aoti_torch_mps_mul_Scalar
    aoti_torch_mps_mul_Tensor
    aoti_torch_mps_nanmedian
    aoti_torch_mps_native_dropout
    aoti_torch_mps_nonzero
    aoti_torch_mps_nonzero_static
    aoti_torch_mps_normal_functional
    aoti_torch_mps_pad
    aoti_torch_mps_polar
    aoti_torch_mps_pow_Scalar
    aoti_torch_mps_pow_Tensor_Scalar
    aoti_torch_mps_pow_Tensor_Tensor
    aoti_torch_mps_rand
    aoti_torch_mps_rand_generator
    aoti_torch_mps_rand_like
    aoti_torch_mps_rand_like_generator
    aoti_torch_mps_randint
    aoti_torch_mps_randint_generator
    aoti_torch_mps_randint_like
    aoti_torch_mps_randint_like_low_dtype
    aoti_torch_mps_randint_low
    aoti_torch_mps_randint_low_out
    aoti_torch_mps_randn
    aoti_torch_mps_randn_generator
    aoti_torch_mps_randn_like
    aoti_torch_mps_randn_like_generator
    aoti_torch_mps_randperm
    aoti_torch_mps_repeat_interleave_Tensor
    aoti_torch_mps_replication_pad1d_backward
    aoti_torch_mps_replication_pad2d_backward
    aoti_torch_mps_resize_
    aoti_torch_mps_resize_as_
    aoti_torch_mps_scatter_src_out
    aoti_torch_mps_scatter_value_out
    aoti_torch_mps_searchsorted_Scalar
    aoti_torch_mps_searchsorted_Tensor
    aoti_torch_mps_set__source_Tensor
    aoti_torch_mps_soft_margin_loss_backward
    aoti_torch_mps_to_sparse
    aoti_torch_mps_triangular_solve
    aoti_torch_mps_uniform
    aoti_torch_mps_upsample_bicubic2d_backward
    aoti_torch_mps_upsample_linear1d_backward
    aoti_torch_mps_upsample_trilinear3d_backward
    aoti_torch_mps_view_as_complex
    aoti_torch_mps_view_as_real
}
