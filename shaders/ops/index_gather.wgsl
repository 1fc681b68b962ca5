// Elements of a dense source at positions, one after another; a position that is not in
// the source gives zero. An invocation makes one word.
//
// Parameters: row 0: words, elements, elements of the source, where the result starts
// (words); row 1: where the positions and the source start (words).

// Bytes an element: 1, 2, 4, 8 or 16.
override SIZE: u32 = 4u;

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> result: array<u32>;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> source: array<u32>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = (group.x + group.y * 32768u) * 256u + lane;
    if (at >= params.row[0].x) {
        return;
    }
    let start = params.row[1].y;
    var word = 0u;
    if (SIZE >= 4u) {
        let words = max(SIZE / 4u, 1u);
        let position = positions[params.row[1].x + at / words];
        if (position < params.row[0].z) {
            word = source[start + position * words + at % words];
        }
    } else {
        let elements = max(4u / SIZE, 1u);
        for (var i = 0u; i < elements; i += 1u) {
            let element = at * elements + i;
            if (element < params.row[0].y) {
                let position = positions[params.row[1].x + element];
                if (position < params.row[0].z) {
                    let shift = 8u * SIZE * (position % elements);
                    let value = (source[start + position / elements] >> shift)
                        & ((1u << (8u * min(SIZE, 2u))) - 1u);
                    word |= value << (8u * SIZE * i);
                }
            }
        }
    }
    result[params.row[0].w + at] = word;
}
