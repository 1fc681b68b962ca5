// Few rows by a matrix whose columns lie along the depth, as the weights of linear
// layers do: a dot product a column. A workgroup makes 16 columns; 32 invocations share
// two of them. Both operands are of one type. With matvec_common.wgsl.

var<workgroup> sums: array<vec4<f32>, 256>;

fn a_depth(i: u32, k: u32, k_end: u32) -> Unit {
    if (UNITS == 1u) {
        return unit_of(A_TYPE, a[select(i >> 3u, i >> 2u, A_TYPE == 0u)]);
    }
    var unit = Unit(vec4<f32>(), vec4<f32>());
    for (var j = 0u; j < unit_size(A_TYPE); j += 1u) {
        if (k + j < k_end) {
            put(&unit, j, a_at(i + j * params.row[2].x));
        }
    }
    return unit;
}

fn b_depth(i: u32, k: u32, k_end: u32) -> Unit {
    if (UNITS == 1u) {
        return unit_of(B_TYPE, b[select(i >> 3u, i >> 2u, B_TYPE == 0u)]);
    }
    var unit = Unit(vec4<f32>(), vec4<f32>());
    for (var j = 0u; j < unit_size(B_TYPE); j += 1u) {
        if (k + j < k_end) {
            put(&unit, j, b_at(i + j * params.row[3].x));
        }
    }
    return unit;
}

fn product(x: Unit, y: Unit) -> f32 {
    let low = dot(x.low, y.low);
    if (B_TYPE == 0u) {
        return low;
    }
    return low + dot(x.high, y.high);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group_number(group);
    if (number >= params.row[7].z) {
        return;
    }
    let columns = params.row[0].y;
    let size = unit_size(B_TYPE);
    let blocks = (columns + 15u) / 16u;
    let split = (number / blocks) % params.row[7].x;
    let z = batch_of(number / blocks / params.row[7].x);
    let first = (number % blocks) * 16u;
    let column = first + (lane / 32u) * 2u;
    let k_start = split * params.row[6].w;
    let k_end = min(k_start + params.row[6].w, params.row[0].z);
    let row_stride = params.row[1].w;
    let a_depth_stride = params.row[2].x;
    let b_depth_stride = params.row[3].x;
    let a_from = a_start(z);
    // Beyond the last column that one is read again, and its sum not used.
    let b0_from = b_start(z) + min(column, columns - 1u) * params.row[3].y;
    let b1_from = b_start(z) + min(column + 1u, columns - 1u) * params.row[3].y;

    var sum0 = vec4<f32>();
    var sum1 = vec4<f32>();
    let step = 32u * size;
    var k = k_start + (lane % 32u) * size;
    // Eight loads of b under way at a time.
    for (; k + 3u * step < k_end; k += 4u * step) {
        var y0: array<Unit, 4>;
        var y1: array<Unit, 4>;
        y0[0] = b_depth(b0_from + k * b_depth_stride, k, k_end);
        y1[0] = b_depth(b1_from + k * b_depth_stride, k, k_end);
        y0[1] = b_depth(b0_from + (k + step) * b_depth_stride, k + step, k_end);
        y1[1] = b_depth(b1_from + (k + step) * b_depth_stride, k + step, k_end);
        y0[2] = b_depth(b0_from + (k + 2u * step) * b_depth_stride, k + 2u * step, k_end);
        y1[2] = b_depth(b1_from + (k + 2u * step) * b_depth_stride, k + 2u * step, k_end);
        y0[3] = b_depth(b0_from + (k + 3u * step) * b_depth_stride, k + 3u * step, k_end);
        y1[3] = b_depth(b1_from + (k + 3u * step) * b_depth_stride, k + 3u * step, k_end);
        for (var r = 0u; r < ROWS; r += 1u) {
            let i = a_from + r * row_stride;
            let x0 = a_depth(i + k * a_depth_stride, k, k_end);
            let x1 = a_depth(i + (k + step) * a_depth_stride, k + step, k_end);
            let x2 = a_depth(i + (k + 2u * step) * a_depth_stride, k + 2u * step, k_end);
            let x3 = a_depth(i + (k + 3u * step) * a_depth_stride, k + 3u * step, k_end);
            sum0[r] += product(x0, y0[0]) + product(x1, y0[1]) + product(x2, y0[2])
                + product(x3, y0[3]);
            sum1[r] += product(x0, y1[0]) + product(x1, y1[1]) + product(x2, y1[2])
                + product(x3, y1[3]);
        }
    }
    for (; k < k_end; k += step) {
        let y0 = b_depth(b0_from + k * b_depth_stride, k, k_end);
        let y1 = b_depth(b1_from + k * b_depth_stride, k, k_end);
        for (var r = 0u; r < ROWS; r += 1u) {
            let x = a_depth(a_from + r * row_stride + k * a_depth_stride, k, k_end);
            sum0[r] += product(x, y0);
            sum1[r] += product(x, y1);
        }
    }
    // A vector holds the rows of one column.
    sums[lane] = sum0;
    workgroupBarrier();
    for (var half = 16u; half > 0u; half = half >> 1u) {
        if (lane % 32u < half) {
            sums[lane] += sums[lane + half];
        }
        workgroupBarrier();
    }
    var total = vec4<f32>();
    if (lane % 32u == 0u) {
        total = sums[lane];
    }
    workgroupBarrier();
    sums[lane] = sum1;
    workgroupBarrier();
    for (var half = 16u; half > 0u; half = half >> 1u) {
        if (lane % 32u < half) {
            sums[lane] += sums[lane + half];
        }
        workgroupBarrier();
    }
    var other = vec4<f32>();
    if (lane % 32u == 0u) {
        other = sums[lane];
    }
    workgroupBarrier();
    if (lane % 32u == 0u) {
        sums[lane / 16u] = total;
        sums[lane / 16u + 1u] = other;
    }
    workgroupBarrier();
    // From rows of a column to columns of a row.
    if (lane < 4u * ROWS) {
        let r = lane % ROWS;
        let c = (lane / ROWS) * 4u;
        let four = vec4<f32>(sums[c][r], sums[c + 1u][r], sums[c + 2u][r], sums[c + 3u][r]);
        store(z, split, r, first + c, four);
    }
}
