// Products of at most four rows with a matrix: the matrix is read once, 16 bytes (a
// unit) at a time. With matmul_common.wgsl.

// Rows of a.
override ROWS: u32 = 1u;
// Whether units of b (and in matvec_deep.wgsl of a) are aligned, and wholly inside the
// matrix or outside.
override UNITS: u32 = 0u;

// The eight elements of a unit, or its four and four zeroes.
struct Unit {
    low: vec4<f32>,
    high: vec4<f32>,
}

fn unit_of(kind: u32, words: vec4<u32>) -> Unit {
    if (kind == 0u) {
        return Unit(bitcast<vec4<f32>>(words), vec4<f32>());
    }
    return Unit(
        vec4<f32>(widen(kind, words.x), widen(kind, words.y)),
        vec4<f32>(widen(kind, words.z), widen(kind, words.w)),
    );
}

fn unit_size(kind: u32) -> u32 {
    return select(8u, 4u, kind == 0u);
}

fn put(unit: ptr<function, Unit>, j: u32, value: f32) {
    if (j < 4u) {
        (*unit).low[j] = value;
    } else {
        (*unit).high[j - 4u] = value;
    }
}
