// Random numbers as c10/metal/random.h draws them: Philox 4x32 (Salmon et al., Parallel random numbers: as
// easy as 1, 2, 3, SC 2011), the result after nine rounds. Uses core.wgsl, exponential.wgsl and
// trigonometric.wgsl.
//
// 64-bit integers are vec2<u32>(low, high), what bitcast makes of one. The order of high and low words is that
// of PyTorch since its change 179227, in which a swap of the two was corrected.

fn math_philox_round(counter: vec4<u32>, key: vec2<u32>) -> vec4<u32> {
    let a = math_mul_wide(0xd2511f53u, counter.x);
    let b = math_mul_wide(0xcd9e8d57u, counter.z);
    return vec4<u32>(b.y ^ counter.y ^ key.x, b.x, a.y ^ counter.w ^ key.y, a.x);
}

// Four words; the high halves of index and seed come first in counter and key.
fn c10_metal_philox4_rand(seed: vec2<u32>, index: vec2<u32>) -> vec4<u32> {
    var counter = vec4<u32>(0u, 0u, index.y, index.x);
    var key = seed.yx;
    for (var i = 0; i < 9; i++) {
        counter = math_philox_round(counter, key);
        key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    return counter;
}

// 31 bits to [0, 1): the scale is a little below 2^-31, so that 1 is not reached.
fn math_uniform(value: u32) -> f32 {
    return f32(value & 0x7fffffffu) * 4.6566127342e-10;
}

fn c10_metal_rand(seed: vec2<u32>, index: vec2<u32>) -> f32 {
    return math_uniform(c10_metal_philox4_rand(seed, index).x);
}

// Box and Muller's transform.
fn c10_metal_randn(seed: vec2<u32>, index: vec2<u32>) -> f32 {
    let value = c10_metal_philox4_rand(seed, index);
    let u1 = 1.0 - math_uniform(value.x);
    let u2 = 1.0 - math_uniform(value.y);
    return metal_precise_sqrt(-2.0 * metal_precise_log(u1)) * metal_precise_cospi(2.0 * u2);
}

// An unsigned 64-bit integer to the nearest float, ties to even.
fn math_wide_to_float(v: vec2<u32>) -> f32 {
    if (v.y == 0u && v.x < 0x01000000u) {
        return f32(v.x);
    }
    var zeros = countLeadingZeros(v.y);
    if (v.y == 0u) {
        zeros = 32u + countLeadingZeros(v.x);
    }
    var high = v.y;
    var low = v.x;
    if (zeros >= 32u) {
        high = low << (zeros - 32u);
        low = 0u;
    } else if (zeros > 0u) {
        high = (high << zeros) | (low >> (32u - zeros));
        low = low << zeros;
    }
    var m = high >> 8u;
    let rest = high & 0xffu;
    if (rest > 0x80u || (rest == 0x80u && (low != 0u || (m & 1u) == 1u))) {
        m += 1u;
    }
    // A carry to 2^24 belongs to the exponent.
    return bitcast<f32>(m + ((63u - zeros + 126u) << 23u));
}

// low + trunc(uniform * (high - low)), the product a float.
fn c10_metal_randint64(seed: vec2<u32>, index: vec2<u32>, low: vec2<u32>, high: vec2<u32>) -> vec2<u32> {
    var span = vec2<u32>(high.x - low.x, high.y - low.y - select(0u, 1u, high.x < low.x));
    let negative = (span.y >> 31u) != 0u;
    if (negative) {
        span = math_negate_wide(span);
    }
    let product = c10_metal_rand(seed, index) * math_wide_to_float(span);
    let bits = bitcast<u32>(product);
    let exponent = i32(bits >> 23u) - 150;
    let m = (bits & 0x007fffffu) | 0x00800000u;
    var offset = vec2<u32>(0u, 0u);
    if (exponent >= 32) {
        offset.y = m << u32(exponent - 32);
    } else if (exponent > 0) {
        offset = vec2<u32>(m << u32(exponent), m >> u32(32 - exponent));
    } else if (exponent > -24) {
        offset.x = m >> u32(-exponent);
    }
    if (negative) {
        offset = math_negate_wide(offset);
    }
    let sum = low.x + offset.x;
    return vec2<u32>(sum, low.y + offset.y + select(0u, 1u, sum < low.x));
}
