// Sort keys of rows: unsigned 64-bit numbers, and the element's place in its row, in three
// planes of `total` words: high, low, place. Rows are padded to a power of two by keys that
// come last. Equal elements have equal keys: one zero, one NaN.
//
// Parameters: row 0: elements a row, places a row, places in all (total), where the source
// starts (elements).

// 0: f32, 1: f16, 2: bf16, 3: i32, 4: i64, 5: u8, 6: i8, 7: i16, 8: f64.
override KIND: u32 = 0u;
override DESCENDING: u32 = 0u;

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> keys: array<u32>;
@group(0) @binding(1) var<storage, read> source: array<u32>;

const TOP: u32 = 0x80000000u;

// The order of floats as that of unsigned numbers; `magnitude` is without the sign.
fn ordered(high: u32, low: u32, infinity: u32) -> vec2<u32> {
    let magnitude = high & 0x7fffffffu;
    if (magnitude > infinity || (magnitude == infinity && low != 0u)) {
        return vec2<u32>(0xffffffffu);
    }
    if (magnitude == 0u && low == 0u) {
        return vec2<u32>(TOP, 0u);
    }
    if ((high & TOP) != 0u) {
        return ~vec2<u32>(high, low);
    }
    return vec2<u32>(high | TOP, low);
}

// High, then low word of the key.
fn key_of(index: u32) -> vec2<u32> {
    switch (KIND) {
        case 0u: { return ordered(source[index], 0u, 0x7f800000u); }
        case 1u, 2u, 7u: {
            let half = (source[index >> 1u] >> (16u * (index & 1u))) & 0xffffu;
            if (KIND == 7u) {
                return vec2<u32>(half ^ 0x8000u, 0u);
            }
            return ordered(half << 16u, 0u, select(0x7f800000u, 0x7c000000u, KIND == 1u));
        }
        case 3u: { return vec2<u32>(source[index] ^ TOP, 0u); }
        case 4u: { return vec2<u32>(source[2u * index + 1u] ^ TOP, source[2u * index]); }
        case 5u, 6u: {
            let byte = (source[index >> 2u] >> (8u * (index & 3u))) & 0xffu;
            return vec2<u32>(select(byte, byte ^ 0x80u, KIND == 6u), 0u);
        }
        default: { return ordered(source[2u * index + 1u], source[2u * index], 0x7ff00000u); }
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = (group.x + group.y * 32768u) * 256u + lane;
    let total = params.row[0].z;
    if (at >= total) {
        return;
    }
    let row = at / params.row[0].y;
    let place = at % params.row[0].y;
    var key = vec2<u32>(0xffffffffu);
    if (place < params.row[0].x) {
        key = key_of(params.row[0].w + row * params.row[0].x + place);
        if (DESCENDING == 1u) {
            key = ~key;
        }
    }
    keys[at] = key.x;
    keys[at + total] = key.y;
    keys[at + 2u * total] = place;
}
