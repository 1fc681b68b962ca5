// Few rows by a matrix whose columns follow each other in memory. A workgroup makes 8
// units of columns; 32 invocations share a unit, each going through every 32nd depth.
// With matvec_common.wgsl.

fn columns_at(start: u32, k: u32, column: u32, columns: u32) -> Unit {
    let i = start + k * params.row[3].x + column * params.row[3].y;
    if (UNITS == 1u) {
        return unit_of(B_TYPE, b[select(i >> 3u, i >> 2u, B_TYPE == 0u)]);
    }
    var unit = Unit(vec4<f32>(), vec4<f32>());
    for (var j = 0u; j < unit_size(B_TYPE); j += 1u) {
        if (column + j < columns) {
            put(&unit, j, b_at(i + j * params.row[3].y));
        }
    }
    return unit;
}

// The sum over the 32 invocations of a unit, in the first of them.
fn reduce(lane: u32, value: vec4<f32>) -> vec4<f32> {
    workgroupBarrier();
    sums[lane] = value;
    workgroupBarrier();
    for (var half = 128u; half >= 8u; half = half >> 1u) {
        if (lane < half) {
            sums[lane] += sums[lane + half];
        }
        workgroupBarrier();
    }
    return sums[lane];
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
    let blocks = (columns + 8u * size - 1u) / (8u * size);
    let split = (number / blocks) % params.row[7].x;
    let z = batch_of(number / blocks / params.row[7].x);
    let column = ((number % blocks) * 8u + lane % 8u) * size;
    let k_start = split * params.row[6].w;
    let k_end = min(k_start + params.row[6].w, params.row[0].z);
    let a_from = a_start(z);
    let b_from = b_start(z);
    let row_stride = params.row[1].w;
    let column_stride = params.row[2].x;

    var low: array<vec4<f32>, 4>;
    var high: array<vec4<f32>, 4>;
    if (column < columns) {
        var k = k_start + lane / 8u;
        // Four loads under way at a time.
        for (; k + 96u < k_end; k += 128u) {
            let u0 = columns_at(b_from, k, column, columns);
            let u1 = columns_at(b_from, k + 32u, column, columns);
            let u2 = columns_at(b_from, k + 64u, column, columns);
            let u3 = columns_at(b_from, k + 96u, column, columns);
            for (var r = 0u; r < ROWS; r += 1u) {
                let i = a_from + r * row_stride + k * column_stride;
                let x0 = a_at(i);
                let x1 = a_at(i + 32u * column_stride);
                let x2 = a_at(i + 64u * column_stride);
                let x3 = a_at(i + 96u * column_stride);
                low[r] += x0 * u0.low + x1 * u1.low + x2 * u2.low + x3 * u3.low;
                if (B_TYPE != 0u) {
                    high[r] += x0 * u0.high + x1 * u1.high + x2 * u2.high + x3 * u3.high;
                }
            }
        }
        for (; k < k_end; k += 32u) {
            let unit = columns_at(b_from, k, column, columns);
            for (var r = 0u; r < ROWS; r += 1u) {
                let x = a_at(a_from + r * row_stride + k * column_stride);
                low[r] += x * unit.low;
                if (B_TYPE != 0u) {
                    high[r] += x * unit.high;
                }
            }
        }
    }
    for (var r = 0u; r < ROWS; r += 1u) {
        let sum = reduce(lane, low[r]);
        if (lane < 8u) {
            store(z, split, r, column, sum);
        }
        if (B_TYPE != 0u) {
            let other = reduce(lane, high[r]);
            if (lane < 8u) {
                store(z, split, r, column + 4u, other);
            }
        }
    }
}
