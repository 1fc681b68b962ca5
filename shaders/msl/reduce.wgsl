// Reductions over a threadgroup, through workgroup memory: a tree of fixed shape that asks nothing
// of subgroups. Every thread of the group calls with the same `size`; thread `index` of those below
// `size` takes part with its value, unless `live` is false. The lowering cuts the scratch arrays to
// the group's size.

var<workgroup> msl_scratch_f32: array<f32, 1024>;
var<workgroup> msl_scratch_i32: array<i32, 1024>;
var<workgroup> msl_scratch_u32: array<u32, 1024>;
var<workgroup> msl_scratch_i64: array<i64, 1024>;
// Who holds a value; no thread, for one that does not take part.
var<workgroup> msl_scratch_lane: array<u32, 1024>;
var<workgroup> msl_scratch_pair: array<u32, 2>;

// Half of the least power of two that is not below `size`.
fn msl_first_stride(size: u32) -> u32 {
    if size < 2u {
        return 0u;
    }
    return 1u << (31u - countLeadingZeros(size - 1u));
}

fn msl_sum_f32(value: f32, index: u32, size: u32, live: bool) -> f32 {
    var own = value;
    if !live {
        own = 0.0;
    }
    if index < size {
        msl_scratch_f32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_f32[index];
            let b = msl_scratch_f32[index + stride];
            msl_scratch_f32[index] = a + b;
        }
        workgroupBarrier();
    }
    let result = msl_scratch_f32[0];
    workgroupBarrier();
    return result;
}

fn msl_prod_f32(value: f32, index: u32, size: u32, live: bool) -> f32 {
    var own = value;
    if !live {
        own = 1.0;
    }
    if index < size {
        msl_scratch_f32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_f32[index];
            let b = msl_scratch_f32[index + stride];
            msl_scratch_f32[index] = a * b;
        }
        workgroupBarrier();
    }
    let result = msl_scratch_f32[0];
    workgroupBarrier();
    return result;
}

fn msl_max_f32(value: f32, index: u32, size: u32, live: bool) -> f32 {
    var own = value;
    if !live {
        own = math_from_bits(0xff800000u);
    }
    if index < size {
        msl_scratch_f32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_f32[index];
            let b = msl_scratch_f32[index + stride];
            msl_scratch_f32[index] = c10_metal_max(a, b);
        }
        workgroupBarrier();
    }
    let result = msl_scratch_f32[0];
    workgroupBarrier();
    return result;
}

fn msl_min_f32(value: f32, index: u32, size: u32, live: bool) -> f32 {
    var own = value;
    if !live {
        own = math_from_bits(0x7f800000u);
    }
    if index < size {
        msl_scratch_f32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_f32[index];
            let b = msl_scratch_f32[index + stride];
            msl_scratch_f32[index] = c10_metal_min(a, b);
        }
        workgroupBarrier();
    }
    let result = msl_scratch_f32[0];
    workgroupBarrier();
    return result;
}

fn msl_sum_i32(value: i32, index: u32, size: u32, live: bool) -> i32 {
    var own = value;
    if !live {
        own = 0i;
    }
    if index < size {
        msl_scratch_i32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i32[index];
            let b = msl_scratch_i32[index + stride];
            msl_scratch_i32[index] = a + b;
        }
        workgroupBarrier();
    }
    let result = msl_scratch_i32[0];
    workgroupBarrier();
    return result;
}

fn msl_prod_i32(value: i32, index: u32, size: u32, live: bool) -> i32 {
    var own = value;
    if !live {
        own = 1i;
    }
    if index < size {
        msl_scratch_i32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i32[index];
            let b = msl_scratch_i32[index + stride];
            msl_scratch_i32[index] = a * b;
        }
        workgroupBarrier();
    }
    let result = msl_scratch_i32[0];
    workgroupBarrier();
    return result;
}

fn msl_max_i32(value: i32, index: u32, size: u32, live: bool) -> i32 {
    var own = value;
    if !live {
        own = i32(-2147483648);
    }
    if index < size {
        msl_scratch_i32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i32[index];
            let b = msl_scratch_i32[index + stride];
            msl_scratch_i32[index] = max(a, b);
        }
        workgroupBarrier();
    }
    let result = msl_scratch_i32[0];
    workgroupBarrier();
    return result;
}

fn msl_min_i32(value: i32, index: u32, size: u32, live: bool) -> i32 {
    var own = value;
    if !live {
        own = 2147483647i;
    }
    if index < size {
        msl_scratch_i32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i32[index];
            let b = msl_scratch_i32[index + stride];
            msl_scratch_i32[index] = min(a, b);
        }
        workgroupBarrier();
    }
    let result = msl_scratch_i32[0];
    workgroupBarrier();
    return result;
}

fn msl_sum_u32(value: u32, index: u32, size: u32, live: bool) -> u32 {
    var own = value;
    if !live {
        own = 0u;
    }
    if index < size {
        msl_scratch_u32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_u32[index];
            let b = msl_scratch_u32[index + stride];
            msl_scratch_u32[index] = a + b;
        }
        workgroupBarrier();
    }
    let result = msl_scratch_u32[0];
    workgroupBarrier();
    return result;
}

fn msl_prod_u32(value: u32, index: u32, size: u32, live: bool) -> u32 {
    var own = value;
    if !live {
        own = 1u;
    }
    if index < size {
        msl_scratch_u32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_u32[index];
            let b = msl_scratch_u32[index + stride];
            msl_scratch_u32[index] = a * b;
        }
        workgroupBarrier();
    }
    let result = msl_scratch_u32[0];
    workgroupBarrier();
    return result;
}

fn msl_max_u32(value: u32, index: u32, size: u32, live: bool) -> u32 {
    var own = value;
    if !live {
        own = 0u;
    }
    if index < size {
        msl_scratch_u32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_u32[index];
            let b = msl_scratch_u32[index + stride];
            msl_scratch_u32[index] = max(a, b);
        }
        workgroupBarrier();
    }
    let result = msl_scratch_u32[0];
    workgroupBarrier();
    return result;
}

fn msl_min_u32(value: u32, index: u32, size: u32, live: bool) -> u32 {
    var own = value;
    if !live {
        own = 0xffffffffu;
    }
    if index < size {
        msl_scratch_u32[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_u32[index];
            let b = msl_scratch_u32[index + stride];
            msl_scratch_u32[index] = min(a, b);
        }
        workgroupBarrier();
    }
    let result = msl_scratch_u32[0];
    workgroupBarrier();
    return result;
}

fn msl_sum_i64(value: i64, index: u32, size: u32, live: bool) -> i64 {
    var own = value;
    if !live {
        own = 0li;
    }
    if index < size {
        msl_scratch_i64[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i64[index];
            let b = msl_scratch_i64[index + stride];
            msl_scratch_i64[index] = a + b;
        }
        workgroupBarrier();
    }
    let result = msl_scratch_i64[0];
    workgroupBarrier();
    return result;
}

fn msl_prod_i64(value: i64, index: u32, size: u32, live: bool) -> i64 {
    var own = value;
    if !live {
        own = 1li;
    }
    if index < size {
        msl_scratch_i64[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i64[index];
            let b = msl_scratch_i64[index + stride];
            msl_scratch_i64[index] = a * b;
        }
        workgroupBarrier();
    }
    let result = msl_scratch_i64[0];
    workgroupBarrier();
    return result;
}

fn msl_max_i64(value: i64, index: u32, size: u32, live: bool) -> i64 {
    var own = value;
    if !live {
        own = -9223372036854775807li - 1li;
    }
    if index < size {
        msl_scratch_i64[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i64[index];
            let b = msl_scratch_i64[index + stride];
            msl_scratch_i64[index] = select(b, a, a > b);
        }
        workgroupBarrier();
    }
    let result = msl_scratch_i64[0];
    workgroupBarrier();
    return result;
}

fn msl_min_i64(value: i64, index: u32, size: u32, live: bool) -> i64 {
    var own = value;
    if !live {
        own = 9223372036854775807li;
    }
    if index < size {
        msl_scratch_i64[index] = own;
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i64[index];
            let b = msl_scratch_i64[index + stride];
            msl_scratch_i64[index] = select(b, a, a < b);
        }
        workgroupBarrier();
    }
    let result = msl_scratch_i64[0];
    workgroupBarrier();
    return result;
}

// The pair of words that the first thread with the extreme value holds.
fn msl_argmax_f32(value: f32, word0: u32, word1: u32, index: u32, size: u32, live: bool) -> vec2<u32> {
    var own = value;
    if !live {
        own = math_from_bits(0xff800000u);
    }
    if index < size {
        msl_scratch_f32[index] = own;
        msl_scratch_lane[index] = select(0xffffffffu, index, live);
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_f32[index];
            let b = msl_scratch_f32[index + stride];
            let lane_a = msl_scratch_lane[index];
            let lane_b = msl_scratch_lane[index + stride];
            let nan_a = math_is_nan(a);
            let nan_b = math_is_nan(b);
            let better = !nan_a && (nan_b || msl_lt(a, b));
            let same = (nan_a && nan_b) || msl_eq(a, b);
            if better || (same && lane_b < lane_a) {
                msl_scratch_f32[index] = b;
                msl_scratch_lane[index] = lane_b;
            }
        }
        workgroupBarrier();
    }
    if index == msl_scratch_lane[0] {
        msl_scratch_pair[0] = word0;
        msl_scratch_pair[1] = word1;
    }
    workgroupBarrier();
    let result = vec2<u32>(msl_scratch_pair[0], msl_scratch_pair[1]);
    workgroupBarrier();
    return result;
}

fn msl_argmax_i32(value: i32, word0: u32, word1: u32, index: u32, size: u32, live: bool) -> vec2<u32> {
    var own = value;
    if !live {
        own = i32(-2147483648);
    }
    if index < size {
        msl_scratch_i32[index] = own;
        msl_scratch_lane[index] = select(0xffffffffu, index, live);
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i32[index];
            let b = msl_scratch_i32[index + stride];
            let lane_a = msl_scratch_lane[index];
            let lane_b = msl_scratch_lane[index + stride];
            let better = a < b;
            let same = a == b;
            if better || (same && lane_b < lane_a) {
                msl_scratch_i32[index] = b;
                msl_scratch_lane[index] = lane_b;
            }
        }
        workgroupBarrier();
    }
    if index == msl_scratch_lane[0] {
        msl_scratch_pair[0] = word0;
        msl_scratch_pair[1] = word1;
    }
    workgroupBarrier();
    let result = vec2<u32>(msl_scratch_pair[0], msl_scratch_pair[1]);
    workgroupBarrier();
    return result;
}

// The pair of words that the first thread with the extreme value holds.
fn msl_argmax_u32(value: u32, word0: u32, word1: u32, index: u32, size: u32, live: bool) -> vec2<u32> {
    var own = value;
    if !live {
        own = 0u;
    }
    if index < size {
        msl_scratch_u32[index] = own;
        msl_scratch_lane[index] = select(0xffffffffu, index, live);
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_u32[index];
            let b = msl_scratch_u32[index + stride];
            let lane_a = msl_scratch_lane[index];
            let lane_b = msl_scratch_lane[index + stride];
            let better = a < b;
            let same = a == b;
            if better || (same && lane_b < lane_a) {
                msl_scratch_u32[index] = b;
                msl_scratch_lane[index] = lane_b;
            }
        }
        workgroupBarrier();
    }
    if index == msl_scratch_lane[0] {
        msl_scratch_pair[0] = word0;
        msl_scratch_pair[1] = word1;
    }
    workgroupBarrier();
    let result = vec2<u32>(msl_scratch_pair[0], msl_scratch_pair[1]);
    workgroupBarrier();
    return result;
}

// The pair of words that the first thread with the extreme value holds.
fn msl_argmax_i64(value: i64, word0: u32, word1: u32, index: u32, size: u32, live: bool) -> vec2<u32> {
    var own = value;
    if !live {
        own = -9223372036854775807li - 1li;
    }
    if index < size {
        msl_scratch_i64[index] = own;
        msl_scratch_lane[index] = select(0xffffffffu, index, live);
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i64[index];
            let b = msl_scratch_i64[index + stride];
            let lane_a = msl_scratch_lane[index];
            let lane_b = msl_scratch_lane[index + stride];
            let better = a < b;
            let same = a == b;
            if better || (same && lane_b < lane_a) {
                msl_scratch_i64[index] = b;
                msl_scratch_lane[index] = lane_b;
            }
        }
        workgroupBarrier();
    }
    if index == msl_scratch_lane[0] {
        msl_scratch_pair[0] = word0;
        msl_scratch_pair[1] = word1;
    }
    workgroupBarrier();
    let result = vec2<u32>(msl_scratch_pair[0], msl_scratch_pair[1]);
    workgroupBarrier();
    return result;
}

// The pair of words that the first thread with the extreme value holds.
fn msl_argmin_f32(value: f32, word0: u32, word1: u32, index: u32, size: u32, live: bool) -> vec2<u32> {
    var own = value;
    if !live {
        own = math_from_bits(0x7f800000u);
    }
    if index < size {
        msl_scratch_f32[index] = own;
        msl_scratch_lane[index] = select(0xffffffffu, index, live);
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_f32[index];
            let b = msl_scratch_f32[index + stride];
            let lane_a = msl_scratch_lane[index];
            let lane_b = msl_scratch_lane[index + stride];
            let nan_a = math_is_nan(a);
            let nan_b = math_is_nan(b);
            let better = !nan_a && (nan_b || msl_lt(b, a));
            let same = (nan_a && nan_b) || msl_eq(a, b);
            if better || (same && lane_b < lane_a) {
                msl_scratch_f32[index] = b;
                msl_scratch_lane[index] = lane_b;
            }
        }
        workgroupBarrier();
    }
    if index == msl_scratch_lane[0] {
        msl_scratch_pair[0] = word0;
        msl_scratch_pair[1] = word1;
    }
    workgroupBarrier();
    let result = vec2<u32>(msl_scratch_pair[0], msl_scratch_pair[1]);
    workgroupBarrier();
    return result;
}

// The pair of words that the first thread with the extreme value holds.
fn msl_argmin_i32(value: i32, word0: u32, word1: u32, index: u32, size: u32, live: bool) -> vec2<u32> {
    var own = value;
    if !live {
        own = 2147483647i;
    }
    if index < size {
        msl_scratch_i32[index] = own;
        msl_scratch_lane[index] = select(0xffffffffu, index, live);
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i32[index];
            let b = msl_scratch_i32[index + stride];
            let lane_a = msl_scratch_lane[index];
            let lane_b = msl_scratch_lane[index + stride];
            let better = b < a;
            let same = a == b;
            if better || (same && lane_b < lane_a) {
                msl_scratch_i32[index] = b;
                msl_scratch_lane[index] = lane_b;
            }
        }
        workgroupBarrier();
    }
    if index == msl_scratch_lane[0] {
        msl_scratch_pair[0] = word0;
        msl_scratch_pair[1] = word1;
    }
    workgroupBarrier();
    let result = vec2<u32>(msl_scratch_pair[0], msl_scratch_pair[1]);
    workgroupBarrier();
    return result;
}

// The pair of words that the first thread with the extreme value holds.
fn msl_argmin_u32(value: u32, word0: u32, word1: u32, index: u32, size: u32, live: bool) -> vec2<u32> {
    var own = value;
    if !live {
        own = 0xffffffffu;
    }
    if index < size {
        msl_scratch_u32[index] = own;
        msl_scratch_lane[index] = select(0xffffffffu, index, live);
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_u32[index];
            let b = msl_scratch_u32[index + stride];
            let lane_a = msl_scratch_lane[index];
            let lane_b = msl_scratch_lane[index + stride];
            let better = b < a;
            let same = a == b;
            if better || (same && lane_b < lane_a) {
                msl_scratch_u32[index] = b;
                msl_scratch_lane[index] = lane_b;
            }
        }
        workgroupBarrier();
    }
    if index == msl_scratch_lane[0] {
        msl_scratch_pair[0] = word0;
        msl_scratch_pair[1] = word1;
    }
    workgroupBarrier();
    let result = vec2<u32>(msl_scratch_pair[0], msl_scratch_pair[1]);
    workgroupBarrier();
    return result;
}

// The pair of words that the first thread with the extreme value holds.
fn msl_argmin_i64(value: i64, word0: u32, word1: u32, index: u32, size: u32, live: bool) -> vec2<u32> {
    var own = value;
    if !live {
        own = 9223372036854775807li;
    }
    if index < size {
        msl_scratch_i64[index] = own;
        msl_scratch_lane[index] = select(0xffffffffu, index, live);
    }
    workgroupBarrier();
    for (var stride = msl_first_stride(size); stride > 0u; stride >>= 1u) {
        if index < stride && index + stride < size {
            let a = msl_scratch_i64[index];
            let b = msl_scratch_i64[index + stride];
            let lane_a = msl_scratch_lane[index];
            let lane_b = msl_scratch_lane[index + stride];
            let better = b < a;
            let same = a == b;
            if better || (same && lane_b < lane_a) {
                msl_scratch_i64[index] = b;
                msl_scratch_lane[index] = lane_b;
            }
        }
        workgroupBarrier();
    }
    if index == msl_scratch_lane[0] {
        msl_scratch_pair[0] = word0;
        msl_scratch_pair[1] = word1;
    }
    workgroupBarrier();
    let result = vec2<u32>(msl_scratch_pair[0], msl_scratch_pair[1]);
    workgroupBarrier();
    return result;
}
