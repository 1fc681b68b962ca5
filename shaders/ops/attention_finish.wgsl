// Puts the partial results of a row's splits together. With half.wgsl; an invocation makes
// two elements of the result.
//
// row[0]  rows, elements of one, elements from row to row of the result, splits
// row[1]  where the result starts, in words; partial results: offset, elements from row to
//            row; statistics: offset. Offsets in words.

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<storage, read> parts: array<f32>;

// 0 f32, 1 f16, 2 bf16.
override TYPE: u32 = 0u;

const FOLD: u32 = 32768u;
const MASKED: f32 = -3.4028234e38;

fn narrow(number: f32) -> u32 {
    if (TYPE == 2u) {
        return float_to_bfloat(bitcast<u32>(number));
    }
    return float_to_half(bitcast<u32>(number));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let rows = params.row[0].x;
    let size = params.row[0].y;
    let pairs = (size + 1u) / 2u;
    let item = (group.y * FOLD + group.x) * 256u + lane;
    let row = item / pairs;
    let column = (item % pairs) * 2u;
    if (row >= rows) {
        return;
    }
    var most = MASKED;
    for (var s = 0u; s < params.row[0].w; s += 1u) {
        most = max(most, parts[params.row[1].w + (s * rows + row) * 2u]);
    }
    var sum = 0.0;
    var both = vec2<f32>();
    for (var s = 0u; s < params.row[0].w; s += 1u) {
        let at = s * rows + row;
        let factor = exp2(parts[params.row[1].w + at * 2u] - most);
        sum += factor * parts[params.row[1].w + at * 2u + 1u];
        let first = params.row[1].y + at * params.row[1].z + column;
        both += factor * vec2<f32>(parts[first], parts[first + 1u]);
    }
    // A row without any key becomes 0.
    both *= select(1.0 / sum, 0.0, sum == 0.0);
    let start = row * params.row[0].z + column;
    if (TYPE == 0u) {
        out[params.row[1].x + start] = bitcast<u32>(both.x);
        if (column + 1u < size) {
            out[params.row[1].x + start + 1u] = bitcast<u32>(both.y);
        }
    } else {
        out[params.row[1].x + start / 2u] = narrow(both.x) | (narrow(both.y) << 16u);
    }
}
