// The tiled product: a workgroup makes TILE x TILE elements of the result, going
// along the depth in steps of 1024 / TILE, one vector of each operand an invocation and
// step. The next step's vectors are on their way while this one is multiplied.
//
// 128: 8 x 8 elements an invocation, for grids that fill the device. 64: 4 x 4.
//
// What the operands are is said by the file that comes after: which four elements an
// invocation takes (a_lane_of, b_lane_of), what of their place does not change along the
// depth (rows_of, columns_of), and the elements themselves (fetch_a, fetch_b).

override TILE: u32 = 128u;
// Whether an invocation's four elements lie along the depth, rather than along the
// rows of a or the columns of b.
override A_DEEP: u32 = 0u;
override B_DEEP: u32 = 0u;
// Whether these four are one aligned vector, wholly inside the matrix or outside.
override A_QUADS: u32 = 0u;
override B_QUADS: u32 = 0u;

// Row tiles that are made together, so that they share columns of b in the caches.
const BAND: u32 = 8u;

// Two steps of each operand: 256 vectors of four rows (columns), depth by depth.
var<workgroup> a_tile: array<vec4<f32>, 512>;
var<workgroup> b_tile: array<vec4<f32>, 512>;

// Where the vector of rows 4 * quad and on lies. The rows of different depths are
// shifted against each other, so that writing along the depth meets different banks.
fn tile_index(k: u32, quad: u32) -> u32 {
    return k * (TILE / 4u) + (quad ^ ((k >> 2u) * (TILE / 32u)));
}

struct Lane {
    // The first row or column, and depth, of four elements.
    at: u32,
    k: u32,
}

fn lane_of(deep: u32, i: u32) -> Lane {
    if (deep == 1u) {
        let vectors = 256u / TILE;
        return Lane(i / vectors, (i % vectors) * 4u);
    }
    return Lane((i % (TILE / 4u)) * 4u, i / (TILE / 4u));
}

fn keep_a(buffer: u32, lane: Lane, four: vec4<f32>) {
    if (A_DEEP == 1u) {
        let c = lane.at & 3u;
        for (var j = 0u; j < 4u; j += 1u) {
            a_tile[buffer + tile_index(lane.k + j, lane.at >> 2u)][c] = four[j];
        }
    } else {
        a_tile[buffer + tile_index(lane.k, lane.at >> 2u)] = four;
    }
}

fn keep_b(buffer: u32, lane: Lane, four: vec4<f32>) {
    if (B_DEEP == 1u) {
        let c = lane.at & 3u;
        for (var j = 0u; j < 4u; j += 1u) {
            b_tile[buffer + tile_index(lane.k + j, lane.at >> 2u)][c] = four[j];
        }
    } else {
        b_tile[buffer + tile_index(lane.k, lane.at >> 2u)] = four;
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) i: u32,
) {
    let number = group_number(group);
    if (number >= params.row[7].z) {
        return;
    }
    let row_tiles = (params.row[0].x + TILE - 1u) / TILE;
    let column_tiles = (params.row[0].y + TILE - 1u) / TILE;
    let tiles = row_tiles * column_tiles;
    let tile = number % tiles;
    let split = (number / tiles) % params.row[7].x;
    let z = batch_of(number / tiles / params.row[7].x);
    let band = tile / (BAND * column_tiles);
    let in_band = tile % (BAND * column_tiles);
    let high = min(row_tiles - band * BAND, BAND);
    let row = (band * BAND + in_band % high) * TILE;
    let column = (in_band / high) * TILE;

    let depth = 1024u / TILE;
    let k_start = split * params.row[6].w;
    let k_end = min(k_start + params.row[6].w, params.row[0].z);
    let a_lane = a_lane_of(i);
    let b_lane = b_lane_of(i);
    let a_row = row + a_lane.at;
    let a_from = rows_of(z, a_row);
    let b_column = column + b_lane.at;
    let b_from = columns_of(z, b_column);

    // 32 invocations that follow each other make a block of 8 x 4 vectors, so that they
    // read few different ones.
    let lanes = i % 32u;
    let block = i / 32u;
    let x = (block % 2u) * 8u + lanes % 8u;
    let y = (block / 2u) * 4u + lanes / 8u;

    // c<row><half of the columns>: rows 0..3 at 4y, 4..7 at TILE / 2 + 4y.
    var c00 = vec4<f32>(); var c01 = vec4<f32>();
    var c10 = vec4<f32>(); var c11 = vec4<f32>();
    var c20 = vec4<f32>(); var c21 = vec4<f32>();
    var c30 = vec4<f32>(); var c31 = vec4<f32>();
    var c40 = vec4<f32>(); var c41 = vec4<f32>();
    var c50 = vec4<f32>(); var c51 = vec4<f32>();
    var c60 = vec4<f32>(); var c61 = vec4<f32>();
    var c70 = vec4<f32>(); var c71 = vec4<f32>();

    var buffer = 0u;
    keep_a(0u, a_lane, fetch_a(a_from, a_row, k_start + a_lane.k, k_end));
    keep_b(0u, b_lane, fetch_b(b_from, b_column, k_start + b_lane.k, k_end));
    workgroupBarrier();
    for (var k = k_start; k < k_end; k += depth) {
        let next = k + depth;
        var next_a = vec4<f32>();
        var next_b = vec4<f32>();
        if (next < k_end) {
            next_a = fetch_a(a_from, a_row, next + a_lane.k, k_end);
            next_b = fetch_b(b_from, b_column, next + b_lane.k, k_end);
        }
        for (var d = 0u; d < depth; d += 1u) {
            let p = a_tile[buffer + tile_index(d, y)];
            let s = b_tile[buffer + tile_index(d, x)];
            c00 += p.x * s;
            c10 += p.y * s;
            c20 += p.z * s;
            c30 += p.w * s;
            if (TILE == 128u) {
                let q = a_tile[buffer + tile_index(d, y + 16u)];
                let t = b_tile[buffer + tile_index(d, x + 16u)];
                c01 += p.x * t;
                c11 += p.y * t;
                c21 += p.z * t;
                c31 += p.w * t;
                c40 += q.x * s;
                c50 += q.y * s;
                c60 += q.z * s;
                c70 += q.w * s;
                c41 += q.x * t;
                c51 += q.y * t;
                c61 += q.z * t;
                c71 += q.w * t;
            }
        }
        buffer = buffer ^ 256u;
        if (next < k_end) {
            keep_a(buffer, a_lane, next_a);
            keep_b(buffer, b_lane, next_b);
        }
        workgroupBarrier();
    }

    let r = row + y * 4u;
    let n = column + x * 4u;
    store(z, split, r, n, c00);
    store(z, split, r + 1u, n, c10);
    store(z, split, r + 2u, n, c20);
    store(z, split, r + 3u, n, c30);
    if (TILE == 128u) {
        store(z, split, r, n + 64u, c01);
        store(z, split, r + 1u, n + 64u, c11);
        store(z, split, r + 2u, n + 64u, c21);
        store(z, split, r + 3u, n + 64u, c31);
        store(z, split, r + 64u, n, c40);
        store(z, split, r + 65u, n, c50);
        store(z, split, r + 66u, n, c60);
        store(z, split, r + 67u, n, c70);
        store(z, split, r + 64u, n + 64u, c41);
        store(z, split, r + 65u, n + 64u, c51);
        store(z, split, r + 66u, n + 64u, c61);
        store(z, split, r + 67u, n + 64u, c71);
    }
}
