// Few rows by a matrix whose columns follow each other in memory. A workgroup makes ACROSS
// units of columns; the invocations that share a unit take the depths in turn. With
// matvec_common.wgsl.

override THREADS: u32 = 256u;
override ACROSS: u32 = 8u;

// Each invocation's sums of its unit; then sums over some of the invocations.
var<workgroup> sums: array<vec4<f32>, THREADS * (1u + min(B_TYPE, 1u))>;

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

// The sum over all invocations that share four columns, in the first ones, one for each
// four. Two steps, because every barrier more costs as much as some loads.
fn reduce(lane: u32, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
    let size = unit_size(B_TYPE);
    workgroupBarrier();
    if (B_TYPE == 0u) {
        sums[lane] = low;
    } else {
        sums[2u * lane] = low;
        sums[2u * lane + 1u] = high;
    }
    workgroupBarrier();
    // The columns of a depth follow each other, and a step is a multiple of them.
    var sum = 0.0;
    for (var i = lane; i < THREADS * size; i += THREADS) {
        sum += sums[i / 4u][i % 4u];
    }
    workgroupBarrier();
    sums[lane / 4u][lane % 4u] = sum;
    workgroupBarrier();
    var four = vec4<f32>();
    let fours = ACROSS * size / 4u;
    if (lane < fours) {
        for (var i = lane; i < THREADS / 4u; i += fours) {
            four += sums[i];
        }
    }
    return four;
}

@compute @workgroup_size(THREADS)
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
    let width = ACROSS * size;
    let blocks = (columns + width - 1u) / width;
    let split = (number / blocks) % params.row[7].x;
    let z = batch_of(number / blocks / params.row[7].x);
    let first = (number % blocks) * width;
    let column = first + (lane % ACROSS) * size;
    let k_start = split * params.row[6].w;
    let k_end = min(k_start + params.row[6].w, params.row[0].z);
    let a_from = a_start(z);
    let b_from = b_start(z);
    let row_stride = params.row[1].w;
    let column_stride = params.row[2].x;

    var low: array<vec4<f32>, 4>;
    var high: array<vec4<f32>, 4>;
    if (column < columns) {
        let step = THREADS / ACROSS;
        var k = k_start + lane / ACROSS;
        // Four loads under way at a time, eight of 16-bit elements.
        for (; B_TYPE != 0u && k + 7u * step < k_end; k += 8u * step) {
            let u0 = columns_at(b_from, k, column, columns);
            let u1 = columns_at(b_from, k + step, column, columns);
            let u2 = columns_at(b_from, k + 2u * step, column, columns);
            let u3 = columns_at(b_from, k + 3u * step, column, columns);
            let u4 = columns_at(b_from, k + 4u * step, column, columns);
            let u5 = columns_at(b_from, k + 5u * step, column, columns);
            let u6 = columns_at(b_from, k + 6u * step, column, columns);
            let u7 = columns_at(b_from, k + 7u * step, column, columns);
            for (var r = 0u; r < ROWS; r += 1u) {
                let i = a_from + r * row_stride + k * column_stride;
                let x0 = a_at(i);
                let x1 = a_at(i + step * column_stride);
                let x2 = a_at(i + 2u * step * column_stride);
                let x3 = a_at(i + 3u * step * column_stride);
                let x4 = a_at(i + 4u * step * column_stride);
                let x5 = a_at(i + 5u * step * column_stride);
                let x6 = a_at(i + 6u * step * column_stride);
                let x7 = a_at(i + 7u * step * column_stride);
                low[r] += x0 * u0.low + x1 * u1.low + x2 * u2.low + x3 * u3.low;
                low[r] += x4 * u4.low + x5 * u5.low + x6 * u6.low + x7 * u7.low;
                high[r] += x0 * u0.high + x1 * u1.high + x2 * u2.high + x3 * u3.high;
                high[r] += x4 * u4.high + x5 * u5.high + x6 * u6.high + x7 * u7.high;
            }
        }
        for (; k + 3u * step < k_end; k += 4u * step) {
            let u0 = columns_at(b_from, k, column, columns);
            let u1 = columns_at(b_from, k + step, column, columns);
            let u2 = columns_at(b_from, k + 2u * step, column, columns);
            let u3 = columns_at(b_from, k + 3u * step, column, columns);
            for (var r = 0u; r < ROWS; r += 1u) {
                let i = a_from + r * row_stride + k * column_stride;
                let x0 = a_at(i);
                let x1 = a_at(i + step * column_stride);
                let x2 = a_at(i + 2u * step * column_stride);
                let x3 = a_at(i + 3u * step * column_stride);
                low[r] += x0 * u0.low + x1 * u1.low + x2 * u2.low + x3 * u3.low;
                if (B_TYPE != 0u) {
                    high[r] += x0 * u0.high + x1 * u1.high + x2 * u2.high + x3 * u3.high;
                }
            }
        }
        for (; k < k_end; k += step) {
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
        let sum = reduce(lane, low[r], high[r]);
        if (lane < width / 4u) {
            store(z, split, r, first + lane * 4u, sum);
        }
    }
}
