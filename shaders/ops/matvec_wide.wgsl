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

// The units at four depths, `step` apart.
fn four_units(start: u32, k: u32, step: u32, column: u32, columns: u32) -> array<Unit, 4> {
    return array<Unit, 4>(
        columns_at(start, k, column, columns),
        columns_at(start, k + step, column, columns),
        columns_at(start, k + 2u * step, column, columns),
        columns_at(start, k + 3u * step, column, columns),
    );
}

fn four_of_a(i: u32, stride: u32) -> vec4<f32> {
    return vec4<f32>(a_at(i), a_at(i + stride), a_at(i + 2u * stride), a_at(i + 3u * stride));
}

fn low_sum(x: vec4<f32>, u: array<Unit, 4>) -> vec4<f32> {
    return x.x * u[0].low + x.y * u[1].low + x.z * u[2].low + x.w * u[3].low;
}

fn high_sum(x: vec4<f32>, u: array<Unit, 4>) -> vec4<f32> {
    return x.x * u[0].high + x.y * u[1].high + x.z * u[2].high + x.w * u[3].high;
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
            let u = four_units(b_from, k, step, column, columns);
            let v = four_units(b_from, k + 4u * step, step, column, columns);
            for (var r = 0u; r < ROWS; r += 1u) {
                let i = a_from + r * row_stride + k * column_stride;
                let x = four_of_a(i, step * column_stride);
                let y = four_of_a(i + 4u * step * column_stride, step * column_stride);
                low[r] += low_sum(x, u);
                low[r] += low_sum(y, v);
                high[r] += high_sum(x, u);
                high[r] += high_sum(y, v);
            }
        }
        for (; k + 3u * step < k_end; k += 4u * step) {
            let u = four_units(b_from, k, step, column, columns);
            for (var r = 0u; r < ROWS; r += 1u) {
                let x = four_of_a(a_from + r * row_stride + k * column_stride, step * column_stride);
                low[r] += low_sum(x, u);
                if (B_TYPE != 0u) {
                    high[r] += high_sum(x, u);
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
