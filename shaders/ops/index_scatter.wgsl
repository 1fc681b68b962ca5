// Values reduced into a dense result at positions. Where several meet, they do so in any
// order.
//
// Parameters: row 0: values, elements of the result, where the result starts (words),
// where the positions start (words); row 1: where the values start (words).

// 0: store, 1: add, 2: multiply, 3: largest, 4: smallest.
override MODE: u32 = 0u;
// 0: f32, 1: i32, 2: i64 (stores and sums alone), 3: 64 bits of anything (stores alone).
override KIND: u32 = 0u;

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> result: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> values: array<u32>;

fn is_nan(bits: u32) -> bool {
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

fn reduced(before: u32, value: u32) -> u32 {
    if (KIND == 0u) {
        let a = bitcast<f32>(before);
        let b = bitcast<f32>(value);
        if (MODE == 1u) {
            return bitcast<u32>(a + b);
        }
        if (MODE == 2u) {
            return bitcast<u32>(a * b);
        }
        if (is_nan(before)) {
            return before;
        }
        if (is_nan(value)) {
            return value;
        }
        if (MODE == 3u) {
            return select(before, value, b > a);
        }
        return select(before, value, b < a);
    }
    let a = bitcast<i32>(before);
    let b = bitcast<i32>(value);
    if (MODE == 1u) {
        return before + value;
    }
    if (MODE == 2u) {
        return before * value;
    }
    if (MODE == 3u) {
        return bitcast<u32>(max(a, b));
    }
    return bitcast<u32>(min(a, b));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = (group.x + group.y * 32768u) * 256u + lane;
    if (at >= params.row[0].x) {
        return;
    }
    let position = positions[params.row[0].w + at];
    if (position >= params.row[0].y) {
        return;
    }
    let first = params.row[1].x;
    if (KIND >= 2u) {
        let to = params.row[0].z + 2u * position;
        let low = values[first + 2u * at];
        let high = values[first + 2u * at + 1u];
        if (MODE == 0u) {
            atomicStore(&result[to], low);
            atomicStore(&result[to + 1u], high);
        } else {
            // The carries of all low words reach the high one in the end.
            let before = atomicAdd(&result[to], low);
            let carry = select(0u, 1u, before + low < before);
            atomicAdd(&result[to + 1u], high + carry);
        }
        return;
    }
    let to = params.row[0].z + position;
    let value = values[first + at];
    if (MODE == 0u) {
        atomicStore(&result[to], value);
        return;
    }
    var before = atomicLoad(&result[to]);
    loop {
        let after = reduced(before, value);
        let outcome = atomicCompareExchangeWeak(&result[to], before, after);
        if (outcome.exchanged) {
            break;
        }
        before = outcome.old_value;
    }
}
