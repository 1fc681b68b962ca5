// A row of x times a matrix of 4-bit weights. 32 lanes walk a row of w, a chunk of 32
// weights each; a team of them has ROWS rows of w, and 8 teams are a workgroup.

override ROWS: u32 = 1u;

const TEAMS: u32 = 8u;

// 1024 elements of x, those of a chunk 32 places apart, times 1, 1/16, 1/256, 1/4096.
var<workgroup> tile: array<vec4<f32>, 256>;
var<workgroup> partial: array<f32, 1024>;

fn store(x_row: u32, row: u32, at: u32) {
    let n = params.row[0].x;
    let place = params.row[1].x;
    if (TYPE == 0u) {
        if (row < n) {
            out[place + x_row * params.row[2].z + row] = bitcast<u32>(partial[at]);
        }
    } else if (row < n && (row & 1u) == 0u) {
        out[place + ((x_row * params.row[2].z + row) >> 1u)] = pair(partial[at], partial[at + 1u]);
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane_of_all: u32,
) {
    let n = params.row[0].x;
    let chunks = params.row[0].y;
    let blocks = (n + TEAMS * ROWS - 1u) / (TEAMS * ROWS);
    let number = group_number(group);
    let x_row = min(number / blocks, params.row[2].y - 1u);
    let first = (number % blocks) * TEAMS * ROWS;
    let matrix = matrix_of(x_row);
    let there = matrix != 0xffffffffu;
    let lane = lane_of_all % 32u;
    let team = lane_of_all / 32u;

    var sums: array<f32, 4>;
    for (var base = 0u; base < chunks; base += 32u) {
        workgroupBarrier();
        let k = base * 32u + lane_of_all * 4u;
        var four = vec4<f32>();
        if (k < chunks * 32u) {
            four = four_of_x(x_row * chunks * 32u + k);
        }
        tile[(lane_of_all % 8u) * 32u + lane_of_all / 8u] =
            four * vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);
        workgroupBarrier();
        let chunk = base + lane;
        if (there && chunk < chunks) {
            let a = tile[lane];
            let b = tile[lane + 32u];
            let c = tile[lane + 64u];
            let d = tile[lane + 96u];
            let e = tile[lane + 128u];
            let f = tile[lane + 160u];
            let g = tile[lane + 192u];
            let h = tile[lane + 224u];
            let sum_x = dot(a + b + c + d + e + f + g + h, vec4<f32>(1.0, 16.0, 256.0, 4096.0));
            for (var r = 0u; r < ROWS; r += 1u) {
                let row = matrix * n + min(first + team * ROWS + r, n - 1u);
                let words = w[params.row[1].y + row * chunks + chunk];
                let part = row * params.row[0].z + (chunk >> params.row[0].w);
                let high = words >> vec4<u32>(16u);
                let sum = dot(a, low_nibbles(words.x)) + dot(b, low_nibbles(high.x))
                    + dot(c, low_nibbles(words.y)) + dot(d, low_nibbles(high.y))
                    + dot(e, low_nibbles(words.z)) + dot(f, low_nibbles(high.z))
                    + dot(g, low_nibbles(words.w)) + dot(h, low_nibbles(high.w));
                sums[r] += scale_of(part) * sum + offset_of(part) * sum_x;
            }
        }
    }
    for (var r = 0u; r < ROWS; r += 1u) {
        partial[(team * ROWS + r) * 32u + lane] = sums[r];
    }
    for (var step = 16u; step > 0u; step >>= 1u) {
        workgroupBarrier();
        if (lane < step) {
            for (var r = 0u; r < ROWS; r += 1u) {
                let at = (team * ROWS + r) * 32u + lane;
                partial[at] += partial[at + step];
            }
        }
    }
    workgroupBarrier();
    var sum = 0.0;
    if (lane_of_all < TEAMS * ROWS) {
        sum = partial[lane_of_all * 32u];
    }
    workgroupBarrier();
    if (lane_of_all < TEAMS * ROWS) {
        // Not a number stands for the product with a matrix that is not there.
        partial[lane_of_all] = select(bitcast<f32>(0x7fc00000u | matrix), sum, there);
    }
    workgroupBarrier();
    if (lane_of_all < TEAMS * ROWS && number / blocks < params.row[2].y) {
        store(x_row, first + lane_of_all, lane_of_all);
    }
}
