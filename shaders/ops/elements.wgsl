// Elements of dense buffers as f32. With half.wgsl. 16-bit elements lie two in a word, and
// whoever stores one stores both.

// 0: f32, 1: f16, 2: bf16.
override TYPE: u32 = 0u;

// What the rows mean is said in each kernel. A struct, because HLSL's root constants are one.
struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

// The grid's rows are of 32768 groups, where there are more than one.
fn group_number(group: vec3<u32>) -> u32 {
    return group.x + group.y * 32768u;
}

fn word_of(index: u32) -> u32 {
    if (TYPE == 0u) {
        return index;
    }
    return index >> 1u;
}

fn widened(half: u32) -> f32 {
    if (TYPE == 1u) {
        return bitcast<f32>(half_to_float(half));
    }
    return bitcast<f32>(bfloat_to_float(half));
}

// Element `index`, of the word that it lies in.
fn element(word: u32, index: u32) -> f32 {
    if (TYPE == 0u) {
        return bitcast<f32>(word);
    }
    return widened((word >> (16u * (index & 1u))) & 0xffffu);
}

// A value as the bits of an element.
fn narrowed(value: f32) -> u32 {
    if (TYPE == 0u) {
        return bitcast<u32>(value);
    }
    if (TYPE == 1u) {
        return float_to_half(bitcast<u32>(value));
    }
    return float_to_bfloat(bitcast<u32>(value));
}

fn pair(first: f32, second: f32) -> u32 {
    return narrowed(first) | (narrowed(second) << 16u);
}
