// Both operands of a tiled product are matrices: how an invocation takes four elements
// of them. With matmul_common.wgsl and matmul_tile.wgsl.

fn a_lane_of(i: u32) -> Lane {
    return lane_of(A_DEEP, i);
}

fn b_lane_of(i: u32) -> Lane {
    return lane_of(B_DEEP, i);
}

struct Rows {
    start: u32,
}

fn rows_of(z: Batch, row: u32) -> Rows {
    return Rows(a_start(z) + row * params.row[1].w);
}

fn fetch_a(at: Rows, row: u32, k: u32, k_end: u32) -> vec4<f32> {
    let rows = params.row[0].x;
    let row_stride = params.row[1].w;
    let column_stride = params.row[2].x;
    let i = at.start + k * column_stride;
    if (A_QUADS == 1u) {
        if (row < rows && k < k_end) {
            return a_quad(i);
        }
        return vec4<f32>();
    }
    var four = vec4<f32>();
    for (var j = 0u; j < 4u; j += 1u) {
        if (A_DEEP == 1u) {
            if (row < rows && k + j < k_end) { four[j] = a_at(i + j * column_stride); }
        } else {
            if (row + j < rows && k < k_end) { four[j] = a_at(i + j * row_stride); }
        }
    }
    return four;
}

struct Columns {
    start: u32,
}

fn columns_of(z: Batch, column: u32) -> Columns {
    return Columns(b_start(z) + column * params.row[3].y);
}

fn fetch_b(at: Columns, column: u32, k: u32, k_end: u32) -> vec4<f32> {
    let columns = params.row[0].y;
    let row_stride = params.row[3].x;
    let column_stride = params.row[3].y;
    let i = at.start + k * row_stride;
    if (B_QUADS == 1u) {
        if (column < columns && k < k_end) {
            return b_quad(i);
        }
        return vec4<f32>();
    }
    var four = vec4<f32>();
    for (var j = 0u; j < 4u; j += 1u) {
        if (B_DEEP == 1u) {
            if (column < columns && k + j < k_end) { four[j] = b_at(i + j * row_stride); }
        } else {
            if (column + j < columns && k < k_end) { four[j] = b_at(i + j * column_stride); }
        }
    }
    return four;
}
