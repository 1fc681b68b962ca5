// Converts between any two number types at any strides. With walk.wgsl and half.wgsl.
// Everything is done on bit patterns in words of 32 bits, so that no adapter feature
// is needed and the results are those of src/copy/convert.rs, bit for bit.
//
// An item is GROUP elements: as many as a word of the destination holds where the
// destination is one contiguous range, else one. A word that is only partly the
// destination's is changed by two atomic operations, which leave its other bytes.
//
// row[0]  destination offset in elements, or its first word where GROUP is more than 1;
//         source offset; elements; elements of the first word that lie before the range
// Strides in elements.

override SRC: u32 = 11u;
override DST: u32 = 11u;
override GROUP: u32 = 1u;

const BOOL: u32 = 0u;
const U8: u32 = 1u;
const I8: u32 = 2u;
const U16: u32 = 3u;
const I16: u32 = 4u;
const U32: u32 = 5u;
const I32: u32 = 6u;
const U64: u32 = 7u;
const I64: u32 = 8u;
const F16: u32 = 9u;
const BF16: u32 = 10u;
const F32: u32 = 11u;
const F64: u32 = 12u;

@group(0) @binding(0) var<storage, read_write> dst: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read> src: array<u32>;

fn size_of(kind: u32) -> u32 {
    switch kind {
        case BOOL, U8, I8: { return 1u; }
        case U16, I16, F16, BF16: { return 2u; }
        case U64, I64, F64: { return 8u; }
        default: { return 4u; }
    }
}

fn is_float(kind: u32) -> bool {
    return kind >= F16;
}

// Integers as 64 bits, the low word in x; floats of up to 32 bits as a float in x.
fn load(index: u32) -> vec2<u32> {
    let size = size_of(SRC);
    if (size == 8u) {
        return vec2<u32>(src[2u * index], src[2u * index + 1u]);
    }
    let word = src[index * size / 4u];
    let part = (index * size % 4u) * 8u;
    switch SRC {
        case BOOL: { return vec2<u32>(u32(((word >> part) & 0xffu) != 0u), 0u); }
        case U8: { return vec2<u32>((word >> part) & 0xffu, 0u); }
        case U16: { return vec2<u32>((word >> part) & 0xffffu, 0u); }
        case I8: { return extended(i32(word << (24u - part)) >> 24u); }
        case I16: { return extended(i32(word << (16u - part)) >> 16u); }
        case I32: { return extended(i32(word)); }
        case F16: { return vec2<u32>(half_to_float((word >> part) & 0xffffu), 0u); }
        case BF16: { return vec2<u32>(bfloat_to_float((word >> part) & 0xffffu), 0u); }
        default: { return vec2<u32>(word, 0u); }
    }
}

fn extended(value: i32) -> vec2<u32> {
    return vec2<u32>(u32(value), u32(value >> 31u));
}

fn negated(value: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(0u - value.x, ~value.y + u32(value.x == 0u));
}

fn shifted_left(value: vec2<u32>, by: u32) -> vec2<u32> {
    if (by >= 32u) {
        return vec2<u32>(0u, value.x << (by - 32u));
    }
    // By 32 - by, in two steps, since a shift by 32 is none.
    return vec2<u32>(value.x << by, (value.y << by) | ((value.x >> 1u) >> (31u - by)));
}

fn shifted_right(value: vec2<u32>, by: u32) -> vec2<u32> {
    if (by >= 32u) {
        return vec2<u32>(value.y >> (by - 32u), 0u);
    }
    return vec2<u32>((value.x >> by) | ((value.y << 1u) << (31u - by)), value.y >> by);
}

// A magnitude with its highest bit moved to bit 63, and where that was.
struct Normal {
    bits: vec2<u32>,
    exponent: u32,
}

fn normalised(magnitude: vec2<u32>) -> Normal {
    var top = firstLeadingBit(magnitude.x);
    if (magnitude.y != 0u) {
        top = firstLeadingBit(magnitude.y) + 32u;
    }
    return Normal(shifted_left(magnitude, 63u - top), top);
}

// What the low bits add to the last place: `odd` breaks a tie.
fn round_up(rest: u32, half: u32, below: u32, odd: u32) -> u32 {
    return u32(rest > half || (rest == half && (below | odd) != 0u));
}

fn is_negative_integer(value: vec2<u32>) -> bool {
    return (SRC == I8 || SRC == I16 || SRC == I32 || SRC == I64) && (value.y >> 31u) == 1u;
}

fn integer_to_float(value: vec2<u32>) -> u32 {
    if ((value.x | value.y) == 0u) {
        return 0u;
    }
    let negative = is_negative_integer(value);
    let n = normalised(select(value, negated(value), negative));
    // The leading one counts one of the exponent.
    let bits = ((n.exponent + 126u) << 23u) + (n.bits.y >> 8u);
    let up = round_up(n.bits.y & 0xffu, 0x80u, n.bits.x, bits & 1u);
    return select(0u, 0x80000000u, negative) | (bits + up);
}

fn integer_to_double(value: vec2<u32>) -> vec2<u32> {
    if ((value.x | value.y) == 0u) {
        return vec2<u32>(0u);
    }
    let negative = is_negative_integer(value);
    let n = normalised(select(value, negated(value), negative));
    let low = shifted_right(n.bits, 11u);
    let up = round_up(n.bits.x & 0x7ffu, 0x400u, 0u, low.x & 1u);
    let carry = u32(low.x + up < low.x);
    let high = ((n.exponent + 1022u) << 20u) + low.y + carry;
    return vec2<u32>(low.x + up, select(0u, 0x80000000u, negative) | high);
}

fn float_to_double(bits: u32) -> vec2<u32> {
    let sign = bits & 0x80000000u;
    let rest = bits & 0x7fffffffu;
    let mantissa = bits & 0x7fffffu;
    if (rest > 0x7f800000u) {
        return vec2<u32>(bits << 29u, sign | 0x7ff80000u | ((bits & 0x3fffffu) >> 3u));
    }
    if (rest == 0x7f800000u) {
        return vec2<u32>(0u, sign | 0x7ff00000u);
    }
    if (rest == 0u) {
        return vec2<u32>(0u, sign);
    }
    if (rest < 0x800000u) {
        let top = firstLeadingBit(rest);
        let scaled = (rest << (23u - top)) & 0x7fffffu;
        return vec2<u32>(scaled << 29u, sign | ((top + 874u) << 20u) | (scaled >> 3u));
    }
    return vec2<u32>(mantissa << 29u, sign | (((rest >> 23u) + 896u) << 20u) | (mantissa >> 3u));
}

fn double_to_float(value: vec2<u32>) -> u32 {
    let sign = value.y & 0x80000000u;
    let rest = value.y & 0x7fffffffu;
    let exponent = i32(rest >> 20u) - 896;
    let mantissa = ((rest & 0xfffffu) << 3u) | (value.x >> 29u);
    let below = value.x & 0x1fffffffu;
    if (rest > 0x7ff00000u || (rest == 0x7ff00000u && value.x != 0u)) {
        return sign | 0x7fc00000u | (mantissa & 0x3fffffu);
    }
    if (exponent >= 255) {
        return sign | 0x7f800000u;
    }
    if (exponent >= 1) {
        let bits = (u32(exponent) << 23u) | mantissa;
        return sign | (bits + round_up(below, 0x10000000u, 0u, bits & 1u));
    }
    if (exponent < -23) {
        return sign;
    }
    let shift = u32(1 - exponent);
    let significand = mantissa | 0x800000u;
    let bits = significand >> shift;
    let dropped = significand & ((1u << shift) - 1u);
    return sign | (bits + round_up(dropped, 1u << (shift - 1u), below, bits & 1u));
}

// Towards zero, the nearest end of the range where it is outside, 0 for NaN.
fn to_integer(value: vec2<u32>) -> vec2<u32> {
    var sign = value.x >> 31u;
    var exponent = i32((value.x >> 23u) & 0xffu) - 127;
    var bits = vec2<u32>(0u, 0x80000000u | (value.x << 8u));
    var is_nan = (value.x & 0x7fffffffu) > 0x7f800000u;
    if (SRC == F64) {
        sign = value.y >> 31u;
        exponent = i32((value.y >> 20u) & 0x7ffu) - 1023;
        bits = vec2<u32>(value.x << 11u, 0x80000000u | (value.y << 11u) | (value.x >> 21u));
        let rest = value.y & 0x7fffffffu;
        is_nan = rest > 0x7ff00000u || (rest == 0x7ff00000u && value.x != 0u);
    }
    if (is_nan || exponent < 0) {
        return vec2<u32>(0u);
    }
    let is_signed = DST == I8 || DST == I16 || DST == I32 || DST == I64;
    if (sign == 1u && !is_signed) {
        return vec2<u32>(0u);
    }
    let width = size_of(DST) * 8u - u32(is_signed);
    // Of the signed, the lowest value is beyond the range of magnitudes, and is its own
    // end.
    if (exponent >= i32(width)) {
        let largest = shifted_right(vec2<u32>(0xffffffffu), 64u - width);
        return select(largest, ~largest, vec2<bool>(sign == 1u));
    }
    let magnitude = shifted_right(bits, 63u - u32(exponent));
    return select(magnitude, negated(magnitude), vec2<bool>(sign == 1u));
}

fn converted(value: vec2<u32>) -> vec2<u32> {
    if (DST == BOOL) {
        var rest = value.x | value.y;
        if (SRC == F64) {
            rest = value.x | (value.y << 1u);
        } else if (is_float(SRC)) {
            rest = value.x << 1u;
        }
        return vec2<u32>(u32(rest != 0u), 0u);
    }
    if (!is_float(DST)) {
        if (is_float(SRC)) {
            return to_integer(value);
        }
        return value;
    }
    if (DST == F64) {
        if (is_float(SRC)) {
            return float_to_double(value.x);
        }
        return integer_to_double(value);
    }
    var bits = value.x;
    if (SRC == F64) {
        bits = double_to_float(value);
    } else if (!is_float(SRC)) {
        bits = integer_to_float(value);
    }
    if (DST == F16) {
        bits = float_to_half(bits);
    } else if (DST == BF16) {
        bits = float_to_bfloat(bits);
    }
    return vec2<u32>(bits, 0u);
}

fn store(word: u32, value: u32, mask: u32) {
    if (mask == 0xffffffffu) {
        atomicStore(&dst[word], value);
    } else {
        atomicAnd(&dst[word], ~mask);
        atomicOr(&dst[word], value & mask);
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let size = size_of(DST);
    let total = params.row[0].z;
    let lead = params.row[0].w;
    let items = (lead + total + GROUP - 1u) / GROUP;
    let first = group_number(group) * (LANES * ITEMS);
    if (first >= items) {
        return;
    }
    let base = max(first * GROUP, lead) - lead;
    let begin = index_of(base);
    for (var k = 0u; k < ITEMS; k += 1u) {
        let item = first + k * LANES + lane;
        if (item >= items) {
            break;
        }
        if (GROUP == 1u) {
            let at = place(begin, item - base);
            let value = converted(load(at.src));
            if (size == 8u) {
                store(2u * at.dst, value.x, 0xffffffffu);
                store(2u * at.dst + 1u, value.y, 0xffffffffu);
            } else {
                let part = (at.dst * size % 4u) * 8u;
                let ones = 0xffffffffu >> (32u - 8u * size);
                store(at.dst * size / 4u, value.x << part, ones << part);
            }
        } else {
            let bits = 32u / GROUP;
            let ones = 0xffffffffu >> (32u - bits);
            var value = 0u;
            var mask = 0u;
            for (var e = 0u; e < GROUP; e += 1u) {
                // Before the range this wraps around and is too large as well.
                let element = item * GROUP + e - lead;
                if (element < total) {
                    let at = place(begin, element - base);
                    value |= (converted(load(at.src)).x & ones) << (e * bits);
                    mask |= ones << (e * bits);
                }
            }
            store(params.row[0].x + item, value, mask);
        }
    }
}
